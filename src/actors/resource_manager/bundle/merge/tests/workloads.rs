use serde_json::json;

use super::*;

/// spec 10 scenario 14
#[test]
fn replicas_are_live_if_the_manifest_has_none_or_they_are_preserved() {
    let none = json!(null);
    let table = [
        // manifest, autoscaler, annotation, result with 5 live
        (json!(2), false, None, 2),
        (json!(2), true, None, 5),
        (json!(2), false, Some("1"), 2),
        (json!(2), false, Some("true"), 5),
        (json!(0), false, None, 0),
        (none, false, None, 5),
    ];

    for api_version in ["apps/v1", "apps/v1beta1", "extensions/v1beta1"] {
        for kind in ["Deployment", "StatefulSet"] {
            for (replicas, scaled, annotation, expected) in &table {
                let mut manifest = object(api_version, kind, json!({"replicas": replicas}));
                if let Some(value) = annotation {
                    manifest = annotated(manifest, keys::PRESERVE_REPLICAS, value);
                }
                let live = object(api_version, kind, json!({"replicas": 5}));

                let merged =
                    merge(&manifest, &live, &MergeContext { preserve_replicas: *scaled, ..context() }).unwrap();

                assert_eq!(merged["spec"]["replicas"], json!(expected), "{kind} {replicas} {scaled} {annotation:?}");
            }
        }
    }
}

/// spec 10 §12.5
#[test]
fn a_replica_set_gets_no_protection() {
    let live = object("apps/v1", "ReplicaSet", json!({"replicas": 5}));

    let merged = merge(
        &object("apps/v1", "ReplicaSet", json!({})),
        &live,
        &MergeContext { preserve_replicas: true, ..context() },
    )
    .unwrap();

    assert_eq!(merged["spec"].get("replicas"), None);
}

fn containers(containers: Value) -> Value {
    json!({"template": {"spec": {"containers": containers}}})
}

/// spec 10 scenario 15
#[test]
fn preserved_resources_are_cpu_and_memory_of_containers_alone() {
    let manifest_spec = json!({"template": {"spec": {
        "initContainers": [{"name": "init", "resources": {"requests": {"cpu": "1m"}}}],
        "containers": [
            {"name": "a", "resources": {"requests": {"cpu": "20m", "ephemeral-storage": "1Gi"}, "limits": {"memory": "1Gi"}}},
            {"name": "new"},
        ],
    }}});
    let live_spec = json!({"template": {"spec": {
        "initContainers": [{"name": "init", "resources": {"requests": {"cpu": "9m"}}}],
        "containers": [
            {"name": "gone", "resources": {"requests": {"cpu": "1"}}},
            {"name": "a", "resources": {"requests": {"cpu": "40m", "memory": "7Mi", "ephemeral-storage": "9Gi"}}},
        ],
    }}});
    let expected = json!({
        "initContainers": [{"name": "init", "resources": {"requests": {"cpu": "1m"}}}],
        "containers": [
            {"name": "a", "resources": {
                "requests": {"cpu": "40m", "memory": "7Mi", "ephemeral-storage": "1Gi"}, "limits": {"memory": "1Gi"}}},
            {"name": "new"},
        ],
    });

    for (api_version, kind) in
        [("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("apps/v1", "DaemonSet"), ("batch/v1", "Job")]
    {
        let manifest = annotated(object(api_version, kind, manifest_spec.clone()), keys::PRESERVE_RESOURCES, "true");
        let merged = merged(&manifest, &object(api_version, kind, live_spec.clone()));
        assert_eq!(merged["spec"]["template"]["spec"], expected, "{kind}");
    }
    for version in ["batch/v1", "batch/v1beta1"] {
        let cron_job = |spec: &Value| object(version, "CronJob", json!({"jobTemplate": {"spec": spec}}));
        let manifest = annotated(cron_job(&manifest_spec), keys::PRESERVE_RESOURCES, "true");
        let merged = merged(&manifest, &cron_job(&live_spec));
        assert_eq!(merged["spec"]["jobTemplate"]["spec"]["template"]["spec"], expected);
    }
}

/// spec 10 §18, trap 15
#[test]
fn resources_are_the_manifests_without_the_exact_annotation() {
    let live =
        object("apps/v1", "Deployment", containers(json!([{"name": "a", "resources": {"limits": {"cpu": "2"}}}])));
    let manifest = object("apps/v1", "Deployment", containers(json!([{"name": "a"}])));

    for value in ["1", "True", "yes"] {
        let merged = merged(&annotated(manifest.clone(), keys::PRESERVE_RESOURCES, value), &live);

        assert_eq!(merged["spec"]["template"]["spec"]["containers"], json!([{"name": "a"}]));
    }
}

/// spec 10 scenario 16
#[test]
fn a_rollout_restart_survives() {
    let restarted = json!({"template": {"metadata": {"annotations": {keys::RESTARTED_AT: "live", "other": "1"}}}});
    let manifest = json!({"template": {"metadata": {"annotations": {keys::RESTARTED_AT: "manifest", "mine": "1"}}}});

    for kind in ["Deployment", "StatefulSet", "DaemonSet"] {
        let live = object("apps/v1", kind, restarted.clone());

        let kept = merged(&object("apps/v1", kind, manifest.clone()), &live);
        let added = merged(&object("apps/v1", kind, json!({"template": {}})), &live);

        let annotations = "/spec/template/metadata/annotations";
        assert_eq!(kept.pointer(annotations), Some(&json!({keys::RESTARTED_AT: "live", "mine": "1"})));
        assert_eq!(added.pointer(annotations), Some(&json!({keys::RESTARTED_AT: "live"})));
    }
}

/// spec 10 §12.4 and §18, trap 3
#[test]
fn selector_and_template_labels_of_a_job_are_live() {
    let live = object(
        "batch/v1",
        "Job",
        json!({"selector": {"matchLabels": {"uid": "1"}}, "template": {"metadata": {"labels": {"uid": "1", "app": "old"}}}}),
    );
    let manifest = object(
        "batch/v1",
        "Job",
        json!({"selector": {"matchLabels": {"mine": "1"}}, "template": {"metadata": {"labels": {"app": "new"}}}}),
    );

    let merged = merged(&manifest, &live);

    assert_eq!(merged["spec"]["selector"], json!({"matchLabels": {"uid": "1"}}));
    assert_eq!(
        merged["spec"]["template"]["metadata"]["labels"],
        json!({"uid": "1", "app": "new", keys::MANAGED_BY: "gardener"})
    );
}

/// spec 10 §12.4
#[test]
fn a_cron_job_of_an_unknown_version_is_an_error() {
    let manifest = object("batch/v2alpha1", "CronJob", json!({}));
    let context = context();

    let error = merge(&manifest, &manifest, &context).unwrap_err();

    assert_eq!(error.to_string(), "cannot merge objects with gvk: batch/v2alpha1, Kind=CronJob");
}

/// spec 10 §11.4
#[test]
fn label_injection_without_room_is_an_error_that_names_the_object() {
    let manifest = object("v1", "Pod", json!("x"));
    let context = context();

    let error = for_create(&manifest, &context).unwrap_err();

    assert_eq!(
        error.to_string(),
        "error injecting labels into object \"v1/Pod/ns/a\": failed to inject labels into .spec, is of type string, expected a map"
    );
}

/// spec 10 scenario 19
#[test]
fn volume_claim_templates_are_live_once_the_stateful_set_exists() {
    let template = |size: &str| json!({"volumeClaimTemplates": [{"spec": {"size": size}}]});
    let manifest = object("apps/v1", "StatefulSet", template("2Gi"));
    let mut live = object("apps/v1", "StatefulSet", template("1Gi"));

    let size = |object: &Value| object["spec"]["volumeClaimTemplates"][0]["spec"]["size"].clone();
    assert_eq!(size(&merged(&manifest, &live)), json!("2Gi"));

    live["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(size(&merged(&manifest, &live)), json!("1Gi"));
}

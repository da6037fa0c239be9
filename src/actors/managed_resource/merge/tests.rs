use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::actors::managed_resource::settled::{differs, settled};

const OWN_MANAGER: &str = "gardener-resource-manager";

/// No force flags, no autoscaler, no old information.
fn context() -> MergeContext<'static> {
    static LABELS: LazyLock<BTreeMap<String, String>> =
        LazyLock::new(|| inject::labels_to_inject(&BTreeMap::new(), "gardener"));
    MergeContext {
        origin: "ns/mr",
        labels: &LABELS,
        old: None,
        force_overwrite_labels: false,
        force_overwrite_annotations: false,
        preserve_replicas: false,
    }
}

fn old(labels: &[(&str, &str)]) -> Old {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Old { labels, annotations: BTreeMap::new() }
}

fn merged(manifest: &Value, live: &Value) -> Value {
    merge(manifest, live, &context()).unwrap()
}

fn object(api_version: &str, kind: &str, spec: Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"namespace": "ns", "name": "a"}, "spec": spec})
}

fn annotated(mut object: Value, key: &str, value: &str) -> Value {
    object["metadata"]["annotations"][key] = json!(value);
    object
}

// === base (§12.1) ===

/// spec 10 §12.1
#[test]
fn metadata_and_status_are_live_and_the_rest_is_the_manifests() {
    let manifest = json!({
        "apiVersion": "g.io/v1", "kind": "Thing", "metadata": {"name": "a", "finalizers": ["mine"], "resourceVersion": "1"},
        "spec": {"a": 1}, "extra": {"b": 2}, "status": {"from": "manifest"},
    });
    let live = json!({
        "apiVersion": "g.io/v1", "kind": "Thing",
        "metadata": {"name": "a", "resourceVersion": "7", "uid": "u", "finalizers": ["theirs"], "future": 1},
        "spec": {"a": 2, "gone": true}, "old": 1, "status": {"from": "live"},
    });

    let merged = merged(&manifest, &live);

    assert_eq!(merged["spec"], json!({"a": 1}));
    assert_eq!(merged["extra"], json!({"b": 2}));
    assert_eq!(merged["status"], json!({"from": "live"}));
    assert_eq!(merged.get("old"), None);
    for field in ["resourceVersion", "uid", "finalizers", "future"] {
        assert_eq!(merged["metadata"][field], live["metadata"][field], "{field}");
    }
}

/// spec 10 §12.1
#[test]
fn a_status_that_is_no_filled_map_is_removed() {
    for status in [json!({}), json!(null), json!("x")] {
        let mut live = object("g.io/v1", "Thing", json!({}));
        live["status"] = status;
        let mut manifest = live.clone();
        manifest["status"] = json!({"from": "manifest"});

        assert_eq!(merged(&manifest, &live).get("status"), None);
    }
}

/// spec 10 scenario 38
#[test]
fn only_the_manifests_owner_references_remain() {
    let mut live = object("v1", "ConfigMap", json!({}));
    live["metadata"]["ownerReferences"] = json!([{"name": "foreign"}]);
    let mut manifest = object("v1", "ConfigMap", json!({}));

    assert_eq!(merged(&manifest, &live)["metadata"].get("ownerReferences"), None);

    manifest["metadata"]["ownerReferences"] = json!([{"name": "ours"}]);
    assert_eq!(merged(&manifest, &live)["metadata"]["ownerReferences"], json!([{"name": "ours"}]));
}

/// spec 10 §11.3.2, scenario 1
#[test]
fn a_creation_sends_finalizers_status_and_the_marks() {
    let context = MergeContext { origin: "id:ns/mr", ..context() };
    let mut manifest = object("g.io/v1", "Thing", json!({"a": 1}));
    manifest["metadata"]["finalizers"] = json!(["f"]);
    manifest["status"] = json!({"s": 1});

    let created = for_create(&manifest, &context).unwrap();

    assert_eq!(
        created,
        json!({
            "apiVersion": "g.io/v1", "kind": "Thing", "spec": {"a": 1}, "status": {"s": 1},
            "metadata": {
                "namespace": "ns", "name": "a", "finalizers": ["f"],
                "labels": {"resources.gardener.cloud/managed-by": "gardener"},
                "annotations": {
                    "resources.gardener.cloud/origin": "id:ns/mr",
                    "resources.gardener.cloud/description": "DO NOT EDIT - This resource is managed by gardener-resource-manager.\n\
                        Any modifications are discarded and the resource is returned to the original state.",
                },
            },
        })
    );
}

// === labels and annotations (§12.2) ===

/// spec 10 scenarios 10 and 11
#[test]
fn label_drift_is_reset_and_foreign_labels_stay_unless_forced() {
    let mut live = object("v1", "ConfigMap", json!({}));
    live["metadata"]["labels"] = json!({"a": "changed", "x": "1"});
    let mut manifest = object("v1", "ConfigMap", json!({}));
    manifest["metadata"]["labels"] = json!({"a": "1"});
    let old = old(&[("a", "1")]);

    let kept = merge(&manifest, &live, &MergeContext { old: Some(&old), ..context() }).unwrap();
    let forced = merge(&manifest, &live, &MergeContext { force_overwrite_labels: true, ..context() }).unwrap();

    assert_eq!(kept["metadata"]["labels"], json!({"a": "1", "x": "1", keys::MANAGED_BY: "gardener"}));
    assert_eq!(forced["metadata"]["labels"], json!({"a": "1", keys::MANAGED_BY: "gardener"}));
}

/// spec 10 scenario 12
#[test]
fn stale_reference_annotations_go_and_other_foreign_ones_stay() {
    let live = annotated(
        object("apps/v1", "Deployment", json!({})),
        "reference.resources.gardener.cloud/secret-aaaaaaaa",
        "x",
    );
    let live = annotated(live, "foreign", "1");
    let manifest = object("apps/v1", "Deployment", json!({}));
    let manifest = annotated(manifest, "reference.resources.gardener.cloud/secret-bbbbbbbb", "y");

    let annotations = merged(&manifest, &live)["metadata"]["annotations"].clone();

    let keys: Vec<_> = annotations.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        ["foreign", "reference.resources.gardener.cloud/secret-bbbbbbbb", keys::DESCRIPTION, keys::ORIGIN]
    );
}

/// spec 10 §12.2
#[test]
fn forced_annotations_are_exactly_the_manifests_and_the_two_marks() {
    let live = annotated(object("v1", "ConfigMap", json!({})), "foreign", "1");
    let manifest = annotated(object("v1", "ConfigMap", json!({})), "mine", "1");

    let merged = merge(&manifest, &live, &MergeContext { force_overwrite_annotations: true, ..context() }).unwrap();

    assert_eq!(
        merged["metadata"]["annotations"],
        json!({"mine": "1", keys::DESCRIPTION: keys::DESCRIPTION_TEXT, keys::ORIGIN: "ns/mr"})
    );
}

// === object-level ignore (§11.3.4) ===

/// spec 10 scenario 22
#[test]
fn an_ignored_object_is_created_as_it_is_and_keeps_what_users_change() {
    let manifest = annotated(object("apps/v1", "Deployment", json!({"replicas": 1})), keys::IGNORE, "TRUE");
    let live = annotated(object("apps/v1", "Deployment", json!({"replicas": 7, "paused": true})), "user", "1");

    assert_eq!(merged(&manifest, &manifest), manifest);
    assert_eq!(merged(&manifest, &live), live);
}

/// spec 10 §11.3.4
#[test]
fn an_ignored_object_only_loses_an_old_description() {
    let manifest = annotated(object("v1", "ConfigMap", json!({})), keys::IGNORE, "t");
    let live = annotated(object("v1", "ConfigMap", json!({})), "user", "1");

    let merged = merged(&manifest, &annotated(live.clone(), keys::DESCRIPTION, "old"));

    assert_eq!(merged, live);
}

/// spec 10 §18, trap 16
#[test]
fn the_ignore_annotation_of_the_live_object_has_no_effect() {
    let live = annotated(object("g.io/v1", "Thing", json!({"a": 2})), keys::IGNORE, "true");

    assert_eq!(merged(&object("g.io/v1", "Thing", json!({"a": 1})), &live)["spec"], json!({"a": 1}));
}

// === replicas (§12.5) ===

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

// === pod template (§12.3) ===

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

// === other workload rules (§12.4, §12.5) ===

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
fn an_object_without_place_for_labels_is_an_error_that_names_it() {
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

// === ServiceAccount (§12.6) ===

/// spec 10 scenario 18
#[test]
fn secrets_of_a_service_account_are_live() {
    let account = |secrets: Value, pull: Value| {
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}, "secrets": secrets, "imagePullSecrets": pull,
            "automountServiceAccountToken": false})
    };
    let live = account(json!([{"name": "token"}]), json!([{"name": "live"}]));

    let kept = merged(&account(json!(null), json!([{"name": "manifest"}])), &live);
    assert_eq!(kept["secrets"], live["secrets"]);
    assert_eq!(kept["imagePullSecrets"], live["imagePullSecrets"]);

    let bare = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}});
    assert_eq!(merged(&live, &bare).get("secrets"), None);
}

// === Service (§12.7) ===

fn service(spec: Value) -> Value {
    object("v1", "Service", spec)
}

/// spec 10 scenario 17
#[test]
fn a_node_port_is_kept_by_name_and_the_address_too() {
    let live = service(json!({"type": "NodePort", "clusterIP": "10.0.0.7",
        "ports": [{"name": "http", "port": 80, "nodePort": 30080}]}));
    let manifest = service(json!({"type": "NodePort", "ports": [{"name": "http", "port": 8080}]}));

    let merged = merged(&manifest, &live);

    assert_eq!(merged["spec"]["ports"], json!([{"name": "http", "port": 8080, "nodePort": 30080}]));
    assert_eq!(merged["spec"]["clusterIP"], json!("10.0.0.7"));
}

/// spec 10 scenario 17
#[test]
fn an_external_name_does_not_send_the_old_address() {
    let live = service(json!({"type": "NodePort", "clusterIP": "10.0.0.7"}));

    let merged = merged(&service(json!({"type": "ExternalName", "externalName": "x"})), &live);

    assert_eq!(merged["spec"], json!({"type": "ExternalName", "externalName": "x"}));
}

/// spec 10 §12.7.2, with the deviation
#[test]
fn node_ports_are_kept_once_by_name_before_port() {
    let old_ports = json!([
        {"name": "a", "port": 1, "nodePort": 30001},
        {"name": "b", "port": 2, "nodePort": 30002},
    ]);
    let table = [
        ("by port", json!([{"name": "x", "port": 2}]), vec![30002]),
        ("swapped names and numbers", json!([{"name": "b", "port": 1}, {"name": "a", "port": 2}]), vec![30002, 30001]),
        (
            "explicit stays and is not given twice",
            json!([{"name": "x", "port": 9, "nodePort": 30001}, {"name": "a", "port": 1}]),
            vec![30001, 0],
        ),
        ("zero is absent", json!([{"name": "a", "port": 9, "nodePort": 0}]), vec![30001]),
        ("no match", json!([{"name": "x", "port": 9}]), vec![0]),
        ("more ports than before", json!([{"name": "n", "port": 1}, {"name": "a", "port": 9}]), vec![0, 30001]),
    ];

    for (case, ports, expected) in table {
        let live = service(json!({"type": "NodePort", "ports": old_ports}));

        for service_type in ["NodePort", "LoadBalancer"] {
            let merged = merged(&service(json!({"type": service_type, "ports": ports})), &live);

            let node_ports = merged["spec"]["ports"].as_array().unwrap().iter();
            let node_ports: Vec<_> = node_ports.map(|port| port["nodePort"].as_i64().unwrap_or_default()).collect();
            assert_eq!(node_ports, expected, "{case}");
        }
    }
}

/// spec 10 §12.7.2: two missing names are equal
#[test]
fn the_only_port_keeps_its_node_port_when_its_number_changes() {
    let live = service(json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]}));

    let merged = merged(&service(json!({"type": "NodePort", "ports": [{"port": 81}]})), &live);

    assert_eq!(merged["spec"]["ports"], json!([{"port": 81, "nodePort": 30080}]));
}

#[test]
fn one_number_may_serve_two_protocols() {
    let ports = json!([
        {"name": "dns", "port": 53, "protocol": "UDP", "nodePort": 30053},
        {"name": "dns-tcp", "port": 53, "protocol": "TCP", "nodePort": 30053},
    ]);
    let live = service(json!({"type": "NodePort", "ports": ports}));
    let wanted = json!([{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53}]);

    let merged = merged(&service(json!({"type": "NodePort", "ports": wanted})), &live);

    assert_eq!(merged["spec"]["ports"][0]["nodePort"], json!(30053));
    assert_eq!(merged["spec"]["ports"][1]["nodePort"], json!(30053));
}

/// spec 10 §12.7.2
#[test]
fn a_cluster_ip_service_keeps_no_node_ports() {
    let live = service(json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]}));

    let merged = merged(&service(json!({"ports": [{"port": 80}]})), &live);

    assert_eq!(merged["spec"], json!({"type": "ClusterIP", "ports": [{"port": 80}]}));
}

/// spec 10 §12.7.4
#[test]
fn the_cluster_ip_follows_the_old_one() {
    let table = [
        // new type, new IP, old type, old IP, result
        ("ClusterIP", None, "ClusterIP", Some("10.0.0.7"), Some("10.0.0.7")),
        ("ClusterIP", Some("10.0.0.8"), "ClusterIP", Some("10.0.0.7"), Some("10.0.0.7")),
        ("ClusterIP", Some("None"), "ClusterIP", Some("10.0.0.7"), Some("None")),
        ("ClusterIP", None, "ClusterIP", Some("None"), Some("None")),
        ("LoadBalancer", None, "NodePort", Some("10.0.0.7"), Some("10.0.0.7")),
        ("ClusterIP", Some("10.0.0.8"), "ExternalName", None, Some("10.0.0.8")),
        ("ClusterIP", None, "ExternalName", Some(""), None),
    ];

    for (new_type, new_ip, old_type, old_ip, expected) in table {
        let build = |service_type: &str, ip: Option<&str>| {
            let mut spec = json!({"type": service_type});
            if let Some(ip) = ip {
                spec["clusterIP"] = json!(ip);
            }
            service(spec)
        };

        let merged = merged(&build(new_type, new_ip), &build(old_type, old_ip));

        let result = merged["spec"].get("clusterIP").and_then(Value::as_str);
        assert_eq!(result, expected, "{new_type} {new_ip:?} {old_type} {old_ip:?}");
    }
}

/// spec 10 §12.7.2: the address even survives a time as `NodePort`
#[test]
fn the_load_balancer_ip_is_kept_unless_the_manifest_has_one() {
    let live = service(json!({"type": "LoadBalancer", "loadBalancerIP": "1.1.1.1"}));

    for (service_type, new, expected) in [
        ("LoadBalancer", json!(null), json!("1.1.1.1")),
        ("NodePort", json!(""), json!("1.1.1.1")),
        ("LoadBalancer", json!("2.2.2.2"), json!("2.2.2.2")),
        ("ClusterIP", json!(null), json!(null)),
    ] {
        let merged = merged(&service(json!({"type": service_type, "loadBalancerIP": new})), &live);

        assert_eq!(merged["spec"]["loadBalancerIP"], expected);
    }
}

/// spec 10 §12.7.5
#[test]
fn the_health_check_port_is_kept_for_local_traffic_on_both_sides() {
    let build = |service_type: &str, policy: &str, port: i64| {
        service(json!({"type": service_type, "externalTrafficPolicy": policy, "healthCheckNodePort": port}))
    };
    let table = [
        (build("LoadBalancer", "Local", 0), build("LoadBalancer", "Local", 31000), 31000),
        (build("LoadBalancer", "Local", 32000), build("LoadBalancer", "Local", 31000), 32000),
        (build("LoadBalancer", "Cluster", 0), build("LoadBalancer", "Local", 31000), 0),
        (build("LoadBalancer", "Local", 0), build("LoadBalancer", "Cluster", 31000), 0),
        (build("NodePort", "Local", 0), build("LoadBalancer", "Local", 31000), 0),
    ];

    for (manifest, live, expected) in table {
        assert_eq!(merged(&manifest, &live)["spec"]["healthCheckNodePort"], json!(expected));
    }
}

/// spec 10 §12.7.1, deviation
#[test]
fn annotations_of_the_openstack_load_balancer_survive_forced_annotations() {
    let live = annotated(service(json!({})), "loadbalancer.openstack.org/load-balancer-id", "live");
    let live = annotated(live, "loadbalancer.openstack.org/keep-floatingip", "live");
    let live = annotated(live, "other", "live");
    let manifest = annotated(service(json!({})), "loadbalancer.openstack.org/keep-floatingip", "manifest");

    let merged = merge(&manifest, &live, &MergeContext { force_overwrite_annotations: true, ..context() }).unwrap();

    let annotations = &merged["metadata"]["annotations"];
    assert_eq!(annotations["loadbalancer.openstack.org/load-balancer-id"], json!("live"));
    assert_eq!(annotations["loadbalancer.openstack.org/keep-floatingip"], json!("manifest"));
    assert_eq!(annotations.get("other"), None);
}

// === properties ===

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-d]", inner, 0..3).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn string_map() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(
        prop::sample::select(vec!["a", "b", "reference.resources.gardener.cloud/x", "loadbalancer.openstack.org/y"]),
        "[xy]",
        0..3,
    )
    .prop_map(|map| map.into_iter().map(|(key, value)| (key.to_owned(), Value::from(value))).collect())
}

prop_compose! {
    fn pod_template()(
        labels in string_map(),
        restarted_at in prop::option::of("[12]"),
        containers in prop::collection::btree_map("[ab]", (prop::option::of("[12]"), prop::option::of("[12]Mi")), 0..3),
        unknown in json_value(),
    ) -> Value {
        let containers: Vec<Value> = containers.into_iter().map(|(name, (cpu, memory))| json!({
            "name": name, "resources": {"requests": {"cpu": cpu, "memory": memory}},
        })).collect();
        let annotations = restarted_at.map(|at| json!({keys::RESTARTED_AT: at}));
        json!({"metadata": {"labels": labels, "annotations": annotations}, "spec": {"containers": containers}, "unknown": unknown})
    }
}

prop_compose! {
    fn service_spec()(
        service_type in prop::option::of(prop::sample::select(vec!["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"])),
        ip in prop::option::of(prop::sample::select(vec!["None", "10.0.0.1", "10.0.0.2"])),
        policy in prop::option::of(prop::sample::select(vec!["Local", "Cluster"])),
        health in prop::option::of(31000..31002),
        balancer in prop::option::of("[12]"),
        // A Service has each port once per protocol.
        ports in prop::collection::btree_map((1..4u16, prop::sample::select(vec!["TCP", "UDP"])),
            (prop::option::of("[ab]"), prop::option::of(30000..30003u16)), 0..4),
    ) -> Value {
        let ports: Vec<Value> = ports.into_iter().map(|((port, protocol), (name, node_port))| json!({
            "name": name, "port": port, "protocol": protocol, "nodePort": node_port,
        })).collect();
        json!({"type": service_type, "clusterIP": ip, "externalTrafficPolicy": policy, "healthCheckNodePort": health,
            "loadBalancerIP": balancer, "ports": ports})
    }
}

prop_compose! {
    /// An object of any kind that has a rule, or of one that has none, with fields nobody knows.
    fn any_object()(
        kind in prop::sample::select(vec![0, 1, 2, 3, 4, 5, 6, 7]),
    )(
        spec in match kind {
            0 => service_spec().boxed(),
            1 => pod_template().prop_map(|template| json!({"jobTemplate": {"spec": {"template": template}}})).boxed(),
            _ => (pod_template(), prop::option::of(0..3), json_value(), json_value()).prop_map(
                |(template, replicas, selector, unknown)| {
                    json!({"template": template, "replicas": replicas, "selector": selector, "unknown": unknown,
                        "volumeClaimTemplates": [{"metadata": {"name": "data"}}]})
                }).boxed(),
        },
        labels in string_map(), annotations in string_map(), status in json_value(), unknown in json_value(),
        preserve in any::<bool>(), exists in any::<bool>(), secrets in json_value(),
        kind in Just(kind),
    ) -> Value {
        let (api_version, kind) = [
            ("v1", "Service"), ("batch/v1", "CronJob"), ("batch/v1", "Job"), ("apps/v1", "Deployment"),
            ("apps/v1", "StatefulSet"), ("apps/v1", "DaemonSet"), ("v1", "ServiceAccount"), ("g.io/v1", "Thing"),
        ][kind];
        let mut object = json!({
            "apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "labels": labels, "annotations": annotations},
            "spec": spec, "status": status, "unknown": unknown, "secrets": secrets,
        });
        if preserve {
            object["metadata"]["annotations"][keys::PRESERVE_REPLICAS] = json!("true");
            object["metadata"]["annotations"][keys::PRESERVE_RESOURCES] = json!("true");
        }
        if exists {
            object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        object
    }
}

proptest! {
    #[test]
    fn a_merge_is_stable_and_keeps_unknown_fields(
        manifest in any_object(),
        live in any_object(),
        force in any::<bool>(),
        scaled in any::<bool>(),
        old_labels in prop::collection::btree_map("[ab]", "[xy]", 0..3),
    ) {
        let live = { let mut live = live; live["apiVersion"] = manifest["apiVersion"].clone(); live["kind"] = manifest["kind"].clone(); live };
        let old = Old { labels: old_labels, annotations: BTreeMap::new() };
        let context = MergeContext { old: Some(&old), force_overwrite_labels: force, force_overwrite_annotations: force, preserve_replicas: scaled, ..context() };

        let once = merge(&manifest, &live, &context).unwrap();
        let twice = merge(&manifest, &once, &context).unwrap();

        prop_assert_eq!(&twice, &once, "a second merge changes nothing");
        prop_assert_eq!(&once["unknown"], &manifest["unknown"]);
        prop_assert_eq!(once.pointer("/spec/unknown"), manifest.pointer("/spec/unknown"));
        prop_assert_eq!(once.pointer("/spec/template/unknown"), manifest.pointer("/spec/template/unknown"));
        prop_assert!(settled(&once, &once, OWN_MANAGER), "what was just sent is settled");
        prop_assert!(!differs(&once, &twice));
        if !differs(&once, &live) {
            prop_assert!(settled(&once, &live, OWN_MANAGER), "the tolerant comparison finds no more differences");
        }
    }

    #[test]
    fn a_creation_is_what_an_update_of_it_would_send(manifest in any_object()) {
        let context = context();

        let created = for_create(&manifest, &context).unwrap();

        prop_assert_eq!(&merge(&manifest, &created, &context).unwrap(), &created);
    }
}

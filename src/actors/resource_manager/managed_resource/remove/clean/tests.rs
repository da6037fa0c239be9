use serde_json::json;

use super::*;

fn gvk(group: &str, version: &str, kind: &str) -> GroupVersionKind {
    GroupVersionKind::new(group, version, kind)
}

/// spec 10 §13.2, scenarios 24 and 25
#[test]
fn prune_spares_objects_by_annotation_or_for_the_garbage_collector() {
    let keep = |value: &str| json!({"annotations": {keys::KEEP_OBJECT: value}});
    let collect = |value: &str| json!({"labels": {keys::GARBAGE_COLLECTABLE: value}});
    let table = [
        // apiVersion, kind, metadata, collector enabled, result
        ("apps/v1", "Deployment", keep("true"), false, Some(Exclusion::KeepObject)),
        ("apps/v1", "Deployment", keep("1"), false, Some(Exclusion::KeepObject)),
        ("apps/v1", "Deployment", keep("yes"), false, None),
        ("v1", "ConfigMap", collect("true"), true, Some(Exclusion::GarbageCollectable)),
        ("v1", "Secret", collect("T"), true, Some(Exclusion::GarbageCollectable)),
        ("v1", "Secret", collect("true"), false, None),
        ("v1", "Secret", collect("false"), true, None),
        ("v1", "Node", collect("true"), true, None),
        ("apps/v1", "Deployment", collect("true"), true, None),
        ("g.io/v1", "Secret", collect("true"), true, None),
        ("v1", "Secret", json!({"annotations": {keys::GARBAGE_COLLECTABLE: "true"}}), true, None),
        ("v1", "Secret", json!({"labels": {keys::KEEP_OBJECT: "true"}}), true, None),
    ];

    for (api_version, kind, metadata, enabled, expected) in table {
        let live = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});

        assert_eq!(exclusion_of_object(&live, enabled), expected, "{live}");
        let gvk = GroupVersionKind::from_api_version(api_version, kind);
        assert_eq!(exclusion_of_cached(&gvk, &CachedObject::of_metadata(&live, None), enabled), expected, "{live}");
    }
    assert!(!is_config_map_or_secret(&gvk("", "v2", "Secret")));
}

/// decision 10
#[test]
fn prune_other_owner_is_of_the_same_cluster_only() {
    let table = [
        (Some("ns/other"), "", Some(("ns", "other"))),
        (Some("id:ns/other"), "id", Some(("ns", "other"))),
        (Some("id:ns2/own"), "id", Some(("ns2", "own"))),
        (Some("ns/own"), "", None),
        (Some("id:ns/own"), "id", None),
        (Some("ns/other"), "id", None),
        (Some("id2:ns/other"), "id", None),
        (Some("nonsense"), "", None),
        (None, "", None),
    ];

    for (origin, cluster_id, expected) in table {
        let own = Origin::new(cluster_id, NamespacedName::new("ns", "own"));

        let expected = expected.map(|(namespace, name)| NamespacedName::new(namespace, name));
        assert_eq!(other_owner(origin, &own), expected, "{origin:?} {cluster_id:?}");
    }
}

/// spec 10 §13.4
#[test]
fn prune_deletes_workloads_in_the_foreground() {
    for group in ["apps", "extensions", "batch"] {
        assert_eq!(propagation(group), Some(Propagation::Foreground));
    }
    for group in ["", "rbac.authorization.k8s.io", "g.io"] {
        assert_eq!(propagation(group), None);
    }
}

/// spec 10 §13.5, scenario 26
#[test]
fn prune_removes_finalizers_after_the_grace_time() {
    const DELETED: Option<&str> = Some("2026-01-01T12:00:00Z");
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    let table = [
        // grace time, deletionTimestamp, finalizers, now, result
        (Some("1h"), DELETED, true, "2026-01-01T12:59:59Z", ForcedFinalization::No),
        (Some("1h"), DELETED, true, "2026-01-01T13:00:00Z", ForcedFinalization::RemoveFinalizers),
        (Some("1h"), DELETED, false, "2026-01-01T14:00:00Z", ForcedFinalization::No),
        (Some("1h"), None, true, "2026-01-01T14:00:00Z", ForcedFinalization::No),
        (Some("0"), DELETED, true, "2026-01-01T14:00:00Z", ForcedFinalization::No),
        (Some("0s"), DELETED, true, "2026-01-01T14:00:00Z", ForcedFinalization::No),
        (Some("-1s"), DELETED, true, "2026-01-01T12:00:00Z", ForcedFinalization::RemoveFinalizers),
        (Some("-1s"), None, true, "2026-01-01T12:00:00Z", ForcedFinalization::No),
        (Some("2562047h"), DELETED, true, "2026-01-01T12:00:00Z", ForcedFinalization::No),
        (None, DELETED, true, "2026-01-01T14:00:00Z", ForcedFinalization::No),
    ];

    for (grace, deleted, has_finalizers, now, expected) in table {
        let mut live = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        if let Some(grace) = grace {
            live["metadata"]["annotations"] = json!({keys::FINALIZE_DELETION_AFTER: grace});
        }
        if let Some(deleted) = deleted {
            live["metadata"]["deletionTimestamp"] = json!(deleted);
        }
        if has_finalizers {
            live["metadata"]["finalizers"] = json!(["x"]);
        }

        assert_eq!(forced_finalization(&live, at(now)), Ok(expected), "{grace:?} {deleted:?} {now}");
    }
}

/// spec 10 §13.5.3. Without a version, a change by another client is no conflict; by the uid, a new object is one.
#[test]
fn prune_removes_finalizers_by_uid_and_without_a_lock() {
    let live = json!({"metadata": {"name": "a", "uid": "u-1", "resourceVersion": "7", "finalizers": ["x"]}});

    assert_eq!(remove_finalizers_patch(&live), json!({"metadata": {"uid": "u-1", "finalizers": null}}));
}

/// spec 10 §13.5.4, scenario 26
#[test]
fn prune_finalizes_a_namespace_whichever_finalizers_it_has() {
    let namespace = |metadata: &[&str], spec: &[&str]| {
        json!({"apiVersion": "v1", "kind": "Namespace", "spec": {"finalizers": spec, "x": 1}, "metadata": {
            "name": "a", "finalizers": metadata, "deletionTimestamp": "2026-01-01T12:00:00Z",
            "annotations": {keys::FINALIZE_DELETION_AFTER: "1h"}}})
    };
    let now = "2026-01-01T13:00:00Z".parse().unwrap();

    for (live, expected) in [
        (namespace(&["x"], &[]), ForcedFinalization::FinalizeNamespace),
        (namespace(&[], &["kubernetes"]), ForcedFinalization::FinalizeNamespace),
        (namespace(&[], &[]), ForcedFinalization::No),
    ] {
        assert_eq!(forced_finalization(&live, now), Ok(expected));
    }

    let body = finalized_namespace(&namespace(&["x"], &["kubernetes"]));
    assert_eq!(body["spec"], json!({"x": 1}));
    assert_eq!(body["metadata"].get("finalizers"), None);
    assert_eq!(body["metadata"]["name"], json!("a"));
}

/// spec 10 §13.5.1
#[test]
fn prune_reports_an_unreadable_grace_time() {
    let live = json!({"metadata": {"annotations": {keys::FINALIZE_DELETION_AFTER: "soon"}}});

    let error = forced_finalization(&live, Timestamp::UNIX_EPOCH).unwrap_err().to_string();

    assert!(
        error.starts_with("failed parsing duration of resources.gardener.cloud/finalize-deletion-after annotation: "),
        "{error}"
    );
    assert!(error.contains("soon"), "{error}");
}

/// spec 10 §13.6, scenario 9
#[test]
fn prune_reports_a_pending_object_with_its_error_and_events() {
    let table = [
        (None, "", "deletion of old resource \"v1/Service/ns/a\" is still pending"),
        (Some("boom"), "", "deletion of old resource \"v1/Service/ns/a\" is still pending: boom"),
        (
            Some("boom"),
            "\n\n-> Events:\n* c reported 1s ago: m",
            "deletion of old resource \"v1/Service/ns/a\" is still pending: boom\n\n-> Events:\n* c reported 1s ago: m",
        ),
    ];

    for (error, events, text) in table {
        assert_eq!(still_pending("v1/Service/ns/a", error, events), text);
    }
}

/// spec 10 §14, scenario 23
#[test]
fn release_needs_our_own_origin() {
    let live = |origin: &str| json!({"metadata": {"annotations": {keys::ORIGIN: origin, keys::DESCRIPTION: "x"}}});

    assert_eq!(
        release_patch(&live("ns/mr1"), "ns/mr1"),
        Some(json!({"metadata": {"annotations": {keys::ORIGIN: null, keys::DESCRIPTION: null}}}))
    );
    assert_eq!(release_patch(&live("ns/mr2"), "ns/mr1"), None);
    assert_eq!(release_patch(&json!({"metadata": {}}), "ns/mr1"), None);
    assert_eq!(orphan_not_read("v1/Secret/ns/a", "boom"), "error getting object \"v1/Secret/ns/a\": boom");
    assert_eq!(orphan_not_patched("v1/Secret/ns/a", "boom"), "error patching object \"v1/Secret/ns/a\": boom");
}

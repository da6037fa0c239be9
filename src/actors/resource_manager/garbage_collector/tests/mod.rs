use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{
    candidates::{Candidates, CollectableKind, Identity},
    references, *,
};

const LABEL: &str = "resources.gardener.cloud/garbage-collectable-reference";

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn object(age: SignedDuration) -> Value {
    let created = (now() - age).to_string();
    json!({ "metadata": { "namespace": "ns", "name": "a", "uid": "u", "resourceVersion": "7", "creationTimestamp": created } })
}

fn candidates(object: &Value) -> Candidates {
    let mut candidates = Candidates::default();
    candidates.add(CollectableKind::Secret, object, now());
    candidates
}

fn holder(annotations: &Value) -> Value {
    json!({ "metadata": { "annotations": annotations } })
}

fn reference(key: &str, value: &str) -> Vec<(CollectableKind, String)> {
    let holder = holder(&json!({ format!("reference.resources.gardener.cloud/{key}"): value }));
    references::of(&holder).map(|(kind, name)| (kind, name.to_owned())).collect()
}

/// spec 33 §4.1 rule 3, scenario 4
#[test]
fn candidates_are_at_least_ten_minutes_old() {
    for (age, expected) in [(0, 0), (599, 0), (600, 1), (86_400, 1), (-60, 0)] {
        let found = candidates(&object(SignedDuration::from_secs(age)));

        assert_eq!((found.known.len(), found.young), (expected, 1 - expected), "{age} s");
    }
    let found = candidates(&object(SignedDuration::from_hours(1)));
    let identity = Identity { namespace: "ns".into(), kind: CollectableKind::Secret, name: "a".into() };
    let seen = &found.known[&identity];
    assert_eq!((seen.uid.as_str(), seen.resource_version.as_str()), ("u", "7"));
}

#[test]
fn candidates_of_unknown_age_are_spared() {
    for created in [json!(null), json!(""), json!("yesterday"), json!(7)] {
        let mut object = object(SignedDuration::from_hours(1));
        object["metadata"]["creationTimestamp"] = created;

        assert_eq!((candidates(&object).known.len(), candidates(&object).young), (0, 1), "{object}");
    }
}

/// spec 33 T11; spec 33, better 7
#[test]
fn terminating_object_is_counted_and_not_deleted_again() {
    let mut object = object(SignedDuration::from_hours(1));
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T11:00:00Z");

    assert_eq!((candidates(&object).known.len(), candidates(&object).terminating), (0, 1));
}

/// spec 33 §4.1, scenario 5: the label counts with the value `true` alone
#[test]
fn candidates_are_selected_by_label_on_the_server() {
    assert_eq!(candidates::selector(), format!("{LABEL}=true"));
}

/// spec 33 §2, §4.2, scenarios 9, 10, 11 and 12
#[test]
fn reference_key_is_a_prefix_a_kind_and_a_hash() {
    for (key, value, expected) in [
        ("secret-82a3537f", "name", Some((CollectableKind::Secret, "name"))),
        ("configmap-82a3537f", "name", Some((CollectableKind::ConfigMap, "name"))),
        ("secret-foo", "db-1", Some((CollectableKind::Secret, "db-1"))),
        ("secret-", "name", Some((CollectableKind::Secret, "name"))),
        ("secret-foo-bar", "name", None),
        ("secret", "name", None),
        ("secret-foo", "", None),
        ("Secret-foo", "name", None),
        ("job-foo", "name", None),
        ("-foo", "name", None),
    ] {
        let expected: Vec<_> = expected.into_iter().map(|(kind, name)| (kind, name.to_owned())).collect();

        assert_eq!(reference(key, value), expected, "{key}: {value}");
    }
    let other = holder(&json!({ "resources.gardener.cloud/secret-x": "name", "secret-x": "name" }));
    assert_eq!(references::of(&other).count(), 0);
}

/// spec 33 §4.2, scenario 8
#[test]
fn references_are_annotations_of_the_object_itself() {
    let annotations = json!({ "reference.resources.gardener.cloud/secret-x": "name" });
    let template = json!({ "spec": { "template": { "metadata": { "annotations": annotations } } } });

    assert_eq!(references::of(&template).count(), 0);
    for odd in
        [json!({ "metadata": { "annotations": ["a"] } }), json!({ "metadata": { "annotations": null } }), json!([])]
    {
        assert_eq!(references::of(&odd).count(), 0, "{odd}");
    }
    let number = holder(&json!({ "reference.resources.gardener.cloud/secret-x": 7 }));
    assert_eq!(references::of(&number).count(), 0);
}

/// spec 33 §4.2
#[test]
fn errors_name_lists_as_the_api_machinery_does() {
    let texts: Vec<_> =
        references::HOLDERS.into_iter().map(|kind| references::list_kind(&kind.group_version_kind())).collect();

    assert_eq!(texts[0], "apps/v1, Kind=DeploymentList");
    assert_eq!(texts[4], "/v1, Kind=PodList");
    assert_eq!(texts[7], "monitoring.coreos.com/v1, Kind=PrometheusList");
}

/// spec 33, better 10: after a run that ended early, nothing is known of those that were not looked at
#[test]
fn tally_counts_only_observed_references_as_in_use() {
    let (errors, young, terminating) = (vec!["e".to_owned()], 5, 6);
    let tally = Tally { candidates: 20, young, terminating, deleted: 4, referenced: 3, spared: 2, errors };

    let expected = [("candidates", 20), ("deleted", 4), ("in_use", 3), ("failed", 1), ("young", 5), ("terminating", 6)];
    assert_eq!(tally.figures(), expected);
    let line = "20 candidates, 4 deleted, 3 in use, 2 changed meanwhile, 1 failed; 5 too young, 6 terminating";
    assert_eq!(tally.line(), line);
}

/// spec 33 §4.3
#[test]
fn deletion_errors_are_counted_and_quoted() {
    let text = |count: usize| {
        let errors = (0..count).map(|number| format!("e{number}")).collect();
        Tally { errors, ..Tally::default() }.error().unwrap_or_default()
    };

    assert_eq!(text(0), "");
    assert_eq!(text(1), "Could not delete all unused resources: 1 error occurred: e0");
    assert_eq!(text(2), "Could not delete all unused resources: 2 errors occurred: [e0, e1]");
    assert!(text(5000).ends_with("e8, e9, …]"));
}

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn hash(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    write_value(&mut hasher, value);
    hasher.finish()
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "a", "uid": "u", "resourceVersion": "7", "generation": 3, "labels": {"l": "1"},
            "annotations": {"resources.gardener.cloud/origin": "ns/mr", "resources.gardener.cloud/keep-object": "1"}},
        "spec": {"replicas": 2}, "status": {"replicas": 1},
    })
}

#[test]
fn cached_object_holds_identity_hashes_and_flags() {
    let cached = CachedObject::of_object(&deployment(), None);

    assert_eq!((&*cached.uid, &*cached.resource_version, cached.generation), ("u", "7", 3));
    assert_eq!(cached.origin.as_deref(), Some("ns/mr"));
    assert!(cached.keep_object && !cached.garbage_collectable && !cached.deleting);
    assert!(cached.body_hash.is_some());
    assert_eq!(CachedObject::of_metadata(&deployment(), None), CachedObject { body_hash: None, ..cached });
}

#[test]
fn object_content_is_what_a_merge_could_change() {
    let before = CachedObject::of_object(&deployment(), None);
    let table = [
        ("/metadata/resourceVersion", json!("8"), true),
        ("/metadata/managedFields", json!([{}]), true),
        ("/metadata/finalizers", json!([]), true),
        ("/status", json!({"replicas": 2}), true),
        ("/metadata/uid", json!("v"), false),
        // The body is known, so the generation does not matter.
        ("/metadata/generation", json!(4), true),
        ("/metadata/labels", json!({"l": "2"}), false),
        ("/metadata/annotations", json!({}), false),
        ("/metadata/ownerReferences", json!([{"uid": "x"}]), false),
        // A merge leaves finalizers alone.
        ("/metadata/finalizers", json!(["x"]), true),
        ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"), false),
        ("/spec", json!({"replicas": 3}), false),
        ("/more", json!({"replicas": 3}), false),
    ];

    for (path, value, same) in table {
        let mut object = deployment();
        let (parent, field) = path.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[field] = value;

        assert_eq!(CachedObject::of_object(&object, None).same_content(&before), same, "{path}");
    }
}

#[test]
fn object_content_without_body_is_compared_by_metadata() {
    let mut object = deployment();
    object["spec"] = json!({});

    assert!(CachedObject::of_metadata(&object, None).same_content(&CachedObject::of_object(&deployment(), None)));
}

#[test]
fn object_content_without_body_is_compared_by_generation() {
    let mut object = deployment();
    object["metadata"]["generation"] = json!(4);
    let before = CachedObject::of_object(&deployment(), None);

    assert!(!CachedObject::of_metadata(&object, None).same_content(&before));
    assert!(CachedObject::of_object(&object, None).same_content(&before));
}

/// spec 10 §5.4
#[test]
fn labels_and_annotations_without_a_name_do_not_count() {
    let named = [Rc::new(Named::of(
        &crate::api::resources::managed_resource::ResourceRef {
            labels: [("l".to_owned(), "1".to_owned())].into(),
            ..Default::default()
        },
        None,
        false,
        false,
    ))];
    let before = CachedObject::of_object(&deployment(), Some(&named));
    for (path, same) in [
        ("/metadata/labels/l", false),
        ("/metadata/labels/x", true),
        ("/metadata/annotations/l", true),
        ("/metadata/annotations/resources.gardener.cloud~1origin", false),
    ] {
        let mut object = deployment();
        let (parent, field) = path.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[field.replace("~1", "/")] = json!("new");

        let after = CachedObject::of_object(&object, Some(&named));
        assert_eq!(after.same_content(&before), same, "{path}");
        assert!(!CachedObject::of_object(&object, None).same_content(&before), "{path}");
    }
    assert!(CachedObject::of_object(&deployment(), None).same_content(&before), "nothing changed");
}

#[test]
fn object_content_tells_labels_from_annotations() {
    let labelled = json!({"metadata": {"labels": {"a": "1"}}});
    let annotated = json!({"metadata": {"annotations": {"a": "1"}}});

    assert!(!CachedObject::of_metadata(&labelled, None).same_content(&CachedObject::of_metadata(&annotated, None)));
}

#[test]
fn object_content_treats_empty_metadata_as_absent() {
    let none = CachedObject::of_metadata(&json!({"metadata": {}}), None);
    for (field, empty) in [
        ("labels", json!({})),
        ("labels", json!(null)),
        ("annotations", json!({})),
        ("ownerReferences", json!([])),
        ("finalizers", json!([])),
    ] {
        let cached = CachedObject::of_metadata(&json!({"metadata": {field: empty}}), None);

        assert!(cached.same_content(&none), "{field} {empty}");
    }
}

#[test]
fn cached_object_has_uid_and_version() {
    use cluster::Cached as _;
    let version = |version: &str| CachedObject {
        resource_version: version.into(),
        ..CachedObject::of_object(&deployment(), None)
    };

    assert_eq!(version("7").uid(), "u");
    assert_eq!((version("7").version(), version("x").version()), (7, 0));
}

#[test]
fn content_hash_ignores_the_order_of_keys_and_the_format_of_numbers() {
    let parse = |text| serde_json::from_str::<Value>(text).unwrap();

    assert_eq!(hash(&parse(r#"{"a":1,"b":[1.0]}"#)), hash(&parse(r#"{"b":[1],"a":1.0}"#)));
    assert_ne!(hash(&parse(r#"["ab",""]"#)), hash(&parse(r#"["a","b"]"#)));
    assert_ne!(hash(&parse("9007199254740993")), hash(&parse("9007199254740992")));
    assert_ne!(hash(&parse("1.5")), hash(&parse("1")));
    assert_ne!(hash(&parse("1.5")), hash(&parse("1.25")));
    assert_ne!(hash(&parse("null")), hash(&parse("{}")));
}

#[test]
fn intent_hash_changes_with_the_manifest_the_labels_and_each_flag() {
    let (none, some) = (BTreeMap::new(), BTreeMap::from([("a".to_owned(), "1".to_owned())]));
    let before = MergeContext {
        origin: "ns/mr",
        labels: &none,
        old: None,
        force_overwrite_labels: false,
        force_overwrite_annotations: false,
        preserve_replicas: false,
    };
    let changed = [
        MergeContext { origin: "ns/other", ..before },
        MergeContext { labels: &some, ..before },
        MergeContext { force_overwrite_labels: true, ..before },
        MergeContext { force_overwrite_annotations: true, ..before },
        MergeContext { preserve_replicas: true, ..before },
    ];

    let hashes: BTreeSet<u64> = changed.iter().map(|context| hash_of_intent(&deployment(), context)).collect();

    assert_eq!(hashes.len(), changed.len());
    assert!(!hashes.contains(&hash_of_intent(&deployment(), &before)));
    assert_ne!(hash_of_intent(&json!({}), &before), hash_of_intent(&deployment(), &before));
}

#[test]
fn generation_does_not_cover_the_body_of_every_kind() {
    for (group, kind) in [("apps", "StatefulSet"), ("batch", "Job"), ("networking.k8s.io", "NetworkPolicy")] {
        assert!(generation_covers_body(group, kind), "{kind}");
    }
    for (group, kind) in [
        ("", "Service"),
        ("", "ConfigMap"),
        ("", "Secret"),
        ("autoscaling", "HorizontalPodAutoscaler"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("g.io", "Deployment"),
        // Its generation grows with annotations too.
        ("apps", "Deployment"),
        // Kubernetes 1.32 counts none.
        ("", "Pod"),
    ] {
        assert!(!generation_covers_body(group, kind), "{kind}");
    }
}

fn arbitrary_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1000..1000i32).prop_map(|number| Value::from(f64::from(number) / 4.0)),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..4).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn content_hash_is_equal_exactly_for_equal_trees(a in arbitrary_json(), b in arbitrary_json()) {
        prop_assert_eq!(hash(&a), hash(&a.clone()));
        let text = |value: &Value| value.to_string().replace(".0", "");
        prop_assert_eq!(hash(&a) == hash(&b), text(&a) == text(&b));
    }
}

//! What is remembered of an object: hashes and marks instead of its content (architecture §5, §6).

use std::{
    hash::{DefaultHasher, Hasher},
    num::NonZeroU64,
    rc::Rc,
    sync::Arc,
};

use serde_json::{Number, Value};

use super::named::{self, Named, Place};
use crate::api::{
    keys,
    object::{self, truthy},
};
use crate::{actors::health::Judgement, bundle::merge::MergeContext};

/// Built-in kinds whose `metadata.generation` grows with every change outside of metadata and status, and with nothing else, as
/// measured on a real control plane. Kinds without a generation are missing, and so are kinds that have one that never changes
/// (`PriorityClass`): the presence of the field proves nothing. That of a Deployment grows with its annotations too, whoever
/// writes them.
const GENERATION_COVERS_BODY: [(&str, &str); 15] = [
    ("", "Pod"),
    ("", "ReplicationController"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apps", "DaemonSet"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("batch", "CronJob"),
    ("batch", "Job"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("extensions", "DaemonSet"),
    ("extensions", "Ingress"),
    ("extensions", "ReplicaSet"),
    ("networking.k8s.io", "Ingress"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("policy", "PodDisruptionBudget"),
];

/// What is remembered of one object at one resource version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectRecord {
    /// Identity of this incarnation.
    pub(crate) uid: Box<str>,
    /// Opaque; precondition of writes.
    pub(crate) resource_version: Box<str>,
    /// 0 for kinds that have none.
    pub(crate) generation: i64,
    /// Labels, annotations, owner references and finalizers.
    pub(super) metadata_hash: u64,
    /// The labels and annotations that a bundle names, and owner references.
    pub(super) named_hash: u64,
    /// Everything but metadata and status; `None` if only the metadata was seen.
    pub(super) body_hash: Option<NonZeroU64>,
    /// Whether it is being deleted.
    pub(crate) deleting: bool,
    /// It carries the keep-object annotation: never delete it (spec 10 §13.2).
    pub(crate) keep_object: bool,
    /// It carries the garbage collector's label (spec 10 §13.2).
    pub(crate) garbage_collectable: bool,
    /// What is wrong with it, if the watch of its kind judges (spec 20 §11, §14). No part of its content.
    pub(super) judgement: Option<Box<Judgement>>,
    /// The origin annotation: who owns it (spec 10 §3.2).
    pub(crate) origin: Option<Arc<str>>,
}

/// What of an object a merge could change: as much as has to be remembered to tell whether it is still the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Content {
    /// Hash of identity, and whether it is being deleted.
    object: u64,
    generation: i64,
    /// See [`ObjectRecord::metadata_hash`].
    metadata: u64,
    /// See [`ObjectRecord::named_hash`].
    named: u64,
    /// See [`ObjectRecord::body_hash`].
    body: Option<NonZeroU64>,
}

/// Whether a generation that stays the same proves that nothing outside of metadata and status changed. Only for kinds
/// the API server itself serves; for objects of CRDs it always does.
pub(super) fn generation_covers_body(group: &str, kind: &str) -> bool {
    GENERATION_COVERS_BODY.contains(&(group, kind))
}

/// A hash of all that decides what a merge would send, except the live object and the old labels: the manifest and the
/// context. With an equal [`ObjectRecord`] of the live object, an equal hash means that a merge would find what it found
/// before.
pub(crate) fn hash_of_intent(manifest: &Value, context: &MergeContext<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    write_value(&mut hasher, manifest);
    write_text(&mut hasher, context.origin);
    hasher.write_usize(context.labels.len());
    for (key, value) in context.labels {
        write_text(&mut hasher, key);
        write_text(&mut hasher, value);
    }
    for flag in [context.force_overwrite_labels, context.force_overwrite_annotations, context.preserve_replicas] {
        hasher.write_u8(flag.into());
    }
    hasher.finish()
}

fn hash_of_metadata(object: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    for field in ["labels", "annotations", "ownerReferences", "finalizers"] {
        let value = object.get("metadata").and_then(|metadata| metadata.get(field));
        match value.filter(|value| !is_empty(value)) {
            Some(value) => write_value(&mut hasher, value),
            None => hasher.write_u8(0),
        }
    }
    hasher.finish()
}

fn hash_of_named(object: &Value, named: Option<&[Rc<Named>]>) -> u64 {
    let mut hasher = DefaultHasher::new();
    let field = |name: &str| object.get("metadata").and_then(|metadata| metadata.get(name));
    for (place, name) in [(Place::Labels, "labels"), (Place::Annotations, "annotations")] {
        let entries = field(name).and_then(Value::as_object);
        for (key, value) in entries.into_iter().flat_map(|entries| named::counting(named, place, entries)) {
            write_text(&mut hasher, key);
            write_value(&mut hasher, value);
        }
        hasher.write_u8(0xff);
    }
    if let Some(owners) = field("ownerReferences").filter(|owners| !is_empty(owners)) {
        write_value(&mut hasher, owners);
    }
    hasher.finish()
}

fn hash_of_body(object: &Value) -> NonZeroU64 {
    let mut hasher = DefaultHasher::new();
    for (field, value) in object.as_object().into_iter().flatten() {
        if field != "metadata" && field != "status" {
            write_text(&mut hasher, field);
            write_value(&mut hasher, value);
        }
    }
    NonZeroU64::new(hasher.finish()).unwrap_or(NonZeroU64::MIN)
}

fn is_empty(value: &Value) -> bool {
    value.is_null()
        || value.as_array().is_some_and(Vec::is_empty)
        || value.as_object().is_some_and(|map| map.is_empty())
}

/// The same bytes for trees that are equal, whatever the order of their keys (`serde_json` keeps them sorted); numbers count by
/// value. Each value starts with a tag and, where its end is not clear, its length; so no two trees write the same bytes.
///
/// SipHash with fixed keys: the same in every run of one build, but not meant to be stored.
fn write_value(hasher: &mut DefaultHasher, value: &Value) {
    match value {
        Value::Null => hasher.write_u8(0),
        Value::Bool(false) => hasher.write_u8(1),
        Value::Bool(true) => hasher.write_u8(2),
        Value::Number(number) => write_number(hasher, number),
        Value::String(text) => {
            hasher.write_u8(5);
            write_text(hasher, text);
        }
        Value::Array(items) => {
            hasher.write_u8(6);
            hasher.write_usize(items.len());
            items.iter().for_each(|item| write_value(hasher, item));
        }
        Value::Object(fields) => {
            hasher.write_u8(7);
            hasher.write_usize(fields.len());
            for (field, value) in fields {
                write_text(hasher, field);
                write_value(hasher, value);
            }
        }
    }
}

fn write_text(hasher: &mut DefaultHasher, text: &str) {
    hasher.write_usize(text.len());
    hasher.write(text.as_bytes());
}

fn write_number(hasher: &mut DefaultHasher, number: &Number) {
    let float = number.as_f64().unwrap_or(f64::NAN);
    // All integers that a float can be, and that JSON numbers hold, fit.
    let integer = number.as_i128().or((float.fract() == 0.0 && float.abs() < 1e30).then_some(float as i128));
    match integer {
        Some(integer) => {
            hasher.write_u8(3);
            hasher.write_i128(integer);
        }
        None => {
            hasher.write_u8(4);
            hasher.write_u64(float.to_bits());
        }
    }
}

// === impl ObjectRecord ===

impl cluster::Record for ObjectRecord {
    fn uid(&self) -> &str {
        &self.uid
    }

    /// 0 for a version that is no number; the API server has none.
    fn version(&self) -> u64 {
        self.resource_version.parse().unwrap_or_default()
    }
}

impl ObjectRecord {
    /// From a whole object, of which these labels and annotations count; all if that is not known.
    pub(crate) fn of_object(object: &Value, named: Option<&[Rc<Named>]>) -> Self {
        Self { body_hash: Some(hash_of_body(object)), ..Self::of_metadata(object, named) }
    }

    /// From the metadata alone, as a metadata-only watch delivers it.
    pub(crate) fn of_metadata(object: &Value, named: Option<&[Rc<Named>]>) -> Self {
        Self {
            uid: object::uid(object).into(),
            resource_version: object::resource_version(object).into(),
            generation: object::generation(object),
            metadata_hash: hash_of_metadata(object),
            named_hash: hash_of_named(object, named),
            body_hash: None,
            deleting: object::deletion_timestamp(object).is_some(),
            keep_object: truthy(object::annotation(object, keys::KEEP_OBJECT)),
            garbage_collectable: truthy(object::label(object, keys::GARBAGE_COLLECTABLE)),
            judgement: None,
            origin: object::annotation(object, keys::ORIGIN).map(Into::into),
        }
    }

    /// Its content: what it is compared by. The resource version does not matter.
    pub(crate) fn content(&self) -> Content {
        let mut hasher = DefaultHasher::new();
        write_text(&mut hasher, &self.uid);
        hasher.write_u8(self.deleting.into());
        let (metadata, named) = (self.metadata_hash, self.named_hash);
        Content { object: hasher.finish(), generation: self.generation, metadata, named, body: self.body_hash }
    }

    /// Whether both are the same object with the same content.
    pub(super) fn same_content(&self, other: &Self) -> bool {
        self.content().is(&other.content())
    }
}

// === impl Content ===

impl Content {
    /// Whether both are of the same object, with the same content.
    ///
    /// The body counts when both know it; otherwise the generation must speak for it ([`generation_covers_body`]). Of the
    /// metadata what is named is enough; where one of the two was made before that was known, nothing may have changed. The begin
    /// of a deletion is a change.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let same_body = match (self.body, other.body) {
            (Some(this), Some(other)) => this == other,
            (Some(_), None) | (None, Some(_)) | (None, None) => self.generation == other.generation,
        };
        same_body && self.object == other.object && (self.named == other.named || self.metadata == other.metadata)
    }

    /// Whether an object has the body that this one had, as far as that can be told.
    pub(crate) fn has_body_of(&self, object: &Value) -> bool {
        self.body.is_none_or(|body| body == hash_of_body(object))
    }
}

#[cfg(test)]
mod tests {
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
    fn a_record_holds_identity_hashes_and_marks() {
        let record = ObjectRecord::of_object(&deployment(), None);

        assert_eq!((&*record.uid, &*record.resource_version, record.generation), ("u", "7", 3));
        assert_eq!(record.origin.as_deref(), Some("ns/mr"));
        assert!(record.keep_object && !record.garbage_collectable && !record.deleting);
        assert!(record.body_hash.is_some());
        assert_eq!(ObjectRecord::of_metadata(&deployment(), None), ObjectRecord { body_hash: None, ..record });
    }

    #[test]
    fn content_is_what_a_merge_could_change() {
        let before = ObjectRecord::of_object(&deployment(), None);
        let table = [
            ("/metadata/resourceVersion", json!("8"), true),
            ("/metadata/managedFields", json!([{}]), true),
            ("/metadata/finalizers", json!([]), true),
            ("/status", json!({"replicas": 2}), true),
            ("/metadata/uid", json!("v"), false),
            // The body itself is known.
            ("/metadata/generation", json!(4), true),
            ("/metadata/labels", json!({"l": "2"}), false),
            ("/metadata/annotations", json!({}), false),
            ("/metadata/ownerReferences", json!([{"uid": "x"}]), false),
            // A merge leaves them alone.
            ("/metadata/finalizers", json!(["x"]), true),
            ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"), false),
            ("/spec", json!({"replicas": 3}), false),
            ("/more", json!({"replicas": 3}), false),
        ];

        for (path, value, same) in table {
            let mut object = deployment();
            let (parent, field) = path.rsplit_once('/').unwrap();
            object.pointer_mut(parent).unwrap()[field] = value;

            assert_eq!(ObjectRecord::of_object(&object, None).same_content(&before), same, "{path}");
        }
    }

    #[test]
    fn without_a_body_the_metadata_decides() {
        let mut object = deployment();
        object["spec"] = json!({});

        assert!(ObjectRecord::of_metadata(&object, None).same_content(&ObjectRecord::of_object(&deployment(), None)));
    }

    #[test]
    fn without_a_body_the_generation_decides() {
        let mut object = deployment();
        object["metadata"]["generation"] = json!(4);
        let before = ObjectRecord::of_object(&deployment(), None);

        assert!(!ObjectRecord::of_metadata(&object, None).same_content(&before));
        assert!(ObjectRecord::of_object(&object, None).same_content(&before));
    }

    /// spec 10 §5.4
    #[test]
    fn labels_and_annotations_that_nobody_names_do_not_count() {
        let named = [Rc::new(Named::of(
            &crate::api::managed_resource::ResourceRef {
                labels: [("l".to_owned(), "1".to_owned())].into(),
                ..Default::default()
            },
            None,
            false,
            false,
        ))];
        let before = ObjectRecord::of_object(&deployment(), Some(&named));
        for (path, same) in [
            ("/metadata/labels/l", false),
            ("/metadata/labels/x", true),
            ("/metadata/annotations/l", true),
            ("/metadata/annotations/resources.gardener.cloud~1origin", false),
        ] {
            let mut object = deployment();
            let (parent, field) = path.rsplit_once('/').unwrap();
            object.pointer_mut(parent).unwrap()[field.replace("~1", "/")] = json!("new");

            let after = ObjectRecord::of_object(&object, Some(&named));
            assert_eq!(after.same_content(&before), same, "{path}");
            assert!(!ObjectRecord::of_object(&object, None).same_content(&before), "{path}");
        }
        assert!(ObjectRecord::of_object(&deployment(), None).same_content(&before), "nothing changed");
    }

    #[test]
    fn a_label_is_no_annotation() {
        let labelled = json!({"metadata": {"labels": {"a": "1"}}});
        let annotated = json!({"metadata": {"annotations": {"a": "1"}}});

        assert!(!ObjectRecord::of_metadata(&labelled, None).same_content(&ObjectRecord::of_metadata(&annotated, None)));
    }

    #[test]
    fn empty_metadata_is_no_metadata() {
        let none = ObjectRecord::of_metadata(&json!({"metadata": {}}), None);
        for (field, empty) in [
            ("labels", json!({})),
            ("labels", json!(null)),
            ("annotations", json!({})),
            ("ownerReferences", json!([])),
            ("finalizers", json!([])),
        ] {
            let record = ObjectRecord::of_metadata(&json!({"metadata": {field: empty}}), None);

            assert!(record.same_content(&none), "{field} {empty}");
        }
    }

    #[test]
    fn the_store_sees_a_record_by_uid_and_version() {
        use cluster::Record as _;
        let version = |version: &str| ObjectRecord {
            resource_version: version.into(),
            ..ObjectRecord::of_object(&deployment(), None)
        };

        assert_eq!(version("7").uid(), "u");
        assert_eq!((version("7").version(), version("x").version()), (7, 0));
    }

    #[test]
    fn the_order_of_keys_and_the_form_of_numbers_do_not_count() {
        let parse = |text| serde_json::from_str::<Value>(text).unwrap();

        assert_eq!(hash(&parse(r#"{"a":1,"b":[1.0]}"#)), hash(&parse(r#"{"b":[1],"a":1.0}"#)));
        assert_ne!(hash(&parse(r#"["ab",""]"#)), hash(&parse(r#"["a","b"]"#)));
        assert_ne!(hash(&parse("9007199254740993")), hash(&parse("9007199254740992")));
        assert_ne!(hash(&parse("1.5")), hash(&parse("1")));
        assert_ne!(hash(&parse("1.5")), hash(&parse("1.25")));
        assert_ne!(hash(&parse("null")), hash(&parse("{}")));
    }

    #[test]
    fn an_intent_changes_with_the_manifest_the_labels_and_each_flag() {
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
    fn kinds_without_a_telling_generation_are_not_pinned() {
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
            // Its annotations count.
            ("apps", "Deployment"),
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
        fn equal_trees_have_equal_hashes_and_different_ones_do_not(a in arbitrary_json(), b in arbitrary_json()) {
            prop_assert_eq!(hash(&a), hash(&a.clone()));
            let text = |value: &Value| value.to_string().replace(".0", "");
            prop_assert_eq!(hash(&a) == hash(&b), text(&a) == text(&b));
        }
    }
}

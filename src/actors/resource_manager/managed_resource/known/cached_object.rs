//! What is cached of an object: hashes and flags instead of its content (architecture §5, §6).

use std::{
    hash::{DefaultHasher, Hasher},
    num::NonZeroU64,
    rc::Rc,
    sync::Arc,
};

use cluster::object::{self, truthy};
use serde_json::{Number, Value};

use super::named::{self, MetadataMap, Named};
use crate::{
    actors::resource_manager::{
        bundle::{merge::MergeContext, up_to_date::is_empty},
        health::Judgement,
    },
    api::resources::keys,
};

/// Built-in kinds whose `metadata.generation` grows with every change outside of metadata and status, and with nothing
/// else, as measured on a real control plane. Kinds without a generation are missing. So are kinds whose generation
/// never changes (`PriorityClass`), since the presence of the field proves nothing, and Deployments, whose generation
/// grows with their annotations too, whichever client writes them. Pods have no generation on the oldest supported
/// servers (facts §11).
const GENERATION_COVERS_BODY: [(&str, &str); 14] = [
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CachedObject {
    pub(crate) uid: Box<str>,
    pub(crate) resource_version: Box<str>,
    /// 0 for kinds that have none.
    pub(crate) generation: i64,
    /// Hash of labels, annotations, owner references and finalizers.
    pub(super) metadata_hash: u64,
    /// Hash of the labels and annotations that a ManagedResource names, and of owner references.
    pub(super) named_hash: u64,
    /// Hash of everything except metadata and status; `None` if only the metadata was seen.
    pub(super) body_hash: Option<NonZeroU64>,
    pub(crate) deleting: bool,
    /// It has the keep-object annotation: never delete it (spec 10 §13.2).
    pub(crate) keep_object: bool,
    /// It has the garbage collector's label (spec 10 §13.2).
    pub(crate) garbage_collectable: bool,
    /// What is wrong with it, if the watch of its kind judges (spec 20 §11, §14). Not part of its content.
    pub(super) judgement: Option<Box<Judgement>>,
    /// The origin annotation, which names its owner (spec 10 §3.2).
    pub(crate) origin: Option<Arc<str>>,
}

/// What a merge could change of an object: enough to tell whether it is still the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Content {
    object: u64,
    generation: i64,
    metadata: u64,
    named: u64,
    body: Option<NonZeroU64>,
}

/// Returns true if an unchanged generation proves that nothing outside of metadata and status changed. Only for kinds
/// that the API server itself serves; for objects of CRDs it always proves that.
pub(super) fn generation_covers_body(group: &str, kind: &str) -> bool {
    GENERATION_COVERS_BODY.contains(&(group, kind))
}

/// Hash of all that decides what a merge would send, except the live object and the old labels: the manifest and the
/// context. If this hash and the cached live object are both unchanged, a merge would find what it found before.
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
    for (map, name) in [(MetadataMap::Labels, "labels"), (MetadataMap::Annotations, "annotations")] {
        let entries = field(name).and_then(Value::as_object);
        for (key, value) in entries.into_iter().flat_map(|entries| named::counting(named, map, entries)) {
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

/// Writes equal bytes exactly for equal trees. Keys are sorted (`serde_json` keeps them so), and numbers count by
/// value. Each value starts with a tag and, where its end is not clear, its length. SipHash with fixed keys: the same
/// in every run of one build, but not meant for storage.
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
    // All integers fit that a float can represent and JSON numbers can hold.
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

impl cluster::Cached for CachedObject {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn version(&self) -> u64 {
        self.resource_version.parse().unwrap_or_default()
    }
}

impl CachedObject {
    /// From a whole object. `named`: the labels and annotations that count; all if `None`.
    pub(crate) fn of_object(object: &Value, named: Option<&[Rc<Named>]>) -> Self {
        Self { body_hash: Some(hash_of_body(object)), ..Self::of_metadata(object, named) }
    }

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

    /// Returns what the object is compared by. The resource version does not matter.
    pub(crate) fn content(&self) -> Content {
        let mut hasher = DefaultHasher::new();
        write_text(&mut hasher, &self.uid);
        hasher.write_u8(self.deleting.into());
        let (metadata, named) = (self.metadata_hash, self.named_hash);
        Content { object: hasher.finish(), generation: self.generation, metadata, named, body: self.body_hash }
    }

    pub(super) fn same_content(&self, other: &Self) -> bool {
        self.content().is(&other.content())
    }
}

impl Content {
    /// Returns true if both are of the same object, with the same content. Bodies count if both are known, otherwise
    /// generations stand for them ([`generation_covers_body`]). Of the metadata, equal named entries are enough; if one
    /// side was made before the names were known, all metadata must be equal. The begin of a deletion is a change.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let same_body = match (self.body, other.body) {
            (Some(this), Some(other)) => this == other,
            (Some(_), None) | (None, Some(_)) | (None, None) => self.generation == other.generation,
        };
        same_body && self.object == other.object && (self.named == other.named || self.metadata == other.metadata)
    }

    pub(crate) fn has_body_of(&self, object: &Value) -> bool {
        self.body.is_none_or(|body| body == hash_of_body(object))
    }
}

#[cfg(test)]
mod tests;

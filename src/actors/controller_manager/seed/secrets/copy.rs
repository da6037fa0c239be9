//! A copy of a shared Secret (spec 83 A.4). Pure. Nothing here implements `Debug`: the values are contents of Secrets.

use std::{collections::BTreeMap, hash::Hash};

use cluster::{Cached, difference, object};
use kit::hash_of;
use serde_json::{Value, json};

use super::roles::has_shared_role;
use crate::api::kinds;

/// What is kept of a Secret.
#[derive(Clone)]
pub struct CachedSecret {
    uid: Box<str>,
    version: u64,
    /// Hash of what a copy has of its source.
    pub digest: u64,
    /// It is being deleted.
    pub is_deleting: bool,
}

/// What to do with a copy.
#[derive(PartialEq)]
pub enum CopyVerdict {
    /// Create it.
    Create,
    /// Nothing.
    Keep,
    /// Send this merge patch.
    Patch(Value),
    /// Delete it and create it again: the server refuses the change.
    Replace,
    /// Nothing. It cannot be changed, and it is being deleted.
    Leave,
    /// Nothing. It cannot be changed, and it is no copy: its role is not shared.
    Blocked,
}

/// What a copy has of its source.
#[derive(PartialEq, Eq, Hash)]
struct Content<'a> {
    secret_type: &'a str,
    data: BTreeMap<&'a str, &'a str>,
    labels: BTreeMap<&'a str, &'a str>,
    annotations: BTreeMap<&'a str, &'a str>,
}

impl<'a> Content<'a> {
    fn of(secret: &'a Value) -> Self {
        let texts = |pointer| {
            let fields = secret.pointer(pointer).and_then(Value::as_object).into_iter().flatten();
            fields.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect()
        };
        Self {
            secret_type: secret.get("type").and_then(Value::as_str).unwrap_or_default(),
            data: texts("/data"),
            labels: texts("/metadata/labels"),
            annotations: texts("/metadata/annotations"),
        }
    }
}

impl CachedSecret {
    /// Reads a Secret; `None` if it has no valid version.
    pub fn of(secret: &Value) -> Option<Self> {
        Some(Self {
            uid: object::uid(secret).into(),
            version: object::resource_version(secret).parse().ok()?,
            digest: digest(secret),
            is_deleting: object::deletion_timestamp(secret).is_some(),
        })
    }
}

impl Cached for CachedSecret {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn version(&self) -> u64 {
        self.version
    }
}

/// Returns a hash of type, data, labels and annotations.
pub fn digest(secret: &Value) -> u64 {
    hash_of(&Content::of(secret))
}

/// Returns the copy of a source in a namespace, to be created.
pub fn new_copy(source: &Value, namespace: &str) -> Value {
    let mut copy = json!({
        "apiVersion": kinds::SECRET.api_version(), "kind": &*kinds::SECRET.kind,
        "metadata": {"name": object::name(source), "namespace": namespace},
    });
    fill(&mut copy, source);
    copy
}

/// Judges the copy of a source.
pub fn judge_copy(source: &Value, copy: Option<&Value>) -> CopyVerdict {
    let Some(copy) = copy else { return CopyVerdict::Create };
    let (wanted, present) = (Content::of(source), Content::of(copy));
    if wanted == present {
        return CopyVerdict::Keep;
    }
    let is_immutable = copy.get("immutable").and_then(Value::as_bool) == Some(true) && wanted.data != present.data;
    if wanted.secret_type == present.secret_type && !is_immutable {
        let mut changed = copy.clone();
        fill(&mut changed, source);
        return difference(copy, &changed).map_or(CopyVerdict::Keep, CopyVerdict::Patch);
    }
    match (has_shared_role(copy), object::deletion_timestamp(copy)) {
        (false, _) => CopyVerdict::Blocked,
        (true, Some(_)) => CopyVerdict::Leave,
        (true, None) => CopyVerdict::Replace,
    }
}

/// Gives a copy what it has of its source. Fields that the source lacks become null. Finalizers, owner references and
/// `immutable` stay.
fn fill(copy: &mut Value, source: &Value) {
    fn at<'v>(object: &'v Value, path: &[&str]) -> Option<&'v Value> {
        path.iter().try_fold(object, |value, field| value.get(field)).filter(|value| !value.is_null())
    }

    for path in [&["metadata", "labels"][..], &["metadata", "annotations"], &["type"], &["data"]] {
        let value = at(source, path);
        if value.is_some() || at(copy, path).is_some() {
            *object::field_mut(copy, path) = value.cloned().unwrap_or_default();
        }
    }
}

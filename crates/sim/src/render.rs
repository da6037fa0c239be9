//! Stored objects as JSON text: in the requested version, as metadata only, as list items, as events. The text of an
//! object without its first two fields is made once ([`Object::tail`]); the rest is put in front of it.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    encode::{tail, to_vec},
    storage::Object,
    table,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Full,
    /// `PartialObjectMetadata`: type and metadata only.
    Metadata,
    Row(Timestamp),
}

fn head(out: &mut Vec<u8>, api_version: &str, kind: &str, empty: bool) {
    out.extend_from_slice(b"{\"kind\":");
    out.extend(to_vec(&kind));
    out.extend_from_slice(b",\"apiVersion\":");
    out.extend(to_vec(&api_version));
    if !empty {
        out.push(b',');
    }
}

pub(super) fn object(out: &mut Vec<u8>, object: &Object, api_version: &str, kind: &str, form: Form) {
    match form {
        Form::Full => {
            let tail = object.tail();
            head(out, api_version, kind, tail.len() == 1);
            out.extend_from_slice(tail);
        }
        Form::Metadata => metadata(out, &object.value, None),
        Form::Row(now) => table::row(out, &object.value, now),
    }
}

/// Writes an object of a built-in kind without its type, as in lists.
pub(super) fn untyped(out: &mut Vec<u8>, object: &Object) {
    out.push(b'{');
    out.extend_from_slice(object.tail());
}

/// Writes a value with its type; `revision` replaces its version if given.
pub(super) fn value(
    out: &mut Vec<u8>,
    value: &Value,
    api_version: &str,
    kind: &str,
    form: Form,
    revision: Option<u64>,
) {
    match (form, revision) {
        (Form::Metadata, _) => metadata(out, value, revision),
        (Form::Row(now), _) => table::row(out, value, now),
        (Form::Full, None) => {
            let tail = tail(value);
            head(out, api_version, kind, tail.len() == 1);
            out.extend(tail);
        }
        (Form::Full, Some(revision)) => {
            let mut copy = value.clone();
            if let Some(metadata) = copy.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.insert("resourceVersion".into(), revision.to_string().into());
            }
            self::value(out, &copy, api_version, kind, form, None);
        }
    }
}

fn metadata(out: &mut Vec<u8>, value: &Value, revision: Option<u64>) {
    head(out, "meta.k8s.io/v1", "PartialObjectMetadata", false);
    out.extend_from_slice(b"\"metadata\":");
    match (value.get("metadata"), revision) {
        (Some(Value::Object(metadata)), Some(revision)) => {
            let mut metadata = metadata.clone();
            metadata.insert("resourceVersion".into(), revision.to_string().into());
            out.extend(to_vec(&metadata));
        }
        (Some(metadata), _) => out.extend(to_vec(metadata)),
        (None, _) => out.extend_from_slice(b"{}"),
    }
    out.push(b'}');
}

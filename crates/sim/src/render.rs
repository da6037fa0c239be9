//! Stored objects as JSON text: in the asked-for version, as metadata only, as items of a list, as events.
//!
//! An object's text without its first two fields is made once ([`Object::tail`]); what differs between a GET, a list
//! item and an event is put in front of it.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    encode::{tail, to_vec},
    storage::Object,
    table,
};

/// What of an object is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// All of it.
    Full,
    /// `PartialObjectMetadata`: type and metadata only.
    Metadata,
    /// A row of a table.
    Row(Timestamp),
}

/// Writes the start of an object, up to and without what follows its type.
fn head(out: &mut Vec<u8>, api_version: &str, kind: &str, empty: bool) {
    out.extend_from_slice(b"{\"kind\":");
    out.extend(to_vec(&kind));
    out.extend_from_slice(b",\"apiVersion\":");
    out.extend(to_vec(&api_version));
    if !empty {
        out.push(b',');
    }
}

/// Writes an object with its type.
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

/// Writes a built-in kind's object as lists have it: without its type.
pub(super) fn untyped(out: &mut Vec<u8>, object: &Object) {
    out.push(b'{');
    out.extend_from_slice(object.tail());
}

/// Writes any value with its type, `revision` in place of its own where given.
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

/// Writes the `PartialObjectMetadata` of `value`.
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

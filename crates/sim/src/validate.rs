//! Which objects the server refuses (422): metadata here, contents and immutable fields in the folder (facts §1, §4).

mod content;
mod events;
mod fields;
mod immutable;
mod names;
mod workload;

use serde_json::Value;

use super::{
    encode,
    kinds::ServedKind,
    schema,
    status::{Cause, Failure},
};

const MOST_ANNOTATIONS: usize = 262_144; // bytes of all annotations of an object, keys included

const LARGEST_STORED: usize = 1_572_864; // largest write that the database accepts, in bytes

const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"]; // finalizers that need no slash

pub(super) fn create(kind: &ServedKind, new: &Value) -> Result<(), Failure> {
    let mut causes = Vec::new();
    let name = new["metadata"]["name"].as_str().unwrap_or_default();
    for text in names::object_name(kind, name) {
        causes.push(Cause::invalid("metadata.name", &name.into(), &text));
    }
    metadata(kind.custom, &new["metadata"], &mut causes);
    self::content(kind, new, &mut causes);
    content::on_create(kind, new, &mut causes);
    Failure::unless_empty(kind, name, causes)?;
    size(kind, new)
}

/// Checks a new state of an object. `subresource` is the written part; empty for the object itself.
pub(super) fn update(kind: &ServedKind, old: &Value, new: &Value, subresource: &str) -> Result<(), Failure> {
    let mut causes = Vec::new();
    metadata(kind.custom, &new["metadata"], &mut causes);
    new_finalizers(&old["metadata"], &new["metadata"], &mut causes);
    if !kind.custom {
        causes.extend_from_within(..); // the server checks the metadata of built-in kinds twice
    }
    match subresource {
        "" | "scale" => {
            self::content(kind, new, &mut causes);
            immutable::check(kind, old, new, &mut causes);
        }
        part if kind.kind == "CertificateSigningRequest" => immutable::conditions(old, new, part, &mut causes),
        _ if kind.custom => self::content(kind, new, &mut causes),
        _ => {}
    }
    let name = new["metadata"]["name"].as_str().unwrap_or_default();
    Failure::unless_empty(kind, name, causes)?;
    size(kind, new)
}

/// Refuses objects that are too large for the database. Built-in kinds have limits of their own.
fn size(kind: &ServedKind, new: &Value) -> Result<(), Failure> {
    let size = if kind.custom { encode::to_vec(new).len() } else { 0 };
    if size > LARGEST_STORED { Err(Failure::request_too_large_for_storage(size)) } else { Ok(()) }
}

fn content(kind: &ServedKind, new: &Value, causes: &mut Vec<Cause>) {
    match &kind.schema {
        Some(schema) => causes.extend(schema::validate(schema, new)),
        None if kind.custom => {}
        None => content::check(kind, new, causes),
    }
}

/// Custom kinds take finalizers without a domain, with a warning (facts §1).
fn metadata(is_custom: bool, metadata: &Value, causes: &mut Vec<Cause>) {
    labels("metadata.labels", &metadata["labels"], causes);
    annotations(&metadata["annotations"], causes);
    owner_references(&metadata["ownerReferences"], causes);
    let finalizers = metadata["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
    for (index, finalizer) in finalizers.enumerate() {
        let field = format!("metadata.finalizers[{index}]");
        for text in names::qualified_name(finalizer) {
            causes.push(Cause::invalid(&field, &finalizer.into(), &text));
        }
        if !is_custom && !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(&finalizer) {
            let text = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(Cause::invalid(&field, &finalizer.into(), text));
        }
    }
}

fn labels(field: &str, labels: &Value, causes: &mut Vec<Cause>) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        for text in names::qualified_name(key) {
            causes.push(Cause::invalid(field, &key.as_str().into(), &text));
        }
        for text in names::label_value(value.as_str().unwrap_or_default()) {
            causes.push(Cause::invalid(field, value, &text));
        }
    }
}

fn annotations(annotations: &Value, causes: &mut Vec<Cause>) {
    let mut size = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        size += key.len() + value.as_str().unwrap_or_default().len();
        for text in names::qualified_name(&key.to_lowercase()) {
            causes.push(Cause::invalid("metadata.annotations", &key.as_str().into(), &text));
        }
    }
    if size > MOST_ANNOTATIONS {
        causes.push(Cause::too_long("metadata.annotations", MOST_ANNOTATIONS as u64));
    }
}

fn owner_references(references: &Value, causes: &mut Vec<Cause>) {
    let references = references.as_array().map(Vec::as_slice).unwrap_or_default();
    for reference in references {
        let fields = [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ];
        for (field, text) in fields {
            if reference[field].as_str().unwrap_or_default().is_empty() {
                let field = format!("metadata.ownerReferences.{field}");
                causes.push(Cause::invalid(&field, &"".into(), text));
            }
        }
    }
    if references.iter().filter(|reference| reference["controller"] == true).count() > 1 {
        let text = "Only one reference can have Controller set to true";
        causes.push(Cause::invalid("metadata.ownerReferences", &references.into(), text));
    }
}

fn new_finalizers(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    if old["deletionTimestamp"].is_null() {
        return;
    }
    let known = old["finalizers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let sent = new["finalizers"].as_array().into_iter().flatten();
    let mut added: Vec<String> = sent.filter(|name| !known.contains(name)).map(Value::to_string).collect();
    if !added.is_empty() {
        added.sort();
        let text = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            added.join(", ")
        );
        causes.push(Cause::forbidden("metadata.finalizers", &text));
    }
}

#[cfg(test)]
mod tests;

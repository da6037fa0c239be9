//! Rules of metadata (spec 62 §3). API servers enforce them before they call webhooks.

use std::collections::BTreeSet;

use kit::quote::{cut, is_printable, shown};
use serde::{Deserialize, Serialize};

use super::checks::{each_invalid, immutable, immutable_text};
use crate::api::meta::field::{
    Errors, Path, Shown,
    formats::{dns_label, dns_subdomain, label_value, qualified_name},
    shapes::{List, Map, Part, Plain, Text, Time},
};

/// Bound of the keys and values of all annotations, in bytes.
const MOST_ANNOTATIONS: usize = 262_144;
const LONGEST_MANAGER: usize = 128;
const LONGEST_SUBRESOURCE: usize = 256;

const METADATA: Path<'static> = Path::root("metadata");

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Metadata<'a> {
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    pub(super) namespace: Text<'a>,
    pub(super) deletion_timestamp: Option<Time>,
    generate_name: Text<'a>,
    uid: Text<'a>,
    resource_version: Text<'a>,
    generation: Plain<i64>,
    creation_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
    labels: Map<'a, Text<'a>>,
    annotations: Map<'a, Text<'a>>,
    owner_references: List<Part<OwnerReference<'a>>>,
    finalizers: List<Text<'a>>,
    managed_fields: List<Part<ManagedFields<'a>>>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
struct OwnerReference<'a> {
    #[serde(borrow)]
    api_version: Text<'a>,
    kind: Text<'a>,
    name: Text<'a>,
    uid: Text<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    controller: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    block_owner_deletion: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ManagedFields<'a> {
    #[serde(borrow)]
    manager: Text<'a>,
    operation: Text<'a>,
    fields_type: Text<'a>,
    subresource: Text<'a>,
}

/// Spec 62 §3.1.
pub(super) fn check(metadata: &Metadata<'_>, namespaced: bool, errors: &mut Errors) {
    let generated = METADATA.child("generateName");
    if !metadata.generate_name.is_empty() {
        each_invalid(
            &generated,
            &metadata.generate_name,
            dns_subdomain(&without_dash(&metadata.generate_name)),
            errors,
        );
    }
    let name = METADATA.child("name");
    if metadata.name.is_empty() {
        errors.required(&name, "name or generateName is required");
    } else {
        each_invalid(&name, &metadata.name, dns_subdomain(&metadata.name), errors);
    }
    let namespace = METADATA.child("namespace");
    match (namespaced, metadata.namespace.is_empty()) {
        (true, true) => errors.required(&namespace, ""),
        (true, false) => each_invalid(&namespace, &metadata.namespace, dns_label(&metadata.namespace), errors),
        (false, false) => errors.forbidden(&namespace, "not allowed on this type"),
        (false, true) => {}
    }
    if *metadata.generation < 0 {
        let shown = Shown::Json(&metadata.generation);
        errors.invalid(&METADATA.child("generation"), shown, "must be greater than or equal to 0");
    }
    check_texts(metadata, errors);
    check_owners(metadata, errors);
    check_finalizers(metadata, errors);
    check_managed_fields(metadata, errors);
}

/// Spec 62 §3.2.
pub(super) fn check_update(new: &Metadata<'_>, old: &Metadata<'_>, errors: &mut Errors) {
    if old.deletion_timestamp.is_some() {
        let known: BTreeSet<_> = old.finalizers.iter().collect();
        let added: BTreeSet<_> = new.finalizers.iter().filter(|finalizer| !known.contains(finalizer)).collect();
        if !added.is_empty() {
            let added: Vec<_> = added.into_iter().map(|finalizer| shown(finalizer)).collect();
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            errors.forbidden(&METADATA.child("finalizers"), detail);
        }
    }
    if new.resource_version.is_empty() {
        errors.invalid(&METADATA.child("resourceVersion"), Shown::Text(""), "must be specified for an update");
    }
    if *new.generation < *old.generation {
        errors.invalid(&METADATA.child("generation"), Shown::Json(&new.generation), "must not be decremented");
    }
    immutable_text(&METADATA.child("name"), &new.name, &old.name, errors);
    immutable_text(&METADATA.child("namespace"), &new.namespace, &old.namespace, errors);
    immutable(&METADATA.child("uid"), &new.uid, &old.uid, errors);
    immutable(&METADATA.child("creationTimestamp"), &new.creation_timestamp, &old.creation_timestamp, errors);
    immutable(&METADATA.child("deletionTimestamp"), &new.deletion_timestamp, &old.deletion_timestamp, errors);
    let (grace, before) = (&new.deletion_grace_period_seconds, &old.deletion_grace_period_seconds);
    immutable(&METADATA.child("deletionGracePeriodSeconds"), grace, before, errors);
    check_texts(new, errors);
    check_owners(new, errors);
    check_managed_fields(new, errors);
}

/// Returns the part of a prefix to check, without the API server's suffix. Replaces the last *two* bytes, as upstream.
fn without_dash(prefix: &str) -> String {
    let bytes = prefix.as_bytes();
    match bytes {
        [rest @ .., _, b'-'] => format!("{}a", String::from_utf8_lossy(rest)),
        _ => prefix.to_owned(),
    }
}

fn check_texts(metadata: &Metadata<'_>, errors: &mut Errors) {
    let labels = METADATA.child("labels");
    for (key, value) in metadata.labels.iter() {
        each_invalid(&labels, key, qualified_name(key), errors);
        each_invalid(&labels, value, label_value(value), errors);
    }
    let annotations = METADATA.child("annotations");
    for key in metadata.annotations.keys() {
        each_invalid(&annotations, key, qualified_name(&key.to_lowercase()), errors);
    }
    let bytes: usize = metadata.annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
    if bytes > MOST_ANNOTATIONS {
        errors.too_long(&annotations, MOST_ANNOTATIONS);
    }
}

fn check_owners(metadata: &Metadata<'_>, errors: &mut Errors) {
    let owners = METADATA.child("ownerReferences");
    let (mut controller, mut reported): (Option<String>, bool) = (None, false);
    for owner in metadata.owner_references.iter() {
        let (group, version) = group_version(&owner.api_version);
        if version.is_empty() {
            let shown = Shown::Text(&owner.api_version);
            errors.invalid(&owners.child("apiVersion"), shown, "version must not be empty");
        }
        for (field, value) in [("kind", &owner.kind), ("name", &owner.name), ("uid", &owner.uid)] {
            if value.is_empty() {
                errors.invalid(&owners.child(field), Shown::Text(""), "must not be empty");
            }
        }
        if (group, version, &*owner.kind) == ("", "v1", "Event") {
            errors.invalid(&owners, Shown::Json(owner), "/v1, Kind=Event is disallowed from being an owner");
        }
        if owner.controller == Some(true) {
            let this = format!("{}/{}", cut(&owner.kind), cut(&owner.name));
            match &controller {
                None => controller = Some(this),
                // One error is enough: it shows the whole list.
                Some(_) if reported => {}
                Some(first) => {
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                    );
                    errors.invalid(&owners, Shown::Json(&metadata.owner_references), detail);
                    reported = true;
                }
            }
        }
    }
}

/// Splits an `apiVersion`. Returns empty strings if it has several slashes.
pub(super) fn group_version(api_version: &str) -> (&str, &str) {
    match api_version.split_once('/') {
        None => ("", api_version),
        Some((_, version)) if version.contains('/') => ("", ""),
        Some(parts) => parts,
    }
}

fn check_finalizers(metadata: &Metadata<'_>, errors: &mut Errors) {
    let finalizers = METADATA.child("finalizers");
    for finalizer in metadata.finalizers.iter() {
        each_invalid(&finalizers, finalizer, qualified_name(finalizer), errors);
    }
    let has = |name: &str| metadata.finalizers.iter().any(|finalizer| **finalizer == *name);
    if has("orphan") && has("foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.invalid(&finalizers, Shown::Json(&metadata.finalizers), detail);
    }
}

fn check_managed_fields(metadata: &Metadata<'_>, errors: &mut Errors) {
    let all = METADATA.child("managedFields");
    for (at, fields) in metadata.managed_fields.iter().enumerate() {
        let path = all.at(at);
        if !["Apply", "Update"].contains(&&*fields.operation) {
            errors.invalid(&path.child("operation"), Shown::Json(&fields.operation), "must be `Apply` or `Update`");
        }
        if !["", "FieldsV1"].contains(&&*fields.fields_type) {
            errors.invalid(&path.child("fieldsType"), Shown::Text(&fields.fields_type), "must be `FieldsV1`");
        }
        let manager = path.child("manager");
        if fields.manager.len() > LONGEST_MANAGER {
            errors.too_long(&manager, LONGEST_MANAGER);
        }
        if let Some((at, _)) = fields.manager.char_indices().find(|(_, character)| !is_printable(*character)) {
            let detail = format!("should only contain printable characters (at position {at})");
            errors.invalid(&manager, Shown::Text(&fields.manager), detail);
        }
        if fields.subresource.len() > LONGEST_SUBRESOURCE {
            errors.too_long(&path.child("subresource"), LONGEST_SUBRESOURCE);
        }
    }
}

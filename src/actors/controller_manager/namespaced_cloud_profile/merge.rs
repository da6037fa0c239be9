//! The merged profile: that of the parent with what a NamespacedCloudProfile overrides (spec 81 D.3, D.5). Pure.
//! Values are copied as they are, unknown fields of the parent among them. A key that is given twice counts once: at its
//! first place, with its last value.

use std::collections::BTreeMap;

use cluster::{difference, object};
use serde_json::{Map, Value, json};

use super::architectures::Capabilities;
use crate::actors::controller_manager::fields::{list, text, without_empty};

/// What makes an own version of an image replace that of the parent (spec 81 D.5).
const REPLACING_LISTS: [&str; 3] = ["architectures", "capabilityFlavors", "cri"];
const REPLACING_TEXTS: [&str; 2] = ["kubeletVersionConstraint", "classification"];

const EXPIRATION: &str = "expirationDate";

/// Returns the merge patch for `/status` of a NamespacedCloudProfile with a parent of this spec; `None` if its status
/// is up to date (spec 81 D.2).
pub fn status_patch(profile: &Value, parent: &Value) -> Option<Value> {
    let present = profile.pointer("/status/cloudProfileSpec").unwrap_or(&Value::Null);
    let observed = profile.pointer("/status/observedGeneration").and_then(Value::as_i64).unwrap_or_default();
    let generation = object::generation(profile);
    let merged = merged(parent, profile.get("spec").unwrap_or(&Value::Null));
    let differs = without_empty(present) != without_empty(&merged);
    if !differs && observed == generation && !present.is_null() {
        return None;
    }
    let mut status = Map::new();
    status.insert("observedGeneration".to_owned(), generation.into());
    if let Some(change) = difference(present, &merged) {
        status.insert("cloudProfileSpec".to_owned(), change);
    }
    Some(json!({ "status": status }))
}

/// Returns the merged spec. It contains no null.
pub fn merged(parent: &Value, own: &Value) -> Value {
    let capabilities = Capabilities::of(parent);
    let mut result = match without_nulls(parent) {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    };
    let own = without_nulls(own);

    if own.get("kubernetes").is_some() {
        merge_kubernetes(&mut result, &own);
    }
    let own_images: Vec<_> = list(&own, "/machineImages").map(|image| capabilities.image_in_format(image)).collect();
    let own_types: Vec<_> = list(&own, "/machineTypes").map(|kind| capabilities.machine_type_in_format(kind)).collect();
    let own_volumes: Vec<_> = list(&own, "/volumeTypes").cloned().collect();
    merge_list(&mut result, "machineImages", &own_images, "name", merged_image);
    merge_list(&mut result, "machineTypes", &own_types, "name", replaced);
    merge_list(&mut result, "volumeTypes", &own_volumes, "name", replaced);
    merge_ca_bundle(&mut result, &own);
    merge_limits(&mut result, &own);

    change_entries(&mut result, "machineTypes", |kind| capabilities.complete_machine_type(kind));
    change_entries(&mut result, "machineImages", |image| {
        if let Value::Object(image) = image {
            change_entries(image, "versions", |version| capabilities.complete_image_version(version));
        }
    });
    result.into()
}

/// Only the expiration of common versions is taken over, also when it is absent.
fn merge_kubernetes(result: &mut Map<String, Value>, own: &Value) {
    let Some(Value::Object(kubernetes)) = result.get_mut("kubernetes") else { return };
    let mut versions = Keyed::of(entries(kubernetes, "versions"), "version");
    for version in list(own, "/kubernetes/versions") {
        if let Some(known) = versions.get_mut(text(version, "/version")) {
            take_expiration(known, version);
        }
    }
    put_list(kubernetes, "versions", versions);
}

fn merged_image(known: &Value, own: &Value) -> Value {
    let mut image = known.clone();
    if let Value::Object(fields) = &mut image {
        let strategy = text(own, "/updateStrategy");
        if !strategy.is_empty() {
            fields.insert("updateStrategy".to_owned(), strategy.into());
        }
        let own_versions: Vec<_> = list(own, "/versions").cloned().collect();
        merge_list(fields, "versions", &own_versions, "version", merged_image_version);
    }
    image
}

fn merged_image_version(known: &Value, own: &Value) -> Value {
    let has_list = |name: &&str| own.get(*name).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    let has_text = |name: &&str| own.get(*name).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    if REPLACING_LISTS.iter().any(has_list) || REPLACING_TEXTS.iter().any(has_text) {
        return own.clone();
    }
    let mut version = known.clone();
    take_expiration(&mut version, own);
    version
}

fn replaced(_: &Value, own: &Value) -> Value {
    own.clone()
}

fn take_expiration(known: &mut Value, own: &Value) {
    let Value::Object(fields) = known else { return };
    match own.get(EXPIRATION) {
        Some(date) => drop(fields.insert(EXPIRATION.to_owned(), date.clone())),
        None => drop(fields.remove(EXPIRATION)),
    }
}

/// A newline comes between two bundles, so that both can be read.
fn merge_ca_bundle(result: &mut Map<String, Value>, own: &Value) {
    let Some(own) = own.get("caBundle").and_then(Value::as_str) else { return };
    let known = result.get("caBundle").and_then(Value::as_str).unwrap_or_default();
    let between = if known.is_empty() || own.is_empty() || known.ends_with('\n') { "" } else { "\n" };
    let bundle = format!("{known}{between}{own}");
    result.insert("caBundle".to_owned(), bundle.into());
}

fn merge_limits(result: &mut Map<String, Value>, own: &Value) {
    let Some(Value::Object(own)) = own.get("limits") else { return };
    let limits = result.entry("limits").or_insert_with(|| json!({}));
    let own = own.get("maxNodesTotal").filter(|nodes| nodes.as_f64().is_some_and(|nodes| nodes > 0.0));
    if let (Value::Object(limits), Some(nodes)) = (limits, own) {
        limits.insert("maxNodesTotal".to_owned(), nodes.clone());
    }
}

/// Merges own entries into a list by key: `combine` merges two entries of one key, new entries are appended.
fn merge_list(
    fields: &mut Map<String, Value>,
    name: &str,
    own: &[Value],
    key: &'static str,
    combine: impl Fn(&Value, &Value) -> Value,
) {
    let mut merged = Keyed::of(entries(fields, name), key);
    for entry in Keyed::of(own.to_vec(), key).entries {
        match merged.get_mut(merged.key_of(&entry)) {
            Some(known) => *known = combine(known, &entry),
            None => merged.put(entry),
        }
    }
    put_list(fields, name, merged);
}

fn entries(fields: &Map<String, Value>, name: &str) -> Vec<Value> {
    fields.get(name).and_then(Value::as_array).cloned().unwrap_or_default()
}

fn put_list(fields: &mut Map<String, Value>, name: &str, list: Keyed) {
    if !list.entries.is_empty() {
        fields.insert(name.to_owned(), list.entries.into());
    }
}

fn change_entries(fields: &mut Map<String, Value>, name: &str, change: impl Fn(&mut Value)) {
    if let Some(Value::Array(entries)) = fields.get_mut(name) {
        entries.iter_mut().for_each(change);
    }
}

/// The entries of a list, each key once.
struct Keyed {
    key: &'static str,
    entries: Vec<Value>,
    places: BTreeMap<String, usize>,
}

impl Keyed {
    fn of(entries: Vec<Value>, key: &'static str) -> Self {
        let mut keyed = Self { key, entries: Vec::with_capacity(entries.len()), places: BTreeMap::new() };
        entries.into_iter().for_each(|entry| keyed.put(entry));
        keyed
    }

    fn key_of<'a>(&self, entry: &'a Value) -> &'a str {
        entry.get(self.key).and_then(Value::as_str).unwrap_or_default()
    }

    fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.entries.get_mut(*self.places.get(key)?)
    }

    fn put(&mut self, entry: Value) {
        let key = self.key_of(&entry).to_owned();
        if let Some(known) = self.get_mut(&key) {
            *known = entry;
        } else {
            self.places.insert(key, self.entries.len());
            self.entries.push(entry);
        }
    }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            fields.map(|(name, value)| (name.clone(), without_nulls(value))).collect::<Map<_, _>>().into()
        }
        Value::Array(entries) => entries.iter().map(without_nulls).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

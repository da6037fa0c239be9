use std::collections::{BTreeMap, BTreeSet};

use cluster::object::{self, GroupVersionKind};
use kit::quote::cut;
use serde_json::Value;

use super::input::{self, InputDocument, InputLocation, Source, Unreadable};
use crate::{
    actors::resource_manager::bundle::identity,
    api::resources::keys::{BROTLI_SUFFIX, GROUP, KIND},
    producer::{
        decode::{Decoder, DuplicateKey, LabelWarning, Limits, SecretData},
        unique,
    },
};

pub(super) struct Located {
    pub(super) location: InputLocation,
    pub(super) object: Value,
    pub(super) warnings: Vec<LabelWarning>,
    pub(super) duplicate_keys: Vec<DuplicateKey>,
}

#[derive(Default)]
pub(super) struct Bundles {
    pub(super) managed_resources: Vec<Located>,
    pub(super) secrets: Vec<Located>,
    pub(super) manifests: Vec<Located>,
    pub(super) broken: Vec<(InputLocation, Unreadable)>,
}

impl Bundles {
    /// Splits lists of Secrets and ManagedResources even if their items have no kind, as in answers of API servers.
    pub(super) fn of(sources: &[Source]) -> Self {
        let mut all = Vec::new();
        let mut bundles = Self::default();
        for InputDocument { location, content, warnings, duplicate_keys } in input::documents(sources) {
            match content {
                Ok(object) => all.extend(taken_apart(Located { location, object, warnings, duplicate_keys })),
                Err(unreadable) => bundles.broken.push((location, unreadable)),
            }
        }
        let named: BTreeSet<String> = all.iter().filter(|it| is_managed_resource(&it.object)).flat_map(refs).collect();
        for located in all {
            if is_managed_resource(&located.object) {
                bundles.managed_resources.push(located);
            } else if is_secret(&located.object)
                && (named.contains(object::name(&located.object)) || holds_manifests(&located.object))
            {
                bundles.secrets.push(located);
            } else {
                bundles.manifests.push(located);
            }
        }
        bundles
    }
}

pub(super) fn is_secret(object: &Value) -> bool {
    object["apiVersion"] == "v1" && object["kind"] == "Secret"
}

pub(super) fn is_managed_resource(object: &Value) -> bool {
    GroupVersionKind::of(object).is_some_and(|gvk| gvk.group == GROUP && gvk.kind == KIND)
}

/// Returns the display string of an object, cut, or `None` for an object without a kind.
pub(super) fn display(object: &Value) -> Option<String> {
    let has_kind = object.get("kind").and_then(Value::as_str).is_some_and(|kind| !kind.is_empty());
    has_kind.then(|| cut(&identity::display_of_object(object)).into_owned())
}

/// Returns what messages call an object.
pub(super) fn called(object: &Value) -> String {
    display(object).unwrap_or_else(|| "an object without kind".to_owned())
}

/// Remedy for a list that cannot be split (spec 10 §11.3).
pub(super) const LIST_REMEDY: &str = "give each item its apiVersion and kind; an item cannot be a list";

/// Whether it is a list type of a built-in API. The decoder has split all lists that can be split.
pub(super) fn is_list(object: &Value) -> bool {
    GroupVersionKind::of(object).is_some_and(|gvk| identity::is_list(&gvk))
}

fn refs(located: &Located) -> Vec<String> {
    let refs = located.object.pointer("/spec/secretRefs").and_then(Value::as_array).into_iter().flatten();
    refs.filter_map(|reference| Some(reference["name"].as_str()?.to_owned())).collect()
}

/// Splits a list that holds only Secrets and ManagedResources; returns any other object unchanged.
fn taken_apart(located: Located) -> Vec<Located> {
    let kind = located.object["kind"].as_str().unwrap_or_default();
    let item_kind = match (kind, located.object["apiVersion"].as_str().unwrap_or_default()) {
        ("List", "v1") => "",
        ("SecretList", "v1") => "Secret",
        ("ManagedResourceList", _) => KIND,
        _ => return vec![located],
    };
    let Some(items) = located.object["items"].as_array() else { return vec![located] };
    let items: Vec<Value> = items
        .iter()
        .map(|item| {
            let mut item = item.clone();
            if let Some(fields) = item.as_object_mut().filter(|_| !item_kind.is_empty()) {
                fields.entry("kind").or_insert_with(|| item_kind.into());
                fields.entry("apiVersion").or_insert_with(|| located.object["apiVersion"].clone());
            }
            item
        })
        .collect();
    let is_refused = items.is_empty() && is_list(&located.object);
    if is_refused || !items.iter().all(|item| is_secret(item) || is_managed_resource(item)) {
        return vec![located];
    }
    let mut duplicate_keys = Some(located.duplicate_keys); // once, with the first item
    let items = items.into_iter().map(|object| Located {
        location: located.location.clone(),
        object,
        warnings: Vec::new(),
        duplicate_keys: duplicate_keys.take().unwrap_or_default(),
    });
    items.collect()
}

/// Whether a Secret looks like part of a bundle: it has compressed data, or data that are objects.
fn holds_manifests(secret: &Value) -> bool {
    let Ok(data) = unique::content(secret) else { return false };
    data.iter().any(|(key, value)| {
        let is_file = [".yaml", ".yml", ".json"].iter().any(|ending| key.ends_with(ending));
        key.ends_with(BROTLI_SUFFIX) || (is_file && begins_with_an_object(key, value))
    })
}

fn begins_with_an_object(key: &str, value: &[u8]) -> bool {
    let data = BTreeMap::from([(key.to_owned(), value.to_vec())]);
    let mut decoder = Decoder::new([SecretData { namespace: "", name: "", data: &data }], Limits::default());
    decoder.next().and_then(Result::ok).is_some_and(|document| GroupVersionKind::of(&document.manifest).is_some())
}

//! Labels, annotations, and other metadata (spec 10 §12.1, §12.2).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::MergeContext;
use crate::{
    actors::resource_manager::bundle::inject::{string_map, to_value},
    api::resources::keys,
};

/// Overlays live with desired entries. Drops entries that were desired before and did not change since (spec 10 §12.2).
pub fn merge_map(
    desired: &BTreeMap<String, String>,
    live: BTreeMap<String, String>,
    old: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let mut merged = live;
    merged.retain(|key, value| desired.contains_key(key) || old.get(key) != Some(value));
    merged.extend(desired.clone());
    merged
}

pub(super) fn merge_metadata(manifest: &Value, live: &Value, context: &MergeContext<'_>) -> Map<String, Value> {
    let mut metadata = live.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();

    metadata.insert("labels".to_owned(), to_value(labels(manifest, live, context)));
    metadata.insert("annotations".to_owned(), to_value(annotations(manifest, live, context)));
    let owners = manifest.get("metadata").and_then(|metadata| metadata.get("ownerReferences"));
    match owners.filter(|owners| !owners.is_null() && owners.as_array().is_none_or(|list| !list.is_empty())) {
        Some(owners) => metadata.insert("ownerReferences".to_owned(), owners.clone()),
        None => metadata.remove("ownerReferences"),
    };
    metadata
}

fn labels(manifest: &Value, live: &Value, context: &MergeContext<'_>) -> BTreeMap<String, String> {
    let mut desired = string_map(manifest, "labels");
    desired.extend(context.labels.clone());
    if context.force_overwrite_labels {
        return desired;
    }
    merge_map(&desired, string_map(live, "labels"), context.old.map_or(&BTreeMap::new(), |old| &old.labels))
}

fn annotations(manifest: &Value, live: &Value, context: &MergeContext<'_>) -> BTreeMap<String, String> {
    let mut merged = string_map(manifest, "annotations");
    if !context.force_overwrite_annotations {
        // References to other objects come from the manifest only: stale ones would block garbage collection.
        let mut live = string_map(live, "annotations");
        live.retain(|key, _| !key.starts_with(keys::REFERENCE_PREFIX));
        merged = merge_map(&merged, live, context.old.map_or(&BTreeMap::new(), |old| &old.annotations));
    }
    merged.insert(keys::DESCRIPTION.to_owned(), keys::DESCRIPTION_TEXT.to_owned());
    merged.insert(keys::ORIGIN.to_owned(), context.origin.to_owned());
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    /// spec 10 §12.2, scenario 10
    #[test]
    fn labels_desired_before_are_removed_unless_they_were_changed() {
        type Entries = &'static [(&'static str, &'static str)];
        let table: [(&str, Entries, Entries, Entries, Entries); 7] = [
            ("foreign entry stays", &[("a", "1")], &[("a", "1"), ("x", "1")], &[("a", "1")], &[("a", "1"), ("x", "1")]),
            ("drift is reset", &[("a", "1")], &[("a", "2")], &[("a", "1")], &[("a", "1")]),
            ("dropped and unchanged goes", &[], &[("a", "1")], &[("a", "1")], &[]),
            ("dropped but changed stays", &[], &[("a", "2")], &[("a", "1")], &[("a", "2")]),
            ("dropped and missing stays missing", &[], &[], &[("a", "1")], &[]),
            ("without old information nothing goes", &[], &[("a", "1")], &[], &[("a", "1")]),
            ("missing is added", &[("a", "1")], &[], &[("a", "1")], &[("a", "1")]),
        ];

        for (case, desired, live, old, merged) in table {
            assert_eq!(merge_map(&map(desired), map(live), &map(old)), map(merged), "{case}");
        }
    }
}

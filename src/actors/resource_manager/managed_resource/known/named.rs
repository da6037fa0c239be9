//! Which labels and annotations of an object count. Entries that neither the manifest nor the old ref nor a rule of
//! spec 10 §12 names are no drift: a merge keeps them, whatever they are (spec 10 §5.4, decision 37).

use std::hash::{DefaultHasher, Hasher};

use serde_json::{Map, Value};

use crate::{actors::resource_manager::bundle::plan::Old, api::resources::managed_resource::ResourceRef};

/// Keys of this program count whether a manifest names them or not.
const OWN: &str = "resources.gardener.cloud/";

/// The token's account, which a controller fills in (spec 10 §12.8a).
const SERVICE_ACCOUNT: &str = "kubernetes.io/service-account.";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetadataMap {
    Labels,
    Annotations,
}

/// The labels and annotations that a ManagedResource names for an object, hashed: a collision only costs a check.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Named {
    /// All labels count, or all annotations: they are replaced, not merged.
    forced: [bool; 2],
    keys: Box<[u32]>,
}

fn hash(map: MetadataMap, key: &str) -> u32 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u8(map as u8);
    hasher.write(key.as_bytes());
    (hasher.finish() >> 32) as u32
}

impl Named {
    pub(crate) fn of(reference: &ResourceRef, old: Option<&Old>, force_labels: bool, force_annotations: bool) -> Self {
        let old_labels = old.into_iter().flat_map(|old| old.labels.keys());
        let old_annotations = old.into_iter().flat_map(|old| old.annotations.keys());
        let labels = reference.labels.keys().chain(old_labels).map(|key| hash(MetadataMap::Labels, key));
        let annotations =
            reference.annotations.keys().chain(old_annotations).map(|key| hash(MetadataMap::Annotations, key));
        let mut keys: Vec<u32> = labels.chain(annotations).collect();
        keys.sort_unstable();
        keys.dedup();
        Self { forced: [force_labels, force_annotations], keys: keys.into() }
    }

    fn counts(&self, map: MetadataMap, key: &str) -> bool {
        self.forced[map as usize] || self.keys.binary_search(&hash(map, key)).is_ok()
    }
}

/// Returns the entries that count for an owner, or all entries if `named` is unknown.
pub(super) fn counting<'a>(
    named: Option<&'a [std::rc::Rc<Named>]>,
    map: MetadataMap,
    entries: &'a Map<String, Value>,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    entries.iter().filter(move |(key, _)| {
        let is_named = |named: &[std::rc::Rc<Named>]| named.iter().any(|named| named.counts(map, key));
        named.is_none_or(is_named) || key.contains(OWN) || key.starts_with(SERVICE_ACCOUNT)
    })
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use serde_json::json;

    use super::*;

    fn reference(labels: &[&str], annotations: &[&str]) -> ResourceRef {
        let map = |keys: &[&str]| keys.iter().map(|key| ((*key).to_owned(), String::new())).collect();
        ResourceRef {
            labels: map(labels),
            annotations: map(annotations),
            ..ResourceRef::new("v1", "ConfigMap", "ns", "a")
        }
    }

    /// spec 10 §5.4
    #[test]
    fn labels_and_annotations_count_if_named_or_forced() {
        let old = Old { labels: reference(&["old"], &[]).labels, annotations: reference(&[], &["was"]).annotations };
        let reference = reference(&["l"], &["a"]);
        let named = |labels, annotations| [Rc::new(Named::of(&reference, Some(&old), labels, annotations))];
        let keys = [
            "l",
            "old",
            "a",
            "was",
            "foreign",
            "reference.resources.gardener.cloud/secret-x",
            "resources.gardener.cloud/mode",
        ];
        let entries: Map<String, Value> = keys.into_iter().map(|key| (key.to_owned(), json!(""))).collect();
        let count = |named: Option<&[Rc<Named>]>, map| {
            let mut keys: Vec<String> = counting(named, map, &entries).map(|(key, _)| key.clone()).collect();
            keys.retain(|key| !key.contains('/'));
            keys
        };

        let some = named(false, false);
        assert_eq!(count(Some(&some), MetadataMap::Labels), ["l", "old"]);
        assert_eq!(count(Some(&some), MetadataMap::Annotations), ["a", "was"]);
        assert_eq!(count(Some(&named(true, false)), MetadataMap::Labels).len(), 5);
        assert_eq!(count(Some(&named(false, true)), MetadataMap::Annotations).len(), 5);
        assert_eq!(count(None, MetadataMap::Labels).len(), 5);
        assert_eq!(counting(Some(&some), MetadataMap::Annotations, &entries).count(), 4, "with those of this program");
        assert_eq!(counting(Some(&[]), MetadataMap::Labels, &entries).count(), 2);
    }
}

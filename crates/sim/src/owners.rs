//! The index of owners for garbage collection.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::storage::{Change, Key};

#[derive(Debug, Default)]
pub(super) struct OwnerIndex {
    dependents: BTreeMap<String, BTreeSet<Key>>,
}

pub(super) fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["ownerReferences"].as_array().into_iter().flatten()
}

impl OwnerIndex {
    pub(super) fn observe(&mut self, change: &Change) {
        for owner in change.before.iter().flat_map(|before| owners(&before.value)) {
            let uid = owner["uid"].as_str().unwrap_or_default();
            if let Some(dependents) = self.dependents.get_mut(uid) {
                dependents.remove(&change.key);
                if dependents.is_empty() {
                    self.dependents.remove(uid);
                }
            }
        }
        for owner in change.after.iter().flat_map(|after| owners(&after.value)) {
            let uid = owner["uid"].as_str().unwrap_or_default();
            self.dependents.entry(uid.to_owned()).or_default().insert(change.key.clone());
        }
    }

    pub(super) fn dependents(&self, uid: &str) -> Vec<Key> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }
}

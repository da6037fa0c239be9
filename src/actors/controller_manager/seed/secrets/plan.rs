//! Which copies of a Seed must be written, and which deleted (spec 83 A.3 steps 5 and 6). Pure.

use std::collections::BTreeMap;

/// Hashes of Secrets by name.
pub type Digests = BTreeMap<String, u64>;

/// What is kept of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownCopy {
    /// Its hash.
    pub digest: u64,
    /// It is being deleted.
    pub is_deleting: bool,
}

/// The copies to write and to delete, in the order of their names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Sources whose copy is missing or differs.
    pub write: Vec<String>,
    /// Copies without a source.
    pub delete: Vec<String>,
}

impl Plan {
    /// Compares all sources with all copies of a Seed. Without `may_create`, missing copies stay missing.
    pub fn of(sources: &Digests, copies: &BTreeMap<String, KnownCopy>, may_create: bool) -> Self {
        let is_due = |(name, digest): &(&String, &u64)| match copies.get(*name) {
            Some(copy) => copy.digest != **digest,
            None => may_create,
        };
        let is_stale = |(name, copy): &(&String, &KnownCopy)| !sources.contains_key(*name) && !copy.is_deleting;
        Self {
            write: sources.iter().filter(is_due).map(|(name, _)| name.clone()).collect(),
            delete: copies.iter().filter(is_stale).map(|(name, _)| name.clone()).collect(),
        }
    }

    /// Keeps the writes and deletions that `may_repair` allows. It is called with the name of a copy and the digest that
    /// the copy must have, `None` if the copy must go.
    pub fn retain(&mut self, sources: &Digests, mut may_repair: impl FnMut(&str, Option<u64>) -> bool) {
        self.write.retain(|name| may_repair(name, sources.get(name).copied()));
        self.delete.retain(|name| may_repair(name, None));
    }

    /// Returns true if there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.write.is_empty() && self.delete.is_empty()
    }
}

//! The objects, one revision counter for all kinds, and the history that watches and old lists are served from.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use serde_json::Value;

/// Where an object is stored. The order is the order of lists and of the first events of a watch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) group: Arc<str>,
    /// Plural name.
    pub(super) resource: Arc<str>,
    /// `namespace/name`, which is what keys are ordered by: `a-b/x` comes before `a/x`.
    path: Arc<str>,
    /// Empty for cluster scope.
    pub(super) namespace: Arc<str>,
    pub(super) name: Arc<str>,
}

/// The objects of a resource, in all namespaces or in one.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    pub(super) group: Arc<str>,
    pub(super) resource: Arc<str>,
    pub(super) namespace: Option<Arc<str>>,
}

/// One state of one object. Never changes; a write makes a new one.
#[derive(Debug)]
pub(super) struct Object {
    /// As it was written, with `apiVersion` and `kind` of the version it was written in.
    pub(super) value: Value,
    /// Its JSON behind `apiVersion` and `kind`: made once, sent to many.
    tail: OnceLock<Bytes>,
}

/// One write: what watches see.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) revision: u64,
    pub(super) key: Key,
    /// `None` for a creation.
    pub(super) before: Option<Arc<Object>>,
    /// `None` for a deletion.
    pub(super) after: Option<Arc<Object>>,
}

/// All objects, and the changes since `oldest`.
#[derive(Debug)]
pub(super) struct Storage {
    objects: BTreeMap<Key, Arc<Object>>,
    revision: u64,
    /// The oldest revision whose state can still be told.
    oldest: u64,
    log: VecDeque<Arc<Change>>,
    /// How many changes are kept.
    history: usize,
}

/// The asked-for revision is older than the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Expired;

impl Key {
    pub(super) fn new(group: &str, resource: &str, namespace: &str, name: &str) -> Self {
        Self {
            group: group.into(),
            resource: resource.into(),
            path: format!("{namespace}/{name}").into(),
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl Scope {
    pub(super) fn new(group: &str, resource: &str, namespace: Option<&str>) -> Self {
        Self { group: group.into(), resource: resource.into(), namespace: namespace.map(Into::into) }
    }

    pub(super) fn contains(&self, key: &Key) -> bool {
        self.group == key.group
            && self.resource == key.resource
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
    }

    fn first(&self) -> Key {
        let namespace = self.namespace.clone().unwrap_or_else(|| "".into());
        // No path sorts before the empty one, and those of a namespace start with its name and a slash.
        let path = self.namespace.as_ref().map_or_else(|| "".into(), |namespace| format!("{namespace}/").into());
        Key { group: self.group.clone(), resource: self.resource.clone(), path, namespace, name: "".into() }
    }
}

impl Object {
    fn new(value: Value) -> Arc<Self> {
        Arc::new(Self { value, tail: OnceLock::new() })
    }

    /// The JSON of the object without `apiVersion`, `kind` and the opening brace.
    pub(super) fn tail(&self) -> &Bytes {
        self.tail.get_or_init(|| super::encode::tail(&self.value).into())
    }
}

impl Storage {
    /// Empty, at revision 1, keeping `history` changes.
    pub(super) fn new(history: usize) -> Self {
        Self { objects: BTreeMap::new(), revision: 1, oldest: 1, log: VecDeque::new(), history }
    }

    /// The revision of the last write of any kind.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// The oldest revision that can still be read or watched from.
    pub(super) fn oldest(&self) -> u64 {
        self.oldest
    }

    /// Takes a revision without a change of an object, as allocations of addresses do.
    pub(super) fn take_revision(&mut self) {
        self.revision += 1;
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Arc<Object>> {
        self.objects.get(key)
    }

    /// Stores `value` under a new revision.
    pub(super) fn put(&mut self, key: Key, mut value: Value) -> Arc<Change> {
        self.revision += 1;
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("resourceVersion".into(), self.revision.to_string().into());
        }
        let after = Object::new(value);
        let before = self.objects.insert(key.clone(), after.clone());
        self.append(Change { revision: self.revision, key, before, after: Some(after) })
    }

    /// Removes an object; that takes a revision too.
    pub(super) fn remove(&mut self, key: &Key) -> Option<Arc<Change>> {
        let before = self.objects.remove(key)?;
        self.revision += 1;
        Some(self.append(Change { revision: self.revision, key: key.clone(), before: Some(before), after: None }))
    }

    fn append(&mut self, change: Change) -> Arc<Change> {
        let change = Arc::new(change);
        self.log.push_back(change.clone());
        while self.log.len() > self.history {
            if let Some(dropped) = self.log.pop_front() {
                self.oldest = dropped.revision;
            }
        }
        change
    }

    /// Forgets the history: what is older than now has expired.
    pub(super) fn compact(&mut self) {
        self.log.clear();
        self.oldest = self.revision;
    }

    /// The present objects of a scope, in order.
    pub(super) fn scan<'a>(&'a self, scope: &'a Scope) -> impl Iterator<Item = (&'a Key, &'a Arc<Object>)> {
        let range = (Bound::Included(scope.first()), Bound::Unbounded);
        self.objects.range(range).take_while(|(key, _)| scope.contains(key))
    }

    /// All present objects.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Key, &Arc<Object>)> {
        self.objects.iter()
    }

    /// The changes after `revision`, oldest first.
    pub(super) fn since(&self, revision: u64) -> Result<impl Iterator<Item = &Arc<Change>>, Expired> {
        if revision < self.oldest {
            return Err(Expired);
        }
        let start = self.log.partition_point(|change| change.revision <= revision);
        Ok(self.log.range(start..))
    }

    /// The objects of a scope as they were at `revision`, from `start` on, in order.
    pub(super) fn at(
        &self,
        scope: &Scope,
        revision: u64,
        start: Option<&Key>,
    ) -> Result<Vec<(Key, Arc<Object>)>, Expired> {
        // What the scope's changed keys held at `revision`: the oldest change after it knows.
        let mut past: BTreeMap<&Key, Option<&Arc<Object>>> = BTreeMap::new();
        for change in self.since(revision)?.filter(|change| scope.contains(&change.key)) {
            past.entry(&change.key).or_insert(change.before.as_ref());
        }
        let first = start.cloned().unwrap_or_else(|| scope.first());
        let mut state: BTreeMap<&Key, &Arc<Object>> = self
            .objects
            .range((Bound::Included(&first), Bound::Unbounded))
            .take_while(|(key, _)| scope.contains(key))
            .collect();
        for (key, object) in past {
            match object {
                Some(object) if *key >= first => state.insert(key, object),
                _ => state.remove(key),
            };
        }
        Ok(state.into_iter().map(|(key, object)| (key.clone(), object.clone())).collect())
    }

    /// One object as it was at `revision`.
    pub(super) fn get_at(&self, key: &Key, revision: u64) -> Result<Option<Arc<Object>>, Expired> {
        let change = self.since(revision)?.find(|change| change.key == *key);
        Ok(match change {
            Some(change) => change.before.clone(),
            None => self.objects.get(key).cloned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(name: &str) -> Key {
        Key::new("", "configmaps", "ns", name)
    }

    fn object(data: &str) -> Value {
        json!({"metadata": {}, "data": data})
    }

    fn names(objects: &[(Key, Arc<Object>)]) -> Vec<String> {
        objects.iter().map(|(key, object)| format!("{}={}", key.name, object.value["data"])).collect()
    }

    #[test]
    fn every_write_takes_one_revision_and_an_old_state_can_be_read_again() {
        let mut storage = Storage::new(100);
        let scope = Scope::new("", "configmaps", None);

        storage.put(key("a"), object("1"));
        storage.put(key("b"), object("1"));
        let then = storage.revision();
        storage.put(key("a"), object("2"));
        storage.remove(&key("b"));
        storage.put(key("c"), object("1"));

        assert_eq!(storage.revision(), 6);
        assert_eq!(names(&storage.at(&scope, then, None).unwrap()), ["a=\"1\"", "b=\"1\""]);
        assert_eq!(names(&storage.at(&scope, then, Some(&key("b"))).unwrap()), ["b=\"1\""]);
        assert_eq!(names(&storage.at(&scope, storage.revision(), None).unwrap()), ["a=\"2\"", "c=\"1\""]);
        assert_eq!(storage.get_at(&key("b"), then).unwrap().unwrap().value["data"], "1");
        assert!(storage.get_at(&key("c"), then).unwrap().is_none());
    }

    #[test]
    fn revisions_older_than_the_history_have_expired() {
        let mut storage = Storage::new(2);
        for _ in 0..4 {
            storage.put(key("a"), object("1"));
        }

        assert_eq!(storage.oldest(), 3);
        assert!(storage.since(2).is_err());
        assert_eq!(storage.since(3).unwrap().count(), 2);

        storage.compact();

        assert!(storage.since(4).is_err());
        assert_eq!(storage.since(5).unwrap().count(), 0);
    }
}

//! Objects, one revision counter for all kinds, and the history that serves watches and old lists.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use serde_json::Value;

/// Storage key of an object. Its order is the order of lists and of the first events of a watch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) group: Arc<str>,
    pub(super) resource: Arc<str>,
    /// `namespace/name`, the order of keys: `a-b/x` comes before `a/x`.
    path: Arc<str>,
    pub(super) namespace: Arc<str>,
    pub(super) name: Arc<str>,
}

/// The objects of a resource, in one namespace or all.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    pub(super) group: Arc<str>,
    pub(super) resource: Arc<str>,
    pub(super) namespace: Option<Arc<str>>,
}

/// One state of an object. Immutable; a write makes a new one.
#[derive(Debug)]
pub(super) struct Object {
    /// As written, with `apiVersion` and `kind` of the version it was written in.
    pub(super) value: Value,
    /// Its JSON after `apiVersion` and `kind` (and the opening brace): made once, sent to many.
    tail: OnceLock<Bytes>,
}

#[derive(Debug)]
pub(super) struct Change {
    pub(super) revision: u64,
    pub(super) key: Key,
    pub(super) before: Option<Arc<Object>>, // `None` for a creation
    pub(super) after: Option<Arc<Object>>,  // `None` for a deletion
}

#[derive(Debug)]
pub(super) struct Storage {
    objects: BTreeMap<Key, Arc<Object>>,
    revision: u64,
    oldest: u64, // the oldest revision whose state is known
    log: VecDeque<Arc<Change>>,
    history: usize,
}

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
        // No path sorts before the empty one; the paths of a namespace start with its name and a slash.
        let path = self.namespace.as_ref().map_or_else(|| "".into(), |namespace| format!("{namespace}/").into());
        Key { group: self.group.clone(), resource: self.resource.clone(), path, namespace, name: "".into() }
    }
}

impl Object {
    fn new(value: Value) -> Arc<Self> {
        Arc::new(Self { value, tail: OnceLock::new() })
    }

    pub(super) fn tail(&self) -> &Bytes {
        self.tail.get_or_init(|| super::encode::tail(&self.value).into())
    }
}

impl Storage {
    pub(super) fn new(history: usize) -> Self {
        Self { objects: BTreeMap::new(), revision: 1, oldest: 1, log: VecDeque::new(), history }
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn oldest(&self) -> u64 {
        self.oldest
    }

    /// Takes a revision without a change of an object, as the allocation of an address does.
    pub(super) fn take_revision(&mut self) {
        self.revision += 1;
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Arc<Object>> {
        self.objects.get(key)
    }

    pub(super) fn put(&mut self, key: Key, mut value: Value) -> Arc<Change> {
        self.revision += 1;
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("resourceVersion".into(), self.revision.to_string().into());
        }
        let after = Object::new(value);
        let before = self.objects.insert(key.clone(), after.clone());
        self.append(Change { revision: self.revision, key, before, after: Some(after) })
    }

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

    pub(super) fn compact(&mut self) {
        self.log.clear();
        self.oldest = self.revision;
    }

    pub(super) fn scan<'a>(&'a self, scope: &'a Scope) -> impl Iterator<Item = (&'a Key, &'a Arc<Object>)> {
        let range = (Bound::Included(scope.first()), Bound::Unbounded);
        self.objects.range(range).take_while(|(key, _)| scope.contains(key))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&Key, &Arc<Object>)> {
        self.objects.iter()
    }

    pub(super) fn since(&self, revision: u64) -> Result<impl Iterator<Item = &Arc<Change>>, Expired> {
        if revision < self.oldest {
            return Err(Expired);
        }
        let start = self.log.partition_point(|change| change.revision <= revision);
        Ok(self.log.range(start..))
    }

    /// The objects of a scope at `revision`, from `start` on, in order.
    pub(super) fn at(
        &self,
        scope: &Scope,
        revision: u64,
        start: Option<&Key>,
    ) -> Result<Vec<(Key, Arc<Object>)>, Expired> {
        // Past states of the changed keys: the oldest change after `revision` knows them.
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

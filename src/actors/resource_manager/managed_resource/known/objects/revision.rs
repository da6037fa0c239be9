use cluster::object::{NamespacedName, ObjectKey};

use super::{super::cached_object::Content, ManagedObjects, WatchedKind, name_in_store};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ObjectsRevision {
    news: u64,
    served: u64,
}

impl ManagedObjects {
    /// Returns the current revision. While it stays the same, nothing that is known of the ManagedResource's objects
    /// has changed. Returns `None` if only a request can tell: a kind is not watched, or its watch is stale.
    pub(crate) fn revision(&self, bundle: &NamespacedName) -> Option<ObjectsRevision> {
        let owners = self.owners.borrow();
        let (news, mut held) = owners.last_news(bundle)?;
        let kinds = self.kinds.borrow();
        let is_fresh = held.all(|kind| kinds.get(kind).is_some_and(|kind| kind.watch.is_fresh()));
        is_fresh.then(|| ObjectsRevision { news, served: self.watches.cluster().discovery().version() })
    }

    /// Returns true if these objects are known to exist with these contents. Fast if they are sorted.
    pub(crate) fn are_unchanged<'a>(&self, objects: impl IntoIterator<Item = (&'a ObjectKey, Content)>) -> bool {
        let kinds = self.kinds.borrow();
        let mut last: Option<(&ObjectKey, Option<&WatchedKind>)> = None;
        objects.into_iter().all(|(key, content)| {
            let kind = match last {
                Some((last, kind)) if last.kind == key.kind && last.group == key.group => kind,
                _ => kinds.get(&key.group_kind()),
            };
            last = Some((key, kind));
            kind.is_some_and(|WatchedKind { watch, .. }| {
                let name = name_in_store(watch.resource(), key);
                watch.is_fresh_for(&name)
                    && watch.store().with(&name, |cached| cached.content().is(&content)) == Some(true)
            })
        })
    }
}

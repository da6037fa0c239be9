//! Whether what is known of a bundle's objects is still the same: by a revision, which changes with each news of them, or by
//! their contents.

use super::{super::cached_object::Content, ManagedObjects, WatchedKind, name_in_store};
use crate::api::object::{NamespacedName, ObjectKey};

/// A revision of what is known of the objects of a bundle: it changes with each news of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ObjectsRevision {
    /// Of the objects.
    news: u64,
    /// Of the kinds that are served.
    served: u64,
}

impl ManagedObjects {
    /// The present revision for a bundle: as long as it is the same, nothing that is known of the bundle's objects has
    /// changed. `None` if something can only be known by asking: a kind is not watched, or was not heard of for too long.
    pub(crate) fn revision(&self, bundle: &NamespacedName) -> Option<ObjectsRevision> {
        let owners = self.inner.owners.borrow();
        let (news, mut held) = owners.last_news(bundle)?;
        let kinds = self.inner.kinds.borrow();
        let is_fresh = held.all(|kind| kinds.get(kind).is_some_and(|kind| kind.watch.is_fresh()));
        is_fresh.then(|| ObjectsRevision { news, served: self.inner.watches.cluster().discovery().version() })
    }

    /// Whether these objects are known to exist, with these contents. Quick if they are sorted.
    pub(crate) fn are_still<'a>(&self, objects: impl IntoIterator<Item = (&'a ObjectKey, Content)>) -> bool {
        let kinds = self.inner.kinds.borrow();
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

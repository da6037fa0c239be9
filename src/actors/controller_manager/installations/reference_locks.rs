//! Locks between the creation of an installation and the release of the objects to which it refers (spec 85 DEV-24).
//!
//! A live list shows that no installation refers to an object. It does not show an installation whose creation is on its
//! way. So creations share the lock of an object, and a release has it alone.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use cluster::object::NamespacedName;

use super::finalizers::HeldKind;

/// An object to which installations refer.
pub(super) type ReferredObject = (HeldKind, NamespacedName);

/// The locks of all objects. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct ReferenceLocks(Rc<RefCell<Holders>>);

#[derive(Debug, Default)]
struct Holders {
    /// Creations on their way, by object; at least one each.
    creations: BTreeMap<ReferredObject, usize>,
    /// Objects whose release is on its way.
    releases: BTreeSet<ReferredObject>,
}

/// The lock of a creation. Its drop unlocks the objects.
#[derive(Debug)]
#[must_use]
pub(super) struct CreationLock {
    locks: ReferenceLocks,
    objects: Vec<ReferredObject>,
}

/// The lock of a release. Its drop unlocks the object.
#[derive(Debug)]
#[must_use]
pub(super) struct ReleaseLock {
    locks: ReferenceLocks,
    object: ReferredObject,
}

impl ReferenceLocks {
    /// Locks the objects to which a new installation refers. Returns `None` if the release of one of them is on its way.
    pub(super) fn for_creation(&self, objects: &[ReferredObject]) -> Option<CreationLock> {
        let mut holders = self.0.borrow_mut();
        if objects.iter().any(|object| holders.releases.contains(object)) {
            return None;
        }
        for object in objects {
            *holders.creations.entry(object.clone()).or_default() += 1;
        }
        Some(CreationLock { locks: self.clone(), objects: objects.to_vec() })
    }

    /// Locks an object for its release. Returns `None` if the creation of an installation that refers to it, or another
    /// release, is on its way.
    pub(super) fn for_release(&self, object: &ReferredObject) -> Option<ReleaseLock> {
        let mut holders = self.0.borrow_mut();
        let is_free = !holders.creations.contains_key(object) && holders.releases.insert(object.clone());
        is_free.then(|| ReleaseLock { locks: self.clone(), object: object.clone() })
    }
}

impl Drop for CreationLock {
    fn drop(&mut self) {
        let mut holders = self.locks.0.borrow_mut();
        for object in &self.objects {
            if let Some(count) = holders.creations.get_mut(object) {
                *count -= 1;
                if *count == 0 {
                    holders.creations.remove(object);
                }
            }
        }
    }
}

impl Drop for ReleaseLock {
    fn drop(&mut self) {
        self.locks.0.borrow_mut().releases.remove(&self.object);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed(name: &str) -> ReferredObject {
        (HeldKind::Seed, NamespacedName::new("", name))
    }

    /// spec 85 DEV-24
    #[test]
    fn reference_lock_of_creations_excludes_a_release_until_the_last_one_ends() {
        let locks = ReferenceLocks::default();
        let first = locks.for_creation(&[seed("a"), seed("b")]);
        let second = locks.for_creation(&[seed("a")]);
        assert!(first.is_some() && second.is_some());

        drop(first);
        assert!(locks.for_release(&seed("a")).is_none());
        assert!(locks.for_release(&seed("b")).is_some());
        drop(second);
        assert!(locks.for_release(&seed("a")).is_some());
    }

    /// spec 85 DEV-24
    #[test]
    fn reference_lock_of_a_release_excludes_creations_and_other_releases() {
        let locks = ReferenceLocks::default();
        let release = locks.for_release(&seed("a"));
        assert!(release.is_some());

        assert!(locks.for_creation(&[seed("b"), seed("a")]).is_none());
        assert!(locks.for_release(&seed("a")).is_none());
        assert!(locks.for_release(&seed("b")).is_some(), "a refused creation leaves no lock");
        drop(release);
        assert!(locks.for_creation(&[seed("a")]).is_some());
    }

    #[test]
    fn reference_locks_of_equal_names_differ_by_kind() {
        let locks = ReferenceLocks::default();
        let release = locks.for_release(&seed("a"));
        assert!(release.is_some());

        let registration = (HeldKind::Registration, NamespacedName::new("", "a"));
        assert!(locks.for_creation(&[registration]).is_some());
    }
}

//! What was last done to each object of a ManagedResource, and why. Only writes are noted, and failed attempts.

use std::rc::Rc;

use cluster::object::ObjectKey;
use jiff::Timestamp;
use kit::{Causes, quote::cut_after};

use crate::actors::resource_manager::bundle::changed_paths::ChangedPaths;

/// Most objects whose last write is remembered, those that were written last.
const MOST: usize = 200;
/// Most changed paths of an object that are remembered.
const MOST_PATHS: usize = 3;
/// Longest remembered error, in characters.
const LONGEST_ERROR: usize = 512;
/// An object that left the ManagedResource is remembered for so many seconds.
const AFTER_LEAVING: u32 = 3600;
/// Room is made for so many entries at once: a vector that doubles takes up to twice the memory.
const ROOM: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WriteKind {
    Created,
    /// With some of the changed paths.
    Updated(Box<[Box<str>]>),
    /// Its deletion was accepted. It may still exist.
    Deleted,
    /// It stays in the cluster, without our marks.
    Released,
    /// The last attempt failed, with this error.
    Failed(Box<str>),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LastWrite {
    pub(crate) object: Rc<ObjectKey>,
    pub(crate) kind: WriteKind,
    /// Causes of the reconcile that did it.
    pub(crate) causes: Causes,
    /// Seconds since 1970.
    at: u32,
}

/// Sorted by object, so that it takes no more memory than its entries.
#[derive(Debug, Default)]
pub(crate) struct LastWrites(Vec<LastWrite>);

impl WriteKind {
    pub(crate) fn updated(paths: &ChangedPaths) -> Self {
        Self::Updated(paths.first(MOST_PATHS).map(Box::from).collect())
    }

    /// Finalizers were removed at this path.
    pub(crate) fn finalized(path: &str) -> Self {
        Self::Updated([path.into()].into())
    }

    pub(crate) fn failed(error: &str) -> Self {
        Self::Failed(cut_after(LONGEST_ERROR, error).into())
    }

    fn is_end(&self) -> bool {
        matches!(self, Self::Deleted | Self::Released)
    }
}

impl LastWrite {
    pub(crate) fn at(&self) -> Timestamp {
        Timestamp::from_second(self.at.into()).unwrap_or_default()
    }

    /// Returns true if the object left the ManagedResource, as far as this process knows.
    pub(crate) fn has_left(&self) -> bool {
        self.kind.is_end()
    }
}

impl LastWrites {
    /// Notes a write. It replaces the one before of the same object.
    pub(crate) fn note(&mut self, object: Rc<ObjectKey>, kind: WriteKind, causes: Causes, now: Timestamp) {
        let at = seconds(now);
        self.0.retain(|write| !write.kind.is_end() || at.saturating_sub(write.at) < AFTER_LEAVING);
        let write = LastWrite { object, kind, causes, at };
        match self.place(&write.object) {
            Ok(place) => self.0[place] = write,
            Err(mut place) => {
                if self.0.len() >= MOST {
                    let oldest = (0..self.0.len()).min_by_key(|index| self.0[*index].at).unwrap_or_default();
                    self.0.remove(oldest);
                    place -= usize::from(oldest < place);
                } else if self.0.len() == self.0.capacity() {
                    self.0.reserve_exact(ROOM);
                }
                self.0.insert(place, write);
            }
        }
    }

    /// The object is as it should be: a failure is over.
    pub(crate) fn is_right(&mut self, object: &ObjectKey) {
        if let Ok(place) = self.place(object)
            && matches!(self.0[place].kind, WriteKind::Failed(_))
        {
            self.0.remove(place);
        }
    }

    pub(crate) fn of(&self, object: &ObjectKey) -> Option<&LastWrite> {
        self.place(object).ok().map(|place| &self.0[place])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &LastWrite> {
        self.0.iter()
    }

    fn place(&self, object: &ObjectKey) -> Result<usize, usize> {
        self.0.binary_search_by(|write| (*write.object).cmp(object))
    }
}

fn seconds(time: Timestamp) -> u32 {
    u32::try_from(time.as_second()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan;
    use serde_json::json;

    use super::*;
    use crate::actors::resource_manager::bundle::changed_paths::changed_paths;

    fn key(number: usize) -> ObjectKey {
        ObjectKey { kind: "ConfigMap".into(), name: format!("{number:04}"), ..ObjectKey::default() }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    #[test]
    fn last_write_of_an_object_replaces_the_one_before() {
        let mut writes = LastWrites::default();
        let paths = changed_paths(&json!({}), &json!({"a": 1, "b": 2, "c": 3, "d": 4}));
        writes.note(Rc::new(key(1)), WriteKind::Created, Causes::LISTED, at(0));
        writes.note(Rc::new(key(1)), WriteKind::updated(&paths), Causes::own(2), at(7));

        let write = writes.of(&key(1)).unwrap();

        assert_eq!((write.at(), write.causes), (at(7), Causes::own(2)));
        assert_eq!(write.kind, WriteKind::Updated(["a", "b", "c", "…"].map(Box::from).into()));
        assert_eq!((writes.iter().count(), writes.of(&key(2))), (1, None));
    }

    #[test]
    fn last_writes_are_bounded_and_the_oldest_goes_first() {
        let mut writes = LastWrites::default();
        for number in (0..2 * MOST).rev() {
            let second = i64::try_from(2 * MOST - number).unwrap();
            writes.note(Rc::new(key(number)), WriteKind::failed(&"x".repeat(10_000)), Causes::TIMER, at(second));
        }

        assert_eq!(writes.0.len(), MOST);
        assert!(writes.0.is_sorted_by(|a, b| a.object < b.object));
        assert!(writes.of(&key(0)).is_some() && writes.of(&key(MOST)).is_none());
        let error = |write: &LastWrite| match &write.kind {
            WriteKind::Failed(text) => text.chars().count(),
            other => panic!("{other:?}"),
        };
        assert_eq!(error(writes.of(&key(0)).unwrap()), LONGEST_ERROR + 1);
    }

    #[test]
    fn last_write_is_forgotten_some_time_after_the_object_left() {
        let mut writes = LastWrites::default();
        writes.note(Rc::new(key(1)), WriteKind::Deleted, Causes::OBJECT, at(0));
        writes.note(Rc::new(key(2)), WriteKind::Created, Causes::OBJECT, at(0));
        let later = at(0).checked_add(59.minutes()).unwrap();
        writes.note(Rc::new(key(3)), WriteKind::Released, Causes::OBJECT, later);
        assert!(writes.of(&key(1)).is_some_and(LastWrite::has_left));

        writes.note(Rc::new(key(4)), WriteKind::Created, Causes::OBJECT, at(3600));

        let left: Vec<_> = writes.iter().map(|write| write.object.name.as_str()).collect();
        assert_eq!(left, ["0002", "0003", "0004"]);
    }

    #[test]
    fn last_write_that_failed_is_forgotten_when_the_object_is_right() {
        let mut writes = LastWrites::default();
        writes.note(Rc::new(key(1)), WriteKind::failed("e"), Causes::OBJECT, at(0));
        writes.note(Rc::new(key(2)), WriteKind::Created, Causes::OBJECT, at(0));

        for number in 1..4 {
            writes.is_right(&key(number));
        }

        assert!(writes.of(&key(1)).is_none() && writes.of(&key(2)).is_some());
    }

    /// Ten thousand ManagedResources have ten thousand of these.
    #[test]
    fn last_write_takes_40_bytes() {
        assert_eq!(size_of::<LastWrite>(), 40);
        let mut writes = LastWrites::default();
        (0..20).for_each(|number| writes.note(Rc::new(key(number)), WriteKind::Created, Causes::LISTED, at(0)));

        assert_eq!(writes.0.capacity(), 20);
    }
}

//! What was last done to each object of a ManagedResource, and why. Only writes are noted, and failed attempts.

use std::rc::{Rc, Weak};

use cluster::object::ObjectKey;
use jiff::Timestamp;
use kit::{Causes, quote::cut_after};

use crate::actors::resource_manager::bundle::changed_paths::ChangedPaths;

/// Most objects whose last write is remembered, those that were written last.
const MOST: usize = 200;
/// Most changed paths of an object that are remembered.
const MOST_PATHS: usize = 3;
/// Most failures whose error is remembered. If all objects fail, the conditions have the errors.
const MOST_ERRORS: usize = 10;
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

/// What was done to an object, or to several in the same second.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WriteNote {
    pub(crate) kind: WriteKind,
    /// Causes of the reconcile that did it.
    pub(crate) causes: Causes,
    /// Seconds since 1970.
    at: u32,
}

#[derive(Debug)]
struct LastWrite {
    object: Rc<ObjectKey>,
    note: Rc<WriteNote>,
}

/// Sorted by object, so that it takes no more memory than its entries.
#[derive(Debug, Default)]
pub(crate) struct LastWrites {
    writes: Vec<LastWrite>,
    /// The newest note. A reconcile that creates many objects notes the same for all.
    newest: Weak<WriteNote>,
}

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
}

impl WriteNote {
    pub(crate) fn at(&self) -> Timestamp {
        Timestamp::from_second(self.at.into()).unwrap_or_default()
    }

    /// Returns true if the object left the ManagedResource, as far as this process knows.
    fn has_left(&self) -> bool {
        matches!(self.kind, WriteKind::Deleted | WriteKind::Released)
    }
}

impl LastWrites {
    /// Notes a write. It replaces the one before of the same object.
    pub(crate) fn note(&mut self, object: Rc<ObjectKey>, kind: WriteKind, causes: Causes, now: Timestamp) {
        let at = seconds(now);
        self.writes.retain(|write| !write.note.has_left() || at.saturating_sub(write.note.at) < AFTER_LEAVING);
        let note = WriteNote { kind: self.shortened(kind, &object), causes, at };
        let newest = self.newest.upgrade().filter(|newest| **newest == note);
        let note = newest.unwrap_or_else(|| Rc::new(note));
        self.newest = Rc::downgrade(&note);
        match self.place(&object) {
            Ok(place) => self.writes[place].note = note,
            Err(mut place) => {
                if self.writes.len() >= MOST {
                    let oldest = (0..self.writes.len()).min_by_key(|index| self.writes[*index].note.at);
                    let oldest = oldest.unwrap_or_default();
                    self.writes.remove(oldest);
                    place -= usize::from(oldest < place);
                } else if self.writes.len() == self.writes.capacity() {
                    self.writes.reserve_exact(ROOM);
                }
                self.writes.insert(place, LastWrite { object, note });
            }
        }
    }

    /// Leaves out the error of a failure if enough others are remembered.
    fn shortened(&self, kind: WriteKind, object: &ObjectKey) -> WriteKind {
        let WriteKind::Failed(_) = kind else { return kind };
        let others = self.writes.iter().filter(|write| *write.object != *object);
        let failures = others.filter(|write| matches!(write.note.kind, WriteKind::Failed(_))).count();
        if failures < MOST_ERRORS { kind } else { WriteKind::Failed("see the conditions".into()) }
    }

    /// The object is as it should be: a failure is over.
    pub(crate) fn is_right(&mut self, object: &ObjectKey) {
        if let Ok(place) = self.place(object)
            && matches!(self.writes[place].note.kind, WriteKind::Failed(_))
        {
            self.writes.remove(place);
        }
    }

    pub(crate) fn of(&self, object: &ObjectKey) -> Option<&WriteNote> {
        self.place(object).ok().map(|place| &*self.writes[place].note)
    }

    /// Returns the objects that left, as far as they are remembered.
    pub(crate) fn left(&self) -> impl Iterator<Item = (&ObjectKey, &WriteNote)> {
        let all = self.writes.iter().map(|LastWrite { object, note }| (&**object, &**note));
        all.filter(|(_, note)| note.has_left())
    }

    fn place(&self, object: &ObjectKey) -> Result<usize, usize> {
        self.writes.binary_search_by(|write| (*write.object).cmp(object))
    }
}

fn seconds(time: Timestamp) -> u32 {
    u32::try_from(time.as_second()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

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
        assert_eq!((writes.writes.len(), writes.of(&key(2))), (1, None));
    }

    #[test]
    fn last_writes_are_bounded_and_the_oldest_goes_first() {
        let mut writes = LastWrites::default();
        for number in (0..2 * MOST).rev() {
            let second = i64::try_from(2 * MOST - number).unwrap();
            writes.note(Rc::new(key(number)), WriteKind::failed(&"x".repeat(10_000)), Causes::TIMER, at(second));
        }

        assert_eq!(writes.writes.len(), MOST);
        assert!(writes.writes.is_sorted_by(|a, b| a.object < b.object));
        assert!(writes.of(&key(0)).is_some() && writes.of(&key(MOST)).is_none());
        let WriteKind::Failed(text) = &writes.of(&key(0)).unwrap().kind else { panic!("it failed") };
        assert_eq!(&**text, "see the conditions", "enough other objects have an error");

        let mut writes = LastWrites::default();
        writes.note(Rc::new(key(0)), WriteKind::failed(&"x".repeat(10_000)), Causes::TIMER, at(1));
        let WriteKind::Failed(text) = &writes.of(&key(0)).unwrap().kind else { panic!("it failed") };
        assert_eq!(text.chars().count(), LONGEST_ERROR + 1);
    }

    #[test]
    fn last_write_is_forgotten_some_time_after_the_object_left() {
        let mut writes = LastWrites::default();
        writes.note(Rc::new(key(1)), WriteKind::Deleted, Causes::OBJECT, at(0));
        writes.note(Rc::new(key(2)), WriteKind::Created, Causes::OBJECT, at(0));
        let later = at(0).checked_add(59.minutes()).unwrap();
        writes.note(Rc::new(key(3)), WriteKind::Released, Causes::OBJECT, later);
        let left = |writes: &LastWrites| writes.left().map(|(object, _)| object.name.clone()).collect::<Vec<_>>();
        assert_eq!(left(&writes), ["0001", "0003"]);

        writes.note(Rc::new(key(4)), WriteKind::Created, Causes::OBJECT, at(3600));

        assert_eq!((left(&writes), writes.writes.len()), (vec!["0003".to_owned()], 3));
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
    fn last_writes_of_one_reconcile_take_16_bytes_each() {
        let mut writes = LastWrites::default();
        let mut note = |number, kind, second| writes.note(Rc::new(key(number)), kind, Causes::LISTED, at(second));
        (0..20).for_each(|number| note(number, WriteKind::Created, 0));
        note(3, WriteKind::Deleted, 0);
        note(4, WriteKind::Created, 1);

        assert_eq!((size_of::<LastWrite>(), writes.writes.capacity()), (16, 20));
        let notes: BTreeSet<_> = writes.writes.iter().map(|write| Rc::as_ptr(&write.note)).collect();
        assert_eq!(notes.len(), 3);
        assert!(size_of::<WriteNote>() <= 40);
    }
}

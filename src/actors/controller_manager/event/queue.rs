//! The Events by the time at which they are due. Pure.

use std::collections::BTreeSet;

use cluster::object::NamespacedName;
use jiff::Timestamp;

/// Events that wait until they are due.
#[derive(Debug, Default)]
pub struct DueQueue {
    entries: BTreeSet<(Timestamp, NamespacedName)>,
}

impl DueQueue {
    /// Enters an Event.
    pub fn insert(&mut self, due: Timestamp, name: NamespacedName) {
        self.entries.insert((due, name));
    }

    /// Removes an Event that was entered with this time.
    pub fn remove(&mut self, due: Timestamp, name: &NamespacedName) {
        self.entries.remove(&(due, name.clone()));
    }

    /// Returns when the first Event is due.
    pub fn next(&self) -> Option<Timestamp> {
        self.entries.first().map(|(due, _)| *due)
    }

    /// Returns the number of Events that wait.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// Removes and returns the Events that are due from `from` to `until`, inclusive.
    pub fn take_between(&mut self, from: Timestamp, until: Timestamp) -> Vec<NamespacedName> {
        let first = (from, NamespacedName::default());
        let mut taken = Vec::new();
        while let Some(entry) = self.entries.range(&first..).next().filter(|(due, _)| *due <= until).cloned() {
            self.entries.remove(&entry);
            taken.push(entry.1);
        }
        taken
    }

    /// Removes and returns the first Events that are due before `until`, at most `most`.
    pub fn take_before(&mut self, until: Timestamp, most: usize) -> Vec<NamespacedName> {
        let mut taken = Vec::new();
        while taken.len() < most && self.next().is_some_and(|due| due < until) {
            taken.extend(self.entries.pop_first().map(|(_, name)| name));
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn queue(entries: &[(i64, &str)]) -> DueQueue {
        let mut queue = DueQueue::default();
        entries.iter().for_each(|(second, name)| queue.insert(at(*second), NamespacedName::new("ns", *name)));
        queue
    }

    fn names(taken: &[NamespacedName]) -> Vec<&str> {
        taken.iter().map(|name| name.name.as_str()).collect()
    }

    /// spec 81 J rule 4
    #[test]
    fn queue_gives_each_event_once_when_it_is_due() {
        let mut queue = queue(&[(30, "c"), (10, "a"), (20, "b"), (20, "bb")]);
        queue.remove(at(20), &NamespacedName::new("ns", "bb"));

        assert_eq!(queue.next(), Some(at(10)));
        assert_eq!(names(&queue.take_between(at(0), at(20))), ["a", "b"]);
        assert_eq!(queue.take_between(at(0), at(20)), []);
        assert_eq!(queue.next(), Some(at(30)));
        assert_eq!(queue.take_between(at(40), at(20)), []);
    }

    /// spec 81 J: many due Events at the start do not delay newer ones.
    #[test]
    fn queue_gives_old_events_in_portions_and_newer_ones_at_once() {
        let mut queue = queue(&[(1, "a"), (2, "b"), (3, "c"), (10, "new"), (99, "later")]);

        assert_eq!(names(&queue.take_between(at(5), at(10))), ["new"]);
        assert_eq!(names(&queue.take_before(at(5), 2)), ["a", "b"]);
        assert_eq!(names(&queue.take_before(at(5), 2)), ["c"]);
        assert_eq!(queue.next(), Some(at(99)));
    }
}

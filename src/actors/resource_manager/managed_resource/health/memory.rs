//! What a health reconciler of a ManagedResource remembers between reconciles. All of it may be lost.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc, time::Duration};

use cluster::object::{GroupKind, GroupVersionKind, ObjectKey};
use tokio::time::Instant;

use crate::{
    actors::resource_manager::health::{Judgement, report::Report},
    api::meta::conditions::{Condition, ConditionStatus},
};

#[derive(Default)]
pub(crate) struct HealthMemory {
    reads: Rc<LiveReads>,
    failing: BTreeMap<GroupKind, Instant>,
    undiscovered: BTreeMap<GroupVersionKind, Instant>,
    unread: BTreeMap<ObjectKey, Instant>,
    /// The Events quoted for the Service that the condition names.
    pub(super) quoted: Option<Quoted>,
    pub(super) written: Option<Instant>,
    /// Changes of objects lead to no check before this time.
    not_before: Option<Instant>,
    applied: bool,
    /// Conditions that should say something else than is written, and since when.
    flipping: BTreeMap<&'static str, (Flip, Instant)>,
}

/// Objects that no watch delivers, as they were when last read. The dashboard shows them too.
#[derive(Default)]
pub(crate) struct LiveReads(RefCell<BTreeMap<ObjectKey, (Instant, Seen)>>);

/// Pause after a check, for each object: while a thousand objects come up, they are not all checked for each.
const PAUSE_PER_OBJECT: Duration = Duration::from_micros(200);

const LONGEST_PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Flip {
    Status(ConditionStatus),
    Text(Report),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    Missing,
    There(Option<Box<Judgement>>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Quoted {
    pub(super) service: ObjectKey,
    pub(super) fingerprint: u64,
    pub(super) block: String,
}

impl Flip {
    pub(super) fn between(written: &Condition, found: &Report) -> Option<Self> {
        if written.status != found.status {
            return Some(Self::Status(found.status.clone()));
        }
        let is_same = written.reason == found.reason && written.message == found.message;
        (!is_same).then(|| Self::Text(found.clone()))
    }
}

impl LiveReads {
    /// Returns what the object was when it was read last, whenever that was.
    pub(crate) fn last(&self, key: &ObjectKey) -> Option<Seen> {
        self.0.borrow().get(key).map(|(_, seen)| seen.clone())
    }
}

impl HealthMemory {
    pub(super) fn reads(&self) -> &Rc<LiveReads> {
        &self.reads
    }

    /// Returns how long the next check has to wait. `applied`: the ManagedResource was applied since the last check.
    pub(super) fn pause(&mut self, applied: bool, now: Instant) -> Option<Duration> {
        self.applied |= applied;
        self.not_before.filter(|then| *then > now).map(|then| then - now)
    }

    /// A check of this many objects begins. Forgets what was read of them before they were applied.
    pub(super) fn begins(&mut self, objects: usize, now: Instant) {
        if std::mem::take(&mut self.applied) {
            self.reads.0.borrow_mut().clear();
            self.failing.clear();
            self.unread.clear();
            self.undiscovered.clear();
        }
        let rest = PAUSE_PER_OBJECT.saturating_mul(u32::try_from(objects).unwrap_or(u32::MAX)).min(LONGEST_PAUSE);
        self.not_before = Some(now + rest);
    }

    /// Returns how long the new value of a condition must still stand; `None` if it is written or not held back.
    pub(super) fn holds_back(
        &mut self,
        kind: &'static str,
        flip: Option<(Flip, Duration)>,
        now: Instant,
    ) -> Option<Duration> {
        let before = self.flipping.remove(kind);
        let (flip, hold) = flip?;
        let since = before.filter(|(before, _)| *before == flip).map_or(now, |(_, since)| since);
        let left = (since + hold).saturating_duration_since(now);
        if left.is_zero() {
            return None;
        }
        self.flipping.insert(kind, (flip, since));
        Some(left)
    }

    pub(super) fn read(&self, key: &ObjectKey, now: Instant, limit: Duration) -> Option<Seen> {
        let reads = self.reads.0.borrow();
        let (when, seen) = reads.get(key)?;
        (now.saturating_duration_since(*when) < limit).then(|| seen.clone())
    }

    pub(super) fn has_read(&mut self, key: &ObjectKey, now: Instant, seen: Seen) {
        self.unread.remove(key);
        self.reads.0.borrow_mut().insert(key.clone(), (now, seen));
    }

    pub(super) fn forget_read(&mut self, key: &ObjectKey) {
        self.reads.0.borrow_mut().remove(key);
        self.unread.remove(key);
    }

    pub(super) fn keep_read(&mut self, is_kept: impl Fn(&ObjectKey) -> bool) {
        self.reads.0.borrow_mut().retain(|key, _| is_kept(key));
        self.unread.retain(|key, _| is_kept(key));
    }

    pub(super) fn has_failed_for(&mut self, kind: &GroupKind, now: Instant) -> Duration {
        now.saturating_duration_since(*self.failing.entry(kind.clone()).or_insert(now))
    }

    pub(super) fn is_unread_for(&mut self, key: &ObjectKey, now: Instant) -> Duration {
        now.saturating_duration_since(*self.unread.entry(key.clone()).or_insert(now))
    }

    pub(super) fn is_undiscovered_for(&mut self, kind: &GroupVersionKind, now: Instant) -> Duration {
        now.saturating_duration_since(*self.undiscovered.entry(kind.clone()).or_insert(now))
    }

    pub(super) fn is_discovered(&mut self, kind: &GroupVersionKind) {
        self.undiscovered.remove(kind);
    }

    pub(super) fn is_watched(&mut self, kind: &GroupKind) {
        self.failing.remove(kind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey { kind: "Pod".into(), name: name.into(), ..ObjectKey::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn health_check_pause_grows_with_the_number_of_objects() {
        let now = Instant::now();
        for (objects, rest) in [(0, 0), (20, 4), (1000, 200), (1_000_000, 1000)] {
            let mut memory = HealthMemory::default();
            assert_eq!(memory.pause(false, now), None);

            memory.begins(objects, now);

            let rest = Duration::from_millis(rest);
            assert_eq!(memory.pause(false, now).unwrap_or_default(), rest);
            assert_eq!(memory.pause(false, now + rest), None);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn health_reads_from_before_an_apply_are_forgotten_even_during_a_pause() {
        let (now, limit) = (Instant::now(), Duration::from_secs(60));
        let mut memory = HealthMemory::default();
        memory.begins(20, now);
        memory.has_read(&key("a"), now, Seen::Missing);
        memory.begins(20, now);
        assert_eq!(memory.read(&key("a"), now, limit), Some(Seen::Missing));

        memory.pause(true, now);
        memory.pause(false, now + limit / 2);
        memory.begins(20, now + limit / 2);

        assert_eq!(memory.read(&key("a"), now, limit), None);
    }

    #[tokio::test(start_paused = true)]
    async fn health_reads_count_for_a_while_and_as_long_as_the_object_is_owned() {
        let (now, limit) = (Instant::now(), Duration::from_secs(60));
        let mut memory = HealthMemory::default();
        for name in ["a", "b"] {
            memory.has_read(&key(name), now, Seen::There(None));
        }
        memory.keep_read(|held| held.name == "a");

        assert_eq!(memory.read(&key("a"), now + limit / 2, limit), Some(Seen::There(None)));
        assert_eq!(memory.read(&key("a"), now + limit, limit), None);
        assert_eq!(memory.read(&key("b"), now, limit), None);
    }

    #[tokio::test(start_paused = true)]
    async fn health_watch_failure_lasts_since_the_kind_was_last_watched() {
        let (now, pods) = (Instant::now(), GroupKind::new("", "Pod"));
        let mut memory = HealthMemory::default();
        let minute = Duration::from_secs(60);

        assert_eq!(memory.has_failed_for(&pods, now), Duration::ZERO);
        assert_eq!(memory.has_failed_for(&pods, now + minute), minute);
        memory.is_watched(&pods);
        assert_eq!(memory.has_failed_for(&pods, now + minute), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn health_reads_are_forgotten_after_two_applies_too() {
        let (now, limit) = (Instant::now(), Duration::from_secs(60));
        let mut memory = HealthMemory::default();
        memory.has_read(&key("a"), now, Seen::Missing);

        memory.pause(true, now);
        memory.pause(true, now);
        memory.begins(1, now);

        assert_eq!(memory.read(&key("a"), now, limit), None);
    }

    #[tokio::test(start_paused = true)]
    async fn health_read_failure_lasts_since_the_object_was_last_read_or_watched() {
        let (now, limit) = (Instant::now(), Duration::from_secs(60));
        let mut memory = HealthMemory::default();
        for ends in [
            |memory: &mut HealthMemory, now| memory.has_read(&key("a"), now, Seen::Missing),
            |memory: &mut HealthMemory, _| memory.forget_read(&key("a")),
            |memory: &mut HealthMemory, _| memory.keep_read(|_| false),
        ] {
            assert_eq!(memory.is_unread_for(&key("a"), now), Duration::ZERO);
            assert_eq!(memory.is_unread_for(&key("a"), now + limit), limit);

            ends(&mut memory, now);

            assert_eq!(memory.is_unread_for(&key("a"), now + limit), Duration::ZERO);
            memory.forget_read(&key("a"));
            assert_eq!(memory.read(&key("a"), now, limit), None);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn health_discovery_failure_lasts_since_the_kind_was_last_discovered() {
        let (now, pods) = (Instant::now(), GroupVersionKind::new("", "v1", "Pod"));
        let mut memory = HealthMemory::default();
        let minute = Duration::from_secs(60);

        assert_eq!(memory.is_undiscovered_for(&pods, now), Duration::ZERO);
        assert_eq!(memory.is_undiscovered_for(&pods, now + minute), minute);
        memory.is_discovered(&pods);
        assert_eq!(memory.is_undiscovered_for(&pods, now + minute), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn condition_flip_is_held_back_until_it_has_stood() {
        let (mut memory, now, second) = (HealthMemory::default(), Instant::now(), Duration::from_secs(1));
        let flip = |status| Some((Flip::Status(status), 2 * second));
        let (yes, no) = (|| flip(ConditionStatus::True), || flip(ConditionStatus::False));

        assert_eq!(memory.holds_back("a", None, now), None);
        assert_eq!(memory.holds_back("a", no(), now), Some(2 * second));
        assert_eq!(memory.holds_back("a", no(), now + second), Some(second));
        assert_eq!(memory.holds_back("b", no(), now + second), Some(2 * second));
        assert_eq!(memory.holds_back("a", yes(), now + second), Some(2 * second), "another status");
        assert_eq!(memory.holds_back("a", yes(), now + 3 * second), None);
        assert_eq!(memory.holds_back("a", yes(), now + 3 * second), Some(2 * second), "it was written");
        assert_eq!(memory.holds_back("a", None, now + 4 * second), None);
        assert_eq!(memory.holds_back("a", yes(), now + 4 * second), Some(2 * second), "it did not stand");
    }

    /// spec 20 §4.3: a change of the status is not delayed by texts that change meanwhile.
    #[test]
    fn condition_flip_is_of_the_status_or_else_of_the_text() {
        let found =
            |status: ConditionStatus, message: &str| Report { status, reason: "R".into(), message: message.into() };
        let written = serde_json::json!({ "type": "C", "status": "True", "reason": "R", "message": "a" });
        let written: Condition = serde_json::from_value(written).expect("a condition");

        assert_eq!(Flip::between(&written, &found(ConditionStatus::True, "a")), None);
        let text = found(ConditionStatus::True, "b");
        assert_eq!(Flip::between(&written, &text), Some(Flip::Text(text)));
        let status = Some(Flip::Status(ConditionStatus::False));
        assert_eq!(Flip::between(&written, &found(ConditionStatus::False, "b")), status);
        assert_eq!(Flip::between(&written, &found(ConditionStatus::False, "c")), status);
    }
}

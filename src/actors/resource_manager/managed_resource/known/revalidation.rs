//! When an object is sent again although it seems equal: mutating admission may answer differently (spec 10 §11.3,
//! decision 40). Times are milliseconds since the controller began. This takes no memory for a ManagedResource, and 8
//! bytes for an object: the time of its last write. The rest follows from that and from the few remembered changes.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    time::Duration,
};

use cluster::object::{GroupKind, NamespacedName, ObjectKey};
use kit::hash_of;

/// API servers and webhooks may answer as before for this long: watches lag, policies are compiled once per second.
pub(crate) const ADMISSION_LAG: Duration = Duration::from_secs(2);

/// A change concerns many objects: each gets one turn within this time.
pub(crate) const SPREAD: Duration = Duration::from_secs(60);

/// Objects that were written within this time are sent again at the same time.
const TOGETHER: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct Revalidation {
    /// Each object is sent again at least this often; `None` means never.
    period: Option<Duration>,
    /// Differs between processes, so that the same ManagedResource is not always the last.
    seed: u64,
    /// Since when answers may differ: for all objects, for a kind, for a namespace.
    everything: RefCell<Since>,
    kinds: RefCell<BTreeMap<GroupKind, Since>>,
    namespaces: RefCell<BTreeMap<String, Since>>,
    latest: Cell<u64>,
}

/// Since when answers may differ: when changes have settled. Changes that follow each other faster than they settle
/// postpone nothing: the time of an earlier change stays until a later one has settled.
#[derive(Debug, Default, Clone, Copy)]
struct Since {
    /// Had settled when the last change came, or is the first to settle after it.
    first: u64,
    /// Settles next, and then replaces `first`.
    next: u64,
    last: u64,
    /// The last change that came at least [`SPREAD`] after its predecessor: its objects do not wait for a turn.
    at_once: u64,
}

impl Revalidation {
    pub(crate) fn new(period: Option<Duration>, seed: u64) -> Self {
        Self { period, seed, ..Self::default() }
    }

    pub(crate) fn kinds_changed(&self, kinds: Option<&[GroupKind]>, now: u64) {
        let since = self.since(now);
        match kinds {
            None => {
                self.everything.borrow_mut().add(since, now);
                self.kinds.borrow_mut().clear();
            }
            Some(kinds) => {
                let mut known = self.kinds.borrow_mut();
                kinds.iter().for_each(|kind| known.entry(kind.clone()).or_default().add(since, now));
            }
        }
    }

    /// Answers about objects in a namespace may differ now. `at_once`: without waiting for their turn.
    pub(crate) fn namespace_changed(&self, namespace: &str, at_once: bool, now: u64) {
        let since = self.since(now);
        let mut known = self.namespaces.borrow_mut();
        let known = known.entry(namespace.to_owned()).or_default();
        known.add(since, now);
        if at_once {
            known.at_once = since;
        }
    }

    pub(crate) fn namespace_gone(&self, namespace: &str) {
        self.namespaces.borrow_mut().remove(namespace);
    }

    fn since(&self, now: u64) -> u64 {
        let since = now.saturating_add(millis(ADMISSION_LAG));
        self.latest.set(since);
        since
    }

    pub(crate) fn is_due(&self, bundle: &NamespacedName, object: &ObjectKey, sent: u64, now: u64) -> bool {
        self.due(bundle, sent).is_some_and(|due| due <= now) || self.is_outdated(bundle, object, sent, now)
    }

    /// Returns true if admission may answer differently than when the object was written. An object that was written
    /// since the last turn of its ManagedResource waits for the next turn, for whatever reason it is checked.
    fn is_outdated(&self, bundle: &NamespacedName, object: &ObjectKey, sent: u64, now: u64) -> bool {
        if sent >= self.latest.get() {
            return false;
        }
        let is_turn = self.round(bundle, sent) < self.round(bundle, now);
        let is_after = |since: Option<&Since>| since.is_some_and(|since| since.is_after(sent, is_turn, now));
        is_after(Some(&self.everything.borrow()))
            || is_after(self.kinds.borrow().get(&object.group_kind()))
            || is_after(self.namespaces.borrow().get(&object.namespace))
    }

    /// Returns when an object is sent again without another reason: half a period to a whole period after `sent`.
    /// Objects that were written together are sent together, which costs one read of the Secrets.
    pub(crate) fn due(&self, bundle: &NamespacedName, sent: u64) -> Option<u64> {
        let half = millis(self.period?) / 2;
        let together = (half / 8).clamp(1, millis(TOGETHER));
        let written = sent / together;
        let random = hash_of(&(self.seed, bundle, written)) % half.saturating_sub(together).max(1);
        Some(((written + 1) * together).saturating_add(half).saturating_add(random))
    }

    /// Returns the next turn of a ManagedResource at `earliest` or later. Each has one turn in each [`SPREAD`].
    pub(crate) fn turn(&self, bundle: &NamespacedName, earliest: u64) -> u64 {
        let round = millis(SPREAD);
        let wait = (self.first_turn(bundle) + round - earliest % round) % round;
        earliest.saturating_add(wait)
    }

    fn round(&self, bundle: &NamespacedName, now: u64) -> u64 {
        (now.saturating_add(millis(SPREAD)) - self.first_turn(bundle)) / millis(SPREAD)
    }

    fn first_turn(&self, bundle: &NamespacedName) -> u64 {
        hash_of(&(self.seed, bundle)) % millis(SPREAD)
    }
}

impl Since {
    fn add(&mut self, since: u64, now: u64) {
        if self.last <= now {
            (self.first, self.next) = (self.last, since);
        } else if self.next <= now {
            (self.first, self.next) = (self.next, self.last);
        }
        self.last = since;
    }

    /// Returns true if a change has settled after `sent`. `is_turn`: it is the turn of an object that was sent then.
    fn is_after(&self, sent: u64, is_turn: bool, now: u64) -> bool {
        let is_between = |since: u64| sent < since && since <= now;
        is_between(self.at_once) || (is_turn && [self.first, self.next, self.last].into_iter().any(is_between))
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;

    fn bundle(number: usize) -> NamespacedName {
        NamespacedName::new("shoot", format!("b{number}"))
    }

    fn key(kind: &str, namespace: &str) -> ObjectKey {
        ObjectKey { kind: kind.into(), namespace: namespace.into(), name: "a".into(), ..ObjectKey::default() }
    }

    /// spec 10 §11.3 (c)
    #[test]
    fn revalidation_is_due_between_half_a_period_and_a_whole_one_after_the_last_write() {
        let day = Revalidation::new(Some(Duration::from_secs(86_400)), 7);
        let mut early = 0;
        for number in 0..1000 {
            for sent in [0, 5 * HOUR] {
                let after = day.due(&bundle(number), sent).unwrap() - sent;
                assert!((12 * HOUR..24 * HOUR).contains(&after), "{after}");
                assert_eq!(day.due(&bundle(number), sent + 59_999), day.due(&bundle(number), sent));
                early += usize::from(after < 18 * HOUR);
            }
        }
        assert!((900..1100).contains(&early), "they are spread: {early} of 2000 in the first half");
        assert_eq!(Revalidation::new(None, 7).due(&bundle(1), 0), None);
        let object = key("ConfigMap", "ns");
        assert!(!day.is_due(&bundle(1), &object, 0, 12 * HOUR - 1) && day.is_due(&bundle(1), &object, 0, 24 * HOUR));
        assert_eq!(Revalidation::new(Some(Duration::from_millis(1)), 7).due(&bundle(1), 3), Some(4));
    }

    /// spec 10 §11.3 (a), (b)
    #[test]
    fn revalidation_concerns_objects_that_were_written_before_the_change_and_no_others() {
        let known = Revalidation::new(None, 7);
        let due = |kind: &str, namespace: &str, sent| known.is_due(&bundle(1), &key(kind, namespace), sent, 1_000_000);
        assert!(!due("ConfigMap", "ns", 0));
        let up_to_date = 5_000 + millis(ADMISSION_LAG);

        known.kinds_changed(Some(&[GroupKind::new("", "ConfigMap")]), 5_000);
        assert!(due("ConfigMap", "ns", up_to_date - 1));
        assert!(!due("ConfigMap", "ns", up_to_date) && !due("Secret", "ns", 0));
        assert!(!known.is_due(&bundle(1), &key("ConfigMap", "ns"), 0, up_to_date - 1), "the server may not know yet");

        known.namespace_changed("ns", false, 10_000);
        assert!(due("Secret", "ns", 9_000) && !due("Secret", "other", 9_000));
        known.namespace_gone("ns");
        assert!(!due("Secret", "ns", 9_000));

        known.kinds_changed(None, 20_000);
        assert!(due("Secret", "other", 19_000) && due("ConfigMap", "ns", 9_000) && !due("ConfigMap", "ns", 22_000));
    }

    /// spec 10 §11.3 (a), (b): changes that never end postpone nothing, and send an object at most once per minute.
    #[test]
    fn revalidation_is_due_once_in_a_minute_while_something_changes_all_the_time() {
        for (pause, of_namespace) in [(250, true), (250, false), (1_000, true), (1_900, false), (2_000, true)] {
            let known = Revalidation::new(None, 7);
            let (object, mut sent, mut writes) = (key("ConfigMap", "ns"), 0, Vec::new());
            for now in (0..600_000).step_by(50) {
                if now % pause == 0 {
                    match of_namespace {
                        true => known.namespace_changed("ns", now == 0, now),
                        false => known.kinds_changed(None, now),
                    }
                }
                // Other causes have the ManagedResource checked all the time.
                if known.is_due(&bundle(1), &object, sent, now) {
                    sent = now;
                    writes.push(now);
                }
            }
            assert!((10..=12).contains(&writes.len()), "{pause}: {writes:?}");
            assert!(writes.windows(2).skip(1).all(|two| two[1] - two[0] > 55_000), "{pause}: {writes:?}");
            let last = 599_950 / pause * pause + millis(ADMISSION_LAG);
            let turn = known.turn(&bundle(1), last);
            assert!(known.is_due(&bundle(1), &object, sent, turn), "{pause}: the last change counts too");
        }
    }

    /// spec 10 §11.3 (a)
    #[test]
    fn revalidation_gives_each_bundle_one_turn_in_a_minute() {
        let known = Revalidation::new(None, 7);
        let mut turns = [0; 6];
        for number in 0..600 {
            let turn = known.turn(&bundle(number), 130_000);
            assert!((130_000..190_000).contains(&turn));
            assert_eq!(known.turn(&bundle(number), turn), turn);
            assert_eq!(known.turn(&bundle(number), turn + 1), turn + millis(SPREAD));
            turns[usize::try_from((turn - 130_000) / 10_000).unwrap()] += 1;
        }
        assert!(turns.iter().all(|turns| (60..140).contains(turns)), "{turns:?}");
    }
}

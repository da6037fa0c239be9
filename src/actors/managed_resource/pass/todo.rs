//! What a pass has to look at, from why it runs and what is known: nothing, some objects, everything. Of what drifts again and
//! again, also how often it is repaired.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kit::{Causes, MAX_REFS, Refs};
use tokio::time::Instant;

use super::{
    super::{
        known::Memory,
        shared::{CHANGED, DRIFT, KIND, SCALED, SECRET},
    },
    rest::{self, Applied},
    run::Run,
};
use crate::api::object::ObjectKey;

/// A ref that drifts is repaired at once, then after 1, 2, 4 s … up to the sync period, until it is quiet.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// What a pass has to look at.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Todo {
    /// Everything is as it was left.
    Nothing,
    /// These objects; the rest is settled.
    Some(BTreeSet<ObjectKey>),
    /// Everything; `forced` sends one update per object and run, even if it does not differ (spec 10 scenario 39).
    All { forced: bool },
}

/// How often the refs of a bundle may be repaired that drifted lately.
#[derive(Debug, Clone, Default)]
pub(crate) struct Damping {
    refs: BTreeMap<ObjectKey, Pause>,
}

/// Time after the repair of a ref.
#[derive(Debug, Clone, Copy)]
struct Pause {
    /// No other repair before.
    end: Instant,
    length: Duration,
    /// The ref drifted again meanwhile.
    due: bool,
}

/// What the pass has to look at, from why it runs and what is known.
pub(super) fn todo(run: &Run<'_>, memory: &mut Memory, now: Instant) -> Todo {
    let settings = &run.controller.settings;
    let wake = &run.pass.wake;
    let period_due = memory.period.is_none_or(|period| period <= now);
    let current = memory.applied.as_ref().is_some_and(|applied| run.is_unchanged(applied) && run.has_finalizer());
    // A bundle in which objects fail is tried again by its back-off; drift of its other objects is repaired meanwhile.
    let failing = !current && memory.failed.as_ref().is_some_and(|failed| run.is_unchanged(failed));
    let only_drift = wake.causes == DRIFT;
    let asked = wake.causes.meets(CHANGED.with(KIND)) || (wake.causes.meets(SECRET) && !current);
    let again = wake.causes.meets(Causes::AGAIN) || (period_due && settings.always_update);
    // Before all else: also a pass over all objects looks at what is due, and ends what was quiet.
    let mut refs = memory.damping.take_due(now);
    if asked || (again && !only_drift) || !(current || (failing && only_drift)) {
        // One update in a period is asked for, not one in each attempt to find out what is not known (spec 10 §3.1).
        return Todo::All { forced: settings.always_update && (asked || period_due) };
    }
    let drifted = match &wake.refs {
        Refs::Named(drifted) if wake.causes.meets(DRIFT.with(SCALED)) => drifted.clone(),
        Refs::All => memory.objects.keys().map(|key| ObjectKey::clone(key)).collect(),
        Refs::Named(_) | Refs::None => BTreeSet::new(),
    };
    // With other autoscalers an object is not right any more although it is as it was.
    let looks = wake.causes.meets(SCALED);
    let drifted = drifted.into_iter().filter(|key| looks || !run.is_as_remembered(memory, key));
    let drifted: Vec<ObjectKey> = drifted.collect();
    if let Some(ledger) = &mut memory.ledger {
        ledger.applied.retain(|key, _| !drifted.contains(key));
    }
    refs.extend(drifted.into_iter().filter(|key| memory.damping.drifted(key, now)));
    if period_due {
        let changed = memory.objects.keys().filter(|key| !run.is_as_remembered(memory, key));
        refs.extend(changed.map(|key| ObjectKey::clone(key)));
        memory.period = Some(now + rest::period(run.controller, memory));
    }
    match refs.len() {
        0 => Todo::Nothing,
        1..=MAX_REFS => Todo::Some(refs),
        _ => Todo::All { forced: settings.always_update },
    }
}

// === impl Run ===

impl Run<'_> {
    /// Whether ManagedResource and Secrets are as they were then.
    fn is_unchanged(&self, then: &Applied) -> bool {
        then.is_about(self.mr()) && self.controller.has_secrets_of(&self.pass.key, then)
    }

    /// Whether an object is known to look as it did when it was last right.
    fn is_as_remembered(&self, memory: &Memory, key: &ObjectKey) -> bool {
        memory.objects.get(key).is_some_and(|seen| self.controller.objects.are_still([(key, seen.content)]))
    }
}

// === impl Todo ===

impl Todo {
    /// Whether an object is to be looked at.
    pub(crate) fn concerns(&self, key: &ObjectKey) -> bool {
        match self {
            Self::Nothing => false,
            Self::Some(keys) => keys.contains(key),
            Self::All { .. } => true,
        }
    }

    /// Whether all objects are to be looked at.
    pub(crate) fn is_for_all(&self) -> bool {
        matches!(self, Self::All { .. })
    }

    /// Whether an update is sent even if nothing differs.
    pub(crate) fn is_forced(&self) -> bool {
        matches!(self, Self::All { forced: true })
    }
}

// === impl Damping ===

impl Damping {
    /// Takes note that a ref drifted. True if it may be repaired now.
    pub(crate) fn drifted(&mut self, key: &ObjectKey, now: Instant) -> bool {
        match self.refs.get_mut(key) {
            Some(pause) if now < pause.end => {
                pause.due = true;
                false
            }
            Some(_) | None => true,
        }
    }

    /// Takes note that a ref was repaired. The next repair waits twice as long, at most `cap`.
    pub(crate) fn repaired(&mut self, key: &ObjectKey, now: Instant, cap: Duration) {
        let length = self.refs.get(key).map_or(FIRST_PAUSE, |pause| (pause.length * 2).min(cap));
        self.refs.insert(key.clone(), Pause { end: now + length, length, due: false });
    }

    /// Takes out the refs whose repair was put off and is due; forgets those that have been quiet for a pause. They are
    /// due no longer: if the drift has ended by itself there is nothing to repair, and no repair would say so.
    fn take_due(&mut self, now: Instant) -> BTreeSet<ObjectKey> {
        self.refs.retain(|_, pause| pause.due || now < pause.end + pause.length);
        let due = self.refs.iter_mut().filter(|(_, pause)| pause.due && pause.end <= now);
        due.map(|(key, pause)| {
            pause.due = false;
            key.clone()
        })
        .collect()
    }

    /// When the next repair that was put off is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.refs.values().filter(|pause| pause.due).map(|pause| pause.end).min()
    }

    /// Whether all has been quiet.
    pub(super) fn is_empty(&self) -> bool {
        self.refs.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAP: Duration = Duration::from_secs(60);

    fn key(name: &str) -> ObjectKey {
        ObjectKey { kind: "ConfigMap".into(), name: name.into(), ..ObjectKey::default() }
    }

    /// Repairs as often as allowed while somebody changes the object again at once; gives the seconds of the repairs.
    fn repairs(until: u64) -> Vec<u64> {
        let zero = Instant::now();
        let mut damping = Damping::default();
        let mut repairs = Vec::new();
        for second in 0..until {
            let now = zero + Duration::from_secs(second);
            let allowed = damping.drifted(&key("a"), now) || damping.take_due(now).contains(&key("a"));
            if allowed {
                damping.repaired(&key("a"), now, CAP);
                repairs.push(second);
            }
        }
        repairs
    }

    #[tokio::test(start_paused = true)]
    async fn somebody_who_changes_an_object_after_each_repair_is_answered_ever_more_rarely() {
        assert_eq!(repairs(200), [0, 1, 3, 7, 15, 31, 63, 123, 183]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_repair_that_was_put_off_is_due_at_its_time() {
        let now = Instant::now();
        let mut damping = Damping::default();
        damping.repaired(&key("a"), now, CAP);
        assert!(!damping.drifted(&key("a"), now + Duration::from_millis(500)));

        assert_eq!(damping.next_due(), Some(now + Duration::from_secs(1)));
        assert!(damping.take_due(now + Duration::from_millis(900)).is_empty());
        assert_eq!(damping.take_due(now + Duration::from_secs(1)).len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_that_was_quiet_is_repaired_at_once_again() {
        let now = Instant::now();
        let mut damping = Damping::default();
        for second in [0, 1, 3, 7] {
            damping.repaired(&key("a"), now + Duration::from_secs(second), CAP);
        }
        let later = now + Duration::from_secs(7 + 8 + 8);

        assert!(damping.take_due(later).is_empty());
        assert!(damping.drifted(&key("a"), later));
        damping.repaired(&key("a"), later, CAP);
        assert!(damping.drifted(&key("a"), later + Duration::from_secs(1)), "the pauses begin anew");
    }

    #[tokio::test(start_paused = true)]
    async fn a_ref_may_be_repaired_again_exactly_when_its_pause_is_over() {
        let (now, pause) = (Instant::now(), FIRST_PAUSE);
        let mut damping = Damping::default();
        damping.repaired(&key("a"), now, CAP);

        assert!(damping.drifted(&key("a"), now + pause));
        assert_eq!(damping.next_due(), None, "it was not put off");
        damping.take_due(now + 2 * pause - Duration::from_nanos(1));
        assert!(!damping.is_empty());
        damping.take_due(now + 2 * pause);
        assert!(damping.is_empty());
    }
}

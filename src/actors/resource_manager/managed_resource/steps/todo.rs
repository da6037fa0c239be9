//! What a reconcile has to check, from why it runs and what is known: nothing, some objects, everything.

use std::collections::BTreeSet;

use cluster::object::ObjectKey;
use kit::{Causes, MAX_REFS, Refs};
use tokio::time::Instant;

use super::{
    super::{
        known::{Applied, Memory},
        shared::{CHANGED, DRIFT, KIND, SCALED, SECRET},
    },
    idle,
    run::Run,
};
use crate::actors::resource_manager::bundle::{hpa, identity::Equivalences};

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Todo {
    Nothing,
    Some(BTreeSet<ObjectKey>),
    /// Everything; `forced` sends one update per object and run, even if it does not differ (spec 10 scenario 39).
    All {
        forced: bool,
    },
}

pub(crate) fn todo(run: &Run<'_>, memory: &mut Memory, now: Instant) -> Todo {
    let settings = &run.controller.settings;
    let wake = &run.reconcile.wake;
    let period_due = memory.period.is_none_or(|period| period <= now);
    let current = memory.applied.as_ref().is_some_and(|applied| run.is_unchanged(applied) && run.has_finalizer());
    // With failing objects, everything is tried again by the back-off; drift of other objects is repaired meanwhile.
    let failing = !current && memory.failed.as_ref().is_some_and(|failed| run.is_unchanged(failed));
    let only_drift = wake.causes == DRIFT;
    let asked = wake.causes.meets(CHANGED.with(KIND)) || (wake.causes.meets(SECRET) && !current);
    let again = wake.causes.meets(Causes::AGAIN) || (period_due && settings.apply.always_update);
    // First of all: a reconcile of all objects, too, takes what is due, and ends what was quiet.
    let mut refs = memory.drift_backoff.take_due(now);
    if period_due {
        memory.last_period = Some(now);
    }
    refs.extend(memory.unscaled.extract_if(.., |_, until| period_due || *until <= now).map(|(key, _)| key));
    if wake.causes.meets(SCALED) {
        let keys: Vec<ObjectKey> = match &wake.refs {
            Refs::Named(keys) => keys.iter().cloned().collect(),
            Refs::All => memory.objects.keys().map(|key| ObjectKey::clone(key)).collect(),
            Refs::None => Vec::new(),
        };
        run.note_scaling(memory, &keys);
    }
    if asked || (again && !only_drift) || !(current || (failing && only_drift)) {
        // The setting asks for one update per period, not for one in each attempt (spec 10 §3.1).
        return Todo::All { forced: settings.apply.always_update && (asked || period_due) };
    }
    let drifted = match &wake.refs {
        Refs::Named(drifted) if wake.causes.meets(DRIFT.with(SCALED)) => drifted.clone(),
        Refs::All => memory.objects.keys().map(|key| ObjectKey::clone(key)).collect(),
        Refs::Named(_) | Refs::None => BTreeSet::new(),
    };
    // When autoscalers change, an unchanged object counts as having another manifest, not as repaired.
    let looks = wake.causes.meets(SCALED);
    let lingers = |key: &ObjectKey| memory.unscaled.contains_key(key);
    let drifted = drifted.into_iter().filter(|key| (looks && !lingers(key)) || !run.is_as_remembered(memory, key));
    let drifted: Vec<ObjectKey> = drifted.collect();
    if let Some(progress) = &mut memory.progress {
        progress.applied.retain(|key, _| !drifted.contains(key));
    }
    refs.extend(drifted.into_iter().filter(|key| looks || memory.drift_backoff.drifted(key, now)));
    if period_due {
        let changed = memory.objects.keys().filter(|key| !run.is_as_remembered(memory, key));
        let changed: Vec<ObjectKey> = changed.map(|key| ObjectKey::clone(key)).collect();
        refs.extend(changed.into_iter().filter(|key| memory.drift_backoff.drifted(key, now)));
        memory.period = Some(now + idle::period(run.controller, memory));
    }
    let elapsed = run.controller.elapsed();
    // An object that waits for its repair is sent with the repair.
    let waits = |key: &ObjectKey| memory.drift_backoff.holds(key, now);
    let again = memory.objects.iter().filter(|(key, seen)| run.is_due_again(key, seen.sent, elapsed) && !waits(key));
    refs.extend(again.map(|(key, _)| ObjectKey::clone(key)));
    match refs.len() {
        0 => Todo::Nothing,
        1..=MAX_REFS => Todo::Some(refs),
        _ => Todo::All { forced: settings.apply.always_update },
    }
}

impl Run<'_> {
    /// Returns true if an object that was written at `sent`, and seems right, must be sent again (decision 40).
    pub(crate) fn is_due_again(&self, object: &ObjectKey, sent: u64, now: u64) -> bool {
        self.controller.revalidation.is_due(&self.reconcile.key, object, sent, now)
    }

    /// Notes objects whose first autoscaler came, or last one went, which still counts for a while (spec 10 §11.2).
    fn note_scaling(&self, memory: &mut Memory, objects: &[ObjectKey]) {
        let equivalences = Equivalences::with(&self.mr().spec.equivalences);
        for key in objects.iter().filter(|key| hpa::is_scalable(&key.group_kind())) {
            let autoscalers = &self.controller.autoscalers;
            match autoscalers.lingers(key, &equivalences, &self.reconcile.key, memory.last_period) {
                Some(until) => memory.unscaled.insert(key.clone(), until),
                None => memory.unscaled.remove(key),
            };
        }
    }

    fn is_unchanged(&self, then: &Applied) -> bool {
        then.is_about(self.mr()) && self.controller.has_secrets_of(&self.reconcile.key, then)
    }

    fn is_as_remembered(&self, memory: &Memory, key: &ObjectKey) -> bool {
        memory.objects.get(key).is_some_and(|seen| self.controller.objects.are_unchanged([(key, seen.content)]))
    }
}

impl Todo {
    pub(crate) fn concerns(&self, key: &ObjectKey) -> bool {
        match self {
            Self::Nothing => false,
            Self::Some(keys) => keys.contains(key),
            Self::All { .. } => true,
        }
    }

    pub(crate) fn widened(self) -> Self {
        Self::All { forced: self.is_forced() }
    }

    pub(crate) fn is_forced(&self) -> bool {
        matches!(self, Self::All { forced: true })
    }
}

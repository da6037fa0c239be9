//! An idle ManagedResource: its period ends with an idle check instead of a reconcile, while nothing changes.

use std::{cell::Cell, rc::Rc, time::Duration};

use cluster::{Cached, object::NamespacedName};
use kit::{IdleCheck, Outcome};
use tokio::time::Instant;

use super::{
    super::{
        known::{Applied, Fingerprint, Fingerprints, Memory, ObjectsRevision},
        record::BundleRecord,
        shared::ManagedResources,
        wake::trigger::{self, Operation, ReconcilePath},
    },
    run::Run,
};
use crate::actors::resource_manager::bundle::hpa;

/// The state in which a check found nothing to do. While it is the same, another check would find the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BundleRevision {
    pub(crate) version: u64,
    pub(crate) objects: ObjectsRevision,
}

struct IdlePeriod {
    controller: Rc<ManagedResources>,
    record: Rc<BundleRecord>,
    bundle: NamespacedName,
    applied: Rc<Applied>,
    objects: Rc<Fingerprints>,
    again: Option<Instant>,
    /// The revision at which the last check found nothing changed: while it is the same, no other is necessary.
    unchanged: Cell<Option<BundleRevision>>,
}

/// Returns the outcome of a reconcile that left nothing undone. `unchanged`: the revision at which it found everything
/// as left, if it checked. An idle check does not move `memory.period`: a reconcile for another reason checks all.
pub(crate) fn until_due(run: &Run<'_>, memory: &Memory, now: Instant, unchanged: Option<BundleRevision>) -> Outcome {
    let again = memory.sent_again(run, now);
    let next = memory.next(now, run.controller.settings.apply.sync_period.get());
    let next = again.map_or(next, |again| next.min(again.saturating_duration_since(now)));
    run.record.next_check.set(now.checked_add(next));
    let Some(applied) = memory.applied.clone().filter(|_| memory.is_idle()) else { return Outcome::After(next) };
    let idle = IdlePeriod {
        controller: run.controller.clone(),
        record: run.record.clone(),
        bundle: run.reconcile.key.clone(),
        applied,
        objects: memory.objects.clone(),
        again,
        unchanged: Cell::new(unchanged),
    };
    Outcome::Idle(next, IdleCheck::new(move || idle.goes_on().then(|| idle.period())))
}

/// Returns the time to the end of the next period. It is exact if something is written then: each update (spec 10
/// §3.1), or a postponed repair, which comes as often. Otherwise it is in step with other ManagedResources.
pub(crate) fn period(controller: &ManagedResources, memory: &Memory) -> Duration {
    let period = controller.settings.apply.sync_period.get();
    let is_exact = controller.settings.apply.always_update || !memory.drift_backoff.is_empty();
    if is_exact { period } else { controller.idle_period(period) }
}

impl IdlePeriod {
    fn goes_on(&self) -> bool {
        let now = self.controller.env.clock.monotonic();
        if self.again.is_some_and(|again| again <= now) {
            return false;
        }
        let Some(revision) = self.controller.revision(&self.bundle) else { return false };
        let goes_on = self.controller.has_secrets_of(&self.bundle, &self.applied)
            && (self.unchanged.get() == Some(revision) || self.is_as_left());
        self.unchanged.set(goes_on.then_some(revision));
        goes_on
    }

    /// Returns true if the ManagedResource asks for nothing new, and its objects are as they were when they were right.
    fn is_as_left(&self) -> bool {
        let Self { controller, bundle, applied, objects, .. } = self;
        let class = &controller.settings.class;
        let asks_for_nothing = controller.bundles.store().with(bundle, |cached| {
            let summary = cached.summary();
            applied.is_about_summary(summary)
                && class.holds(&summary.mr)
                && trigger::operation(&summary.mr) == Operation::Continue
                && trigger::entry(class, &summary.mr) == ReconcilePath::Apply
        });
        asks_for_nothing == Some(true)
            && controller.objects.are_unchanged(objects.iter().map(|(key, seen)| (key.as_ref(), seen.content)))
    }

    fn period(&self) -> Duration {
        let period = self.controller.idle_period(self.controller.settings.apply.sync_period.get());
        let now = self.controller.env.clock.monotonic();
        let period = self.again.map_or(period, |again| period.min(again.saturating_duration_since(now)));
        self.record.next_check.set(now.checked_add(period));
        period
    }
}

impl Memory {
    fn next(&self, now: Instant, sync_period: Duration) -> Duration {
        let period = self.period.unwrap_or(now + sync_period);
        let due = self.drift_backoff.next_due().into_iter().chain(self.unscaled.values().copied());
        due.fold(period, Instant::min).saturating_duration_since(now)
    }

    /// Returns when the first object must be sent again. Objects that wait for a repair are left out: it sends them.
    fn sent_again(&self, run: &Run<'_>, now: Instant) -> Option<Instant> {
        let controller = run.controller;
        let due = |seen: &Fingerprint| controller.revalidation.due(&run.reconcile.key, seen.sent);
        let free = self.objects.iter().filter(|(key, _)| !self.drift_backoff.holds(key, now));
        let first = free.filter_map(|(_, seen)| due(seen)).min()?;
        controller.started.checked_add(Duration::from_millis(first))
    }

    fn is_idle(&self) -> bool {
        self.applied.is_some() && self.drift_backoff.is_empty() && self.unscaled.is_empty() && self.progress.is_none()
    }
}

impl ManagedResources {
    pub(super) fn has_secrets_of(&self, bundle: &NamespacedName, applied: &Applied) -> bool {
        applied.secrets.iter().all(|(secret, version)| {
            let name = NamespacedName::new(&bundle.namespace, secret);
            !self.secrets.changed_since(&name, *version)
        })
    }

    pub(crate) fn revision(&self, bundle: &NamespacedName) -> Option<BundleRevision> {
        let is_reported = self.bundles.is_fresh_for(bundle) && !self.settings.apply.always_update;
        let version = self.bundles.store().with(bundle, Cached::version).filter(|_| is_reported)?;
        let objects = self.objects.revision(bundle)?;
        let is_reported = self.autoscalers.is_fresh() || !self.objects.holds(bundle, hpa::is_scalable);
        is_reported.then_some(BundleRevision { version, objects })
    }

    /// Returns the time to the end of a period of about this length, in step with others: one wake for many.
    pub(crate) fn idle_period(&self, period: Duration) -> Duration {
        in_step(self.env.clock.monotonic().saturating_duration_since(self.started), period)
    }
}

/// Returns the period, at most a 60th and half a second longer or shorter, so that it ends together with many others of
/// similar length. `elapsed`: the time since a common beginning.
fn in_step(elapsed: Duration, period: Duration) -> Duration {
    // A power of two, so that each end of long steps is also an end of shorter steps.
    let longest = u64::try_from(period.as_millis() / 30).unwrap_or(u64::MAX).min(1024);
    let step = u128::from(longest.checked_ilog2().map_or(1, |exponent| 1_u64 << exponent)) * 1_000_000;
    let due = (elapsed + period).as_nanos();
    let rounded = (due + step / 2) / step * step;
    Duration::from_nanos(u64::try_from(rounded).unwrap_or(u64::MAX)).saturating_sub(elapsed)
}

#[cfg(test)]
mod tests {
    use cluster::object::ObjectKey;
    use serde_json::{Value, json};

    use super::*;
    use crate::api::resources::managed_resource::ManagedResource;

    const CAP: Duration = Duration::from_secs(60);

    fn key(name: &str) -> ObjectKey {
        ObjectKey { kind: "ConfigMap".into(), name: name.into(), ..ObjectKey::default() }
    }

    #[test]
    fn applied_state_depends_only_on_what_the_status_says_of_the_set() {
        let bundle = |at: &str, value: Value| {
            let mut object = json!({
                "metadata": {"namespace": "shoot", "name": "a", "uid": "u", "generation": 3},
                "status": {"observedGeneration": 3, "secretsDataChecksum": "c", "conditions": [
                    {"type": "ResourcesApplied", "status": "True"}, {"type": "ResourcesHealthy", "status": "True"},
                ]},
            });
            *object.pointer_mut(at).unwrap() = value;
            ManagedResource::from_slice(&serde_json::to_vec(&object).unwrap()).unwrap()
        };
        let applied = Applied::of(&bundle("/metadata/name", json!("a")), &[]);
        for (at, value, is_same) in [
            ("/metadata/name", json!("a"), true),
            ("/status/conditions/1/status", json!("False"), true),
            ("/metadata/uid", json!("v"), false),
            ("/metadata/generation", json!(4), false),
            ("/status/observedGeneration", json!(2), false),
            ("/status/secretsDataChecksum", json!("d"), false),
            ("/status/conditions/0/status", json!("False"), false),
        ] {
            assert_eq!(applied.is_about(&bundle(at, value)), is_same, "{at}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn next_reconcile_is_due_by_the_period_or_by_a_postponed_repair() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let mut memory = Memory::default();
        assert_eq!(memory.next(now, CAP), CAP);
        memory.period = Some(now + 30 * second);
        assert_eq!(memory.next(now + 10 * second, CAP), 20 * second);
        memory.drift_backoff.repaired(&key("a"), 7, now, CAP);
        assert_eq!(memory.next(now, CAP), 30 * second, "nothing was postponed");
        memory.drift_backoff.drifted(&key("a"), now);

        assert_eq!(memory.next(now, CAP), second);
        assert_eq!(memory.next(now + 2 * second, CAP), Duration::ZERO);
        memory.period = Some(now);
        assert_eq!(memory.next(now, CAP), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn idle_period_begins_when_all_is_applied_and_nothing_goes_on() {
        let mr = ManagedResource::from_slice(br#"{"metadata": {"namespace": "shoot", "name": "a"}}"#).unwrap();
        let applied = || Memory { applied: Some(Rc::new(Applied::of(&mr, &[]))), ..Memory::default() };
        assert!(applied().is_idle() && !Memory::default().is_idle());

        let mut damped = applied();
        damped.drift_backoff.repaired(&key("a"), 7, Instant::now(), CAP);
        let mut forgetful = applied();
        forgetful.forget_objects();

        assert!(!damped.is_idle() && !forgetful.is_idle());
        assert!(!Memory { progress: Some(Default::default()), ..applied() }.is_idle());
    }

    #[test]
    fn idle_periods_end_together_and_do_not_grow() {
        for (elapsed, period, due) in [
            (0, 60_000, 59 * 1024),
            (59 * 1024, 60_000, 118 * 1024),
            (59 * 1024, 54_000, 112 * 1024),
            (59 * 1024, 66_000, 123 * 1024),
            (119_700, 60_000, 175 * 1024),
            (119_800, 60_000, 176 * 1024),
            (1_024, 600, 1_024 + 38 * 16),
            (1_040, 600, 1_024 + 39 * 16),
            (7, 0, 7),
        ] {
            let (elapsed, period) = (Duration::from_millis(elapsed), Duration::from_millis(period));

            assert_eq!(elapsed + in_step(elapsed, period), Duration::from_millis(due), "{elapsed:?} {period:?}");
        }
    }
}

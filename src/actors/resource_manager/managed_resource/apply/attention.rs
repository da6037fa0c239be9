//! Whether an object is checked now. Whatever started the reconcile, the decision is made here, so that nothing
//! bypasses the drift back-off (spec 10 §5.4, decision 37).

use cluster::object::ObjectKey;
use tokio::time::Instant;

use super::{super::known::Memory, Scene, apply_object::Done, object_error::ObjectError};
use crate::actors::resource_manager::bundle::plan::PlannedObject;

pub(super) enum Attention {
    /// Nothing: it is known to be as its manifest describes it.
    UpToDate,
    /// A check, but not yet: another client keeps changing it.
    Postponed,
    Check(Check),
}

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Check {
    /// It was as this manifest describes it, and a watch reported a change.
    drifted: bool,
    /// It was repaired by the same manifest not long ago.
    pub(super) again: bool,
}

impl Scene<'_> {
    /// Returns what an object needs. `done`: an earlier time slice has applied it.
    pub(super) fn attention(
        &self,
        object: &PlannedObject,
        manifest: u64,
        memory: &mut Memory,
        done: bool,
        now: Instant,
    ) -> Attention {
        let known = memory.objects.get(&object.key).filter(|known| known.manifest == manifest).copied();
        let drifted = match (&known, self.run.controller.objects.evidence(&object.key)) {
            (Some(known), Some(cached)) if cached.content().is(&known.content) => return Attention::UpToDate,
            (Some(_), None) if done => return Attention::UpToDate,
            (known, cached) => known.is_some() && cached.is_some(),
        };
        // Applying another manifest is no repair.
        if known.is_some() && !memory.drift_backoff.drifted(&object.key, now) {
            return Attention::Postponed;
        }
        let again = memory.drift_backoff.is_contested(&object.key, manifest);
        if again {
            let controller = self.run.controller;
            let pause =
                memory.drift_backoff.next_pause(&object.key, manifest, controller.settings.apply.sync_period.get());
            controller.health_registry.is_contested(&self.run.reconcile.key, &object.key, now, pause);
        }
        Attention::Check(Check { drifted, again })
    }

    /// Notes how a check ended. A check that found nothing to repair counts as a repair: it costs as many requests.
    pub(super) fn learn(
        &self,
        memory: &mut Memory,
        key: &ObjectKey,
        manifest: u64,
        look: Check,
        result: &Result<Done, ObjectError>,
    ) {
        let controller = self.run.controller;
        let is_repair = match result {
            Ok(done) => look.drifted || done.repaired,
            Err(error) => error.is_replaced(),
        };
        if is_repair {
            let now = controller.env.clock.monotonic();
            memory.drift_backoff.repaired(key, manifest, now, controller.settings.apply.sync_period.get());
        } else if result.is_ok() {
            memory.drift_backoff.reset_if_changed(key, manifest);
        }
    }
}

//! A bundle at rest: its period ends with a look instead of a pass, as long as all is as it was left.

use std::{cell::Cell, rc::Rc, time::Duration};

use kit::{Look, Outcome};
use tokio::time::Instant;

use super::{
    super::{
        known::memory::{Applied, BundleRevision, Fingerprints, Memory},
        shared::ManagedResources,
        wake::trigger::{self, Entry, Operation},
    },
    run::Run,
};
use crate::api::object::NamespacedName;

/// What a look goes by.
struct Rest {
    controller: Rc<ManagedResources>,
    bundle: NamespacedName,
    applied: Rc<Applied>,
    objects: Rc<Fingerprints>,
    /// The revision at which a look found all as it was left last: as long as it is the same, no other look is necessary.
    calm: Cell<Option<BundleRevision>>,
}

/// How a pass ends that left nothing undone: the next one is due by a repair that was put off, or by the period, unless there
/// is nothing for it to do then. `calm` is the revision at which this pass found all as it was left, if it looked at all.
///
/// A look leaves `memory.period` where it is: a pass that comes for another reason later looks at all objects.
pub(in super::super) fn until_due(
    run: &Run<'_>,
    memory: &Memory,
    now: Instant,
    calm: Option<BundleRevision>,
) -> Outcome {
    let next = memory.next(now, run.controller.settings.sync_period);
    let Some(applied) = memory.applied.clone().filter(|_| memory.is_at_rest()) else { return Outcome::After(next) };
    let rest = Rest {
        controller: run.controller.clone(),
        bundle: run.pass.key.clone(),
        applied,
        objects: memory.objects.clone(),
        calm: Cell::new(calm),
    };
    Outcome::Rest(next, Look::new(move || rest.goes_on().then(|| rest.period())))
}

/// The time to the end of the next period: exact where something is written for it, be it each update (spec 10 §3.1) or a repair
/// that was put off, which comes as often. Else in step with other bundles.
pub(in super::super) fn period(controller: &ManagedResources, memory: &Memory) -> Duration {
    let period = controller.settings.sync_period;
    let is_exact = controller.settings.always_update || !memory.damping.is_empty();
    if is_exact { period } else { controller.calm_period(period) }
}

// === impl Rest ===

impl Rest {
    /// Whether a pass would find nothing to do.
    fn goes_on(&self) -> bool {
        let Some(revision) = self.controller.revision(&self.bundle) else { return false };
        let goes_on = self.controller.has_secrets_of(&self.bundle, &self.applied)
            && (self.calm.get() == Some(revision) || self.is_as_left());
        self.calm.set(goes_on.then_some(revision));
        goes_on
    }

    /// Whether the ManagedResource asks for no more than it did, and its objects are as they were when they were right.
    fn is_as_left(&self) -> bool {
        let Self { controller, bundle, applied, objects, .. } = self;
        let class = &controller.settings.class;
        let asks_for_nothing = controller.bundles.store().with(bundle, |record| {
            let head = record.head();
            applied.is_about_head(head)
                && class.holds(&head.mr)
                && trigger::operation(&head.mr) == Operation::Continue
                && trigger::entry(class, &head.mr) == Entry::Apply
        });
        asks_for_nothing == Some(true)
            && controller.objects.are_still(objects.iter().map(|(key, seen)| (key.as_ref(), seen.content)))
    }

    fn period(&self) -> Duration {
        self.controller.calm_period(self.controller.settings.sync_period)
    }
}

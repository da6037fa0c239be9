//! `controllerdeployment-reference`, `seed-reference`, `shoot-reference`: an actor per referrer.

use std::{rc::Rc, time::Duration};

use cluster::{Context, Predicate, object::NamespacedName};
use kit::{Controller, Env, Failure, Outcome, Reconcile, Reconciler, Supervised};

use super::{
    object::{PROTECTION, ReferencedKind, ReferencedObject},
    protection::{CachedObject, CachedReferrer, Protection, set_protection},
    referrer::{REFERRER_KINDS, Referrer, ReferrerKind},
    verdict::{ReferrerVerdict, SeenObject, judge_referrer},
};
use crate::actors::{
    controller_manager::{
        figures::REFERRERS_WITH_MISSING_OBJECTS,
        held::HeldObjects,
        rows::{Lines, kept},
    },
    shared::{state_counts::StateCounts, texts::together},
};

/// A referrer that waits for its objects looks again after this time.
const PERIOD: Duration = Duration::from_secs(600);

pub(super) struct ReferrerController {
    protection: Rc<Protection>,
    /// Index of its kind in [`REFERRER_KINDS`].
    number: usize,
    kind: &'static ReferrerKind,
    workers: usize,
    missing: StateCounts,
}

impl ReferrerController {
    /// Starts the controller of a kind of referrers, with its event handlers.
    pub(super) fn start(
        protection: &Rc<Protection>,
        number: usize,
        workers: usize,
        env: &Env,
    ) -> Option<Supervised<Self>> {
        let kind = REFERRER_KINDS.get(number)?;
        let referrers = protection.referrers().get(number)?;
        let missing = StateCounts::new(&env.observers, REFERRERS_WITH_MISSING_OBJECTS, [kind.controller]);
        missing.show();
        let held = |referrer: &CachedReferrer| referrer.fields.kept_since();
        HeldObjects::show(&env.observers, (kind.controller, &kind.kind), &referrers.watch, held);
        let controller = Self { protection: protection.clone(), number, kind, workers, missing };
        let supervised = Supervised::start(Rc::new(controller), env);
        referrers.watch.on_change(&supervised, Predicate::fields_changed(), |name, referrer| {
            Some(name.clone()).filter(|_| !referrer.fields.is_idle())
        });
        for kind in ReferencedKind::ALL {
            let changed = Predicate::<CachedObject>::differing(|old, new| {
                old.fields.state.concerns_referrers_unlike(new.fields.state)
            });
            let by_object = referrers.by_object.clone();
            // Own writes count: another controller of this process releases the objects.
            protection.objects(kind).on_change(&supervised, changed.including_own_writes(), move |name, _| {
                by_object.get(&ReferencedObject { kind, name: name.clone() })
            });
        }
        Some(supervised)
    }

    /// Returns what the referrer sees of its objects.
    async fn look(
        &self,
        context: &Context,
        key: &NamespacedName,
        referrer: &Referrer,
        confirmed: bool,
    ) -> Result<Vec<SeenObject>, Failure> {
        let states = self.protection.states_of(context, &referrer.references, confirmed).await?;
        let look = |object: &ReferencedObject| SeenObject {
            state: states.get(object).copied(),
            // While the referrer is in use, nobody asks for others: thousands may share an object.
            has_other_referrer: !referrer.state.is_in_use
                && self.protection.has_other_referrer(object, self.number, key),
        };
        Ok(referrer.references.iter().map(look).collect())
    }
}

impl Controller for ReferrerController {
    type Key = NamespacedName;
    type Memory = ();

    fn name(&self) -> &'static str {
        self.kind.controller
    }

    fn reconcilers(&self) -> Vec<Reconciler> {
        let reconciler = Reconciler::new(self.kind.controller, self.workers);
        let reconciler = reconciler.about((&self.kind.kind.group, &self.kind.kind.kind));
        vec![self.protection.requirements().fold(reconciler, Reconciler::requires)]
    }

    async fn reconcile(
        self: &Rc<Self>,
        (): &mut (),
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let key = &reconcile.key;
        let context = Context::new(reconcile.priority(), reconcile.deadline, key.to_string());
        let Some(watch) = self.protection.referrers().get(self.number).map(|it| &it.watch) else {
            return Ok(Outcome::Retire);
        };
        let Some(referrer) = watch.store().with(key, |referrer| referrer.fields.clone()) else {
            tracing::debug!("Object is gone, stop reconciling");
            self.missing.enter(key, None);
            return Ok(Outcome::Retire);
        };
        let mut seen = self.look(&context, key, &referrer, false).await?;
        let mut verdict = judge_referrer(referrer.state, &seen);
        if verdict == ReferrerVerdict::Release && referrer.state.is_in_use {
            seen = self.look(&context, key, &referrer, true).await?;
            verdict = judge_referrer(referrer.state, &seen);
        }
        let missing = missing(&referrer, &seen);
        let is_missing = referrer.state.is_in_use && !missing.is_empty();
        self.missing.enter(key, is_missing.then_some(self.kind.controller));
        match verdict {
            ReferrerVerdict::Keep => {}
            ReferrerVerdict::Wait => {
                reconcile.note("waits until its objects are released");
                reconcile.detail(waiting(&referrer, &seen));
                return Ok(Outcome::After(PERIOD));
            }
            ReferrerVerdict::Hold | ReferrerVerdict::Release => {
                let held = verdict == ReferrerVerdict::Hold;
                let (text, what) = if held { ("Adding finalizer", "add") } else { ("Removing finalizer", "remove") };
                tracing::info!(finalizer = PROTECTION, "{text}");
                let is_judged = |known: &Referrer| *known == referrer;
                let wrote = set_protection(watch, &context, key, held, is_judged).await;
                if !wrote.map_err(|error| Failure::new(format!("failed to {what} finalizer: {error}")))? {
                    return Ok(Outcome::Again);
                }
            }
        }
        if is_missing {
            return Err(Failure::new(missing));
        }
        Ok(Outcome::Retire)
    }
}

/// Returns the further lines of a referrer that waits: its finalizer, and the objects that have it, too.
fn waiting(referrer: &Referrer, seen: &[SeenObject]) -> Lines {
    let blocks = |(object, seen): (&ReferencedObject, &SeenObject)| seen.blocks_release().then(|| object.to_string());
    let objects: Vec<_> = referrer.references.iter().zip(seen).filter_map(blocks).collect();
    let mut lines = kept(PROTECTION, referrer.deleted, &[]);
    lines.push(("Objects that are not released".to_owned(), together(&objects, ", ")));
    lines
}

/// Returns the error text about objects that cannot be protected; empty if there are none.
fn missing(referrer: &Referrer, seen: &[SeenObject]) -> String {
    let problem = |(object, seen): (&ReferencedObject, &SeenObject)| match seen.state {
        None => Some(object.missing(false)),
        Some(state) if state.is_lost() => Some(object.missing(true)),
        Some(_) => None,
    };
    let problems: Vec<_> = referrer.references.iter().zip(seen).filter_map(problem).collect();
    together(&problems, ", ")
}

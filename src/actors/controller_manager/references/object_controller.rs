//! `reference-protection`: an actor per referenced object, whoever refers to it.

use std::{rc::Rc, time::Duration};

use cluster::{Context, Predicate};
use kit::{Controller, Env, Failure, Outcome, Reconcile, Reconciler, Supervised};

use super::{
    object::{KnownObject, ObjectState, PROTECTION, ReferencedKind, ReferencedObject},
    protection::{CachedObject, CachedReferrer, Protection, set_protection},
    verdict::ObjectVerdict,
};
use crate::actors::controller_manager::{
    held::{DeletionTime, HeldObjects},
    rows::{in_use, kept},
};

/// Name in metrics and logs (spec 80 §15).
pub(super) const NAME: &str = "reference-protection";

const WORKERS: usize = 5;

const UNPROTECTED: &str = "an object in use is being deleted without the finalizer";

/// A referrer that only the live list knows appears in the watch soon; if it does not, the list is repeated.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

pub(super) struct ObjectController {
    protection: Rc<Protection>,
}

impl ObjectController {
    /// Starts the controller and its event handlers.
    pub(super) fn start(protection: &Rc<Protection>, env: &Env) -> Supervised<Self> {
        let supervised = Supervised::start(Rc::new(Self { protection: protection.clone() }), env);
        for referrers in protection.referrers() {
            let changed =
                Predicate::<CachedReferrer>::differing(|old, new| old.fields.concerns_objects_unlike(&new.fields));
            // The answer to a removed finalizer may be the end of a referrer.
            let changed = changed.including_own_writes();
            referrers.watch.on_change(&supervised, changed, |_, referrer| referrer.fields.references.to_vec());
        }
        for kind in ReferencedKind::ALL {
            let released = Predicate::<CachedObject>::differing(|old, new| {
                let (old, new) = (old.fields.state, new.fields.state);
                // The deletion shows on the dashboard.
                (old.is_held && !new.is_held) || old.is_deleting != new.is_deleting
            });
            let known = protection.clone();
            protection.objects(kind).on_change(&supervised, released, move |name, object| {
                let key = ReferencedObject { kind, name: name.clone() };
                Some(key).filter(|key| object.fields.state.is_held || known.has_referrer(key))
            });
            let kept_since = |object: &CachedObject| object.fields.kept_since();
            HeldObjects::show(&env.observers, (NAME, kind.resource()), protection.objects(kind), kept_since);
        }
        supervised
    }

    /// Shows that an object is being deleted, and stays. Its actor stays, too: a change of its referrers wakes it.
    fn show_use(&self, reconcile: &Reconcile<ReferencedObject>, since: DeletionTime) -> Outcome {
        let referrers = self.protection.known_referrers(&reconcile.key);
        reconcile.note(in_use(&referrers));
        reconcile.detail(kept(PROTECTION, Some(since), &referrers));
        Outcome::Done
    }

    /// Adds (`held`) or removes the finalizer of an object that was judged in this state. Returns what ends the
    /// reconcile.
    async fn write(
        &self,
        context: &Context,
        key: &ReferencedObject,
        judged: ObjectState,
        held: bool,
    ) -> Result<Outcome, Failure> {
        let kind = &*key.kind.resource().kind;
        let (text, what) = match held {
            true => ("Adding finalizer to object", "add finalizer to"),
            false => ("Removing finalizer from object", "remove finalizer from"),
        };
        tracing::info!(kind, obj = %key.name, "{text}");
        let is_judged = |known: &KnownObject| known.state == judged;
        let wrote = set_protection(self.protection.objects(key.kind), context, &key.name, held, is_judged).await;
        let is_set = wrote.map_err(|error| Failure::new(format!("failed to {what} {kind} {}: {error}", key.name)))?;
        Ok(if is_set { Outcome::Retire } else { Outcome::Again })
    }
}

impl Controller for ObjectController {
    type Key = ReferencedObject;
    /// The warning about an object that cannot be protected was logged.
    type Memory = bool;

    fn name(&self) -> &'static str {
        NAME
    }

    fn reconcilers(&self) -> Vec<Reconciler> {
        vec![self.protection.requirements().fold(Reconciler::new(NAME, WORKERS), Reconciler::requires)]
    }

    async fn reconcile(
        self: &Rc<Self>,
        is_warned: &mut bool,
        reconcile: &Reconcile<ReferencedObject>,
    ) -> Result<Outcome, Failure> {
        let key = &reconcile.key;
        let context = Context::new(reconcile.priority(), reconcile.deadline, key.to_string());
        let watch = self.protection.objects(key.kind);
        let Some(known) = watch.store().with(&key.name, |object| object.fields) else { return Ok(Outcome::Retire) };
        let object = known.state;
        let cached = self.protection.judge_by_caches(key, object);
        let verdict = self.protection.judge(&context, key, object).await?;
        if verdict != cached {
            return Ok(Outcome::After(LOOK_AGAIN)); // the caches lag
        }
        match verdict {
            ObjectVerdict::Keep => match known.kept_since() {
                Some(since) => Ok(self.show_use(reconcile, since)),
                None => Ok(Outcome::Retire),
            },
            ObjectVerdict::Protect => self.write(&context, key, object, true).await,
            ObjectVerdict::TooLate => {
                if !std::mem::replace(is_warned, true) {
                    let kind = &*key.kind.resource().kind;
                    tracing::warn!(kind, obj = %key.name, "{UNPROTECTED}");
                }
                reconcile.note(UNPROTECTED);
                reconcile.detail(Vec::new());
                Ok(Outcome::Done)
            }
            ObjectVerdict::ReleaseLast => {
                reconcile.note("is released after its last referrer, which is being deleted");
                reconcile.detail(kept(PROTECTION, known.deleted, &self.protection.known_referrers(key)));
                Ok(Outcome::Done)
            }
            ObjectVerdict::Release => self.write(&context, key, object, false).await,
        }
    }
}

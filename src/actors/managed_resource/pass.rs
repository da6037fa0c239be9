//! One pass over a bundle: from the ManagedResource in the store to what is to be done with it (spec 10 §5.2, §7).

use std::{collections::BTreeSet, time::Duration};

use tokio::time::Instant;

use super::{
    apply, clean_up,
    controller::{CHANGED, DRIFT, KIND, ManagedResources, SECRET},
    memory::{Applied, Memory},
    read::{self, ReadError},
    snapshot::Snapshot,
    start::Start,
    status,
    status_cell::{StatusCell, StatusTarget, writer},
    targets::Evidence,
    trigger::{self, Entry, Operation},
};
use crate::{
    actors::kit::{Causes, Deadline, Failure, MAX_REFS, Outcome, Pass, Refs},
    api::{
        managed_resource::{ManagedResource, Status},
        object::{NamespacedName, ObjectKey},
    },
    cluster::{ApiError, Context, Reference},
};

/// Time of its own that a status write has, whatever the pass has used up (contract rule 7).
const STATUS_TIME: Duration = Duration::from_secs(5);

/// A pass under way: what every step needs.
pub(super) struct Run<'a> {
    pub(super) controller: &'a ManagedResources,
    pub(super) status: &'a StatusCell,
    pub(super) pass: &'a Pass<NamespacedName>,
    pub(super) context: Context,
    /// The name under which own writes are entered into stores.
    pub(super) writer: String,
    /// The ManagedResource as it stands after the last write of this pass.
    pub(super) bundle: Snapshot,
}

/// A pass gets so much time for objects, whatever it has used up before: else a bundle that takes long to read would
/// never get on.
const OBJECTS_TIME: Duration = Duration::from_secs(1);

/// What a pass has to look at.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Todo {
    /// Everything is as it was left.
    Nothing,
    /// These objects; the rest is settled.
    Some(BTreeSet<ObjectKey>),
    /// Everything; `forced` sends one update per object and run, even if it does not differ (spec 10 scenario 39).
    All { forced: bool },
}

/// Runs a pass.
pub(super) async fn run(
    controller: &ManagedResources,
    status: &StatusCell,
    memory: &mut Memory,
    pass: &Pass<NamespacedName>,
) -> Result<Outcome, Failure> {
    let Some(bundle) = controller.snapshot(&pass.key)? else {
        controller.targets.register(&pass.key, BTreeSet::new());
        controller.opening.has_nothing_to_claim(&pass.key);
        return Ok(Outcome::Retire);
    };
    let context = controller.context(pass);
    let mut run = Run { controller, status, pass, context, writer: writer(&pass.key), bundle };
    match trigger::operation(&run.bundle.mr) {
        Operation::Stop => {
            controller.opening.has_nothing_to_claim(&pass.key);
            return Ok(Outcome::Done);
        }
        Operation::RemoveAndContinue => run.remove_operation().await?,
        Operation::Continue => {}
    }
    if pass.because_of(Causes::RESTARTED) {
        *memory = Memory::default();
    }
    match trigger::entry(&controller.settings.class, &run.bundle.mr) {
        Entry::Apply => apply_path(&mut run, memory).await,
        other => {
            controller.opening.has_nothing_to_claim(&pass.key);
            memory.forget_objects();
            if other != Entry::Delete {
                // A deletion can take several passes; anything else begins anew.
                memory.round = None;
            }
            match other {
                Entry::Ignored => {
                    let now = controller.env.clock.wall();
                    run.write_status(|status| status::ignored(status, now)).await?;
                    controller.targets.register(&pass.key, BTreeSet::new());
                    pass.note("ignored");
                    Ok(Outcome::Done)
                }
                Entry::Delete => clean_up::delete_bundle(&mut run, memory).await,
                Entry::WaitingForCleanup | Entry::NotResponsible | Entry::Apply => Ok(Outcome::Done),
            }
        }
    }
}

async fn apply_path(run: &mut Run<'_>, memory: &mut Memory) -> Result<Outcome, Failure> {
    let controller = run.controller;
    match controller.opening.turn(&run.pass.key, memory, &run.bundle.mr) {
        Start::Over => {}
        Start::Wait(moments) => return Ok(Outcome::Wait(moments)),
        Start::Claim => {
            if let Some(moments) = super::start::claim(run, memory).await? {
                return Ok(Outcome::Wait(moments));
            }
        }
    }
    let now = controller.env.clock.monotonic();
    let todo = todo(run, memory, now);
    if todo == Todo::Nothing {
        if memory.applied.is_none() {
            return Ok(Outcome::Again);
        }
        return Ok(Outcome::After(next(memory, now, controller.settings.sync_period)));
    }
    run.ensure_finalizer().await?;
    let bundle = match read::read(run).await {
        Ok(bundle) => bundle,
        Err(error) => {
            memory.applied = None;
            memory.round = None;
            return Err(run.secret_unreadable(error).await);
        }
    };
    let unwatched = bundle.watch_kinds(run);
    if !unwatched.is_empty() && !run.pass.because_of(Causes::STORE) {
        return Ok(Outcome::Wait(unwatched));
    }
    apply::apply(run, memory, bundle, todo).await
}

/// What the pass has to look at, from why it runs and what is known.
fn todo(run: &Run<'_>, memory: &mut Memory, now: Instant) -> Todo {
    let settings = &run.controller.settings;
    let wake = &run.pass.wake;
    let period_due = memory.period.is_none_or(|period| period <= now);
    let current = memory.applied.as_ref().is_some_and(|applied| run.is_unchanged(applied) && run.has_finalizer());
    // A bundle in which objects fail is tried again by its back-off; drift of its other objects is repaired meanwhile.
    let failing = !current && memory.failed.as_ref().is_some_and(|failed| run.is_unchanged(failed));
    let only_drift = wake.causes == DRIFT;
    let asked = wake.causes.meets(CHANGED.with(KIND)) || (wake.causes.meets(SECRET) && !current);
    let again = wake.causes.meets(Causes::AGAIN) || (period_due && settings.always_update);
    if asked || (again && !only_drift) || !(current || (failing && only_drift)) {
        return Todo::All { forced: settings.always_update };
    }
    let mut refs = memory.take_due(now);
    let drifted = match &wake.refs {
        Refs::Named(drifted) if wake.causes.meets(DRIFT) => drifted.clone(),
        Refs::All => memory.objects.keys().cloned().collect(),
        Refs::Named(_) | Refs::None => BTreeSet::new(),
    };
    let drifted = drifted.into_iter().filter(|key| !run.is_as_remembered(memory, key));
    let drifted: Vec<ObjectKey> = drifted.collect();
    if let Some(round) = &mut memory.round {
        round.applied.retain(|key, _| !drifted.contains(key));
    }
    refs.extend(drifted.into_iter().filter(|key| memory.drifted(key, now)));
    if period_due {
        refs.extend(memory.objects.keys().filter(|key| !run.is_as_remembered(memory, key)).cloned());
        memory.period = Some(now + settings.sync_period);
    }
    match refs.len() {
        0 => Todo::Nothing,
        1..=MAX_REFS => Todo::Some(refs),
        _ => Todo::All { forced: settings.always_update },
    }
}

/// When the next pass is due: by the period, or by a repair that was put off.
pub(super) fn next(memory: &Memory, now: Instant, sync_period: Duration) -> Duration {
    let period = memory.period.unwrap_or(now + sync_period);
    memory.next_due().map_or(period, |due| due.min(period)).saturating_duration_since(now)
}

// === impl Run ===

impl Run<'_> {
    /// Whether the pass, which came to its objects at `since`, has to let others have their turn.
    pub(super) fn should_yield(&self, since: Instant) -> bool {
        let now = self.controller.env.clock.monotonic();
        self.pass.should_yield() && now.saturating_duration_since(since) >= OBJECTS_TIME
    }

    /// Whether ManagedResource and Secrets are as they were then.
    fn is_unchanged(&self, then: &Applied) -> bool {
        let unchanged = |(secret, version): &(String, u64)| {
            let name = NamespacedName::new(&self.pass.key.namespace, secret);
            !self.controller.secrets.changed_since(&name, *version)
        };
        then.is_about(self.mr()) && then.secrets.iter().all(unchanged)
    }

    /// Whether the ManagedResource carries the own finalizer.
    fn has_finalizer(&self) -> bool {
        self.controller.settings.class.holds(&self.bundle.mr)
    }

    /// Whether an object is known to look as it did when it was last right.
    fn is_as_remembered(&self, memory: &Memory, key: &ObjectKey) -> bool {
        let Some(seen) = memory.objects.get(key) else { return false };
        match self.controller.targets.evidence(key) {
            Evidence::Known(record) => record.same_content(&seen.record),
            Evidence::None => false,
        }
    }

    /// The ManagedResource.
    pub(super) fn mr(&self) -> &ManagedResource {
        &self.bundle.mr
    }

    /// Writes the status that `change` makes of the present one, unless it is the same.
    pub(super) async fn write_status(&mut self, change: impl FnOnce(&Status) -> Status) -> Result<(), Failure> {
        let own_time = Deadline::after(STATUS_TIME);
        let context = Context { deadline: self.context.deadline.max(own_time), ..self.context.clone() };
        let target = StatusTarget {
            cluster: &self.controller.source,
            resource: self.controller.bundles.resource(),
            bundles: &self.controller.bundles,
        };
        match self.status.write(target, &context, &self.bundle, change).await {
            Ok(written) => {
                self.bundle = written;
                Ok(())
            }
            Err(error) => Err(Failure::new(format!("could not update the ManagedResource status: {error}"))),
        }
    }

    /// Removes the operation annotation (spec 10 §5.2).
    async fn remove_operation(&mut self) -> Result<(), Failure> {
        let patch = trigger::remove_operation_patch();
        match self.patch_bundle(&patch).await {
            Ok(()) => Ok(()),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Adds the own finalizer where it is missing: before anything is written to the target (spec 10 §8).
    async fn ensure_finalizer(&mut self) -> Result<(), Failure> {
        if self.has_finalizer() {
            return Ok(());
        }
        let finalizer = self.controller.settings.class.finalizer();
        let metadata = &self.bundle.mr.metadata;
        let finalizers: Vec<&str> =
            metadata.finalizers.iter().map(String::as_str).chain(std::iter::once(finalizer)).collect();
        let patch = serde_json::json!({
            "metadata": { "finalizers": finalizers, "resourceVersion": metadata.resource_version }
        });
        let patched = self.patch_bundle(&patch).await;
        patched.map_err(|error| Failure::new(format!("failed to add finalizer: {error}")))
    }

    /// Patches the ManagedResource and goes on with the answer.
    pub(super) async fn patch_bundle(&mut self, patch: &serde_json::Value) -> Result<(), ApiError> {
        let controller = self.controller;
        let at = controller.bundles.resource().at(&self.pass.key.namespace, &self.pass.key.name);
        let answer = controller.source.merge_patch(&self.context, &at, None, patch).await?;
        controller.bundles.wrote(&answer, &self.writer);
        self.bundle = Snapshot::of(answer).map_err(|error| ApiError::Decode(error.to_string()))?;
        Ok(())
    }

    /// Reports a Secret that cannot be read (spec 10 §9.1) and gives the error of the pass.
    async fn secret_unreadable(&mut self, error: ReadError) -> Failure {
        let ReadError { secret, cause } = error;
        let text = cause.condition_text(&secret);
        let now = self.controller.env.clock.wall();
        if let Err(failure) = self.write_status(|status| status::secret_unreadable(status, &text, now)).await {
            return failure;
        }
        self.pass.note("a Secret cannot be read");
        Failure::new(format!("could not read secret '{secret}': {text}"))
    }

    /// Whether the pass runs for its period: the one in which an object that two bundles want is written.
    pub(super) fn is_period(&self) -> bool {
        self.pass.because_of(Causes::TIMER)
    }

    /// Reports that an object is wanted by another bundle too (decision 11).
    pub(super) fn conflicting_owner(&self, object: &str, owner: &NamespacedName) {
        let own = &self.pass.key;
        let message = format!("object \"{object}\" is claimed by {own} and by {owner}; the last writer wins");
        if !self.controller.is_news(own, object, "ConflictingOwner") {
            return;
        }
        self.controller.recorder.warning(&self.reference(), "ConflictingOwner", &message);
        tracing::warn!(managed_resource = %own, object = %object, owner = %owner, "an object has two owners");
    }

    /// Reports that an object was not deleted because it belongs to another bundle now (decision 10).
    pub(super) fn kept_for_owner(&self, object: &str, owner: &NamespacedName) {
        let own = &self.pass.key;
        let message = format!("object \"{object}\" left {own} but belongs to {owner} now and is not deleted");
        if !self.controller.is_news(own, object, "OwnedByOther") {
            return;
        }
        self.controller.recorder.warning(&self.reference(), "OwnedByOther", &message);
        tracing::warn!(managed_resource = %own, object = %object, owner = %owner, "an object belongs to another owner");
    }

    fn reference(&self) -> Reference {
        let metadata = &self.bundle.mr.metadata;
        Reference {
            api_version: self.controller.bundles.resource().api_version(),
            kind: self.controller.bundles.resource().kind.to_string(),
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            uid: metadata.uid.clone(),
        }
    }
}

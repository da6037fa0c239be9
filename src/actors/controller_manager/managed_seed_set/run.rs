//! One reconcile of a ManagedSeedSet (spec 86 §6).

use std::{sync::Arc, time::Duration};

use cluster::{ApiError, Context, EventType, Lock, Reference, Wrote, object::NamespacedName};
use kit::{Failure, Outcome, Reconcile, quote::cut};
use tokio::time::Instant;

use super::{
    ManagedSeedSets,
    act::{Acted, Stop},
    replica::Replica,
    rules::{Act, NoStep, Situation, Step, counted},
    set::{CachedSet, ManagedSeedSet},
    status::{PendingReplica, SetStatus},
    told::told,
};
use crate::{actors::controller_manager::guards::GARDENER, api::kinds};

/// An error that stays the same is recorded again after this time.
const REPETITION: Duration = Duration::from_secs(3600);

/// What an actor remembers of its ManagedSeedSet.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The instance it knows.
    uid: Box<str>,
    /// The status after the last step, while it could not be written.
    unwritten: Option<SetStatus>,
    /// The replica that is waited for and whose name no status may have (DEV-13).
    foreign: Option<PendingReplica>,
    /// The replica whose Shoot may exist although the request that creates it failed: the answer may have been lost. Then
    /// it is waited for, too.
    attempted: Option<PendingReplica>,
    /// The error that was recorded last, and when.
    error: Option<(String, Instant)>,
}

/// A reconcile.
pub(super) struct Run<'a> {
    pub(super) sets: &'a ManagedSeedSets,
    pub(super) context: Context,
    pub(super) key: &'a NamespacedName,
    pub(super) set: Arc<ManagedSeedSet>,
}

/// Reconciles a ManagedSeedSet.
pub(super) async fn reconcile(
    sets: &ManagedSeedSets,
    memory: &mut Memory,
    reconcile: &Reconcile<NamespacedName>,
) -> Result<Outcome, Failure> {
    let key = &reconcile.key;
    let context = Context::new(reconcile.priority(), reconcile.deadline, key.to_string());
    let known = match sets.caches.sets.known(key) {
        Some(known) => known,
        None => sets.caches.sets.read_live(&context, key).await?,
    };
    let Some(CachedSet { set, .. }) = known else {
        tracing::debug!("Object is gone, stop reconciling");
        return Ok(Outcome::Retire);
    };
    if memory.uid != set.uid {
        *memory = Memory { uid: set.uid.clone(), ..Memory::default() };
    }
    let mut run = Run { sets, context, key, set };
    match (run.set.is_deleting, run.set.is_held) {
        (true, true) => {
            tracing::debug!("Reconciling deletion");
            run.reconcile(memory, reconcile).await.inspect(|_| tracing::debug!("Deletion reconciled"))
        }
        (true, false) => {
            tracing::debug!("Skipping as it does not have a finalizer");
            Ok(Outcome::Retire)
        }
        (false, is_held) => {
            if !is_held && let Some(outcome) = run.hold().await? {
                return Ok(outcome);
            }
            tracing::debug!("Reconciling creation or update");
            run.reconcile(memory, reconcile).await.inspect(|_| tracing::debug!("Creation or update reconciled"))
        }
    }
}

impl Run<'_> {
    /// Adds the finalizer. Returns an outcome if the ManagedSeedSet is not as it was.
    async fn hold(&mut self) -> Result<Option<Outcome>, Failure> {
        let wrote = self.sets.caches.sets.set_finalizer(&self.context, self.key, GARDENER, true).await;
        let wrote = wrote.map_err(|error| Failure::new(format!("could not add finalizer: {error}")))?;
        Ok(match wrote {
            Wrote::Created(live) | Wrote::Updated(live) | Wrote::Unchanged(live) => {
                let live = ManagedSeedSet::of(&live);
                let is_same = live.uid == self.set.uid;
                self.set = Arc::new(live);
                (!is_same).then_some(Outcome::Again)
            }
            Wrote::Altered(_) | Wrote::Deleting(_) => Some(Outcome::Again),
            Wrote::Gone => Some(Outcome::Retire),
        })
    }

    async fn reconcile(
        &mut self,
        memory: &mut Memory,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        if let Some(outcome) = self.write_remembered(memory).await? {
            return Ok(outcome);
        }
        let replicas = self.sets.caches.replicas(self.key, &self.set);
        replicas.iter().for_each(|replica| self.log(replica));
        let mut old = self.set.status.clone();
        old.pending = old.pending.or_else(|| memory.foreign.clone());
        let is_there = |attempted: &&PendingReplica| replicas.iter().any(|replica| replica.name == attempted.name);
        old.pending = memory.attempted.as_ref().filter(is_there).cloned().or(old.pending);
        let mut status = old.clone();
        let stepped = self.step(memory, &mut status, &replicas, reconcile).await;
        match stepped {
            Ok(Some(_)) => memory.error = None,
            Ok(None) if self.set.is_deleting => return self.release().await,
            Ok(None) => {
                memory.error = None;
                tracing::debug!("Nothing to do");
                status.pending = None;
            }
            Err(Stop::Later) => return Ok(Outcome::Again),
            Err(Stop::Failed(ref error)) => self.record_error(memory, error),
        }
        let is_foreign = |pending: &PendingReplica| !pending.is_of(&self.key.name);
        memory.foreign = status.pending.clone().filter(is_foreign);
        let written = self.write(&status).await;
        match &written {
            Err(_) => memory.unwritten = Some(status),
            // From now on the status tells of it.
            Ok(_) if stepped.is_ok() => memory.attempted = None,
            Ok(_) => {}
        }
        match (stepped, written) {
            (Err(Stop::Failed(error)), _) => Err(self.failure(&error)),
            (_, Err(error)) => Err(self.failure(&not_written(&error))),
            (_, Ok(Wrote::Gone)) => Ok(Outcome::Retire),
            (_, Ok(Wrote::Altered(_))) | (Err(Stop::Later), _) => Ok(Outcome::Again),
            (Ok(Some(Acted::Gone)), Ok(_)) => Ok(Outcome::Continue),
            (Ok(Some(Acted::Wait) | None), Ok(_)) => Ok(Outcome::After(self.sets.period)),
        }
    }

    /// Writes the status that an earlier reconcile could not write: before the next step, so that no step is done twice
    /// (§6.7).
    async fn write_remembered(&mut self, memory: &mut Memory) -> Result<Option<Outcome>, Failure> {
        let Some(status) = &memory.unwritten else { return Ok(None) };
        match self.write(status).await.map_err(|error| self.failure(&not_written(&error)))? {
            Wrote::Created(cached) | Wrote::Updated(cached) | Wrote::Unchanged(cached) => self.set = cached.set,
            Wrote::Altered(_) | Wrote::Deleting(_) => return Ok(Some(Outcome::Again)),
            Wrote::Gone => return Ok(Some(Outcome::Retire)),
        }
        memory.unwritten = None;
        Ok(None)
    }

    /// Does the next step and enters it in the status. Returns `None` if there is nothing to do.
    async fn step(
        &self,
        memory: &mut Memory,
        status: &mut SetStatus,
        replicas: &[Replica],
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Option<Acted>, Stop> {
        let old = status.clone();
        status.observed_generation = self.set.generation;
        let target = self.set.target().map_err(Stop::Failed)?;
        *status = counted(&old, self.set.generation, replicas);
        let max_retries = self.sets.max_retries;
        let situation = Situation { set: &self.key.name, target, replicas, status: &old, max_retries };
        let step = situation.step().map_err(|no_step| {
            reconcile.note(blocked(no_step, replicas));
            Stop::Failed(no_step.to_string())
        })?;
        let ready = format!("{} of {target} replicas ready", status.ready_replicas);
        let Some(step) = step else {
            reconcile.note(ready);
            return Ok(None);
        };
        reconcile.note(format!("{ready}; {}: {}", cut(&step.replica), step.reason.as_str()));
        let (acted, now) = (self.act(&step, replicas, status).await, self.sets.clock.wall());
        if step.act == Act::CreateShoot && acted.is_err() {
            memory.attempted = Some(PendingReplica::new(&step.replica, step.reason, step.retries, now));
        }
        let acted = acted?;
        step.enter(status, now);
        let is_same = old.pending.as_ref().zip(status.pending.as_ref()).is_some_and(|(old, new)| old.is_same(new));
        if !(step.is_wait() && is_same) {
            self.tell(&step);
        }
        Ok(Some(acted))
    }

    /// Removes the finalizer of a ManagedSeedSet in deletion that has no replica (§6 step 11).
    async fn release(&self) -> Result<Outcome, Failure> {
        match self.confirm(&[], |_, _| true).await {
            Ok(()) => {}
            Err(Stop::Later) => return Ok(Outcome::Again),
            Err(Stop::Failed(error)) => return Err(self.failure(&error)),
        }
        let wrote = self.sets.caches.sets.set_finalizer(&self.context, self.key, GARDENER, false).await;
        let wrote = wrote.map_err(|error| self.failure(&format!("failed to remove finalizer: {error}")))?;
        Ok(if let Wrote::Altered(_) = wrote { Outcome::Again } else { Outcome::Retire })
    }

    async fn write(&self, status: &SetStatus) -> Result<Wrote<CachedSet>, ApiError> {
        let patch = |cached: &CachedSet| {
            let is_same = cached.set.uid == self.set.uid;
            is_same.then(|| status.patch(&self.key.name, &cached.set.status)).flatten()
        };
        self.sets.caches.sets.patch_status_cached(&self.context, self.key, Lock::Uid, patch).await
    }

    fn tell(&self, step: &Step) {
        let told = told(step);
        let replica = NamespacedName::new(self.key.namespace.as_str(), &*step.replica).to_string();
        let max_retries = (step.act == Act::GiveUp).then_some(self.sets.max_retries);
        tracing::info!(replica = &*cut(&replica), maxRetries = max_retries, "{}", told.text());
        self.record(EventType::Normal, told.action, told.reason, &told.note(&self.key.namespace, &step.replica));
    }

    /// Records an error, unless it was recorded lately.
    fn record_error(&self, memory: &mut Memory, error: &str) {
        let now = Instant::now();
        let is_known = |(text, at): &(String, Instant)| text == error && now.duration_since(*at) < REPETITION;
        if !memory.error.as_ref().is_some_and(is_known) {
            memory.error = Some((error.to_owned(), now));
            self.record(EventType::Warning, "Reconcile", "ReconcileError", error);
        }
    }

    fn record(&self, event_type: EventType, action: &str, reason: &str, note: &str) {
        let regarding = Reference::new(&kinds::MANAGED_SEED_SET, self.key, &*self.set.uid);
        self.sets.events.record(event_type, &regarding, action, reason, note);
    }

    fn failure(&self, error: &str) -> Failure {
        let what = if self.set.is_deleting { "deletion" } else { "creation or update" };
        Failure::new(format!("could not reconcile ManagedSeedSet {} {what}: {error}", self.key))
    }

    fn log(&self, replica: &Replica) {
        tracing::debug!(
            objectKey = %NamespacedName::new(self.key.namespace.as_str(), &*replica.name),
            status = ?replica.status,
            seedReady = replica.is_seed_ready,
            shootHealthStatus = replica.health.as_str(),
            "Replica"
        );
    }
}

fn not_written(error: &ApiError) -> String {
    format!("could not update status: {error}")
}

/// Returns the line of a ManagedSeedSet that has too many replicas, with what keeps them ("better" 11).
fn blocked(no_step: NoStep, replicas: &[Replica]) -> String {
    /// Replicas that are shown.
    const SHOWN: usize = 10;
    let kept = |replica: &Replica| match (replica.is_scheduled, replica.is_protected) {
        (true, _) => Some(format!("{} has Shoots", cut(&replica.name))),
        (false, true) => Some(format!("{} is protected", cut(&replica.name))),
        (false, false) => None,
    };
    let kept: Vec<_> = replicas.iter().filter_map(kept).take(SHOWN).collect();
    format!("{no_step}: {}", kept.join(", "))
}

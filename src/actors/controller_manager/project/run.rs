//! One reconcile of a Project: what it knows, and what all steps do.

use std::{rc::Rc, sync::Arc, time::Duration};

use cluster::{ApiError, Context, Lock, Reference, Wrote, object::NamespacedName};
use kit::{Deadline, Failure, Outcome, Reconcile};
use tokio::time::Instant;

use super::{
    Projects,
    cached::{CachedProject, Project},
    namespace::{NamespaceState, ProjectId},
    phase::Phase,
    told::{Reason, Tell, Told},
};
use crate::{
    actors::{
        controller_manager::rbac::RbacKind,
        shared::drift_backoff::{DriftBackoff, LONGEST_PAUSE},
    },
    api::kinds,
};

/// The steps whose failure is shown, as the log and the metric name them ("better" 6).
pub(super) mod step {
    pub(in super::super) const NAMESPACE: &str = "namespace";
    pub(in super::super) const QUOTA: &str = "quota";
    pub(in super::super) const RBAC: &str = "rbac";
    pub(in super::super) const STALE_ROLES: &str = "stale_roles";
    pub(in super::super) const RELEASE: &str = "release";
    pub(in super::super) const ALL: [&str; 5] = [NAMESPACE, QUOTA, RBAC, STALE_ROLES, RELEASE];
}

/// A phase waits this long for the Event that explains it.
const EVENT_LIMIT: Duration = Duration::from_secs(1);

/// What an actor remembers of its Project.
#[derive(Default)]
pub(super) struct Memory {
    /// The instance it knows.
    uid: Option<Box<str>>,
    /// The server has confirmed this instance since the actor began.
    is_confirmed: bool,
    pub(super) told: Told,
    pub(super) repairs: DriftBackoff<Repaired>,
}

/// What is repaired, and after a pause if somebody undid the last repair.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Repaired {
    /// The Namespace exists, with the marks of the Project.
    Namespace,
    /// The default ResourceQuota.
    Quota,
    /// An RBAC object is as it must be.
    Rbac(RbacKind, String),
    /// An RBAC object of an extension role that no member has is gone.
    Stale(RbacKind, String),
}

/// Why a reconcile ends before its last step.
#[derive(Debug)]
pub(super) enum Stop {
    /// The Project is gone.
    Gone,
    /// Something is not as wanted because somebody else changed it meanwhile: the next reconcile follows at once.
    Overtaken,
    /// A step failed: an Event and the phase say so.
    Failed {
        /// The step, for the log.
        step: &'static str,
        /// The note of the Event.
        text: String,
    },
    /// A request failed, and neither an Event nor the phase says so.
    Error(Failure),
}

/// A reconcile.
pub(super) struct Run<'a> {
    pub(super) projects: &'a Projects,
    pub(super) memory: &'a mut Memory,
    pub(super) context: Context,
    pub(super) key: &'a NamespacedName,
    /// The Project as last answered.
    pub(super) project: Arc<Project>,
    /// The server has answered in this reconcile that the Project is as known here.
    pub(super) is_confirmed: bool,
    /// The last reconcile of this generation came to an end: what it wrote and differs now, somebody else has changed.
    pub(super) was_settled: bool,
}

/// Reconciles a Project.
pub(super) async fn reconcile(
    projects: &Rc<Projects>,
    memory: &mut Memory,
    reconcile: &Reconcile<NamespacedName>,
) -> Result<Outcome, Failure> {
    let key = &reconcile.key;
    let context = Context::new(reconcile.priority(), reconcile.deadline, key.to_string());
    let known = match projects.caches.projects.known(key) {
        Some(known) => known,
        None => projects.caches.projects.read_live(&context, key).await?,
    };
    let Some(CachedProject { project, .. }) = known else {
        tracing::debug!("Object is gone, stop reconciling");
        projects.failing.enter(key, None);
        return Ok(Outcome::Retire);
    };
    if memory.uid.as_ref() != Some(&project.uid) {
        *memory = Memory { uid: Some(project.uid.clone()), ..Memory::default() };
    }
    memory.repairs.take_due(Instant::now()); // what still differs is noted again
    let settled = [Phase::Ready, Phase::Failed, Phase::Terminating];
    let was_settled = settled.into_iter().any(|phase| phase.is_observed_of(&project));
    let is_deleting = project.is_deleting;
    let mut run = Run { projects, memory, context, key, project, is_confirmed: false, was_settled };
    let ended = if is_deleting { run.release().await } else { run.serve().await };
    let outcome = match ended {
        Ok(outcome) => {
            projects.failing.enter(key, None);
            outcome
        }
        Err(stop) => run.stopped(stop).await?,
    };
    reconcile.note(if is_deleting { "in deletion".to_owned() } else { run.line() });
    Ok(outcome)
}

impl Run<'_> {
    /// The Project as the owner of its objects.
    pub(super) fn id(&self) -> ProjectId<'_> {
        ProjectId { name: &self.key.name, uid: &self.project.uid }
    }

    fn line(&self) -> String {
        self.project.phase.to_lowercase()
    }

    /// Ends a reconcile early. A step that failed is shown, and retried after a back-off.
    async fn stopped(&mut self, stop: Stop) -> Result<Outcome, Failure> {
        match stop {
            Stop::Gone => Ok(Outcome::Retire),
            Stop::Overtaken => Ok(Outcome::Again),
            Stop::Error(error) => Err(error),
            Stop::Failed { step, text } => {
                self.failed(step, Reason::ReconcileFailed, &text).await;
                Err(Failure::new(text))
            }
        }
    }

    /// Shows that a step failed.
    pub(super) async fn failed(&mut self, step: &'static str, reason: Reason, note: &str) {
        tracing::info!(step, "A step of the Project failed");
        self.projects.failing.enter(self.key, Some(step));
        self.tell(reason, note);
        if let Err(error) = self.show(Phase::Failed).await {
            tracing::error!(%error, "Failed to update Project status");
        }
    }

    /// Records an Event, unless it was recorded lately.
    pub(super) fn tell(&mut self, reason: Reason, note: &str) {
        if self.memory.told.tell(reason, note, self.project.generation, Instant::now()) != Tell::Nothing {
            self.record(reason, note);
        }
    }

    /// Records an Event about the Project.
    pub(super) fn record(&self, reason: Reason, note: &str) {
        let (event_type, action, reason) = reason.parts();
        self.projects.events.record(event_type, &self.regarding(), action, reason, note);
    }

    fn regarding(&self) -> Reference {
        Reference::new(&kinds::PROJECT, self.key, &*self.project.uid)
    }

    /// Shows a phase, at the generation that was reconciled. Who sees that a Project failed or waits finds the Event that
    /// says why (A.3 F, A.10).
    pub(super) async fn show(&mut self, phase: Phase) -> Result<(), ApiError> {
        let (uid, generation) = (self.project.uid.clone(), self.project.generation);
        let patch = |cached: &CachedProject| phase.patch(&cached.project, &uid, generation);
        if phase.patch(&self.project, &uid, generation).is_none() {
            return Ok(());
        }
        if matches!(phase, Phase::Failed | Phase::Terminating) {
            self.projects.events.written(&self.regarding(), Deadline::after(EVENT_LIMIT)).await;
        }
        let wrote =
            self.projects.caches.projects.patch_status_cached(&self.context, self.key, Lock::Uid, patch).await?;
        let is_answer = !matches!(wrote, Wrote::Unchanged(_)); // else the cache said so
        if let Wrote::Updated(cached) | Wrote::Altered(cached) | Wrote::Unchanged(cached) = wrote
            && cached.project.uid == uid
        {
            self.is_confirmed |= is_answer && cached.project.generation == generation && generation != 0;
            self.project = Arc::new(self.project.with_phase_of(&cached.project));
        }
        Ok(())
    }

    /// Goes on with the Project as an answer shows it. Stops if it is gone, if it is another instance, or if its deletion
    /// has begun or ended meanwhile. Without a write, what this reconcile knows differs from the cache or the server.
    pub(super) fn take(&mut self, wrote: Wrote<CachedProject>) -> Result<(), Stop> {
        match wrote {
            Wrote::Gone => Err(Stop::Gone),
            Wrote::Altered(_) | Wrote::Unchanged(_) => Err(Stop::Overtaken),
            Wrote::Created(cached) | Wrote::Updated(cached) | Wrote::Deleting(cached) => self.adopt(&cached),
        }
    }

    fn adopt(&mut self, cached: &CachedProject) -> Result<(), Stop> {
        let is_same = cached.project.uid == self.project.uid && cached.project.is_deleting == self.project.is_deleting;
        if !is_same {
            return Err(Stop::Overtaken);
        }
        self.project = cached.project.clone();
        self.is_confirmed = true;
        self.memory.is_confirmed = true;
        Ok(())
    }

    /// Confirms the Project before its members get rights that they lack, unless this process has followed it: the cache
    /// of a process that has just become the leader may lag behind what the last leader wrote, and would give rights back
    /// to somebody who is no member any more. A new generation of a Project that was confirmed before is no such case.
    pub(super) async fn confirm_grants(&mut self) -> Result<(), Stop> {
        if self.was_settled || !self.memory.is_confirmed { self.confirm().await } else { Ok(()) }
    }

    /// Reads the Project, unless the server has answered about it in this reconcile.
    pub(super) async fn confirm(&mut self) -> Result<(), Stop> {
        if self.is_confirmed {
            return Ok(());
        }
        let live = self.projects.caches.projects.read_object(&self.context, self.key).await?.ok_or(Stop::Gone)?;
        let live = CachedProject::of(&live).ok_or(Stop::Overtaken)?;
        let known = self.project.clone();
        self.adopt(&live)?;
        let is_same = live.project.generation == known.generation && live.project.has_spec_of(&known);
        if is_same { Ok(()) } else { Err(Stop::Overtaken) }
    }

    /// Returns what is known of the Namespace, from the cache or else live.
    pub(super) async fn namespace(&self, name: &NamespacedName) -> Result<Option<NamespaceState>, ApiError> {
        let watch = &self.projects.caches.namespaces;
        let known = match watch.known(name) {
            Some(known) => known,
            None => watch.read_live(&self.context, name).await?,
        };
        Ok(known.map(|known| known.state))
    }

    /// Returns true if something that differs may be written now. Only what somebody else has changed has to wait.
    pub(super) fn may_repair(&mut self, repaired: &Repaired, intent: u64) -> bool {
        !self.was_settled || self.memory.repairs.may_repair(repaired, intent, Instant::now())
    }

    /// Remembers a write, if it undid what somebody else has changed.
    pub(super) fn repaired(&mut self, repaired: &Repaired, intent: u64) {
        if self.was_settled {
            self.memory.repairs.repaired(repaired, intent, Instant::now(), LONGEST_PAUSE);
        }
    }

    /// Remembers a write that the server changed, as a mutating policy does. What still differs is written again after a
    /// pause, whoever wakes the Project before.
    pub(super) fn altered(&mut self, repaired: &Repaired, intent: u64) {
        let now = Instant::now();
        self.memory.repairs.repaired(repaired, intent, now, LONGEST_PAUSE);
        self.memory.repairs.drifted(repaired, now);
    }
}

impl Stop {
    /// A step failed with this error.
    pub(super) fn failed(step: &'static str, text: impl Into<String>) -> Self {
        Self::Failed { step, text: text.into() }
    }
}

impl From<ApiError> for Stop {
    fn from(error: ApiError) -> Self {
        Self::Error(error.into())
    }
}

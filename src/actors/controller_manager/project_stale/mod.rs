//! `project-stale`: marks Projects that nobody uses, and deletes them after a while (spec 82 D).
//! ```text
//! Namespace, Shoots, BackupEntries, bindings, what these refer to ─ in_use.rs ─► Verdict ─┐
//! Project, settings ─ staleness.rs ─► protection, times, limits ──────────────────────────┴─► status, DELETE, a timer
//! ```
//! One actor per Project. It looks at the caches when something changes that may matter, when a limit ends, and once per
//! period. A deletion rests on live reads alone, and is bound to the version of the Project that was judged (spec 80 §16
//! S-13): activity in the last moment stops it.
//! * [`in_use`], [`staleness`]: pure
//! * `caches`: what the use depends on, as caches know it and as the API server says

mod caches;
pub mod in_use;
pub mod staleness;

use std::{ops::ControlFlow, rc::Rc, time::Duration};

use cluster::{
    CachedFields, Context, Index, Lock, Predicate, Watch, WatchOptions, Wrote,
    evidence::{Evidence, decide},
    object::{self, NamespacedName},
};
use jiff::{SignedDuration, Timestamp};
use kit::{Clock, Controller, Failure, Outcome, Priority, Reconcile, Reconciler};
use serde_json::Value;

use self::{
    caches::Caches,
    in_use::{Reason, Verdict, judge},
    staleness::{Periods, Project, Protection, StaleTimes, first_look},
};
use super::{
    context::{GardenContext, Registration, StartControllers, start},
    deletion_confirmation::{OpenConfirmation, confirmation},
};
use crate::api::{config::controller_manager::Config, kinds};

const NAME: &str = "project-stale"; // spec 80 §15

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

/// Longest back-off after errors (spec 80 §16 S-2, "better" 5).
const LONGEST_BACK_OFF: Duration = Duration::from_secs(1000);

/// Time limit of a reconcile if the period is longer: a request that hangs must not hold a worker for hours.
const LONGEST_RECONCILE: Duration = Duration::from_secs(600);

struct StaleProjects {
    workers: usize,
    period: Duration,
    minimum_lifetime_days: i64,
    periods: Periods,
    clock: Clock,
    projects: Watch<CachedFields<Project>>,
    by_namespace: Index<String>,
    caches: Caches,
}

/// What an actor remembers.
#[derive(Debug, Default)]
struct Memory {
    /// The first look is over, or its time is set.
    has_begun: bool,
    confirmation: OpenConfirmation,
}

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    let settings = &config.controllers.project;
    let projects = ctx.garden.watches.open(WatchOptions::fields(kinds::PROJECT, Project::of));
    let by_namespace = projects
        .index(|_, project: &CachedFields<Project>| project.fields.namespace.iter().map(ToString::to_string).collect());
    let controller = StaleProjects {
        workers: settings.concurrent_syncs.count(),
        period: settings.stale_sync_period.get(),
        minimum_lifetime_days: settings.minimum_lifetime_days,
        periods: Periods::of(settings),
        clock: ctx.env.clock.clone(),
        projects,
        by_namespace,
        caches: Caches::open(ctx),
    };
    Some(start(controller, |controller, supervised| {
        controller.projects.on_change(supervised, Predicate::fields_changed(), |name, _| [name.clone()]);
        let by_namespace = controller.by_namespace.clone();
        controller.caches.subscribe(supervised, move |namespace| by_namespace.get(&namespace.to_owned()));
    }))
}

impl StaleProjects {
    /// Judges a Project. A verdict that leads to a deletion rests on live reads (D.6).
    async fn judged(
        &self,
        context: &Context,
        namespace: &str,
        project: &Project,
        now: Timestamp,
    ) -> Result<Verdict, Failure> {
        let protection = project.protection(self.periods, now);
        let ask = |evidence: &Evidence<'_, Caches>| judge(namespace, protection, |question| evidence.ask(&question));
        let is_irreversible = |verdict: &Verdict| *verdict == Verdict::Stale && project.is_expired(self.periods, now);
        decide(&self.caches, context, ask, is_irreversible).await
    }

    /// Returns what the status of a Project must say.
    fn times(&self, project: &Project, verdict: Verdict, now: Timestamp) -> StaleTimes {
        match verdict {
            Verdict::NoNamespace => project.stale(),
            Verdict::Stale if project.protection(self.periods, now).is_none() => project.stale_times(self.periods, now),
            Verdict::Stale | Verdict::NotStale(_) => StaleTimes::default(),
        }
    }

    /// Writes the status of a Project as the server has it, and returns the Project. The version is the lock: activity
    /// meanwhile is seen. Breaks with an outcome if the Project must be judged again, or is gone.
    async fn write_times(
        &self,
        context: &Context,
        key: &NamespacedName,
        project: &Project,
        verdict: Verdict,
        now: Timestamp,
    ) -> Result<ControlFlow<Outcome, Project>, Failure> {
        if project.stale_patch(self.times(project, verdict, now)).is_none() {
            return Ok(ControlFlow::Continue(project.clone()));
        }
        let patch = |live: &Value| {
            let live = Project::of(live);
            live.is_same(project).then(|| live.stale_patch(self.times(&live, verdict, now))).flatten()
        };
        Ok(match self.projects.patch_status(context, key, Lock::Version, patch).await? {
            Wrote::Created(live) | Wrote::Updated(live) | Wrote::Unchanged(live) => {
                let live = Project::of(&live);
                if live.is_same(project) { ControlFlow::Continue(live) } else { ControlFlow::Break(Outcome::Again) }
            }
            Wrote::Altered(_) => ControlFlow::Break(Outcome::Again),
            Wrote::Deleting(_) | Wrote::Gone => ControlFlow::Break(Outcome::Retire),
        })
    }

    /// Deletes a Project that was judged by live reads, unless it has changed meanwhile (D.6).
    async fn delete(
        &self,
        memory: &mut Memory,
        context: &Context,
        key: &NamespacedName,
        project: &Project,
        now: Timestamp,
    ) -> Result<Outcome, Failure> {
        tracing::info!("Deleting Project now because its auto-delete timestamp is exceeded");
        let confirm = |live: &Value| {
            let live = Project::of(live);
            (live.is_same(project) && live.is_expired(self.periods, now)).then(|| confirmation(now))
        };
        memory.confirmation.written(now); // its answer may be lost
        let confirmed = match self.projects.patch(context, key, Lock::Version, confirm).await? {
            Wrote::Updated(confirmed) => confirmed,
            Wrote::Created(_) | Wrote::Altered(_) | Wrote::Unchanged(_) => return Ok(Outcome::Again),
            Wrote::Deleting(_) => return Ok(Outcome::Retire),
            Wrote::Gone => {
                tracing::info!("Project already gone");
                return Ok(Outcome::Retire);
            }
        };
        let is_confirmed = |live: &Value| object::resource_version(live) == object::resource_version(&confirmed);
        Ok(match self.projects.delete_if(context, &confirmed, None, is_confirmed).await? {
            Wrote::Gone | Wrote::Deleting(_) => Outcome::Retire,
            Wrote::Created(_) | Wrote::Updated(_) | Wrote::Altered(_) | Wrote::Unchanged(_) => Outcome::Again,
        })
    }

    /// Returns when to look at a Project again: after the period, or when a limit ends.
    fn look_later(&self, project: &Project, now: Timestamp) -> Outcome {
        let period = SignedDuration::try_from(self.period).unwrap_or(SignedDuration::MAX);
        let next = now.checked_add(period).ok().into_iter().chain(project.next_limit(self.periods, now)).min();
        next.map_or(Outcome::Done, Outcome::At)
    }

    fn log(&self, verdict: Verdict, project: &Project) {
        match verdict {
            Verdict::NoNamespace => {}
            Verdict::NotStale(Reason::Skipped) => {
                tracing::info!("Namespace is marked to skip the stale check, marking Project as not stale");
            }
            Verdict::NotStale(Reason::Protected(Protection::Age)) => tracing::info!(
                minimumLifetimeDays = self.minimum_lifetime_days,
                creationTimestamp = project.created.map(tracing::field::display),
                "Project is not older than the configured minimum lifetime, marking Project as not stale"
            ),
            Verdict::NotStale(Reason::Protected(Protection::Activity)) => tracing::info!(
                "Project was used recently and it is not exceeding the configured minimum lifetime, marking Project as \
                 not stale"
            ),
            Verdict::NotStale(Reason::InUse(by)) => {
                tracing::info!(resource = by.name(), "Project is in use by resource, marking Project as not stale");
            }
            Verdict::Stale => tracing::info!("Project is not in use by any resource, marking Project as stale"),
        }
    }
}

impl Controller for StaleProjects {
    type Key = NamespacedName;
    type Memory = Memory;

    fn reconcilers(&self) -> Vec<Reconciler> {
        let reconciler = Reconciler::new(NAME, self.workers)
            .about(("core.gardener.cloud", "Project"))
            .deadline(self.period.min(LONGEST_RECONCILE))
            .max_back_off(self.period.min(LONGEST_BACK_OFF))
            .requires(self.projects.sync_requirement());
        vec![self.caches.requirements().fold(reconciler, Reconciler::requires)]
    }

    async fn reconcile(
        self: &Rc<Self>,
        memory: &mut Memory,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let key = &reconcile.key;
        let Some(project) = self.projects.store().with(key, |project| project.fields.clone()) else {
            tracing::debug!("Object is gone, stop reconciling");
            return Ok(Outcome::Retire);
        };
        // Only wakes of the first list have low priority. Timers come later.
        if !std::mem::replace(&mut memory.has_begun, true) && reconcile.priority() == Priority::Low {
            return Ok(Outcome::After(first_look(&project, self.period)));
        }
        let Some(namespace) = project.namespace.as_deref().filter(|_| !project.is_deleting) else {
            return Ok(Outcome::Retire); // a change wakes it
        };
        let context = Context::new(reconcile.priority(), reconcile.deadline, key.to_string());
        let now = self.clock.wall();
        let is_confirmed = project.is_expired(self.periods, now);
        let verdict = self.judged(&context, namespace, &project, now).await?;
        self.log(verdict, &project);
        let project = match self.write_times(&context, key, &project, verdict, now).await? {
            ControlFlow::Continue(project) => project,
            ControlFlow::Break(outcome) => return Ok(outcome),
        };
        match (verdict == Verdict::Stale && project.is_expired(self.periods, now), is_confirmed) {
            (true, true) => return self.delete(memory, &context, key, &project, now).await,
            (true, false) => return Ok(Outcome::Again), // the cache lagged behind: the verdict rests on caches
            (false, _) => memory.confirmation.withdraw(&self.projects, &context, key).await?,
        }
        if verdict == Verdict::Stale {
            let StaleTimes { since, auto_delete } = project.stale();
            tracing::info!(
                staleSinceTimestamp = since.map(tracing::field::display),
                staleAutoDeleteTimestamp = auto_delete.map(tracing::field::display),
                "Project is stale, but will not be deleted now"
            );
        }
        reconcile.note(if verdict == Verdict::Stale { "stale" } else { "not stale" });
        Ok(self.look_later(&project, now))
    }
}

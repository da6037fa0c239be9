//! `project-activity`: remembers in the status of a Project when something happened in its namespace (spec 82 C).
//!
//! `Shoots, BackupEntries, Quotas, credentials ─ rules.rs ─► activity ─► status.lastActivityTimestamp`
//!
//! [`rules`] is pure. This file has the watches, an actor per Project while there is activity, and its write: at most one
//! per Project and 10 s. Kinds that are not served have no activity.

pub mod rules;

use std::rc::Rc;

use cluster::{
    CachedFields, Change, Context, How, Index, Lock, Resource, Watch, WatchOptions, Wrote,
    object::{self, NamespacedName},
};
use jiff::Timestamp;
use kit::{Causes, Clock, Controller, Failure, Outcome, Reconcile, Reconciler, Supervised, Wake, WeakSupervised};
use serde_json::Value;

use self::rules::{ActivityKind, Trace, activity_patch, is_activity, is_due};
use super::{
    context::{GardenContext, Registration, StartControllers, start},
    fields::{time, whole_seconds},
    project_namespace::{may_belong_to_project, namespace_of},
};
use crate::api::{config::controller_manager::Config, kinds};

const NAME: &str = "project-activity"; // spec 80 §15

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

/// The kinds whose changes are activity (spec 82 C.2).
const KINDS: [(Resource, ActivityKind); 6] = [
    (kinds::SHOOT, ActivityKind::Generation),
    (kinds::BACKUP_ENTRY, ActivityKind::Generation),
    (kinds::QUOTA, ActivityKind::Referenced),
    (kinds::SECRET, ActivityKind::Referenced),
    (kinds::INTERNAL_SECRET, ActivityKind::Referenced),
    (kinds::WORKLOAD_IDENTITY, ActivityKind::Referenced),
];

struct Activities {
    workers: usize,
    clock: Clock,
    projects: Watch<CachedFields<Project>>,
    by_namespace: Index<String>,
    objects: Vec<(ActivityKind, Watch<CachedFields<Trace>>)>,
}

/// What is kept of a Project.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Project {
    namespace: Option<Box<str>>,
    last_activity: Option<Timestamp>,
    is_deleting: bool,
}

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    let watches = &ctx.garden.watches;
    let projects = watches.open(WatchOptions::fields(kinds::PROJECT, Project::of));
    let by_namespace = projects
        .index(|_, project: &CachedFields<Project>| project.fields.namespace.iter().map(ToString::to_string).collect());
    let objects = KINDS.into_iter().map(|(resource, kind)| {
        let options = WatchOptions::fields(resource, Trace::of).metadata().optional();
        (kind, watches.open(options.keeping(|name| may_belong_to_project(&name.namespace))))
    });
    let objects = objects.collect();
    let workers = config.controllers.project.concurrent_syncs.count();
    let controller = Activities { workers, clock: ctx.env.clock.clone(), projects, by_namespace, objects };
    Some(start(controller, |controller, supervised| controller.subscribe(supervised)))
}

impl Project {
    fn of(project: &Value) -> Self {
        Self {
            namespace: namespace_of(project).map(Box::from),
            last_activity: time(project, "/status/lastActivityTimestamp"),
            is_deleting: object::deletion_timestamp(project).is_some(),
        }
    }
}

impl Activities {
    fn subscribe(self: &Rc<Self>, supervised: &Supervised<Self>) {
        for (kind, watch) in &self.objects {
            let (kind, controller, waker) = (*kind, Rc::downgrade(self), supervised.weak());
            watch.subscribe(move |change| {
                if let Some(controller) = controller.upgrade() {
                    controller.note(kind, change, &waker);
                }
            });
        }
        // The first list of Projects may come after those of the objects.
        let (controller, waker) = (Rc::downgrade(self), supervised.weak());
        self.projects.subscribe(move |change| {
            let project = change.new.map(|project| &project.fields);
            if let (How::First, Some(project), Some(controller)) = (change.how, project, controller.upgrade())
                && controller.has_news(project)
            {
                waker.wake(change.name, Wake::low(Causes::OBJECT));
            }
        });
    }

    /// Wakes the Projects of a namespace if a change in it is activity.
    fn note(&self, kind: ActivityKind, change: &Change<'_, CachedFields<Trace>>, waker: &WeakSupervised<Self>) {
        let (old, new) = (change.old.map(|object| &object.fields), change.new.map(|object| &object.fields));
        if change.how != How::Lost && is_activity(kind, old, new, self.clock.wall()) {
            self.wake(&change.name.namespace, new.filter(|_| change.how == How::First), waker);
        }
    }

    /// Returns true if an object in the namespace of a Project was created a short time ago, and after its last activity.
    fn has_news(&self, project: &Project) -> bool {
        let (now, mut is_any) = (self.clock.wall(), false);
        let Some(namespace) = project.namespace.as_deref() else { return false };
        for (kind, watch) in &self.objects {
            watch.store().for_each_in(namespace, |_, object| {
                is_any |= is_activity(*kind, None, Some(&object.fields), now)
                    && !object.fields.is_recorded_by(project.last_activity);
            });
        }
        is_any
    }

    /// Wakes all Projects that name a namespace: a Project that only claims it must not take the activity of its owner.
    /// `first`: the object of the first list. Its creation may be recorded already, by the process before this one.
    fn wake(&self, namespace: &str, first: Option<&Trace>, waker: &WeakSupervised<Self>) {
        for project in self.by_namespace.get(&namespace.to_owned()) {
            let is_recorded = |first: &Trace| {
                let last = self.projects.store().with(&project, |project| project.fields.last_activity);
                first.is_recorded_by(last.flatten())
            };
            match first {
                Some(first) if is_recorded(first) => {}
                Some(_) => waker.wake(&project, Wake::low(Causes::OBJECT)),
                None => waker.wake(&project, Wake::high(Causes::OBJECT)),
            }
        }
    }
}

impl Controller for Activities {
    type Key = NamespacedName;
    type Memory = ();

    fn reconcilers(&self) -> Vec<Reconciler> {
        let reconciler = Reconciler::new(NAME, self.workers).about(("core.gardener.cloud", "Project"));
        vec![reconciler.requires(self.projects.sync_requirement())]
    }

    async fn reconcile(
        self: &Rc<Self>,
        (): &mut (),
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let key = &reconcile.key;
        let Some(project) = self.projects.store().with(key, |project| project.fields.clone()) else {
            tracing::debug!("Object is gone, stop reconciling");
            return Ok(Outcome::Retire);
        };
        let now = self.clock.wall();
        if project.is_deleting || !is_due(project.last_activity, now) {
            return Ok(Outcome::Retire);
        }
        tracing::info!(lastActivityTimestamp = %whole_seconds(now), "Updating Project's lastActivityTimestamp");
        let context = Context::new(reconcile.priority(), reconcile.deadline, key.to_string());
        let patch = |live: &Value| activity_patch(live, now);
        let wrote = self.projects.patch_status(&context, key, Lock::Uid, patch).await;
        let wrote =
            wrote.map_err(|error| Failure::new(format!("failed updating Project's lastActivityTimestamp: {error}")))?;
        Ok(if let Wrote::Altered(_) = wrote { Outcome::Again } else { Outcome::Retire })
    }
}

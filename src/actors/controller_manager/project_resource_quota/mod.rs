//! `project-resourcequota`: ResourceQuotas in namespaces of Projects allow as many ConfigMaps and Secrets as Gardener itself
//! creates for the allowed number of Shoots (spec 82 B).
//!
//! `ResourceQuota, number of Shoots ─ rules.rs ─► changes ─► one patch`
//!
//! [`rules`] is pure. This file has the watches, an actor per ResourceQuota, and its write. A repair that another client
//! undoes follows after ever longer pauses.

pub mod rules;

use std::{fmt, rc::Rc};

use cluster::{CachedFields, Context, Index, Lock, Predicate, Watch, WatchOptions, Wrote, object::NamespacedName};
use kit::{Controller, Failure, Outcome, Reconcile, Reconciler};
use serde_json::Value;
use tokio::time::Instant;

use self::rules::{Obstacle, Quota, align, patch};
use super::{
    context::{GardenContext, Registration, StartControllers, start},
    project_namespace::namespace_of,
};
use crate::{
    actors::shared::drift_backoff::{DriftBackoff, LONGEST_PAUSE},
    api::{config::controller_manager::Config, kinds},
};

const NAME: &str = "project-resourcequota"; // spec 80 §15

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

struct ProjectQuotas {
    workers: usize,
    quotas: Watch<CachedFields<Quota>>,
    /// The namespaces of Projects.
    projects: Watch<CachedFields<Option<Box<str>>>>,
    by_namespace: Index<String>,
    shoots: Watch<CachedFields<()>>,
}

/// What is wanted of a ResourceQuota is always the same: that it is aligned.
const INTENT: u64 = 0;

/// What an actor remembers: its repairs.
type Repairs = DriftBackoff<()>;

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    let watches = &ctx.garden.watches;
    let namespace = |project: &Value| namespace_of(project).map(Box::from);
    let projects: Watch<CachedFields<Option<Box<str>>>> = watches.open(WatchOptions::fields(kinds::PROJECT, namespace));
    let controller = ProjectQuotas {
        workers: config.controllers.project.concurrent_syncs.count(),
        quotas: watches.open(WatchOptions::fields(kinds::RESOURCE_QUOTA, Quota::of)),
        by_namespace: projects.index(|_, project| project.fields.iter().map(ToString::to_string).collect()),
        projects,
        shoots: watches.open(WatchOptions::fields(kinds::SHOOT, |_| ()).metadata()),
    };
    Some(start(controller, |controller, supervised| {
        let by_namespace = controller.by_namespace.clone();
        controller.quotas.on_change(supervised, Predicate::fields_changed(), move |name, _| {
            by_namespace.contains(&name.namespace).then(|| name.clone())
        });
        let quotas = controller.quotas.clone();
        controller.projects.on_change(supervised, Predicate::fields_changed(), move |_, project| {
            let mut names = Vec::new();
            if let Some(namespace) = &project.fields {
                quotas.store().for_each_in(namespace, |name, _| names.push(name.clone()));
            }
            names
        });
    }))
}

impl ProjectQuotas {
    /// Returns the number of Shoots in the namespace of a ResourceQuota if that matters.
    async fn shoots_of(&self, context: &Context, key: &NamespacedName, quota: &Quota) -> Result<Option<i64>, Failure> {
        match align(quota, None) {
            Err(Obstacle::ShootsUnknown) => self.count_shoots(context, &key.namespace).await.map(Some),
            Ok(_) | Err(Obstacle::Unreadable(_)) => Ok(None),
        }
    }

    async fn count_shoots(&self, context: &Context, namespace: &str) -> Result<i64, Failure> {
        let mut count = 0;
        if self.shoots.is_fresh() {
            self.shoots.store().for_each_in(namespace, |_, _| count += 1);
            return Ok(count);
        }
        let listed = self.shoots.list_live(context, Some(namespace), None, |_, _| count += 1).await;
        let cannot_count = |error| {
            Failure::new(format!(
                "could not get maximum shoots in project: could not list shoots in project namespace {namespace:?}: {error}"
            ))
        };
        listed.map(|()| count).map_err(cannot_count)
    }

    /// Aligns a ResourceQuota. Returns false if somebody else changed it meanwhile.
    async fn align(
        &self,
        context: &Context,
        key: &NamespacedName,
        quota: &Quota,
        repairs: &mut Repairs,
    ) -> Result<bool, Failure> {
        let shoots = self.shoots_of(context, key, quota).await.map_err(|failure| Failure::new(told(key, &failure)))?;
        // A change of the ResourceQuota wakes it.
        let changes = align(quota, shoots).map_err(|obstacle| Failure::terminal(told(key, &obstacle)))?;
        if changes.is_empty() || !repairs.drifted(&(), Instant::now()) {
            return Ok(true);
        }
        changes.iter().for_each(|change| change.log());
        let decide = |live: &CachedFields<Quota>| align(&live.fields, shoots).ok().and_then(|changes| patch(&changes));
        let wrote = self.quotas.patch_cached(context, key, Lock::Version, decide).await;
        let wrote = wrote.map_err(|error| Failure::new(told(key, &error)))?;
        if matches!(wrote, Wrote::Created(_) | Wrote::Updated(_) | Wrote::Altered(_)) {
            repairs.repaired(&(), INTENT, Instant::now(), LONGEST_PAUSE);
        }
        Ok(!wrote.is_altered())
    }
}

/// Returns the text about an error (spec 82 B.3).
fn told(key: &NamespacedName, error: &dyn fmt::Display) -> String {
    let NamespacedName { namespace, name } = key;
    format!("error aligning resource quota {name:?} in namespace {namespace:?}: {error}")
}

impl Controller for ProjectQuotas {
    type Key = NamespacedName;
    type Memory = Repairs;

    fn reconcilers(&self) -> Vec<Reconciler> {
        vec![
            Reconciler::new(NAME, self.workers)
                .about(("", "ResourceQuota"))
                .requires(self.quotas.sync_requirement())
                .requires(self.projects.sync_requirement())
                .requires(self.shoots.sync_requirement()),
        ]
    }

    async fn reconcile(
        self: &Rc<Self>,
        repairs: &mut Repairs,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let key = &reconcile.key;
        let Some(quota) = self.quotas.store().with(key, |quota| quota.fields.clone()) else {
            tracing::debug!("Object is gone, stop reconciling");
            return Ok(Outcome::Retire);
        };
        if !self.by_namespace.contains(&key.namespace) {
            return Ok(Outcome::Retire);
        }
        repairs.take_due(Instant::now()); // what still differs is noted again
        let context = Context::new(reconcile.priority(), reconcile.deadline, key.to_string());
        if !self.align(&context, key, &quota, repairs).await? {
            return Ok(Outcome::Again);
        }
        Ok(match repairs.next_in(Instant::now()) {
            Some(pause) => Outcome::After(pause),
            None if repairs.is_empty() => Outcome::Retire,
            None => Outcome::After(LONGEST_PAUSE), // it remembers its repair
        })
    }
}

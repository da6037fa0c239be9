//! `project`: a Project has a Namespace, a default ResourceQuota and RBAC objects, and shows a phase. A deleted Project waits
//! for its last Shoot and for the end of its Namespace (spec 82 A).
//! ```text
//! Projects ── cached.rs ──────────────┐
//! Namespaces ── namespace.rs ─────────┤
//! ResourceQuotas ── quota.rs ─────────┼─► an actor per Project: only what differs is written ─► told.rs: Events
//! RBAC objects ── roles.rs, ../rbac/ ─┤                                                    └─► phase.rs: the phase
//! Shoots ─────────────────────────────┘
//! ```
//! All caches are compared before anything is read or written, so a Project that is up to date costs no request. What
//! somebody else changes wakes the Project, and is repaired: at once, then after ever longer pauses.
//! * [`cached`], [`namespace`], [`quota`], [`roles`], [`phase`], [`told`]: pure
//! * `caches`: the watches, and which Projects a change wakes
//! * `reconcile`: the steps of a Project that lives (A.3); `grants`: its RBAC objects; `release`: a deleted one (A.10)
//! * `live_shoots`: the last look for Shoots before a Namespace is deleted
//! * `run`: what one reconcile knows and does, for all steps

pub mod cached;
mod caches;
mod grants;
mod live_shoots;
pub mod namespace;
pub mod phase;
pub mod quota;
mod reconcile;
mod release;
pub mod roles;
mod run;
#[cfg(test)]
mod tests;
pub mod told;

use std::{rc::Rc, time::Duration};

use cluster::{Recorder, object::NamespacedName};
use kit::{Controller, Failure, Outcome, Reconcile, Reconciler, Supervised};

use self::{
    caches::Caches,
    quota::Template,
    run::{Memory, step},
};
use super::{
    context::{GardenContext, Registration, StartControllers},
    figures::PROJECTS_FAILING,
};
use crate::{
    actors::shared::state_counts::StateCounts,
    api::config::controller_manager::{Config, ProjectQuota},
};

const NAME: &str = "project"; // spec 80 §15

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

/// Each Project is compared with the caches after this time, whatever happened.
const RESYNC: Duration = Duration::from_secs(10 * 3600);

struct Projects {
    workers: usize,
    caches: Caches,
    templates: Rc<[Template]>,
    events: Recorder,
    /// Projects by the step that failed.
    failing: StateCounts,
}

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    let settings = &config.controllers.project;
    let templates: Rc<[Template]> = templates(&settings.quotas).into();
    let controller = Projects {
        workers: settings.concurrent_syncs.count(),
        caches: Caches::open(ctx, &templates),
        templates,
        events: ctx.garden.events.for_component(format!("{NAME}-controller")),
        failing: StateCounts::new(&ctx.env.observers, PROJECTS_FAILING, step::ALL),
    };
    Some(Box::new(|ctx| {
        let supervised = Supervised::start(Rc::new(controller), &ctx.env);
        let controller = supervised.controller();
        controller.failing.show();
        controller.caches.subscribe(&supervised);
        supervised.into()
    }))
}

/// A selector that is none, which the configuration's validation excludes, selects no Project.
fn templates(quotas: &[ProjectQuota]) -> Vec<Template> {
    let template = |(index, quota): (usize, &ProjectQuota)| {
        let path = format!("controllers.project.quotas[{index}]");
        if quota::has_scopes(quota) {
            tracing::warn!(path, "scopes of the ResourceQuota have no effect");
        }
        Template::new(quota).inspect_err(|error| tracing::error!(path, %error, "projectSelector is invalid")).ok()
    };
    quotas.iter().enumerate().filter_map(template).collect()
}

impl Controller for Projects {
    type Key = NamespacedName;
    type Memory = Memory;

    fn reconcilers(&self) -> Vec<Reconciler> {
        let reconciler = Reconciler::new(NAME, self.workers).about(("core.gardener.cloud", "Project")).resync(RESYNC);
        vec![self.caches.requirements().into_iter().fold(reconciler, Reconciler::requires)]
    }

    async fn reconcile(
        self: &Rc<Self>,
        memory: &mut Memory,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        run::reconcile(self, memory, reconcile).await
    }
}

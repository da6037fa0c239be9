//! The controller of ManagedResources as the kit sees it: how it starts and stops, its duties, and what a pass is.

use std::{cell::RefCell, panic::AssertUnwindSafe, rc::Rc, time::Duration};

use cluster::{Cluster, Index, Recorder, Watch, Watches};
use futures::FutureExt;
use kit::{Controller, Duty, Env, Failure, Outcome, Pass, Supervised, WeakSupervised};
use tokio::task::JoinHandle;

pub use super::shared::{HealthSettings, ManagedResources, Settings};
use super::{
    health::{desk::Desk, memory::HealthMemory, pass as health_pass, pods::Pods, round::Duty as HealthDuty},
    known::{
        autoscalers::Autoscalers,
        memory::Memory,
        secrets::{SecretRecord, Secrets},
        snapshot::BundleRecord,
        targets::Targets,
    },
    report::status_cell::StatusCell,
    shared::{CHANGED, DRIFT, GATE, HEALTH, KIND, ROLLOUT, SCALED, SECRET},
    start::opening::Opening,
    wake::wakes,
};
use crate::api::{keys::MANAGED_BY, object::NamespacedName};

/// Name of the duty in metrics and logs (spec 70 §9.2).
pub const NAME: &str = "managedresource";

/// Name of the duty that keeps `ResourcesHealthy` (spec 20).
pub const HEALTH_NAME: &str = "health";

/// Name of the duty that keeps `ResourcesProgressing` (spec 20).
pub const PROGRESS_NAME: &str = "health-progressing";

/// What the controller reads from: filled in every replica, before it becomes leader.
pub struct Inputs {
    /// The source cluster.
    pub source: Cluster,
    /// The target cluster.
    pub target: Cluster,
    /// Its watches.
    pub watches: Watches,
    /// All ManagedResources of the source cluster.
    pub bundles: Watch<BundleRecord>,
    /// The versions of referenced Secrets.
    pub secrets: Watch<SecretRecord>,
    /// Which bundle references which Secret.
    pub index: Index<NamespacedName>,
    /// Events on ManagedResources.
    pub recorder: Recorder,
    /// Whether a kind is defined by a CustomResourceDefinition.
    pub is_custom: super::known::targets::IsCustom,
}

/// A running controller.
pub struct Running {
    supervised: Supervised<ManagedResources>,
    opening: JoinHandle<()>,
}

/// What the duties of a bundle remember; each duty has one, and only its own part is there.
#[derive(Default)]
pub struct Memories {
    apply: Option<Box<Memory>>,
    health: Option<Box<HealthMemory>>,
}

// === starting and stopping ===

/// Starts the controller. Every ManagedResource in the store gets its first pass.
pub fn start(settings: Settings, inputs: Inputs, env: &Env) -> Running {
    let bundles = inputs.bundles.clone();
    let (secrets, index) = (inputs.secrets.clone(), inputs.index.clone());
    let supervised =
        Supervised::start_cyclic(|waker| Rc::new(ManagedResources::new(settings, inputs, env, waker)), env);
    let (controller, waker) = (supervised.controller(), supervised.weak());
    let opening = actix::spawn(open(controller.clone()));
    wakes::subscribe_bundles(&controller, &bundles, &waker);
    wakes::subscribe_secrets(&controller, &secrets, index, &waker);
    let kinds = controller.target.discovery().subscribe();
    actix::spawn(wakes::tell_of_kinds(Rc::downgrade(&controller), waker, kinds));
    Running { supervised, opening }
}

impl ManagedResources {
    fn new(settings: Settings, inputs: Inputs, env: &Env, waker: &WeakSupervised<Self>) -> Self {
        let selector = format!("{MANAGED_BY}={}", settings.managed_by);
        let desk = Rc::new(Desk::default());
        let (drift, health) = (wakes::tell_of_drift(waker), wakes::tell_of_health(&desk, waker));
        let targets = Targets::new(&inputs.watches, selector, inputs.is_custom, drift, health);
        let (scaled, pods) = (wakes::tell_of_scaling(&targets, waker), wakes::tell_of_pods(&targets, &desk, waker));
        Self {
            autoscalers: Autoscalers::new(&inputs.watches, scaled),
            pods: Pods::new(&inputs.watches, pods),
            targets,
            desk,
            secrets: Secrets::new(&inputs.source, inputs.secrets),
            opening: Opening::default(),
            source: inputs.source,
            target: inputs.target,
            bundles: inputs.bundles,
            health_recorder: inputs.recorder.for_component(HEALTH_NAME),
            recorder: inputs.recorder,
            awaiting_kinds: RefCell::default(),
            reported: RefCell::default(),
            started: env.clock.monotonic(),
            env: env.clone(),
            settings,
        }
    }
}

/// The start over many bundles. They wait for its end, however it ends.
async fn open(controller: Rc<ManagedResources>) {
    if AssertUnwindSafe(controller.clone().open()).catch_unwind().await.is_err() {
        tracing::error!("the start over many bundles panicked; bundles read their objects one by one");
    }
    controller.opening.end();
    controller.secrets.drop_preloaded();
}

impl Running {
    /// The supervisor.
    pub fn supervised(&self) -> &Supervised<ManagedResources> {
        &self.supervised
    }

    /// Ends the controller: passes get `patience` to end by themselves. True if all did.
    pub async fn stop(&self, patience: Duration) -> bool {
        let finished = self.supervised.stop(patience).await;
        let controller = self.supervised.controller();
        controller.targets.stop();
        controller.autoscalers.stop();
        controller.pods.stop();
        self.opening.abort();
        controller.opening.end();
        controller.secrets.drop_preloaded();
        finished
    }
}

impl Controller for ManagedResources {
    type Key = NamespacedName;
    type Object = StatusCell;
    type Memory = Memories;

    fn name(&self) -> &'static str {
        NAME
    }

    fn duties(&self) -> Vec<Duty> {
        let HealthSettings { concurrent_syncs, sync_period } = self.settings.health;
        // Upstream would wait up to 1000 s after errors; the sync period is what a user waits for anything else.
        let duty = |name, permits, causes, period| {
            let needs = self.bundles.need();
            Duty::new(name, permits).causes(causes).max_back_off(period).deadline(period).needs(needs)
        };
        let causes = CHANGED.with(SECRET).with(DRIFT).with(KIND).with(SCALED);
        vec![
            // Secrets are the input of bundles, and watched from the start (spec 10 §4): no pass begins before they are heard
            // of, and what holds that up for too long ends the process (spec 70 §7.1). Health does not read them; its passes
            // start when the bundles are known (spec 20 §9.1).
            duty(NAME, self.settings.concurrent_syncs, causes, self.settings.sync_period).needs(self.secrets.need()),
            duty(HEALTH_NAME, concurrent_syncs, GATE.with(HEALTH), sync_period),
            duty(PROGRESS_NAME, concurrent_syncs, GATE.with(ROLLOUT), sync_period),
        ]
    }

    fn object(&self, _: &NamespacedName) -> StatusCell {
        StatusCell::default()
    }

    async fn pass(
        self: &Rc<Self>,
        status: &Rc<StatusCell>,
        memory: &mut Memories,
        pass: &Pass<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let Memories { apply, health } = memory;
        match pass.duty {
            0 => super::pass::run(self, status, apply.get_or_insert_default(), pass).await,
            1 => health_pass::run(self, status, health.get_or_insert_default(), pass, HealthDuty::Health).await,
            _ => health_pass::run(self, status, health.get_or_insert_default(), pass, HealthDuty::Progress).await,
        }
    }
}

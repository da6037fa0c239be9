//! The controller of ManagedResources as the kit sees it: how it starts and stops, its duties, and what a pass is.

use std::{cell::RefCell, rc::Rc, time::Duration};

use cluster::{Cluster, Index, Recorder, Watch, Watches};
use kit::{Controller, Duty, Env, Failure, Need, Outcome, Pass, Supervised, WeakSupervised};
use tokio::task::JoinHandle;

use super::shared::{HealthSettings, ManagedResources, Settings};
use super::{
    health::{self, HealthDuty, HealthMemory},
    known::{
        Autoscalers, BundleRecord, Claims, HealthRegistry, ManagedObjects, Memory, Pods, Revalidation, SecretRecord,
        Secrets,
    },
    reconcile,
    report::StatusCell,
    shared::{CAUSES, CHANGED, DRIFT, HEALTH, KIND, REJUDGE, REVALIDATE, ROLLOUT, SCALED, SECRET},
    start,
    wake::{self, AdmissionChanges},
};
use crate::api::{
    keys::{self, MANAGED_BY},
    object::{NamespacedName, ObjectKey},
};

/// Name of the duty in metrics and logs (spec 70 §9.2).
pub(super) const NAME: &str = "managedresource";

/// Name of the duty that keeps `ResourcesHealthy` (spec 20).
pub(super) const HEALTH_NAME: &str = "health";

/// Name of the duty that keeps `ResourcesProgressing` (spec 20).
pub(super) const PROGRESS_NAME: &str = "health-progressing";

/// What the controller reads from: filled in every replica, before it becomes leader.
pub(super) struct Inputs {
    /// The source cluster.
    pub(super) source: Cluster,
    /// The target cluster.
    pub(super) target: Cluster,
    /// Its watches.
    pub(super) watches: Watches,
    /// All ManagedResources of the source cluster.
    pub(super) bundles: Watch<BundleRecord>,
    /// The versions of referenced Secrets.
    pub(super) secrets: Watch<SecretRecord>,
    /// Which bundle references which Secret.
    pub(super) index: Index<NamespacedName>,
    /// Events on ManagedResources.
    pub(super) recorder: Recorder,
    /// Whether that can be asked.
    pub(super) definitions: Need,
    /// Whether a kind is defined by a CustomResourceDefinition.
    pub(super) is_custom: super::known::IsCustom,
}

/// A running controller.
pub(super) struct Running {
    supervised: Supervised<ManagedResources>,
    admission: AdmissionChanges,
    start: JoinHandle<()>,
}

/// What the duties of a bundle remember; each duty has one, and only its own part is there.
#[derive(Default)]
pub(super) struct Memories {
    apply: Option<Box<Memory>>,
    health: Option<Box<HealthMemory>>,
}

/// Starts the controller. Every ManagedResource in the store gets its first pass.
pub(super) fn start(settings: Settings, inputs: Inputs, env: &Env) -> Running {
    let bundles = inputs.bundles.clone();
    let (secrets, index, watches) = (inputs.secrets.clone(), inputs.index.clone(), inputs.watches.clone());
    let supervised =
        Supervised::start_cyclic(|waker| Rc::new(ManagedResources::new(settings, inputs, env, waker)), env);
    let (controller, waker) = (supervised.controller(), supervised.weak());
    let start = actix::spawn(start::run(controller.clone()));
    wake::subscribe_bundles(&controller, &bundles, &waker);
    wake::subscribe_secrets(&controller, &secrets, index, &waker);
    let kinds = controller.target.discovery().subscribe();
    let telling = wake::tell_of_kinds(Rc::downgrade(&controller), waker.clone(), kinds);
    env.fatal.spawn("who tells ManagedResources of new kinds", telling);
    let admission = AdmissionChanges::open(&controller, &watches);
    let turns = admission.take_turns(Rc::downgrade(&controller), waker);
    env.fatal.spawn("who tells ManagedResources of admission", turns);
    Running { supervised, admission, start }
}

impl ManagedResources {
    fn new(settings: Settings, inputs: Inputs, env: &Env, waker: &WeakSupervised<Self>) -> Self {
        let selector = format!("{MANAGED_BY}={}", settings.managed_by);
        let registry = Rc::new(HealthRegistry::default());
        let (drift, health) = (wake::tell_of_drift(waker), wake::tell_of_health(&registry, waker));
        let objects = ManagedObjects::new(&inputs.watches, selector, inputs.is_custom, drift, health);
        if settings.target_is_live {
            objects.read_live();
        }
        let (scaled, pods) = (wake::tell_of_scaling(&objects, waker), wake::tell_of_pods(&objects, &registry, waker));
        Self {
            autoscalers: Autoscalers::new(&inputs.watches, scaled),
            pods: Pods::new(&inputs.watches, pods),
            objects,
            health_registry: registry,
            secrets: Secrets::new(&inputs.source, inputs.secrets),
            claims: Claims::default(),
            source: inputs.source,
            target: inputs.target,
            bundles: inputs.bundles,
            definitions: inputs.definitions,
            health_recorder: inputs.recorder.for_component(HEALTH_NAME),
            recorder: inputs.recorder,
            awaiting_kinds: RefCell::default(),
            reported: RefCell::default(),
            started: env.clock.monotonic(),
            revalidation: Revalidation::new(settings.revalidate_period, env.random.bits() as u64),
            env: env.clone(),
            settings,
        }
    }
}

impl Running {
    /// Ends the controller: passes get `patience` to end by themselves. True if all did.
    pub(super) async fn stop(&self, patience: Duration) -> bool {
        let finished = self.supervised.stop(patience).await;
        let controller = self.supervised.controller();
        controller.objects.stop();
        controller.autoscalers.stop();
        controller.pods.stop();
        self.admission.stop();
        self.start.abort();
        controller.claims.end();
        controller.secrets.drop_preloaded();
        finished
    }
}

impl Controller for ManagedResources {
    type Key = NamespacedName;
    type Ref = ObjectKey;
    type Object = StatusCell;
    type Memory = Memories;

    fn name(&self) -> &'static str {
        NAME
    }

    fn causes(&self) -> &'static [&'static str] {
        &CAUSES
    }

    fn duties(&self) -> Vec<Duty> {
        let HealthSettings { concurrent_syncs, sync_period } = self.settings.health;
        // Upstream would wait up to 1000 s after errors; the sync period is what a user waits for anything else.
        let duty = |name, permits, causes, period| {
            let needs = self.bundles.need();
            let duty = Duty::new(name, permits).about((keys::GROUP, keys::KIND));
            // Each opens watches, which depend on whether a kind is custom.
            duty.causes(causes).max_back_off(period).deadline(period).needs(needs).needs(self.definitions.clone())
        };
        let causes = CHANGED.with(SECRET).with(DRIFT).with(KIND).with(SCALED).with(REVALIDATE);
        vec![
            // Secrets are the input of bundles, and watched from the start (spec 10 §4): no pass begins before they are heard
            // of, and what holds that up for too long ends the process (spec 70 §7.1). Health does not read them; its passes
            // start when the bundles are known (spec 20 §9.1).
            duty(NAME, self.settings.concurrent_syncs, causes, self.settings.sync_period).needs(self.secrets.need()),
            duty(HEALTH_NAME, concurrent_syncs, REJUDGE.with(HEALTH), sync_period),
            duty(PROGRESS_NAME, concurrent_syncs, REJUDGE.with(ROLLOUT), sync_period),
        ]
    }

    fn object(&self, _: &NamespacedName) -> StatusCell {
        StatusCell::default()
    }

    async fn pass(
        self: &Rc<Self>,
        status: &Rc<StatusCell>,
        memory: &mut Memories,
        pass: &Pass<NamespacedName, ObjectKey>,
    ) -> Result<Outcome, Failure> {
        let Memories { apply, health } = memory;
        match pass.duty {
            0 => reconcile::run(self, status, apply.get_or_insert_default(), pass).await,
            1 => health::run(self, status, health.get_or_insert_default(), pass, HealthDuty::Health).await,
            _ => health::run(self, status, health.get_or_insert_default(), pass, HealthDuty::Progress).await,
        }
    }
}

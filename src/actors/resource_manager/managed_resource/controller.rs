//! The controller of ManagedResources as the kit sees it: start, stop, reconcilers, and what a reconcile is.

use std::{cell::RefCell, rc::Rc, time::Duration};

use cluster::{
    Cluster, Index, Recorder, Watch, Watches,
    object::{NamespacedName, ObjectKey},
};
use kit::{
    Env, Failure, GeneralController, Outcome, Reconcile, Reconciler, Supervised, SyncRequirement, WeakSupervised,
};
use tokio::task::JoinHandle;

use super::{
    health::{self, HealthMemory, HealthReconciler},
    initial_sync,
    known::{
        Autoscalers, CachedManagedResource, CachedSecret, HealthRegistry, InitialSync, ManagedObjects, Memory, Pods,
        Revalidation, Secrets,
    },
    reconcile,
    report::StatusCell,
    shared::{
        CAUSES, CHANGED, DRIFT, HEALTH, HealthSettings, KIND, ManagedResources, REJUDGE, REVALIDATE, ROLLOUT, SCALED,
        SECRET, Settings,
    },
    wake::{self, AdmissionChanges},
};
use crate::api::resources::keys::{self, MANAGED_BY};

/// Name of the reconciler in metrics and logs (spec 70 §9.2).
pub(super) const NAME: &str = "managedresource";

/// Name of the reconciler that keeps `ResourcesHealthy` (spec 20).
pub(super) const HEALTH_NAME: &str = "health";

/// Name of the reconciler that keeps `ResourcesProgressing` (spec 20).
pub(super) const PROGRESS_NAME: &str = "health-progressing";

/// What the controller reads from. Filled in every replica, before it becomes leader.
pub(super) struct Inputs {
    pub(super) source: Cluster,
    pub(super) target: Cluster,
    pub(super) watches: Watches,
    pub(super) bundles: Watch<CachedManagedResource>,
    pub(super) secrets: Watch<CachedSecret>,
    pub(super) index: Index<NamespacedName>,
    pub(super) recorder: Recorder,
    pub(super) definitions: SyncRequirement,
    pub(super) is_custom: super::known::IsCustom,
}

pub(super) struct Running {
    supervised: Supervised<ManagedResources>,
    admission: AdmissionChanges,
    initial_sync: JoinHandle<()>,
}

/// What a reconciler of a ManagedResource remembers. Each reconciler has its own, with only its own part filled in.
#[derive(Default)]
pub(super) struct Memories {
    apply: Option<Box<Memory>>,
    health: Option<Box<HealthMemory>>,
}

/// Starts the controller. Every cached ManagedResource gets its first reconcile.
pub(super) fn start(settings: Settings, inputs: Inputs, env: &Env) -> Running {
    let bundles = inputs.bundles.clone();
    let (secrets, index, watches) = (inputs.secrets.clone(), inputs.index.clone(), inputs.watches.clone());
    let supervised =
        Supervised::start_cyclic(|waker| Rc::new(ManagedResources::new(settings, inputs, env, waker)), env);
    let (controller, waker) = (supervised.controller(), supervised.weak());
    let initial_sync = actix::spawn(initial_sync::run(controller.clone()));
    wake::subscribe_bundles(&controller, &bundles, &waker);
    wake::subscribe_secrets(&controller, &secrets, index, &waker);
    let kinds = controller.target.discovery().subscribe();
    let reporting = wake::wake_on_new_kinds(Rc::downgrade(&controller), waker.clone(), kinds);
    env.fatal.spawn("discovery watcher of the ManagedResource controller", reporting);
    let admission = AdmissionChanges::open(&controller, &watches);
    let turns = admission.take_turns(Rc::downgrade(&controller), waker);
    env.fatal.spawn("admission watcher of the ManagedResource controller", turns);
    Running { supervised, admission, initial_sync }
}

impl ManagedResources {
    fn new(settings: Settings, inputs: Inputs, env: &Env, waker: &WeakSupervised<Self>) -> Self {
        let selector = format!("{MANAGED_BY}={}", settings.managed_by);
        let registry = Rc::new(HealthRegistry::default());
        let (drift, health) = (wake::wake_on_drift(waker), wake::wake_on_health(&registry, waker));
        let objects = ManagedObjects::new(&inputs.watches, selector, inputs.is_custom, drift, health);
        if settings.target_is_live {
            objects.read_live();
        }
        let (scaled, pods) = (wake::wake_on_scaling(&objects, waker), wake::wake_on_pods(&objects, &registry, waker));
        Self {
            autoscalers: Autoscalers::new(&inputs.watches, scaled),
            pods: Pods::new(&inputs.watches, pods),
            objects,
            health_registry: registry,
            secrets: Secrets::new(&inputs.source, inputs.secrets),
            initial_sync: InitialSync::default(),
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
    pub(super) async fn stop(&self, patience: Duration) -> bool {
        let finished = self.supervised.stop(patience).await;
        let controller = self.supervised.controller();
        controller.objects.stop();
        controller.autoscalers.stop();
        controller.pods.stop();
        self.admission.stop();
        self.initial_sync.abort();
        controller.initial_sync.end();
        controller.secrets.drop_preloaded();
        finished
    }
}

impl GeneralController for ManagedResources {
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

    fn reconcilers(&self) -> Vec<Reconciler> {
        let HealthSettings { concurrent_syncs, sync_period } = self.settings.health;
        // Upstream would wait up to 1000 s after errors. The sync period is the longest wait for anything else.
        let reconciler = |name, permits, causes, period| {
            let requires = self.bundles.sync_requirement();
            let reconciler = Reconciler::new(name, permits).about((keys::GROUP, keys::KIND));
            // Each reconciler opens watches, which depend on whether a kind is custom.
            reconciler
                .causes(causes)
                .max_back_off(period)
                .deadline(period)
                .requires(requires)
                .requires(self.definitions.clone())
        };
        let causes = CHANGED.with(SECRET).with(DRIFT).with(KIND).with(SCALED).with(REVALIDATE);
        vec![
            // Secrets are watched from the start (spec 10 §4): no reconcile begins before they are synced, and a long
            // delay ends the process (spec 70 §7.1). Health does not read them (spec 20 §9.1).
            reconciler(NAME, self.settings.concurrent_syncs, causes, self.settings.sync_period)
                .requires(self.secrets.sync_requirement()),
            reconciler(HEALTH_NAME, concurrent_syncs, REJUDGE.with(HEALTH), sync_period),
            reconciler(PROGRESS_NAME, concurrent_syncs, REJUDGE.with(ROLLOUT), sync_period),
        ]
    }

    fn object(&self, _: &NamespacedName) -> StatusCell {
        StatusCell::default()
    }

    async fn reconcile(
        self: &Rc<Self>,
        status: &Rc<StatusCell>,
        memory: &mut Memories,
        reconcile: &Reconcile<NamespacedName, ObjectKey>,
    ) -> Result<Outcome, Failure> {
        let Memories { apply, health } = memory;
        match reconcile.reconciler {
            0 => reconcile::run(self, status, apply.get_or_insert_default(), reconcile).await,
            1 => health::run(self, status, health.get_or_insert_default(), reconcile, HealthReconciler::Health).await,
            _ => health::run(self, status, health.get_or_insert_default(), reconcile, HealthReconciler::Progress).await,
        }
    }
}

//! The controller of ManagedResources as the kit sees it: start, stop, reconcilers, and what a reconcile is.

use std::{cell::RefCell, rc::Rc, time::Duration};

use cluster::{
    Cluster, Definitions, Index, Resource, Watch,
    object::{NamespacedName, ObjectKey},
};
use kit::{Failure, GeneralController, Outcome, Reconcile, Reconciler, Supervised, SyncRequirement, WeakSupervised};
use serde_json::Value;
use tokio::task::JoinHandle;

use super::{
    details,
    health::{self, HealthMemory, HealthReconciler},
    initial_sync,
    known::{
        Autoscalers, CachedManagedResource, CachedSecret, HealthRegistry, InitialSync, ManagedObjects, Memory, Pods,
        Revalidation, Secrets,
    },
    reconcile,
    shared::{
        ActorObject, CAUSES, CHANGED, DRIFT, HEALTH, KIND, ManagedResources, REJUDGE, REVALIDATE, ROLLOUT, SCALED,
        SECRET, Settings,
    },
    wake::{self, AdmissionChanges},
};
use crate::{
    actors::resource_manager::controller_context::ControllerContext,
    api::{
        config::resource_manager::Workers,
        resources::keys::{self, MANAGED_BY},
    },
};

/// Name of the reconciler in metrics and logs (spec 70 §9.2).
pub(super) const NAME: &str = "managedresource";

/// Name of the reconciler that keeps `ResourcesHealthy` (spec 20).
pub(super) const HEALTH_NAME: &str = "health";

/// Name of the reconciler that keeps `ResourcesProgressing` (spec 20).
pub(super) const PROGRESS_NAME: &str = "health-progressing";

/// What every replica watches, before it becomes leader.
pub(super) struct Sources {
    pub(super) bundles: Watch<CachedManagedResource>,
    pub(super) secrets: Watch<CachedSecret>,
    pub(super) index: Index<NamespacedName>,
    pub(super) definitions: Definitions,
}

pub(super) struct Running {
    supervised: Supervised<ManagedResources>,
    admission: AdmissionChanges,
    initial_sync: JoinHandle<()>,
    defined_kinds: JoinHandle<()>,
}

/// What a reconciler of a ManagedResource remembers. Each reconciler has its own, with only its own part filled in.
#[derive(Default)]
pub(super) struct Memories {
    apply: Option<Box<Memory>>,
    health: Option<Box<HealthMemory>>,
}

/// Starts the controller. Every cached ManagedResource gets its first reconcile.
pub(super) fn start(settings: Settings, sources: Sources, ctx: &ControllerContext) -> Running {
    let env = &ctx.env;
    let supervised =
        Supervised::start_cyclic(|waker| Rc::new(ManagedResources::new(settings, &sources, ctx, waker)), env);
    let Sources { bundles, secrets, index, definitions } = sources;
    let (controller, waker) = (supervised.controller(), supervised.weak());
    let initial_sync = actix::spawn(initial_sync::run(controller.clone()));
    wake::subscribe_bundles(&controller, &bundles, &waker);
    wake::subscribe_secrets(&controller, &secrets, index, &waker);
    let kinds = controller.target.discovery().subscribe();
    let reporting = wake::wake_on_new_kinds(Rc::downgrade(&controller), waker.clone(), kinds);
    env.fatal.spawn("discovery watcher of the ManagedResource controller", reporting);
    let watching = wake::watch_defined_kinds(Rc::downgrade(&controller), definitions);
    let defined_kinds = env.fatal.spawn("definitions watcher of the ManagedResource controller", watching);
    let admission = AdmissionChanges::open(&controller, &ctx.target.watches);
    let turns = admission.take_turns(Rc::downgrade(&controller), waker);
    env.fatal.spawn("admission watcher of the ManagedResource controller", turns);
    Running { supervised, admission, initial_sync, defined_kinds }
}

impl ManagedResources {
    fn new(settings: Settings, sources: &Sources, ctx: &ControllerContext, waker: &WeakSupervised<Self>) -> Self {
        let (env, source, target) = (&ctx.env, &ctx.source, &ctx.target);
        let definitions = sources.definitions.clone();
        let recorder = source.events.for_component(NAME);
        let requirement = definitions_or_rejection(&definitions, &target.cluster);
        let selector = format!("{MANAGED_BY}={}", settings.apply.managed_by_label_value);
        let registry = Rc::new(HealthRegistry::default());
        let (drift, health) = (wake::wake_on_drift(waker), wake::wake_on_health(&registry, waker));
        let (watches, is_live) = (&target.watches, settings.target_is_live);
        let is_custom = Rc::new(move |resource: &Resource| definitions.is_custom(resource));
        let objects = ManagedObjects::new(watches, selector, is_live, is_custom, drift, health);
        let (scaled, pods) = (wake::wake_on_scaling(&objects, waker), wake::wake_on_pods(&objects, &registry, waker));
        Self {
            autoscalers: Autoscalers::new(watches, scaled),
            pods: Pods::new(watches, pods),
            objects,
            health_registry: registry,
            secrets: Secrets::new(&source.cluster, sources.secrets.clone()),
            initial_sync: InitialSync::default(),
            source: source.cluster.clone(),
            target: target.cluster.clone(),
            bundles: sources.bundles.clone(),
            definitions: requirement,
            health_recorder: recorder.for_component(HEALTH_NAME),
            recorder,
            awaiting_kinds: RefCell::default(),
            reported: RefCell::default(),
            started: env.clock.monotonic(),
            revalidation: Revalidation::new(settings.apply.revalidate_period(), env.random.bits() as u64),
            env: env.clone(),
            settings,
        }
    }
}

/// Returns the requirement that the definitions are known. It is also met while the target rejects the credentials: reconciles
/// report that in the condition, and deployers hand out new credentials (spec 71 §8 R4). A watch that depends on definitions
/// waits for these itself.
fn definitions_or_rejection(definitions: &Definitions, target: &Cluster) -> SyncRequirement {
    let (mut requirement, target) = (definitions.sync_requirement(), target.clone());
    let are_known = requirement.ready.clone();
    requirement.ready = Rc::new(move || are_known() || target.is_unauthorized());
    requirement
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
        self.defined_kinds.abort();
        controller.initial_sync.end();
        controller.secrets.drop_preloaded();
        finished
    }
}

impl GeneralController for ManagedResources {
    type Key = NamespacedName;
    type Ref = ObjectKey;
    type Object = ActorObject;
    type Memory = Memories;

    fn name(&self) -> &'static str {
        NAME
    }

    fn causes(&self) -> &'static [&'static str] {
        &CAUSES
    }

    fn reconcilers(&self) -> Vec<Reconciler> {
        let Settings { apply, health, .. } = &self.settings;
        // Upstream would wait up to 1000 s after errors. The sync period is the longest wait for anything else.
        let reconciler = |name, permits: Workers, causes, period| {
            let requires = self.bundles.sync_requirement();
            let reconciler = Reconciler::new(name, permits.count()).about((keys::GROUP, keys::KIND));
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
            reconciler(NAME, apply.concurrent_syncs, causes, apply.sync_period.get())
                .requires(self.secrets.sync_requirement()),
            reconciler(HEALTH_NAME, health.concurrent_syncs, REJUDGE.with(HEALTH), health.sync_period.get()),
            reconciler(PROGRESS_NAME, health.concurrent_syncs, REJUDGE.with(ROLLOUT), health.sync_period.get()),
        ]
    }

    fn object(&self, _: &NamespacedName) -> ActorObject {
        ActorObject::default()
    }

    fn details(
        self: &Rc<Self>,
        key: &NamespacedName,
        object: Option<&Rc<ActorObject>>,
    ) -> Option<(&'static str, Value)> {
        details::details(self, key, object).map(|page| (details::FIELD, page))
    }

    async fn reconcile(
        self: &Rc<Self>,
        object: &Rc<ActorObject>,
        memory: &mut Memories,
        reconcile: &Reconcile<NamespacedName, ObjectKey>,
    ) -> Result<Outcome, Failure> {
        let Memories { apply, health } = memory;
        match reconcile.reconciler {
            0 => reconcile::run(self, object, apply.get_or_insert_default(), reconcile).await,
            1 => health::run(self, object, health.get_or_insert_default(), reconcile, HealthReconciler::Health).await,
            _ => health::run(self, object, health.get_or_insert_default(), reconcile, HealthReconciler::Progress).await,
        }
    }
}

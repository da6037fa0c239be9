//! The controller of ManagedResources: its parts, its duties, and the filters that wake its actors.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    panic::AssertUnwindSafe,
    rc::{Rc, Weak},
    time::Duration,
};

use futures::FutureExt;
use tokio::{sync::watch, time::Instant};

use super::{
    autoscalers::Autoscalers,
    health::{
        desk::Desk,
        memory::HealthMemory,
        pass::{self as health_pass, Duty as HealthDuty},
        pods::{self, Pods},
    },
    identity::Equivalences,
    memory::{Calm, Memory},
    moment::Moments,
    secrets::{SecretIndex, SecretRecord, Secrets},
    snapshot::{BundleRecord, Snapshot},
    start::Opening,
    status_cell::StatusCell,
    targets::{Drift, HealthListener, News, Targets},
    trigger::{self, SecretWake},
};
use crate::{
    actors::health::gate::{self, Gate},
    actors::kit::{Causes, Controller, Duty, Env, Failure, Outcome, Pass, Supervised, Wake},
    api::{
        class::OwnClass,
        keys::MANAGED_BY,
        managed_resource::ManagedResource,
        object::{GroupKind, NamespacedName, ObjectKey},
    },
    cluster::{Cluster, Context, How, Record, Recorder, Router},
};

/// A ManagedResource changed in a way that asks for a pass (spec 10 §5.1).
pub(super) const CHANGED: Causes = Causes::own(0);
/// A referenced Secret changed (spec 10 §5.3).
pub(super) const SECRET: Causes = Causes::own(1);
/// An object of the bundle is no longer as it was.
pub(super) const DRIFT: Causes = Causes::own(2);
/// Discovery changed, and the bundle waits for a kind.
pub(super) const KIND: Causes = Causes::own(3);
/// An object of the bundle got its first autoscaler or lost its last one: another manifest counts, the object itself may be
/// as it was.
pub(super) const SCALED: Causes = Causes::own(4);

/// The bundle is to be judged anew as a whole (spec 20 §5.1).
pub(super) const GATE: Causes = Causes::own(5);
/// What is known of the health of an object changed.
const HEALTH: Causes = Causes::own(6);
/// What is known of the roll-out of an object changed.
const ROLLOUT: Causes = Causes::own(7);

/// A conflict of two owners about one object is reported this often (decision 11).
const REPORT_AGAIN: Duration = Duration::from_secs(3600);

/// Name of the duty in metrics and logs (spec 70 §9.2).
pub const NAME: &str = "managedresource";

/// Name of the duty that keeps `ResourcesHealthy` (spec 20).
pub const HEALTH_NAME: &str = "health";

/// Name of the duty that keeps `ResourcesProgressing` (spec 20).
pub const PROGRESS_NAME: &str = "health-progressing";

/// Settings of the health duties (spec 20 §3).
#[derive(Debug, Clone)]
pub struct HealthSettings {
    /// Passes at once, of each of the two duties.
    pub concurrent_syncs: usize,
    /// Period of a bundle, and the time one pass may take.
    pub sync_period: Duration,
}

/// Settings of the controller (spec 10 §3.1).
#[derive(Debug, Clone)]
pub struct Settings {
    /// Passes at once.
    pub concurrent_syncs: usize,
    /// Period of a bundle, and the time one pass may take.
    pub sync_period: Duration,
    /// Send an update even if nothing differs.
    pub always_update: bool,
    /// Value of the managed-by label.
    pub managed_by: String,
    /// The class of this process.
    pub class: OwnClass,
    /// Cluster id of origin values; empty for none.
    pub cluster_id: String,
    /// Whether the garbage collector runs: what it collects is left to it (spec 10 §13.2).
    pub garbage_collector: bool,
    /// Of the duties that judge.
    pub health: HealthSettings,
}

/// What the controller reads from: filled in every replica, before it becomes leader.
pub struct Inputs {
    /// The source cluster.
    pub source: Cluster,
    /// The target cluster.
    pub target: Cluster,
    /// All ManagedResources of the source cluster.
    pub bundles: Router<BundleRecord>,
    /// The versions of referenced Secrets.
    pub secrets: Router<SecretRecord>,
    /// Which bundle references which Secret.
    pub index: SecretIndex,
    /// Events on ManagedResources.
    pub recorder: Recorder,
    /// Whether a kind is defined by a CustomResourceDefinition.
    pub is_custom: super::targets::IsCustom,
}

/// The controller.
pub struct ManagedResources {
    pub(super) settings: Settings,
    pub(super) env: Env,
    pub(super) source: Cluster,
    pub(super) target: Cluster,
    pub(super) bundles: Router<BundleRecord>,
    pub(super) secrets: Secrets,
    pub(super) targets: Targets,
    pub(super) autoscalers: Autoscalers,
    pub(super) recorder: Recorder,
    pub(super) health_recorder: Recorder,
    pub(super) desk: Rc<Desk>,
    pub(super) pods: Pods,
    pub(super) opening: Opening,
    /// Bundles that wait until a kind is served.
    pub(super) awaiting_kinds: RefCell<BTreeSet<NamespacedName>>,
    /// Conflicts of two owners that were reported: bundle, object, reason; when.
    reported: RefCell<BTreeMap<(NamespacedName, String, &'static str), Instant>>,
}

/// A running controller.
pub struct Running {
    supervised: Supervised<ManagedResources>,
    waker: Rc<Waker>,
}

/// What the duties of a bundle remember; each duty has one, and uses its own part.
#[derive(Default)]
pub struct Memories {
    apply: Memory,
    health: HealthMemory,
}

/// The way from filters, which exist before the supervisor, to it.
#[derive(Default)]
struct Waker {
    supervised: RefCell<Option<Supervised<ManagedResources>>>,
}

// === starting and stopping ===

/// Starts the controller. Every ManagedResource in the store gets its first pass.
pub fn start(settings: Settings, inputs: Inputs, env: &Env) -> Running {
    let waker = Rc::new(Waker::default());
    let selector = format!("{MANAGED_BY}={}", settings.managed_by);
    let drift = {
        let waker = Rc::downgrade(&waker);
        let moments = Moments::new(move |bundle, due| wake(&waker, bundle, due));
        Rc::new(move |bundle: &NamespacedName, object: &ObjectKey, what: Drift| match what {
            Drift::Changed => moments.soon(bundle, object, Wake::live(DRIFT)),
            Drift::Gone => moments.now(bundle, Wake::live(DRIFT).about(object.clone())),
        })
    };
    let desk = Rc::new(Desk::default());
    let targets = Targets::new(&inputs.target, env, selector, inputs.is_custom, drift, tell_of_health(&desk, &waker));
    let scaled = {
        let (waker, targets) = (Rc::downgrade(&waker), targets.clone());
        Rc::new(move |object: &ObjectKey| {
            // The bundle may hold it under an equivalent group.
            for key in Equivalences::predefined().of_key(object).chain([object.clone()]) {
                for bundle in targets.holders(&key) {
                    wake(&waker, &bundle, Wake::live(SCALED).about(key.clone()));
                }
            }
        })
    };
    let controller = Rc::new(ManagedResources {
        autoscalers: Autoscalers::new(&inputs.target, env, scaled),
        pods: Pods::new(&inputs.target, env, tell_of_pods(&targets, &desk, &waker)),
        targets,
        desk,
        secrets: Secrets::new(&inputs.source, inputs.secrets.clone()),
        opening: Opening::default(),
        source: inputs.source,
        target: inputs.target.clone(),
        bundles: inputs.bundles.clone(),
        health_recorder: inputs.recorder.for_component(HEALTH_NAME),
        recorder: inputs.recorder,
        awaiting_kinds: RefCell::default(),
        reported: RefCell::default(),
        env: env.clone(),
        settings,
    });
    let supervised = Supervised::start(controller.clone(), env);
    waker.supervised.replace(Some(supervised.clone()));
    let opening = controller.clone();
    actix::spawn(async move {
        // Bundles wait for the end of the start, however it ends.
        if AssertUnwindSafe(opening.clone().open()).catch_unwind().await.is_err() {
            tracing::error!("the start over many bundles panicked; bundles read their objects one by one");
        }
        opening.opening.end();
    });
    subscribe_bundles(&controller, &inputs.bundles, &waker);
    subscribe_secrets(&controller, &inputs.secrets, inputs.index, &waker);
    actix::spawn(tell_of_kinds(
        Rc::downgrade(&controller),
        Rc::downgrade(&waker),
        inputs.target.discovery().subscribe(),
    ));
    Running { supervised, waker }
}

/// Wakes the bundles that wait for a kind whenever the target serves other kinds than before.
async fn tell_of_kinds(controller: Weak<ManagedResources>, waker: Weak<Waker>, mut changes: watch::Receiver<u64>) {
    while changes.changed().await.is_ok() {
        let Some(controller) = controller.upgrade() else { return };
        controller.targets.follow_discovery();
        for bundle in std::mem::take(&mut *controller.awaiting_kinds.borrow_mut()) {
            wake(&waker, &bundle, Wake::live(KIND));
        }
        for bundle in controller.desk.take_awaiting_kinds() {
            wake(&waker, &bundle, Wake::live(GATE));
        }
    }
}

/// Wakes bundles for which an object, or a kind, stands differently now.
fn tell_of_health(desk: &Rc<Desk>, waker: &Rc<Waker>) -> HealthListener {
    let (desk, waker) = (desk.clone(), Rc::downgrade(waker));
    Rc::new(move |bundle, object, news| {
        if !desk.is_open(bundle) {
            return;
        }
        match (news, object) {
            (News::Gone, Some(object)) => desk.note_absence(bundle, object),
            (News::Gone | News::Judged { .. }, _) => {}
        }
        let causes = match news {
            News::Gone | News::Judged { health: true, rollout: false } => HEALTH,
            News::Judged { health: false, rollout } => {
                if rollout {
                    ROLLOUT
                } else {
                    Causes::NONE
                }
            }
            News::Judged { health: true, rollout: true } => HEALTH.with(ROLLOUT),
        };
        wake(&waker, bundle, Wake::live(causes));
    })
}

/// Wakes the bundles with Deployments for which a Pod counts, or did.
fn tell_of_pods(targets: &Targets, desk: &Rc<Desk>, waker: &Rc<Waker>) -> pods::Listener {
    let (targets, desk, waker) = (targets.clone(), desk.clone(), Rc::downgrade(waker));
    Rc::new(move |namespace, pods| {
        let bundles: BTreeSet<NamespacedName> = match namespace {
            Some(namespace) => {
                let deployments = targets.deployments_of(namespace, pods);
                deployments.iter().flat_map(|deployment| targets.holders(deployment)).collect()
            }
            None => targets.holders_of(&GroupKind::new("apps", "Deployment")),
        };
        for bundle in &bundles {
            targets.news_for(bundle);
        }
        for bundle in bundles.iter().filter(|bundle| desk.is_open(bundle)) {
            wake(&waker, bundle, Wake::live(ROLLOUT));
        }
    })
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
        controller.opening.end();
        self.waker.supervised.replace(None);
        finished
    }
}

fn wake(waker: &Weak<Waker>, bundle: &NamespacedName, wake: Wake) {
    let supervised = waker.upgrade().and_then(|waker| waker.supervised.borrow().clone());
    if let Some(supervised) = supervised {
        supervised.wake(bundle, wake);
    }
}

// === filters ===

fn subscribe_bundles(controller: &Rc<ManagedResources>, bundles: &Router<BundleRecord>, waker: &Rc<Waker>) {
    let (class, waker, desk) = (controller.settings.class.clone(), Rc::downgrade(waker), controller.desk.clone());
    bundles.subscribe(move |change| {
        let read = |record: Option<&BundleRecord>| record.and_then(|record| record.managed_resource().ok());
        let (old, new) = (read(change.old), read(change.new));
        desk.set(change.name, new.as_ref().is_some_and(|mr| gate::gate(&class, mr) == Gate::Open));
        let causes = bundle_causes(&class, change.how, old.as_ref(), new.as_ref());
        let first = change.how == How::First;
        wake(&waker, change.name, if first { Wake::background(causes) } else { Wake::live(causes) });
    });
}

/// Why a change of a ManagedResource starts passes; empty if it does not.
fn bundle_causes(
    class: &OwnClass,
    how: How<'_>,
    old: Option<&ManagedResource>,
    new: Option<&ManagedResource>,
) -> Causes {
    let is_triggered = !trigger::triggers(class, old, new).is_empty();
    let is_judged = gate::is_triggered(class, old, new);
    match (how, is_triggered) {
        (_, false) if !is_judged => Causes::NONE,
        (How::First, _) => Causes::LISTED,
        (_, true) => CHANGED.with(Causes::OBJECT).with(if is_judged { GATE } else { Causes::NONE }),
        (_, false) => GATE,
    }
}

fn subscribe_secrets(
    controller: &Rc<ManagedResources>,
    secrets: &Router<SecretRecord>,
    index: SecretIndex,
    waker: &Rc<Waker>,
) {
    let (class, bundles) = (controller.settings.class.clone(), controller.bundles.clone());
    let waker = Rc::downgrade(waker);
    secrets.subscribe(move |change| {
        let version = |record: Option<&SecretRecord>| record.map(|record| record.version().to_string());
        let (old, new) = (version(change.old), version(change.new));
        // What a pass read is entered too: if it is newer than what was known, the other bundles have to know. A Secret
        // that was not known may be new or changed.
        let read = change.how == How::First && change.old.is_none();
        let concerns = match trigger::secret_wake(old.as_deref(), new.as_deref(), read) {
            SecretWake::Waiting => SecretWake::All,
            other => other,
        };
        for key in index.bundles(change.name) {
            let mr = bundles.store().get(&key).and_then(|record| record.managed_resource().ok());
            let concerned = |mr: &ManagedResource| trigger::is_woken_by_secret(&class, concerns, &change.name.name, mr);
            if mr.as_ref().is_some_and(concerned) {
                wake(&waker, &key, Wake::live(SECRET));
            }
        }
    });
}

// === impl ManagedResources ===

impl ManagedResources {
    /// The ManagedResource as the store has it.
    pub(super) fn snapshot(&self, key: &NamespacedName) -> Result<Option<Snapshot>, Failure> {
        match self.bundles.store().get(key) {
            Some(record) => Ok(Some(record.snapshot()?)),
            None => Ok(None),
        }
    }

    /// Whether a conflict about an object of a bundle has not been reported within the last hour (decision 11).
    pub(super) fn is_news(&self, bundle: &NamespacedName, object: &str, reason: &'static str) -> bool {
        let now = self.env.clock.monotonic();
        let mut reported = self.reported.borrow_mut();
        reported.retain(|_, when| now.saturating_duration_since(*when) < REPORT_AGAIN);
        let key = (bundle.clone(), object.to_owned(), reason);
        let is_news = !reported.contains_key(&key);
        if is_news {
            reported.insert(key, now);
        }
        is_news
    }

    /// The present moment for a bundle and its objects; `None` if something can only be known by asking.
    pub(super) fn moment(&self, bundle: &NamespacedName) -> Option<Calm> {
        let version = self.bundles.store().with(bundle, Record::version).filter(|_| !self.settings.always_update)?;
        Some(Calm { version, objects: self.targets.moment(bundle)? })
    }

    /// On whose behalf a pass makes its requests.
    pub(super) fn context(&self, pass: &Pass<NamespacedName>) -> Context {
        Context { lane: pass.lane(), deadline: pass.deadline, key: pass.key.to_string().into() }
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
        let duty = |name, permits, causes, period| Duty {
            name,
            permits,
            causes,
            max_back_off: period,
            deadline: period,
            needs: vec![self.bundles.need()],
        };
        let causes = CHANGED.with(SECRET).with(DRIFT).with(KIND).with(SCALED);
        vec![
            duty(NAME, self.settings.concurrent_syncs, causes, self.settings.sync_period),
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
        match pass.duty {
            0 => super::pass::run(self, status, &mut memory.apply, pass).await,
            1 => health_pass::run(self, status, &mut memory.health, pass, HealthDuty::Health).await,
            _ => health_pass::run(self, status, &mut memory.health, pass, HealthDuty::Progress).await,
        }
    }
}

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
    memory::Memory,
    secrets::{SecretIndex, SecretRecord, Secrets},
    snapshot::{BundleRecord, Snapshot},
    start::Opening,
    status_cell::StatusCell,
    targets::Targets,
    trigger::{self, SecretWake, Triggers},
};
use crate::{
    actors::kit::{Causes, Controller, Duty, Env, Failure, Outcome, Pass, Supervised, Wake},
    api::{
        class::OwnClass,
        keys::MANAGED_BY,
        managed_resource::ManagedResource,
        object::{NamespacedName, ObjectKey},
    },
    cluster::{Change, Cluster, Context, How, Record, Recorder, Router},
};

/// A ManagedResource changed in a way that asks for a pass (spec 10 §5.1).
pub(super) const CHANGED: Causes = Causes::own(0);
/// A referenced Secret changed (spec 10 §5.3).
pub(super) const SECRET: Causes = Causes::own(1);
/// An object of the bundle is no longer as it was.
pub(super) const DRIFT: Causes = Causes::own(2);
/// Discovery changed, and the bundle waits for a kind.
pub(super) const KIND: Causes = Causes::own(3);

/// A conflict of two owners about one object is reported this often (decision 11).
const REPORT_AGAIN: Duration = Duration::from_secs(3600);

/// Name of the duty in metrics and logs (spec 70 §9.2).
pub const NAME: &str = "managedresource";

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
        Rc::new(move |bundle: &NamespacedName, object: &ObjectKey| {
            wake(&waker, bundle, Wake::live(DRIFT).about(object.clone()));
        })
    };
    let targets = Targets::new(&inputs.target, env, selector, inputs.is_custom, drift);
    let scaled = targets.clone();
    let controller = Rc::new(ManagedResources {
        autoscalers: Autoscalers::new(&inputs.target, env, Rc::new(move |object| scaled.changed(object))),
        targets,
        secrets: Secrets::new(&inputs.source, inputs.secrets.clone()),
        opening: Opening::default(),
        source: inputs.source,
        target: inputs.target.clone(),
        bundles: inputs.bundles.clone(),
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
    }
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
    let (class, waker) = (controller.settings.class.clone(), Rc::downgrade(waker));
    bundles.subscribe(move |change| {
        if let Some(causes) = bundle_causes(&class, change) {
            let first = change.how == How::First;
            let causes = causes.with(Causes::OBJECT);
            wake(&waker, change.name, if first { Wake::background(causes) } else { Wake::live(causes) });
        }
    });
}

/// Why a change of a ManagedResource starts a pass, if it does.
fn bundle_causes(class: &OwnClass, change: &Change<'_, BundleRecord>) -> Option<Causes> {
    let read = |record: Option<&BundleRecord>| record.and_then(|record| record.managed_resource().ok());
    let triggers: Triggers = trigger::triggers(class, read(change.old).as_ref(), read(change.new).as_ref());
    if triggers.is_empty() {
        return None;
    }
    Some(if change.how == How::First { Causes::LISTED } else { CHANGED })
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

    /// On whose behalf a pass makes its requests.
    pub(super) fn context(&self, pass: &Pass<NamespacedName>) -> Context {
        Context { lane: pass.lane(), deadline: pass.deadline, key: pass.key.to_string().into() }
    }
}

impl Controller for ManagedResources {
    type Key = NamespacedName;
    type Object = StatusCell;
    type Memory = Memory;

    fn name(&self) -> &'static str {
        NAME
    }

    fn duties(&self) -> Vec<Duty> {
        vec![Duty {
            name: NAME,
            permits: self.settings.concurrent_syncs,
            causes: CHANGED.with(SECRET).with(DRIFT).with(KIND),
            // Upstream would wait up to 1000 s; the sync period is what a user waits for anything else.
            max_back_off: self.settings.sync_period,
            deadline: self.settings.sync_period,
            needs: vec![self.bundles.need()],
        }]
    }

    fn object(&self, _: &NamespacedName) -> StatusCell {
        StatusCell::default()
    }

    async fn pass(
        self: &Rc<Self>,
        status: &Rc<StatusCell>,
        memory: &mut Memory,
        pass: &Pass<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        super::pass::run(self, status, memory, pass).await
    }
}

//! Removes the taint `critical-components-not-ready` from a node once its critical components run (spec 41, part A).
//! ```text
//! Nodes with the taint ─ node.rs ──────────────┐
//! DaemonSets ─ daemon_set.rs, placement.rs ────┼─► obstacle.rs: what is missing? ─► Event, or patch without the taint
//! their pods ─ pod.rs ─────────────────────────┤
//! CSINodes: registered drivers ────────────────┘
//! ```
//! One actor per tainted Node. Changes on the node wake it; `backoff` is the safety net. It decides from memory; the
//! patch is bound to the cached version of the Node, so no foreign taint is removed. All other files are pure.

pub mod daemon_set;
pub mod node;
pub mod obstacle;
pub mod placement;
pub mod pod;
#[cfg(test)]
mod tests;

use std::{rc::Rc, sync::Arc, time::Duration};

use cluster::{
    CachedFields, Cluster, Context, How, Index, Lock, Predicate, Recorder, Reference, Watch, WatchOptions, Wrote,
    object::NamespacedName,
};
use kit::{Causes, Controller, Failure, Observers, Outcome, Reconcile, Reconciler, Supervised, Wake};
use tokio::time::Instant;

use self::{daemon_set::DaemonSet, node::Tainted, obstacle::Obstacle, pod::Pod};
use crate::{
    actors::{
        resource_manager::controller_context::{ControllerContext, Registration, StartControllers, start},
        shared::state_counts::StateCounts,
    },
    api::{config::resource_manager::Config, kinds},
};

/// Name in metrics and logs (spec 70 §9.2).
pub const NAME: &str = "node-critical-components";

/// Registers the controller; `controllers.nodeCriticalComponents.enabled` turns it on.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

const CRITICAL: &str = "node.gardener.cloud/critical-component";
const NAMESPACE: &str = "kube-system";
/// Component and action of Events (spec 41 §A.1).
const COMPONENT: &str = "node-critical-components-controller";
const ACTION: &str = "Reconcile";
const READY: &str = "NodeCriticalComponentsReady";
const READY_TEXT: &str = "All node-critical components got ready, removing taint";

/// This process saw the creation of the node.
const JOINED: Causes = Causes::own(0);
const PODS: Causes = Causes::own(1);
const DAEMON_SETS: Causes = Causes::own(2);
const DRIVERS: Causes = Causes::own(3);

/// What a node without an obstacle waits for while a watch is stale.
const WATCHES: &str = "watches";

/// An obstacle is reported after it has lasted this long: the pods of a new node start one after the other.
const LASTING: Duration = Duration::from_secs(1);

type Nodes = Watch<CachedFields<Option<Box<Tainted>>>>;

struct CriticalComponents {
    permits: usize,
    backoff: Duration,
    resync: Duration,
    target: Cluster,
    nodes: Nodes,
    daemon_sets: Watch<CachedFields<Arc<DaemonSet>>>,
    pods: Watch<CachedFields<Arc<Pod>>>,
    drivers: Watch<CachedFields<Vec<Box<str>>>>,
    tainted: Index<()>,
    on_node: Index<Box<str>>,
    events: Recorder,
    observers: Rc<dyn Observers>,
    /// Nodes by what they wait for.
    waiting: StateCounts,
}

#[derive(Default)]
struct Memory {
    /// A recreated node of the same name has another uid.
    uid: Box<str>,
    reported: Option<Obstacle>,
    /// Reported if it still holds; with the time when it began.
    to_report: Option<(Obstacle, Instant)>,
    joined: bool,
}

fn setup(config: &Config, ctx: &ControllerContext) -> Option<StartControllers> {
    let settings = config.controllers.node_critical_components.on()?;
    let watches = &ctx.target.watches;
    let nodes = watches.open(WatchOptions::fields(kinds::NODE, node::tainted));
    let critical = format!("{CRITICAL}=true");
    let daemon_sets = WatchOptions::fields(kinds::DAEMON_SET, |object| Arc::new(DaemonSet::of(object)));
    let daemon_sets = watches.open(daemon_sets.labelled(&*critical).within([NAMESPACE]));
    let pods = WatchOptions::fields(kinds::POD, |pod| Arc::new(Pod::of(pod)));
    let pods = watches.open(pods.labelled(critical).within([NAMESPACE]));
    let components = CriticalComponents {
        permits: settings.concurrent_syncs.count(),
        backoff: settings.backoff.get(),
        resync: config.target.cache_resync_period.get(),
        target: ctx.target.cluster.clone(),
        tainted: nodes.index(|_, node| vec![(); usize::from(node.fields.is_some())]),
        on_node: pods.index(|_, pod| vec![pod.fields.node.clone()]),
        nodes,
        daemon_sets,
        pods,
        drivers: watches.open(WatchOptions::fields(kinds::CSI_NODE, node::drivers)),
        events: ctx.target.events.for_component(COMPONENT).with_action(ACTION),
        waiting: StateCounts::new(&ctx.env.observers, "nodes_waiting", Obstacle::KINDS.into_iter().chain([WATCHES])),
        observers: ctx.env.observers.clone(),
    };
    Some(start(components, CriticalComponents::subscribe))
}

fn at(node: &str) -> NamespacedName {
    NamespacedName::new("", node)
}

impl CriticalComponents {
    fn subscribe(self: &Rc<Self>, supervised: &Supervised<Self>) {
        self.waiting.show();
        let waker = supervised.weak();
        self.nodes.subscribe(move |change| {
            let [old, new] = [change.old, change.new].map(|node| node.and_then(|node| node.fields.as_ref()));
            if old == new {
                return;
            }
            let is_new = change.old.is_none() && change.how == How::Event;
            let causes = if is_new { Causes::OBJECT.with(JOINED) } else { Causes::OBJECT };
            let wake = if change.how == How::First { Wake::low(causes) } else { Wake::high(causes) };
            waker.wake(change.name, wake);
        });
        let nodes = self.nodes.clone();
        let is_tainted = move |name: &NamespacedName| nodes.store().with(name, |node| node.fields.is_some());
        let tainted = move |node: &str| Some(at(node)).filter(|name| is_tainted(name) == Some(true));
        let (of_pod, of_drivers, all) = (tainted.clone(), tainted, self.tainted.clone());
        let changed = Predicate::fields_changed().ignoring_first_list().because(PODS);
        self.pods.on_change(supervised, changed, move |_, pod| of_pod(&pod.fields.node));
        let changed = Predicate::fields_changed().ignoring_first_list().because(DRIVERS);
        self.drivers.on_change(supervised, changed, move |name, _| of_drivers(&name.name));
        let changed = Predicate::fields_changed().ignoring_first_list().because(DAEMON_SETS);
        self.daemon_sets.on_change(supervised, changed, move |_, _| all.get(&()));
    }

    /// Returns true if the caches are fresh enough to prove absence.
    fn is_evidence(&self) -> bool {
        self.daemon_sets.is_fresh() && self.pods.is_fresh() && self.drivers.is_fresh()
    }

    /// Returns what the node waits for (spec 41 §A.3 steps 3 to 7).
    fn obstacle(&self, name: &str, node: &Tainted) -> Option<Obstacle> {
        let mut daemon_sets = Vec::new();
        self.daemon_sets.store().for_each(|name, set| daemon_sets.push((name.clone(), set.fields.clone())));
        let names = self.on_node.get(&name.into()).into_iter();
        let known = |name: NamespacedName| {
            let pod = self.pods.store().with(&name, |pod| pod.fields.clone())?;
            Some((name, pod))
        };
        let pods: Vec<_> = names.filter_map(known).collect();
        let drivers = self.drivers.store().with(&at(name), |drivers| drivers.fields.clone()).unwrap_or_default();
        obstacle::find(&node::Node { name, node }, &daemon_sets, &pods, &drivers)
    }

    /// Reports an obstacle once, unless it changes (spec 41, better 1). Returns the time until the next check.
    fn report(&self, memory: &mut Memory, reference: &Reference, obstacle: Obstacle) -> Duration {
        if memory.reported.as_ref() == Some(&obstacle) {
            memory.to_report = None;
            return self.backoff;
        }
        let now = self.target.clock().monotonic();
        let since = memory.to_report.take().filter(|(known, _)| *known == obstacle).map_or(now, |(_, since)| since);
        let left = (since + LASTING).saturating_duration_since(now);
        if left.is_zero() {
            self.report_now(reference, &obstacle);
            memory.reported = Some(obstacle);
            return self.backoff;
        }
        memory.to_report = Some((obstacle, since));
        left.min(self.backoff)
    }

    fn report_now(&self, reference: &Reference, obstacle: &Obstacle) {
        let fields = obstacle.few_names();
        match obstacle {
            Obstacle::Unscheduled(_) => tracing::info!(daemonSets = fields, "{}", obstacle.what()),
            Obstacle::Unready(_) => tracing::info!(pods = fields, "{}", obstacle.what()),
            Obstacle::Drivers(_) => tracing::info!(drivers = fields, "{}", obstacle.what()),
        }
        self.events.warning(reference, obstacle.reason(), &obstacle.text());
    }
}

impl Controller for CriticalComponents {
    type Key = NamespacedName;
    type Memory = Memory;

    fn causes(&self) -> &'static [&'static str] {
        &["joined", "pods", "daemonsets", "drivers"]
    }

    fn reconcilers(&self) -> Vec<Reconciler> {
        let reconciler = Reconciler::new(NAME, self.permits).about(("", "Node")).resync(self.resync);
        let reconciler = reconciler.requires(self.nodes.sync_requirement()).requires(self.pods.sync_requirement());
        vec![reconciler.requires(self.daemon_sets.sync_requirement()).requires(self.drivers.sync_requirement())]
    }

    async fn reconcile(
        self: &Rc<Self>,
        memory: &mut Memory,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let name = &reconcile.key;
        let seen = self.nodes.store().with(name, |node| node.fields.clone());
        let Some(Some(node)) = seen else {
            self.waiting.enter(name, None);
            return Ok(Outcome::Retire);
        };
        if memory.uid != node.uid {
            *memory = Memory { uid: node.uid.clone(), ..Memory::default() };
        }
        memory.joined |= reconcile.because_of(JOINED);
        let reference = Reference::new(&kinds::NODE, name, &*node.uid);
        let obstacle = self.obstacle(&name.name, &node);
        let is_evidence = obstacle.is_some() || self.is_evidence();
        let stale = Some(WATCHES).filter(|_| !is_evidence);
        self.waiting.enter(name, obstacle.as_ref().map(Obstacle::kind).or(stale));
        if let Some(obstacle) = obstacle {
            reconcile.note(format!("{}: {}", obstacle.what(), obstacle.few_names()));
            let backoff = self.report(memory, &reference, obstacle);
            tracing::debug!(?backoff, "Checking node again after backoff");
            return Ok(Outcome::After(backoff));
        }
        if !is_evidence {
            reconcile.note("keeps the taint: the watch of pods, DaemonSets or CSINodes is stale");
            return Ok(Outcome::After(self.backoff));
        }

        tracing::info!("{READY_TEXT}");
        let context = Context::new(reconcile.priority(), reconcile.deadline, name.to_string());
        let decide = |known: &CachedFields<Option<Box<Tainted>>>| {
            let known = known.fields.as_ref().filter(|known| known.uid == node.uid)?;
            self.obstacle(&name.name, known).is_none().then(|| known.without_taint())
        };
        match self.nodes.patch_cached(&context, name, Lock::Version, decide).await {
            // A webhook may have put the taint back.
            Ok(Wrote::Updated(_) | Wrote::Altered(_)) => {}
            Ok(Wrote::Gone) => return Ok(Outcome::Done),
            Ok(_) => return Ok(Outcome::Again), // the node has changed
            Err(error) if error.is_conflict() => return Ok(Outcome::Again),
            Err(error) => return Err(error.into()),
        }
        self.events.normal(&reference, READY, READY_TEXT);
        if let (true, Some(created)) = (memory.joined, node.created) {
            self.observers.figure(
                "node_joined",
                "",
                (self.target.clock().wall() - created).total(jiff::Unit::Second).unwrap_or_default(),
            );
        }
        // The write wakes this actor again, and without the taint it ends.
        Ok(Outcome::After(self.backoff))
    }
}

//! Spreads the reconciliations of node agents: an annotation on each node tells its agent how long to wait (spec 41,
//! part B). Nodes join in bursts, and each new node shifts all delays. So the single actor waits for the end of a
//! burst, computes all delays ([`spread`], pure), and writes those that differ. Changes of an annotation, of a node's
//! Secret or of its label wake it, too (better 7).

pub mod spread;

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    time::Duration,
};

use cluster::{
    CachedFields, Cluster, Context, Lock, Predicate, Watch, WatchOptions,
    object::{self, NamespacedName},
};
use futures::{StreamExt as _, stream};
use kit::{Causes, Controller, Failure, Outcome, Reconcile, Reconciler, Singleton};
use serde_json::{Value, json};

use super::burst::Burst;
use crate::{
    actors::{
        resource_manager::controller_context::{ControllerContext, Registration, StartControllers, start},
        shared::texts,
    },
    api::{config::resource_manager::Config, kinds},
};

/// Name in metrics and logs (spec 70 §9.2).
pub const NAME: &str = "node-agent-reconciliation-delay";

/// Registers the controller; `controllers.nodeAgentReconciliationDelay.enabled` turns it on.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

const DELAY: &str = "node-agent.gardener.cloud/reconciliation-delay";
/// Label of nodes: the name of their Secret.
const SECRET_NAME: &str = "worker.gardener.cloud/gardener-node-agent-secret-name";
/// Annotation of Secrets; only `true` counts.
const SERIAL: &str = "reconciliation.osc.node-agent.gardener.cloud/serial";
const SECRETS: &str = "gardener.cloud/role=operating-system-config";
const NAMESPACE: &str = "kube-system";
/// Requests in flight (spec 41, better 9).
const SIDE_BY_SIDE: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Node {
    secret: Option<Box<str>>,
    delay: Option<Box<str>>,
}

struct Delays {
    min: Duration,
    max: Duration,
    resync: Duration,
    target: Cluster,
    nodes: Watch<CachedFields<Node>>,
    /// True if the nodes of the Secret are reconciled one after the other.
    secrets: Watch<CachedFields<bool>>,
}

struct Change {
    node: NamespacedName,
    /// The name of the node's Secret, on which the delay depends.
    secret: Option<Box<str>>,
    /// `None` removes the annotation.
    delay: Option<String>,
}

fn setup(config: &Config, ctx: &ControllerContext) -> Option<StartControllers> {
    let settings = config.controllers.node_agent_reconciliation_delay.on()?;
    let watches = &ctx.target.watches;
    let serial = |secret: &Value| object::annotation(secret, SERIAL) == Some("true");
    let secrets = WatchOptions::fields(kinds::SECRET, serial).metadata().labelled(SECRETS).within([NAMESPACE]);
    let delays = Delays {
        min: settings.min_delay.get(),
        max: settings.max_delay.get(),
        resync: config.target.cache_resync_period.get(),
        target: ctx.target.cluster.clone(),
        nodes: watches.open(WatchOptions::fields(kinds::NODE, Node::of).metadata()),
        secrets: watches.open(secrets),
    };
    Some(start(delays, |delays, supervised| {
        delays.nodes.on_change(supervised, Predicate::fields_changed(), |_, _| [Singleton]);
        let changed = Predicate::fields_changed();
        delays.secrets.on_change(supervised, changed, |_, secret| secret.fields.then_some(Singleton));
    }))
}

impl Delays {
    /// Returns the changes to write and the number of nodes with a delay (spec 41 §B.3 steps 1 to 6).
    fn changes(&self) -> (Vec<Change>, usize) {
        let mut serial = BTreeSet::new();
        self.secrets.store().for_each(|name, secret| {
            if secret.fields {
                serial.insert(name.name.clone().into_boxed_str());
            }
        });
        let mut nodes = BTreeMap::new();
        let mut changes = Vec::new();
        self.nodes.store().for_each(|name, node| {
            let Node { secret, delay } = &node.fields;
            match secret.as_ref().is_some_and(|secret| serial.contains(secret)) {
                false => drop(nodes.insert(name.name.clone(), (secret.clone(), delay.clone()))),
                // The node agent ignores the annotation there (better 10).
                true if delay.is_some() => {
                    changes.push(Change { node: name.clone(), secret: secret.clone(), delay: None });
                }
                true => {}
            }
        });
        let delays = spread::delays(nodes.keys().map(String::as_str), self.min, self.max);
        for (name, delay) in delays {
            let Some((secret, known)) = nodes.get(name) else { continue };
            tracing::debug!(delaySeconds = delay, nodeName = name, "Computed reconciliation delay");
            if known.as_deref() != Some(&*delay) {
                let node = NamespacedName::new("", name);
                changes.push(Change { node, secret: secret.clone(), delay: Some(delay) });
            }
        }
        (changes, nodes.len())
    }

    /// Writes one annotation, bound to the node's version (B-T1). Returns false if the node has another one afterwards.
    async fn write(&self, context: &Context, change: &Change) -> Result<bool, String> {
        let Change { node, secret, delay } = change;
        let decide = |known: &CachedFields<Node>| {
            // A change of the Secret's name wakes this controller.
            let differs = known.fields.secret == *secret && known.fields.delay.as_deref() != delay.as_deref();
            differs.then(|| json!({"metadata": {"annotations": {DELAY: delay}}}))
        };
        match self.nodes.patch_cached(context, node, Lock::Version, decide).await {
            Ok(wrote) => Ok(!wrote.is_altered()),
            Err(error) if error.is_conflict() => Ok(false),
            Err(error) => Err(format!("node {}: {error}", node.name)),
        }
    }
}

impl Controller for Delays {
    type Key = Singleton;
    type Memory = Burst;

    fn reconcilers(&self) -> Vec<Reconciler> {
        let reconciler = Reconciler::new(NAME, 1).about(("", "Node")).resync(self.resync);
        vec![reconciler.requires(self.nodes.sync_requirement()).requires(self.secrets.sync_requirement())]
    }

    async fn reconcile(
        self: &Rc<Self>,
        burst: &mut Burst,
        reconcile: &Reconcile<Singleton>,
    ) -> Result<Outcome, Failure> {
        if let Some(left) = burst.wait(reconcile.because_of(Causes::OBJECT), self.target.clock().monotonic()) {
            return Ok(Outcome::After(left));
        }
        let (changes, count) = self.changes();
        let context = Context::new(reconcile.priority(), reconcile.deadline, NAME);
        let writes = changes.iter().map(|change| self.write(&context, change));
        let written: Vec<_> = stream::iter(writes).buffer_unordered(SIDE_BY_SIDE).collect().await;
        let count_written = written.iter().filter(|written| matches!(written, Ok(true))).count();
        let is_settled = written.iter().all(|written| !matches!(written, Ok(false)));
        let errors: Vec<_> = written.into_iter().filter_map(Result::err).collect();

        reconcile.note(format!("{count} nodes, {count_written} written in the last run"));
        if !errors.is_empty() {
            return Err(Failure::new(texts::together(&errors, "; ")));
        }
        Ok(if is_settled { Outcome::Done } else { Outcome::Again })
    }
}

impl Node {
    fn of(node: &Value) -> Self {
        Self {
            secret: object::label(node, SECRET_NAME).map(Into::into),
            delay: object::annotation(node, DELAY).map(Into::into),
        }
    }
}

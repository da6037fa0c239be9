//! `node-agent-authorizer`: a gardener-node-agent, of which there is one on each node, touches nothing but what belongs to its
//! node (spec 61). Decisions are made from memory, and none is remembered: they change with Machine and Node.
//!
//! * `identity.rs`: who is a node agent, and of which machine (§3).
//! * `decide.rs`: which rule a request falls under (§5).
//! * `node.rs`: from the machine to its Node (§4).
//! * `certificates.rs`, `events.rs`, `leases.rs`, `nodes.rs`, `pods.rs`, `secrets.rs`: a rule each (§5.1 to §5.6).
//! * `known.rs`: what is kept of the objects these read; `osc.rs`: which Secrets an OperatingSystemConfig names.
//! * `texts.rs`: reasons and errors, which users see.

mod certificates;
mod decide;
mod events;
mod identity;
mod known;
mod leases;
mod node;
mod nodes;
mod osc;
mod pods;
mod secrets;
mod texts;

#[cfg(test)]
mod tests;

pub use decide::Topic;
use identity::Requester;
pub use known::{CSRS, MACHINES, Machine, NODES, Node, PODS, SECRETS};
pub use osc::{Host, OscSecret, Reference};

use std::sync::Arc;

use super::{Action, Attributes, Authorizer, Decision, ResourceAction};
use crate::{
    api::{config::NodeAgentAuthorizer, object::NamespacedName},
    webhooks::{
        cached_kind::{CachedKind, Reads},
        view::{Failure, View},
    },
};

/// The path on which it is served.
pub const PATH: &str = "/webhooks/auth/nodeagent";

/// The only namespace whose Leases and Secrets are any business of a node agent.
const KUBE_SYSTEM: &str = "kube-system";

/// Of a name of an object or Namespace, in bytes: the longest that an API server takes.
const LONGEST_NAME: usize = 253;

/// The authorizer.
#[derive(Debug, Clone)]
pub struct NodeAgents {
    /// Namespace of the Machines in the source cluster; `None`: there are none, and machine names are names of Nodes.
    machine_namespace: Option<String>,
    /// Lists and watches of Pods must select their node.
    with_selectors: bool,
}

/// A request of a node agent.
#[derive(Clone, Copy)]
struct Request<'a> {
    settings: &'a NodeAgents,
    view: &'a dyn View,
    /// Name of its user.
    user: &'a str,
    /// Name of its machine.
    machine: &'a str,
    /// What it wants to do.
    action: &'a ResourceAction<'a>,
}

/// Why a rule does not come to its end.
#[derive(Debug)]
enum End {
    /// Denied, for this reason.
    Deny(String),
    /// There is no decision.
    Failed(Failure),
}

impl NodeAgents {
    /// With its section of the configuration.
    pub fn new(config: &NodeAgentAuthorizer) -> Self {
        Self { machine_namespace: config.machine_namespace.clone(), with_selectors: config.authorize_with_selectors }
    }

    /// What it reads.
    pub fn reads(&self) -> Vec<Reads> {
        let of_machines = self.machine_namespace.iter().map(|namespace| Reads::ObjectsOf(&MACHINES, namespace.clone()));
        let others = [Reads::Objects(&NODES), Reads::Objects(&PODS), Reads::Objects(&CSRS), Reads::Objects(&SECRETS)];
        of_machines.chain(others).collect()
    }
}

impl Authorizer for NodeAgents {
    fn decide(&self, attributes: &Attributes<'_>, view: &dyn View) -> Result<Decision, Failure> {
        let action = match &attributes.action {
            // The user is lost here, and with it any opinion (spec 61 §2 rule 4).
            Action::None => return Ok(Decision::NoOpinion),
            Action::Path(_) => None,
            Action::Resource(action) => Some(action),
        };
        let machine = match Requester::of(attributes) {
            Requester::Other => return Ok(Decision::NoOpinion),
            Requester::Nameless => return Ok(Decision::Deny(String::new())),
            Requester::Machine(machine) if machine.len() > LONGEST_NAME => {
                return Ok(Decision::Deny(texts::no_machine(machine)));
            }
            Requester::Machine(machine) => machine,
        };
        let Some(action) = action else { return Ok(Decision::Deny(String::new())) };
        let request = Request { settings: self, view, user: &attributes.user, machine, action };
        match decide::decide(request) {
            Ok(decision) => Ok(decision),
            Err(End::Deny(reason)) => Ok(Decision::Deny(reason)),
            Err(End::Failed(failure)) => Err(failure),
        }
    }

    fn topic(&self, attributes: &Attributes<'_>) -> &'static str {
        match &attributes.action {
            Action::Resource(action) => Topic::of(action).map_or(super::NO_TOPIC, Topic::name),
            Action::Path(_) | Action::None => super::NO_TOPIC,
        }
    }

    fn logger(&self) -> &'static str {
        "webhook.node-agent-authorizer"
    }
}

impl Request<'_> {
    /// What is kept of an object. One with a name that none can have does not exist, and is not asked for.
    fn object<T: Send + Sync + 'static>(
        self,
        cached_kind: &'static CachedKind<T>,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<T>>, Failure> {
        if namespace.len().max(name.len()) > LONGEST_NAME {
            return Ok(None);
        }
        self.view.object(cached_kind, &NamespacedName::new(namespace, name))
    }

    /// The same, read anew: a store may lag behind what is missing.
    fn object_live<T: Send + Sync + 'static>(
        self,
        cached_kind: &'static CachedKind<T>,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<T>>, Failure> {
        self.view.object_live(cached_kind, &NamespacedName::new(namespace, name))
    }
}

//! `node-agent-authorizer`: restricts each node's gardener-node-agent to the objects of its own node (spec 61).
//! Decisions are made from memory and never cached, because they change with Machine and Node. `identity.rs` recognises
//! a node agent and its machine (§3), and `decide.rs` selects the rule for a request (§5). `rules.rs` has the rules that
//! lead from the machine to its Node (§4), `secrets.rs` the rule of Secrets. `known.rs` has the cached fields of objects,
//! `osc.rs` the Secrets that an OperatingSystemConfig names.

mod decide;
mod identity;
mod known;
mod osc;
mod rules;
mod secrets;
mod texts;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use cluster::object::NamespacedName;
pub use decide::Topic;
use identity::Requester;
pub use known::{CSRS, MACHINES, Machine, NODES, Node, PODS, SECRETS};
pub use osc::{Host, OscSecret, Reference};

use super::{Action, Attributes, Authorizer, Decision, ResourceAction};
use crate::{
    api::config::resource_manager::NodeAgentAuthorizer,
    webhooks::{
        cached_kind::{CachedKind, Reads},
        view::{Failure, View},
    },
};

/// The path on which it is served.
pub const PATH: &str = "/webhooks/auth/nodeagent";

/// The only namespace in which a node agent may access Leases and Secrets.
const KUBE_SYSTEM: &str = "kube-system";

/// The longest name of an object or Namespace that an API server accepts, in bytes.
const LONGEST_NAME: usize = 253;

/// The authorizer.
#[derive(Debug, Clone)]
pub struct NodeAgents {
    /// Namespace of the Machines in the source cluster. `None`: no Machines exist, and machine names are Node names.
    machine_namespace: Option<String>,
    with_selectors: bool,
}

#[derive(Clone, Copy)]
struct Request<'a> {
    settings: &'a NodeAgents,
    view: &'a dyn View,
    user: &'a str,
    machine: &'a str,
    action: &'a ResourceAction<'a>,
}

#[derive(Debug)]
enum End {
    Deny(String),
    Failed(Failure),
}

impl NodeAgents {
    /// Creates the authorizer from its section of the configuration.
    pub fn new(config: &NodeAgentAuthorizer) -> Self {
        Self { machine_namespace: config.machine_namespace.clone(), with_selectors: config.authorize_with_selectors }
    }

    /// Returns what it reads.
    pub fn reads(&self) -> Vec<Reads> {
        let of_machines = self.machine_namespace.iter().map(|namespace| Reads::ObjectsOf(&MACHINES, namespace.clone()));
        let others = [Reads::Objects(&NODES), Reads::Objects(&PODS), Reads::Objects(&CSRS), Reads::Objects(&SECRETS)];
        of_machines.chain(others).collect()
    }
}

impl Authorizer for NodeAgents {
    fn decide(&self, attributes: &Attributes<'_>, view: &dyn View) -> Result<Decision, Failure> {
        let action = match &attributes.action {
            // Upstream loses the user here, and with it any opinion (spec 61 §2 rule 4).
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
    /// Returns the cached fields of an object. A name that is too long cannot exist and is not looked up.
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

    /// The same, read live, because the store may lag.
    fn object_live<T: Send + Sync + 'static>(
        self,
        cached_kind: &'static CachedKind<T>,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<T>>, Failure> {
        self.view.object_live(cached_kind, &NamespacedName::new(namespace, name))
    }
}

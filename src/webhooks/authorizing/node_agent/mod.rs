//! `node-agent-authorizer`: restricts each node's gardener-node-agent to the objects of its own node (spec 61).
//! Decisions are made from memory and never cached, because they change with Machine and Node. `mod.rs` recognises a
//! node agent and its machine (§3), and `decide.rs` selects the rule for a request (§5). `lookup.rs` leads from the
//! machine to its Node (§4). `secrets.rs` has the rule of Secrets, `rules.rs` all others. `known.rs` has the cached fields of objects,
//! `osc.rs` the Secrets that an OperatingSystemConfig names.

mod decide;
mod known;
mod lookup;
mod osc;
mod rules;
mod secrets;
mod texts;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use cluster::object::NamespacedName;
use decide::Topic;
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

const PREFIX: &str = "gardener.cloud:node-agent:machine:";
pub(crate) const GROUP: &str = "gardener.cloud:node-agents";

/// The longest name of an object or Namespace that an API server accepts, in bytes.
const LONGEST_NAME: usize = 253;

/// The authorizer.
#[derive(Debug, Clone)]
pub struct NodeAgents(pub NodeAgentAuthorizer);

#[derive(Clone, Copy)]
struct Request<'a> {
    settings: &'a NodeAgentAuthorizer,
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
    /// Returns what it reads.
    pub fn reads(&self) -> Vec<Reads> {
        let of_machines =
            self.0.machine_namespace.iter().map(|namespace| Reads::ObjectsOf(&MACHINES, namespace.clone()));
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
        let machine = match machine_of(attributes) {
            None => return Ok(Decision::NoOpinion),
            Some("") => return Ok(Decision::Deny(String::new())),
            Some(machine) if machine.len() > LONGEST_NAME => {
                return Ok(Decision::Deny(texts::not_found("machine", machine)));
            }
            Some(machine) => machine,
        };
        let Some(action) = action else { return Ok(Decision::Deny(String::new())) };
        let request = Request { settings: &self.0, view, user: &attributes.user, machine, action };
        match decide::decide(request) {
            Ok(decision) => Ok(decision),
            Err(End::Deny(reason)) => Ok(Decision::Deny(reason)),
            Err(End::Failed(failure)) => Err(failure),
        }
    }

    fn topic(&self, attributes: &Attributes<'_>) -> &'static str {
        match &attributes.action {
            Action::Resource(action) => Topic::of(action).map_or(super::NO_TOPIC, |topic| topic.resource),
            Action::Path(_) | Action::None => super::NO_TOPIC,
        }
    }

    fn logger(&self) -> &'static str {
        "webhook.node-agent-authorizer"
    }
}

/// Returns the machine of a node agent, or `None` for other users. Only prefix and group together make a node agent
/// (spec 61 §3, §11.2).
fn machine_of<'a>(attributes: &'a Attributes<'_>) -> Option<&'a str> {
    let machine = attributes.user.strip_prefix(PREFIX)?;
    attributes.groups.iter().any(|group| group == GROUP).then_some(machine)
}

impl Request<'_> {
    /// Returns the cached fields of an object. A name that is too long cannot exist and is not looked up. `reading` is
    /// the beginning of the error.
    fn object<T: Send + Sync + 'static>(
        self,
        cached_kind: &'static CachedKind<T>,
        namespace: &str,
        name: &str,
        reading: impl FnOnce() -> String,
    ) -> Result<Option<Arc<T>>, End> {
        self.recent_object(cached_kind, namespace, name, |_| false, reading)
    }

    /// The same. If the object `may_be_new`, it is read live, because the store may lag.
    fn recent_object<T: Send + Sync + 'static>(
        self,
        cached_kind: &'static CachedKind<T>,
        namespace: &str,
        name: &str,
        may_be_new: impl FnOnce(&T) -> bool,
        reading: impl FnOnce() -> String,
    ) -> Result<Option<Arc<T>>, End> {
        if namespace.len().max(name.len()) > LONGEST_NAME {
            return Ok(None);
        }
        let name = NamespacedName::new(namespace, name);
        let found = self.view.object(cached_kind, &name).and_then(|known| match known {
            Some(known) if may_be_new(&known) => self.view.object_live(cached_kind, &name),
            known => Ok(known),
        });
        found.map_err(|failure| End::while_reading(failure, reading))
    }
}

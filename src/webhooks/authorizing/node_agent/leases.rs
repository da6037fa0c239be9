//! Leases (spec 61 §5.3): that of the agent, and that by which the agents of a pool take turns in rolling out.

use super::{End, KUBE_SYSTEM, Request, node, texts};
use crate::webhooks::authorizing::Decision;

pub(super) fn decide(request: Request<'_>) -> Result<Decision, End> {
    let (name, node) = node::resolve(request)?;
    let own = format!("gardener-node-agent-{name}");
    let of_pool = Some(&*node.secret_name).filter(|name| !name.is_empty());

    let action = request.action;
    // Authorization of a creation knows no name.
    let is_named = action.verb == "create" || action.name == own || of_pool.is_some_and(|name| action.name == name);
    if action.namespace == KUBE_SYSTEM && is_named {
        return Ok(Decision::Allow);
    }
    let names: Vec<&str> = [Some(own.as_str()), of_pool].into_iter().flatten().collect();
    Err(End::Deny(texts::only_leases(&names)))
}

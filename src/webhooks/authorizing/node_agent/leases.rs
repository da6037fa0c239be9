//! Leases (spec 61 §5.3): the agent's own Lease, and the Lease with which the agents of a pool take turns in roll-outs.

use super::{End, KUBE_SYSTEM, Request, node, secrets, texts};
use crate::webhooks::authorizing::Decision;

pub(super) fn decide(request: Request<'_>) -> Result<Decision, End> {
    let (name, node) = node::resolve(request)?;
    let own = format!("gardener-node-agent-{name}");
    let action = request.action;
    // A create request has no name. The agent's own Lease needs no further read.
    if action.namespace == KUBE_SYSTEM && (action.verb == "create" || action.name == own) {
        return Ok(Decision::Allow);
    }
    let of_pool = of_pool(request, &node.secret_name)?;
    if action.namespace == KUBE_SYSTEM && of_pool.is_some_and(|name| action.name == name) {
        return Ok(Decision::Allow);
    }
    let names: Vec<&str> = [Some(own.as_str()), of_pool].into_iter().flatten().collect();
    Err(End::Deny(texts::only_leases(&names)))
}

/// Returns the Lease of the pool that the Node's label names. The agent can change that label, so the name counts only
/// if a pool's Secret has it: the agent cannot create such a Secret (decision 33).
fn of_pool<'a>(request: Request<'_>, name: &'a str) -> Result<Option<&'a str>, End> {
    if name.is_empty() {
        return Ok(None);
    }
    let failed = |failure| End::while_reading(failure, || texts::getting_osc_secret(name));
    let secret = secrets::osc_secret(request, name).map_err(failed)?;
    Ok(secret.filter(|secret| secret.of_pool).map(|_| name))
}

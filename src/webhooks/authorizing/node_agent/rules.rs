//! The rules of certificates, Leases, Nodes and Pods (spec 61 §5.1 to §5.5).

use super::{
    CSRS, End, KUBE_SYSTEM, PODS, Request,
    lookup::{node, osc_secret},
    texts,
};
use crate::{
    api::meta::field::shapes::Keyed,
    webhooks::{
        authorizing::{Decision, Requirement},
        view::Failure,
    },
};

const NODE_NAME: &str = "spec.nodeName";

/// Spec 61 §5.1: a node agent may create any CSR, because another controller approves them. It may read only its own.
pub(super) fn certificates(request: Request<'_>) -> Result<Decision, End> {
    if *request.action.verb == *"create" {
        return Ok(Decision::Allow);
    }
    let name = &*request.action.name;
    let found = request.object(&CSRS, "", name, || texts::getting("CSR", name))?;
    let username = found.ok_or_else(|| End::Deny(texts::not_found("CSR", name)))?;
    if **username == *request.user { Ok(Decision::Allow) } else { Err(End::Deny(texts::only_own_csrs(request.user))) }
}

/// Spec 61 §5.3: the agent's own Lease, and the Lease with which the agents of a pool take turns in roll-outs.
pub(super) fn leases(request: Request<'_>) -> Result<Decision, End> {
    let (name, node) = node(request)?;
    let own = format!("gardener-node-agent-{name}");
    let action = request.action;
    // A create request has no name. The agent's own Lease needs no further read.
    if *action.namespace == *KUBE_SYSTEM && (*action.verb == *"create" || *action.name == *own) {
        return Ok(Decision::Allow);
    }
    let of_pool = of_pool(request, &node.secret_name)?;
    if *action.namespace == *KUBE_SYSTEM && of_pool.is_some_and(|name| *action.name == *name) {
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
    let secret = osc_secret(request, name, || texts::getting_osc_secret(name))?;
    Ok(secret.filter(|secret| secret.of_pool).map(|_| name))
}

/// Spec 61 §5.4. All Nodes may be listed: the agent starts before its Node exists, and finds it by host name (decision 15).
pub(super) fn nodes(request: Request<'_>) -> Result<Decision, End> {
    if matches!(&*request.action.verb, "list" | "watch") {
        return Ok(Decision::Allow);
    }
    let (name, _) = node(request)?;
    if *request.action.name == *name { Ok(Decision::Allow) } else { Err(End::Deny(texts::only_node(&name))) }
}

/// Spec 61 §5.5: those of the node.
pub(super) fn pods(request: Request<'_>) -> Result<Decision, End> {
    let (node, _) = node(request)?;
    let action = request.action;
    if matches!(&*action.verb, "list" | "watch") {
        if !request.settings.authorize_with_selectors || selects(request, &node)? {
            return Ok(Decision::Allow);
        }
        if action.name.is_empty() {
            return Err(End::Deny(texts::only_with_selector(&node)));
        }
    }

    let (namespace, name) = (&*action.namespace, &*action.name);
    let pod = format!("{namespace}/{name}");
    // A Pod without a node may just have been bound.
    let found =
        request.recent_object(&PODS, namespace, name, |node| node.is_empty(), || texts::getting("pod", &pod))?;
    let of_node = found.ok_or_else(|| End::Deny(texts::not_found("pod", &pod)))?;
    if **of_node == *node { Ok(Decision::Allow) } else { Err(End::Deny(texts::foreign_pod(&pod, &node))) }
}

/// Returns whether the request selects only Pods of the node. Others narrow it further; an unreadable one is an error.
fn selects(request: Request<'_>, node: &str) -> Result<bool, End> {
    let Some(Keyed(selector)) = &request.action.field_selector else { return Ok(false) };
    let requirements = selector.requirements();
    if let Some(error) = requirements.error {
        return Err(End::Failed(Failure::Errored { code: 500, message: texts::parsing_selector(&error) }));
    }
    Ok(requirements.all.iter().any(|requirement| match requirement {
        Requirement::Equals(field, value) => field == NODE_NAME && value == node,
        Requirement::NotEquals(..) => false,
    }))
}

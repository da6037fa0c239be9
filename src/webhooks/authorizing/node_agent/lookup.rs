//! The way from the machine to its Node and to Secrets (spec 61 §4).

use std::sync::Arc;

use super::{End, KUBE_SYSTEM, MACHINES, Machine, NODES, Node, OscSecret, Request, SECRETS, texts};

/// Returns name and cached fields of the machine's Node (spec 61 §4). A Machine's label is not enough: it must exist (spec 61 §11.7).
pub(super) fn node(request: Request<'_>) -> Result<(String, Arc<Node>), End> {
    let name = match &request.settings.machine_namespace {
        None => request.machine.to_owned(),
        Some(namespace) => machine(request, namespace)?.node.to_string(),
    };
    let missing = || End::Deny(texts::no_node(request.machine));
    if name.is_empty() {
        return Err(missing());
    }
    let found = request.object(&NODES, "", &name, || texts::getting("node", &format!("/{name}")))?;
    Ok((name, found.ok_or_else(missing)?))
}

/// Returns the Machine of the request. If it has no Node, its label may be new, so it is read live.
pub(super) fn machine(request: Request<'_>, namespace: &str) -> Result<Arc<Machine>, End> {
    let name = request.machine;
    let has_no_node = |machine: &Machine| machine.node.is_empty();
    let found = request.recent_object(&MACHINES, namespace, name, has_no_node, || texts::getting("machine", name))?;
    found.ok_or_else(|| End::Deny(texts::not_found("machine", name)))
}

pub(super) fn osc_secret(
    request: Request<'_>,
    name: &str,
    reading: impl FnOnce() -> String,
) -> Result<Option<Arc<OscSecret>>, End> {
    request.object(&SECRETS, KUBE_SYSTEM, name, reading)
}

/// Returns the Node. If its host name is unknown, it may be new, so the Node is read live.
pub(super) fn node_of(request: Request<'_>, name: &str) -> Result<Option<Arc<Node>>, End> {
    let has_no_host = |node: &Node| node.host_name.is_empty();
    request.recent_object(&NODES, "", name, has_no_host, || texts::getting("node", name))
}

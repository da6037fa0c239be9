//! From the machine to its Node (spec 61 §4).

use std::sync::Arc;

use super::{End, MACHINES, Machine, NODES, Node, Request, texts};

/// Returns name and cached fields of the Node. A Machine's label is not enough: it must exist (spec 61 §11.7).
pub(super) fn resolve(request: Request<'_>) -> Result<(String, Arc<Node>), End> {
    let name = match &request.settings.machine_namespace {
        None => request.machine.to_owned(),
        Some(namespace) => machine(request, namespace)?.node.to_string(),
    };
    let missing = || End::Deny(texts::no_node(request.machine));
    if name.is_empty() {
        return Err(missing());
    }
    let found = request.object(&NODES, "", &name);
    let found = found.map_err(|failure| End::while_reading(failure, || texts::getting_node(&format!("/{name}"))))?;
    Ok((name, found.ok_or_else(missing)?))
}

/// Returns the Machine of the request. If it has no Node, its label may be new, so it is read live.
pub(super) fn machine(request: Request<'_>, namespace: &str) -> Result<Arc<Machine>, End> {
    let name = request.machine;
    let failed = |failure| End::while_reading(failure, || texts::getting_machine(name));
    let missing = || End::Deny(texts::no_machine(name));
    let known = request.object(&MACHINES, namespace, name).map_err(failed)?.ok_or_else(missing)?;
    if !known.node.is_empty() {
        return Ok(known);
    }
    request.object_live(&MACHINES, namespace, name).map_err(failed)?.ok_or_else(missing)
}

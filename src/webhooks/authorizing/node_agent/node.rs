//! From the machine to its Node (spec 61 §4).

use std::sync::Arc;

use super::{End, MACHINES, Machine, NODES, Node, Request, texts};
use crate::api::object::NamespacedName;

/// The name of the request's Node, and what is known of it. The Node must exist: the label of the Machine alone is not enough
/// (spec 61 §11.7).
pub(super) fn resolve(request: Request<'_>) -> Result<(String, Arc<Node>), End> {
    let name = match &request.settings.machine_namespace {
        None => request.machine.to_owned(),
        Some(namespace) => {
            let known = machine(request, namespace)?;
            // It may just have got its label.
            let named = if known.node.is_empty() { machine_live(request, namespace)? } else { known };
            named.node.to_string()
        }
    };
    let missing = || End::Deny(texts::no_node(request.machine));
    if name.is_empty() {
        return Err(missing());
    }
    let found = request.view.object(&NODES, &NamespacedName::new("", &name));
    let found = found.map_err(|failure| End::while_reading(failure, || texts::getting_node(&format!("/{name}"))))?;
    Ok((name, found.ok_or_else(missing)?))
}

/// The Machine of the request.
pub(super) fn machine(request: Request<'_>, namespace: &str) -> Result<Arc<Machine>, End> {
    let found = request.view.object(&MACHINES, &NamespacedName::new(namespace, request.machine));
    existing(request, found)
}

fn machine_live(request: Request<'_>, namespace: &str) -> Result<Arc<Machine>, End> {
    let found = request.view.object_live(&MACHINES, &NamespacedName::new(namespace, request.machine));
    existing(request, found)
}

fn existing(
    request: Request<'_>,
    found: Result<Option<Arc<Machine>>, crate::webhooks::view::Failure>,
) -> Result<Arc<Machine>, End> {
    let name = request.machine;
    let found = found.map_err(|failure| End::while_reading(failure, || texts::getting_machine(name)))?;
    found.ok_or_else(|| End::Deny(texts::no_machine(name)))
}

//! Pods (spec 61 §5.5): those of the node.

use super::{End, PODS, Request, node, texts};
use crate::webhooks::{
    authorizing::{Decision, Requirement},
    view::Failure,
};

const NODE_NAME: &str = "spec.nodeName";

pub(super) fn decide(request: Request<'_>) -> Result<Decision, End> {
    let (node, _) = node::resolve(request)?;
    let action = request.action;
    if matches!(&*action.verb, "list" | "watch") {
        if !request.settings.with_selectors || selects(request, &node)? {
            return Ok(Decision::Allow);
        }
        if action.name.is_empty() {
            return Err(End::Deny(texts::only_with_selector(&node)));
        }
    }

    let (namespace, name) = (&*action.namespace, &*action.name);
    let shown = || format!("{namespace}/{name}");
    let failed = |failure| End::while_reading(failure, || texts::getting_pod(&shown()));
    let missing = || End::Deny(texts::no_pod(&shown()));
    let mut of_node = request.object(&PODS, namespace, name).map_err(failed)?.ok_or_else(missing)?;
    if of_node.is_empty() {
        // It may just have been bound.
        of_node = request.object_live(&PODS, namespace, name).map_err(failed)?.ok_or_else(missing)?;
    }
    if **of_node == *node { Ok(Decision::Allow) } else { Err(End::Deny(texts::foreign_pod(&shown(), &node))) }
}

/// Returns whether the request selects only Pods of the node. Others narrow it further; an unreadable one is an error.
fn selects(request: Request<'_>, node: &str) -> Result<bool, End> {
    let requirements = request.action.field_selector.requirements();
    if let Some(error) = requirements.error {
        return Err(End::Failed(Failure::Errored { code: 500, message: texts::parsing_selector(&error) }));
    }
    Ok(requirements.all.iter().any(|requirement| match requirement {
        Requirement::Equals(field, value) => field == NODE_NAME && value == node,
        Requirement::NotEquals(..) => false,
    }))
}

//! Nodes (spec 61 §5.4).

use super::{End, Request, node, texts};
use crate::webhooks::authorizing::Decision;

/// All Nodes may be listed: the agent starts before its Node exists, and finds it by host name (decision 15).
pub(super) fn decide(request: Request<'_>) -> Result<Decision, End> {
    if matches!(&*request.action.verb, "list" | "watch") {
        return Ok(Decision::Allow);
    }
    let (name, _) = node::resolve(request)?;
    if request.action.name == name { Ok(Decision::Allow) } else { Err(End::Deny(texts::only_node(&name))) }
}

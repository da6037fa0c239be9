//! Who is a node agent (spec 61 §3).

use crate::webhooks::authorizing::Attributes;

const PREFIX: &str = "gardener.cloud:node-agent:machine:";
const GROUP: &str = "gardener.cloud:node-agents";

/// Whose request it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Requester<'a> {
    /// That of somebody else: both the prefix and the group make a node agent (spec 61 §11.2).
    Other,
    /// That of a node agent without a machine.
    Nameless,
    /// That of the node agent of this machine.
    Machine(&'a str),
}

impl<'a> Requester<'a> {
    pub(super) fn of(attributes: &'a Attributes<'_>) -> Self {
        let machine = attributes.user.strip_prefix(PREFIX);
        match machine.filter(|_| attributes.groups.iter().any(|group| group == GROUP)) {
            None => Self::Other,
            Some("") => Self::Nameless,
            Some(machine) => Self::Machine(machine),
        }
    }
}

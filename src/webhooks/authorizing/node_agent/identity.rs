//! Recognises node agents (spec 61 §3).

use crate::webhooks::authorizing::Attributes;

const PREFIX: &str = "gardener.cloud:node-agent:machine:";
const GROUP: &str = "gardener.cloud:node-agents";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Requester<'a> {
    /// Not a node agent. Only prefix and group together make a node agent (spec 61 §11.2).
    Other,
    Nameless,
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

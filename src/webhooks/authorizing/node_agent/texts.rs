//! Reasons of denials and texts of errors, as clients see them (spec 61). Strings that clients chose are cut.

use std::{borrow::Cow, fmt::Display};

use kit::quote::{cut, shown};

use super::End;
use crate::webhooks::view::Failure;

pub(super) fn only_subresources(allowed: &[&str]) -> String {
    format!("only the following subresources are allowed for this resource type: {}", listed(allowed))
}

pub(super) fn only_verbs(allowed: &[&str]) -> String {
    format!("only the following verbs are allowed for this resource type: {}", listed(allowed))
}

pub(super) fn only_own_csrs(user: &str) -> String {
    format!("gardener-node-agent is only allowed to read or request CSRs for its own user {}", shown(user))
}

pub(super) fn only_leases(names: &[&str]) -> String {
    format!("this gardener-node-agent can only access leases {} in \"kube-system\" namespace", listed(names))
}

pub(super) fn only_node(name: &str) -> String {
    format!("this gardener-node-agent can only access node {}", shown(name))
}

pub(super) fn only_with_selector(node: &str) -> String {
    format!("can only list/watch pods with spec.nodeName={node} field selector")
}

pub(super) fn foreign_pod(pod: &str, node: &str) -> String {
    format!("pod {} does not belong to node {}", shown(pod), shown(node))
}

pub(super) fn only_secrets(names: &[Cow<'_, str>]) -> String {
    format!("gardener-node-agent can only access secrets {} in \"kube-system\" namespace", listed(names))
}

pub(super) fn no_node(machine: &str) -> String {
    format!("no node for {} found", shown(machine))
}

pub(super) fn not_found(what: &str, name: &str) -> String {
    format!("{what} {} not found", shown(name))
}

pub(super) fn listing_osc_secrets() -> String {
    "error listing operating system config secrets".to_owned()
}

pub(super) fn getting(what: &str, name: &str) -> String {
    format!("error getting {what} {}", shown(name))
}

pub(super) fn getting_osc_secret(name: &str) -> String {
    format!("error getting OSC secret \"{name}\"")
}

pub(super) fn reading_references(secret: &str, cause: &str) -> String {
    format!(
        "error reading secretRef names from OSC secret \"{secret}\": unable to decode OSC from secret \"{secret}\": {cause}"
    )
}

pub(super) fn parsing_selector(cause: &str) -> String {
    format!("error parsing field selector: {}", cut(cause))
}

impl End {
    /// Adds the purpose to a failed read. [`Failure::Look`] stays as it is.
    pub(super) fn while_reading(failure: Failure, what: impl FnOnce() -> String) -> Self {
        Self::Failed(match failure {
            Failure::ReadLive(lookup) => Failure::ReadLive(lookup),
            other => Failure::Errored { code: 500, message: format!("{}: {}", what(), other.text()) },
        })
    }
}

fn listed(names: &[impl Display]) -> String {
    let names: Vec<_> = names.iter().map(ToString::to_string).collect();
    format!("[{}]", names.join(" "))
}

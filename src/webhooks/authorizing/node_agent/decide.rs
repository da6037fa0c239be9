//! Selects the rule for a request (spec 61 §5).

use super::{End, Request, rules, secrets, texts};
use crate::webhooks::authorizing::{Decision, ResourceAction};

/// The resources that a node agent may access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// `certificatesigningrequests.certificates.k8s.io`.
    Certificates,
    /// `events`, of both groups.
    Events,
    /// `leases.coordination.k8s.io`.
    Leases,
    /// `nodes`.
    Nodes,
    /// `pods`.
    Pods,
    /// `secrets`.
    Secrets,
}

/// Denies what is never allowed before anything is read (spec 61 §11.3).
pub(super) fn decide(request: Request<'_>) -> Result<Decision, End> {
    let Some(topic) = Topic::of(request.action) else { return Err(End::Deny(String::new())) };
    check(topic, request.action)?;
    match topic {
        Topic::Certificates => rules::certificates(request),
        Topic::Events => Ok(Decision::Allow),
        Topic::Leases => rules::leases(request),
        Topic::Nodes => rules::nodes(request),
        Topic::Pods => rules::pods(request),
        Topic::Secrets => secrets::decide(request),
    }
}

fn check(topic: Topic, action: &ResourceAction<'_>) -> Result<(), End> {
    let (subresources, verbs) = topic.allowed();
    if !action.subresource.is_empty() && !subresources.contains(&&*action.subresource) {
        return Err(End::Deny(texts::only_subresources(subresources)));
    }
    if !verbs.contains(&&*action.verb) {
        return Err(End::Deny(texts::only_verbs(verbs)));
    }
    Ok(())
}

impl Topic {
    /// Returns the topic of a group and resource, or `None` for any other.
    pub fn of(action: &ResourceAction<'_>) -> Option<Self> {
        Some(match (&*action.group, &*action.resource) {
            ("certificates.k8s.io", "certificatesigningrequests") => Self::Certificates,
            ("" | "events.k8s.io", "events") => Self::Events,
            ("coordination.k8s.io", "leases") => Self::Leases,
            ("", "nodes") => Self::Nodes,
            ("", "pods") => Self::Pods,
            ("", "secrets") => Self::Secrets,
            _ => return None,
        })
    }

    /// Returns the resource.
    pub fn name(self) -> &'static str {
        match self {
            Self::Certificates => "certificatesigningrequests",
            Self::Events => "events",
            Self::Leases => "leases",
            Self::Nodes => "nodes",
            Self::Pods => "pods",
            Self::Secrets => "secrets",
        }
    }

    /// Returns the allowed subresources and verbs, in the order of the messages.
    fn allowed(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::Certificates => (&[], &["get", "create"]),
            Self::Events => (&[], &["create", "patch"]),
            Self::Leases => (&[], &["get", "list", "watch", "create", "update"]),
            Self::Nodes => (&["status"], &["get", "list", "watch", "patch", "update"]),
            Self::Pods => (&[], &["get", "list", "watch", "delete"]),
            Self::Secrets => (&[], &["get", "list", "watch"]),
        }
    }
}

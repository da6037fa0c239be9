//! Selects the rule for a request (spec 61 §5).

use super::{End, Request, rules, secrets, texts};
use crate::webhooks::authorizing::{Decision, ResourceAction};

/// A resource that a node agent may access.
pub(super) struct Topic {
    groups: &'static [&'static str],
    /// Plural name.
    pub(super) resource: &'static str,
    /// In the order of the messages, as the verbs.
    subresources: &'static [&'static str],
    verbs: &'static [&'static str],
    rule: fn(Request<'_>) -> Result<Decision, End>,
}

#[rustfmt::skip]
static TOPICS: [Topic; 6] = [
    Topic { groups: &["certificates.k8s.io"], resource: "certificatesigningrequests", subresources: &[], verbs: &["get", "create"], rule: rules::certificates },
    Topic { groups: &["", "events.k8s.io"], resource: "events", subresources: &[], verbs: &["create", "patch"], rule: |_| Ok(Decision::Allow) },
    Topic { groups: &["coordination.k8s.io"], resource: "leases", subresources: &[], verbs: &["get", "list", "watch", "create", "update"], rule: rules::leases },
    Topic { groups: &[""], resource: "nodes", subresources: &["status"], verbs: &["get", "list", "watch", "patch", "update"], rule: rules::nodes },
    Topic { groups: &[""], resource: "pods", subresources: &[], verbs: &["get", "list", "watch", "delete"], rule: rules::pods },
    Topic { groups: &[""], resource: "secrets", subresources: &[], verbs: &["get", "list", "watch"], rule: secrets::decide },
];

/// Denies what is never allowed before anything is read (spec 61 §11.3).
pub(super) fn decide(request: Request<'_>) -> Result<Decision, End> {
    let action = request.action;
    let topic = Topic::of(action).ok_or_else(|| End::Deny(String::new()))?;
    if !action.subresource.is_empty() && !topic.subresources.contains(&&*action.subresource) {
        return Err(End::Deny(texts::only_subresources(topic.subresources)));
    }
    if !topic.verbs.contains(&&*action.verb) {
        return Err(End::Deny(texts::only_verbs(topic.verbs)));
    }
    (topic.rule)(request)
}

impl Topic {
    /// Returns the topic of an action, or `None` for other resources.
    pub(super) fn of(action: &ResourceAction<'_>) -> Option<&'static Self> {
        TOPICS.iter().find(|topic| topic.groups.contains(&&*action.group) && *topic.resource == *action.resource)
    }
}

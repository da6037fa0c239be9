//! `system-components-config`: system components run on the right nodes and tolerate their taints (spec 50 §10).

pub mod node_taints;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};

use super::{Mutation, Mutator, Request, text};
use crate::{
    api::config::resource_manager::SystemComponentsConfig,
    webhooks::{
        fields::{self, Field, Type, WrongType},
        view::{Failure, View},
    },
};

/// The path on which it is served.
pub const PATH: &str = "/webhooks/system-components-config";

const FIELDS: [Field; 9] = [
    ("metadata.ownerReferences[].apiVersion", Type::Text),
    ("metadata.ownerReferences[].kind", Type::Text),
    ("metadata.ownerReferences[].controller", Type::Boolean),
    ("spec.nodeSelector", Type::Map),
    ("spec.tolerations[].key", Type::Text),
    ("spec.tolerations[].operator", Type::Text),
    ("spec.tolerations[].value", Type::Text),
    ("spec.tolerations[].effect", Type::Text),
    ("spec.tolerations[].tolerationSeconds", Type::Integer),
];

/// Gives Pods the configured node selector and tolerations, and tolerations for the taints of the selected nodes.
#[derive(Debug, Clone)]
pub struct SystemComponents {
    node_selector: BTreeMap<String, String>,
    tolerations: Vec<Value>,
}

/// Identifies a toleration (spec 50 §10.1 rule 7). Empty operator and `Equal` differ, unlike for the scheduler.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Identity<'a> {
    key: &'a str,
    operator: &'a str,
    value: &'a str,
    effect: &'a str,
    seconds: Option<i64>,
}

impl SystemComponents {
    /// Creates the webhook from its configuration. The view selects the nodes, see [`node_taints::TaintSet`].
    pub fn new(config: &SystemComponentsConfig) -> Self {
        Self {
            node_selector: config.pod_node_selector.clone(),
            tolerations: config.pod_tolerations.iter().map(|toleration| json!(toleration)).collect(),
        }
    }

    fn add_node_selector(&self, pod: &mut Value) -> Result<(), WrongType> {
        if !self.node_selector.is_empty() {
            let selector = self.node_selector.iter().map(|(key, value)| (key.clone(), value.as_str().into()));
            fields::map_mut(pod, &["spec", "nodeSelector"])?.extend(selector);
        }
        Ok(())
    }

    /// Joins the Pod's own tolerations, the configured ones and those for nodes, without duplicates, in this order
    /// (spec 50 §10.1 rules 4, 7, 8). The Pod's own are not copied: only the review's size bounds their number.
    fn add_tolerations(&self, pod: &mut Value, of_nodes: &[Value]) -> Result<(), WrongType> {
        let mut known = HashSet::new();
        let (mut kept, mut added) = (Vec::new(), Vec::new());
        for toleration in fields::list(pod, &["spec", "tolerations"])? {
            kept.push(known.insert(Identity::of(toleration)?));
        }
        for toleration in self.tolerations.iter().chain(of_nodes) {
            if known.insert(Identity::of(toleration)?) {
                added.push(toleration.clone());
            }
        }
        if !kept.is_empty() || !added.is_empty() {
            let tolerations = fields::list_mut(pod, &["spec", "tolerations"])?;
            let mut kept = kept.into_iter();
            tolerations.retain(|_| kept.next().unwrap_or(true));
            tolerations.append(&mut added);
        }
        Ok(())
    }
}

impl Mutator for SystemComponents {
    fn mutate(&self, pod: &mut Value, _: &Request<'_>, view: &dyn View) -> Result<Mutation, Failure> {
        fields::check(pod, &FIELDS)?;
        if !is_of_daemon_set(pod)? {
            self.add_node_selector(pod)?;
            self.add_tolerations(pod, &view.tolerations_of_nodes()?)?;
        }
        Ok(Mutation::Done)
    }
}

impl<'a> Identity<'a> {
    fn of(toleration: &'a Value) -> Result<Self, WrongType> {
        let text = |field| fields::text(toleration, &[field]).map(Option::unwrap_or_default);
        Ok(Self {
            key: text("key")?,
            operator: text("operator")?,
            value: text("value")?,
            effect: text("effect")?,
            seconds: fields::integer(toleration, &["tolerationSeconds"])?,
        })
    }
}

/// Whether a DaemonSet controls the Pod, which binds it to its node (spec 50 §10.1 rule 1).
fn is_of_daemon_set(pod: &Value) -> Result<bool, WrongType> {
    let owners = fields::list(pod, &["metadata", "ownerReferences"])?;
    Ok(owners.iter().any(|owner| {
        (text(owner, "apiVersion"), text(owner, "kind")) == ("apps/v1", "DaemonSet")
            && owner.get("controller").and_then(Value::as_bool) == Some(true)
    }))
}

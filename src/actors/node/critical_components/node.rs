//! Nodes with the taint: what is kept of one, and how it loses it (spec 41 §A.1, §A.5).

use std::collections::BTreeMap;

use cluster::object;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Key of the taint; effect and value do not matter.
pub const TAINT: &str = "node.gardener.cloud/critical-components-not-ready";

/// What is kept of a node with the taint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tainted {
    /// For Events.
    pub uid: Box<str>,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// All its taints, as they stand there.
    pub taints: Vec<Value>,
}

/// A node with the taint, and its name.
#[derive(Debug, Clone, Copy)]
pub struct Node<'a> {
    /// Its name.
    pub name: &'a str,
    /// What is kept of it.
    pub node: &'a Tainted,
}

/// What is kept of a node; of one without the taint nothing.
pub fn tainted(node: &Value) -> Option<Box<Tainted>> {
    let taints = node.pointer("/spec/taints").and_then(Value::as_array)?;
    if !taints.iter().any(is_ours) {
        return None;
    }
    let labels = node.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    let created = node.pointer("/metadata/creationTimestamp").and_then(Value::as_str);
    Some(Box::new(Tainted {
        uid: object::uid(node).into(),
        created: created.and_then(|text| text.parse().ok()),
        labels: labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect(),
        taints: taints.clone(),
    }))
}

/// The CSI drivers that a CSINode says are registered (spec 41 A-T6), sorted.
pub fn drivers(csi_node: &Value) -> Vec<Box<str>> {
    let drivers = csi_node.pointer("/spec/drivers").and_then(Value::as_array).into_iter().flatten();
    let mut names: Vec<Box<str>> = drivers.filter_map(|driver| Some(driver["name"].as_str()?.into())).collect();
    names.sort();
    names
}

fn is_ours(taint: &Value) -> bool {
    taint["key"] == TAINT
}

impl Tainted {
    /// A merge patch that removes all taints of the key and keeps the others in their order, if the node has this version: a
    /// merge patch replaces the whole list (spec 41 §A.5).
    pub fn without_taint(&self, version: u64) -> Value {
        let rest: Vec<&Value> = self.taints.iter().filter(|taint| !is_ours(taint)).collect();
        let rest = if rest.is_empty() { Value::Null } else { json!(rest) };
        json!({ "metadata": { "resourceVersion": version.to_string() }, "spec": { "taints": rest } })
    }
}

//! The cached fields of tainted Nodes, and the patch that removes the taint (spec 41 §A.1, §A.5).

use cluster::object;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::meta::selector::{Labels, labels_in};

/// Key of the taint; effect and value are ignored.
pub const TAINT: &str = "node.gardener.cloud/critical-components-not-ready";

/// The cached fields of a tainted node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tainted {
    /// For Events.
    pub uid: Box<str>,
    /// Its creation time.
    pub created: Option<Timestamp>,
    /// Its labels.
    pub labels: Labels,
    /// All its taints, unchanged.
    pub taints: Vec<Value>,
}

/// A tainted node with its name.
#[derive(Debug, Clone, Copy)]
pub struct Node<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its cached fields.
    pub node: &'a Tainted,
}

/// Reads a node; `None` without the taint.
pub fn tainted(node: &Value) -> Option<Box<Tainted>> {
    let taints = node.pointer("/spec/taints").and_then(Value::as_array)?;
    if !taints.iter().any(is_ours) {
        return None;
    }
    let created = node.pointer("/metadata/creationTimestamp").and_then(Value::as_str);
    Some(Box::new(Tainted {
        uid: object::uid(node).into(),
        created: created.and_then(|text| text.parse().ok()),
        labels: labels_in(&node["metadata"]["labels"]),
        taints: taints.clone(),
    }))
}

/// Returns the registered CSI drivers of a CSINode, sorted (spec 41 A-T6).
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
    /// Returns a merge patch that removes all taints with the key and keeps the order of the others. It replaces the
    /// whole list, so bind it to the version (spec 41 §A.5).
    pub fn without_taint(&self) -> Value {
        let rest: Vec<&Value> = self.taints.iter().filter(|taint| !is_ours(taint)).collect();
        let rest = if rest.is_empty() { Value::Null } else { json!(rest) };
        json!({ "spec": { "taints": rest } })
    }
}

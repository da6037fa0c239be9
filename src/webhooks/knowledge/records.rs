//! Cached fields of the kinds that have an index (spec 50, "better" 1). Those of single objects are in `cached_kind`.

use std::collections::BTreeMap;

use cluster::object;
use serde_json::Value;

use crate::webhooks::mutating::system_components::node_taints::Taint;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Autoscaler {
    pub(super) target: Target,
    pub(super) max_replicas: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Target {
    pub(super) namespace: String,
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) taints: Vec<Taint>,
}

pub(super) fn autoscaler(object: &Value) -> Autoscaler {
    let reference = object.pointer("/spec/scaleTargetRef");
    let text = |field| reference.and_then(|target| target.get(field)).and_then(Value::as_str).unwrap_or_default();
    let target = Target {
        namespace: object::namespace(object).to_owned(),
        api_version: text("apiVersion").to_owned(),
        kind: text("kind").to_owned(),
        name: text("name").to_owned(),
    };
    let max_replicas = object.pointer("/spec/maxReplicas").and_then(Value::as_i64).unwrap_or_default();
    Autoscaler { target, max_replicas }
}

pub(super) fn node(object: &Value, selector: &BTreeMap<String, String>) -> Node {
    let labels = selector.keys().filter_map(|key| Some((key.clone(), object::label(object, key)?.to_owned())));
    Node { labels: labels.collect(), taints: Taint::of(object) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cached_node_has_only_the_selector_labels_and_taints() {
        let selector = BTreeMap::from([("pool".to_owned(), "system".to_owned())]);
        let labels = json!({"pool": "other", "more": "x"});
        let of_node =
            json!({"metadata": {"labels": labels}, "spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}});

        let taint = Taint { key: "x".into(), value: String::new(), effect: "NoExecute".into() };
        let labels = BTreeMap::from([("pool".to_owned(), "other".to_owned())]);
        assert_eq!(node(&of_node, &selector), Node { labels, taints: vec![taint] });
    }
}

//! What is kept of the objects that webhooks read: a few fields, no names twice (spec 50, "better" 1).

use std::{collections::BTreeMap, sync::Arc};

use cluster::Record;
use serde_json::Value;

use crate::{
    api::object,
    webhooks::{
        mutating::{
            high_availability::NAMESPACE_ANNOTATIONS,
            load_balancing::{HOSTS, ISTIO_NAMESPACE},
            system_components::node_taints::Taint,
        },
        view::{Annotations, ServiceAccount},
    },
};

/// Label of the Namespaces for which the API server asks the high-availability webhook (spec 50 §3.4).
const CONSIDER: &str = "high-availability-config.resources.gardener.cloud/consider";

/// A few fields of an object.
#[derive(Debug, Clone)]
pub(super) struct Projected<T> {
    version: u64,
    pub(super) fields: T,
}

/// A Namespace.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Space {
    /// Whether it has the label without which the API server does not ask.
    pub(super) considered: bool,
    pub(super) annotations: Arc<Annotations>,
}

/// A HorizontalPodAutoscaler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Autoscaler {
    pub(super) target: Target,
    pub(super) max_replicas: i64,
}

/// What an autoscaler scales.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Target {
    pub(super) namespace: String,
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
}

/// A Node: what its place among those that are selected depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    /// Of its labels, those of the selector.
    pub(super) labels: BTreeMap<String, String>,
    pub(super) taints: Vec<Taint>,
}

// === impl Projected ===

impl<T> Projected<T> {
    pub(super) fn of(object: &Value, fields: T) -> Self {
        Self { version: object::resource_version(object).parse().unwrap_or_default(), fields }
    }
}

impl<T: Clone + Send + Sync + 'static> Record for Projected<T> {
    /// Not kept: nobody deletes what webhooks read.
    fn uid(&self) -> &'static str {
        ""
    }

    fn version(&self) -> u64 {
        self.version
    }
}

// === the fields ===

pub(super) fn service_account(object: &Value) -> ServiceAccount {
    ServiceAccount { automount: object.get("automountServiceAccountToken").and_then(Value::as_bool) }
}

pub(super) fn space(object: &Value) -> Space {
    let found = NAMESPACE_ANNOTATIONS
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), object::annotation(object, key)?.into())));
    Space { considered: object::label(object, CONSIDER) == Some("true"), annotations: Arc::new(found.collect()) }
}

pub(super) fn load_balancing(object: &Value) -> Arc<Annotations> {
    let text = |key: &str| object.get("data")?.get(key)?.as_str();
    let found: BTreeMap<_, _> =
        [HOSTS, ISTIO_NAMESPACE].into_iter().filter_map(|key| Some((key.to_owned(), text(key)?.to_owned()))).collect();
    Arc::new(found)
}

pub(super) fn gateway(object: &Value) -> Arc<Vec<String>> {
    let addresses = object.pointer("/spec/clusterIPs").and_then(Value::as_array);
    Arc::new(addresses.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect())
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
    use crate::webhooks::mutating::high_availability::ZONES;

    #[test]
    fn only_what_webhooks_read_is_kept() {
        let namespace =
            json!({"metadata": {"labels": {CONSIDER: "true"}, "annotations": {ZONES: "a,b", "other": "x"}}});
        let config_map = json!({"data": {"hosts": "a,b", "other": "x"}});
        let selector = BTreeMap::from([("pool".to_owned(), "system".to_owned())]);
        let labels = json!({"pool": "other", "more": "x"});
        let of_node =
            json!({"metadata": {"labels": labels}, "spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}});
        let service = json!({"spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "fd00::1"]}});

        let expected = Annotations::from([(ZONES.to_owned(), "a,b".to_owned())]);
        assert_eq!(space(&namespace), Space { considered: true, annotations: Arc::new(expected) });
        assert_eq!(
            space(&json!({"metadata": {"labels": {CONSIDER: "yes"}}})),
            Space { considered: false, annotations: Arc::default() }
        );
        assert_eq!(*load_balancing(&config_map), Annotations::from([("hosts".to_owned(), "a,b".to_owned())]));
        let taint = Taint { key: "x".into(), value: String::new(), effect: "NoExecute".into() };
        let labels = BTreeMap::from([("pool".to_owned(), "other".to_owned())]);
        assert_eq!(node(&of_node, &selector), Node { labels, taints: vec![taint] });
        assert_eq!(*gateway(&service), ["10.0.0.1", "fd00::1"]);
    }
}

//! What is kept of the objects that webhooks read: a few fields, no names twice (spec 50, "better" 1).

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use crate::{
    api::object,
    cluster::Record,
    webhooks::view::{Annotations, ServiceAccount},
};

/// What the API server calls only for, and what the high-availability webhook reads, of a Namespace.
const CONSIDER: &str = "high-availability-config.resources.gardener.cloud/consider";
const AVAILABILITY: [&str; 3] = [
    "high-availability-config.resources.gardener.cloud/failure-tolerance-type",
    "high-availability-config.resources.gardener.cloud/zones",
    "high-availability-config.resources.gardener.cloud/zone-pinning",
];
/// Of the ConfigMap `istio-internal-load-balancing`.
const BALANCING: [&str; 2] = ["hosts", "istio-namespace"];

/// Taints of these keys are not tolerated (spec 50 §10.1 rule 6).
const IGNORED: &str = "ToBeDeletedByClusterAutoscaler";
/// Nor are those whose key contains this.
const IGNORED_PART: &str = "kubernetes.io/";

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

/// A taint that is to be tolerated.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Taint {
    pub(super) key: String,
    pub(super) value: String,
    pub(super) effect: String,
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
    let found =
        AVAILABILITY.into_iter().filter_map(|key| Some((key.to_owned(), object::annotation(object, key)?.into())));
    Space { considered: object::label(object, CONSIDER) == Some("true"), annotations: Arc::new(found.collect()) }
}

pub(super) fn load_balancing(object: &Value) -> Arc<Annotations> {
    let text = |key: &str| object.get("data")?.get(key)?.as_str();
    let found: BTreeMap<_, _> =
        BALANCING.into_iter().filter_map(|key| Some((key.to_owned(), text(key)?.to_owned()))).collect();
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

/// The taints of a Node that are to be tolerated; none if it does not have all labels of the selector.
pub(super) fn taints(node: &Value, selector: &BTreeMap<String, String>) -> Vec<Taint> {
    if !selector.iter().all(|(key, value)| object::label(node, key) == Some(value)) {
        return Vec::new();
    }
    let taints = node.pointer("/spec/taints").and_then(Value::as_array).into_iter().flatten();
    taints.map(Taint::of).filter(|taint| !taint.is_ignored()).collect()
}

// === impl Taint ===

impl Taint {
    fn of(taint: &Value) -> Self {
        let text = |field| taint.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self { key: text("key"), value: text("value"), effect: text("effect") }
    }

    fn is_ignored(&self) -> bool {
        self.key.contains(IGNORED_PART) || self.key == IGNORED
    }

    /// Spec 50 §10.1 rule 5.
    pub(super) fn toleration(&self) -> Value {
        let mut toleration = serde_json::Map::new();
        let mut set = |field: &str, value: &str| toleration.insert(field.to_owned(), Value::from(value));
        set("key", &self.key);
        if self.value.is_empty() {
            set("operator", "Exists");
        } else {
            set("operator", "Equal");
            set("value", &self.value);
        }
        if !self.effect.is_empty() {
            set("effect", &self.effect);
        }
        Value::Object(toleration)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// spec 50 §10.1 rules 3, 5 and 6, scenario 33
    #[test]
    fn taints_of_selected_nodes_become_tolerations() {
        let selector = BTreeMap::from([("pool".to_owned(), "system".to_owned())]);
        let taint = |key: &str, value: &str, effect: &str| json!({"key": key, "value": value, "effect": effect});
        let node = |pool: &str| {
            json!({"metadata": {"labels": {"pool": pool}}, "spec": {"taints": [
                taint("x", "1", "NoSchedule"), {"key": "y", "effect": "NoExecute"},
                taint("node.kubernetes.io/disk-pressure", "", "NoSchedule"), taint("a.kubernetes.io/b", "", "NoExecute"),
                taint("ToBeDeletedByClusterAutoscaler", "17", "NoSchedule"),
            ]}})
        };

        let tolerations: Vec<_> = taints(&node("system"), &selector).iter().map(Taint::toleration).collect();

        assert_eq!(
            tolerations,
            [
                json!({"key": "x", "operator": "Equal", "value": "1", "effect": "NoSchedule"}),
                json!({"key": "y", "operator": "Exists", "effect": "NoExecute"}),
            ]
        );
        assert!(taints(&node("other"), &selector).is_empty());
        assert_eq!(taints(&node("other"), &BTreeMap::new()).len(), 2, "no selector selects all (scenario 36)");
        assert!(taints(&json!({}), &BTreeMap::new()).is_empty());
    }

    #[test]
    fn only_what_webhooks_read_is_kept() {
        let namespace =
            json!({"metadata": {"labels": {CONSIDER: "true"}, "annotations": {AVAILABILITY[1]: "a,b", "other": "x"}}});
        let config_map = json!({"data": {"hosts": "a,b", "other": "x"}});
        let service = json!({"spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "fd00::1"]}});

        let expected = Annotations::from([(AVAILABILITY[1].to_owned(), "a,b".to_owned())]);
        assert_eq!(space(&namespace), Space { considered: true, annotations: Arc::new(expected) });
        assert_eq!(
            space(&json!({"metadata": {"labels": {CONSIDER: "yes"}}})),
            Space { considered: false, annotations: Arc::default() }
        );
        assert_eq!(*load_balancing(&config_map), Annotations::from([("hosts".to_owned(), "a,b".to_owned())]));
        assert_eq!(*gateway(&service), ["10.0.0.1", "fd00::1"]);
    }
}

//! A cluster that consists of manifests: what is not among them does not exist.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;

use super::{index::Limits, records};
use crate::{
    api::object::{self, GroupVersionKind, NamespacedName},
    webhooks::{
        mutating::{
            load_balancing::{CONFIG_MAP, SERVICE},
            system_components::node_taints::TaintSet,
        },
        view::{Annotations, Failure, Scaled, ServiceAccount, View},
    },
};

/// What webhooks read of some manifests.
#[derive(Debug)]
pub struct Manifests {
    service_accounts: BTreeMap<NamespacedName, ServiceAccount>,
    namespaces: BTreeMap<String, Arc<Annotations>>,
    limits: Limits,
    nodes: BTreeSet<String>,
    node_selector: BTreeMap<String, String>,
    taints: TaintSet,
    load_balancing: BTreeMap<String, Arc<Annotations>>,
    gateways: BTreeMap<String, Arc<Vec<String>>>,
}

// === impl Manifests ===

impl Manifests {
    /// None. `node_selector`: labels of the Nodes whose taints count.
    pub fn new(node_selector: BTreeMap<String, String>) -> Self {
        Self {
            service_accounts: BTreeMap::new(),
            namespaces: BTreeMap::new(),
            limits: Limits::default(),
            nodes: BTreeSet::new(),
            taints: TaintSet::new(node_selector.clone()),
            node_selector,
            load_balancing: BTreeMap::new(),
            gateways: BTreeMap::new(),
        }
    }

    /// Adds an object, each once. False: no webhook reads such an object.
    pub fn add(&mut self, object: &Value) -> bool {
        let Some(GroupVersionKind { group, kind, .. }) = GroupVersionKind::of(object) else { return false };
        let (namespace, name) = (object::namespace(object), object::name(object));
        match (group.as_str(), kind.as_str()) {
            ("", "ServiceAccount") => {
                let account = records::service_account(object);
                self.service_accounts.insert(NamespacedName::new(namespace, name), account);
            }
            ("", "Namespace") => {
                self.namespaces.insert(name.to_owned(), records::space(object).annotations);
            }
            ("autoscaling", "HorizontalPodAutoscaler") => {
                self.limits.change(None, Some(&records::autoscaler(object)));
            }
            ("", "Node") => {
                let node = records::node(object, &self.node_selector);
                self.taints.replace(name, Some((&node.labels, node.taints.as_slice())));
                self.nodes.insert(name.to_owned());
            }
            ("", "ConfigMap") if name == CONFIG_MAP => {
                self.load_balancing.insert(namespace.to_owned(), records::load_balancing(object));
            }
            ("", "Service") if name == SERVICE => {
                self.gateways.insert(namespace.to_owned(), records::gateway(object));
            }
            _ => return false,
        }
        true
    }
}

impl View for Manifests {
    fn service_account(&self, name: &NamespacedName) -> Result<Option<ServiceAccount>, Failure> {
        Ok(self.service_accounts.get(name).copied())
    }

    fn namespace(&self, name: &str) -> Result<Option<Arc<Annotations>>, Failure> {
        Ok(self.namespaces.get(name).cloned())
    }

    fn autoscaler(&self, scaled: &Scaled<'_>, _sure: bool) -> Result<Option<i64>, Failure> {
        Ok(self.limits.of(scaled))
    }

    fn has_one_node(&self) -> Result<bool, Failure> {
        Ok(self.nodes.len() == 1)
    }

    fn tolerations_of_nodes(&self) -> Result<Arc<Vec<Value>>, Failure> {
        Ok(self.taints.tolerations())
    }

    fn load_balancing(&self, namespace: &str) -> Result<Option<Arc<Annotations>>, Failure> {
        Ok(self.load_balancing.get(namespace).cloned())
    }

    fn gateway(&self, namespace: &str) -> Result<Option<Arc<Vec<String>>>, Failure> {
        Ok(self.gateways.get(namespace).cloned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::webhooks::testing::object;

    #[test]
    fn what_webhooks_read_comes_from_the_manifests() {
        let mut manifests = Manifests::new([("pool".to_owned(), "system".to_owned())].into());
        let known = [
            "{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: ns, name: a}, automountServiceAccountToken: false}",
            "{apiVersion: v1, kind: Namespace, metadata: {name: ns}}",
            "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {namespace: ns, name: h},
              spec: {maxReplicas: 4, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}",
            "{apiVersion: v1, kind: Node, metadata: {name: n, labels: {pool: system}}, spec: {taints: [{key: k, effect: NoSchedule}]}}",
            "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ns, name: istio-internal-load-balancing}, data: {hosts: h}}",
            "{apiVersion: v1, kind: Service, metadata: {namespace: istio, name: istio-ingressgateway-internal},
              spec: {clusterIPs: [10.0.0.1]}}",
        ];
        let unknown = [
            "{apiVersion: v1, kind: Service, metadata: {namespace: istio, name: other}}",
            "{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: ns, name: web}}",
            "{kind: Namespace}",
        ];

        known.iter().for_each(|yaml| assert!(manifests.add(&object(yaml)), "{yaml}"));
        unknown.iter().for_each(|yaml| assert!(!manifests.add(&object(yaml)), "{yaml}"));

        let off = ServiceAccount { automount: Some(false) };
        assert_eq!(manifests.service_account(&NamespacedName::new("ns", "a")), Ok(Some(off)));
        assert_eq!(manifests.service_account(&NamespacedName::new("ns", "b")), Ok(None));
        assert_eq!(manifests.namespace("ns"), Ok(Some(Arc::default())));
        let web = Scaled { namespace: "ns", api_version: "apps/v1", kind: "Deployment", name: "web" };
        assert_eq!(manifests.autoscaler(&web, true), Ok(Some(4)));
        assert_eq!(manifests.has_one_node(), Ok(true));
        let toleration = json!({"key": "k", "operator": "Exists", "effect": "NoSchedule"});
        assert_eq!(manifests.tolerations_of_nodes(), Ok(Arc::new(vec![toleration])));
        assert!(manifests.load_balancing("ns").unwrap().is_some());
        assert_eq!(manifests.gateway("istio"), Ok(Some(Arc::new(vec!["10.0.0.1".to_owned()]))));
    }
}

//! A cluster that consists of manifests only.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use cluster::object::{self, GroupVersionKind, NamespacedName};
use serde_json::Value;

use super::{index::Limits, records};
use crate::webhooks::{
    cached_kind::{AnyCachedKind, Fields, Reads, Selected},
    mutating::system_components::node_taints::TaintSet,
    view::{Failure, Recency, Scaled, View},
};

/// The webhooks' view of some manifests.
#[derive(Debug)]
pub struct Manifests {
    objects: BTreeMap<&'static dyn AnyCachedKind, BTreeMap<NamespacedName, Fields>>,
    limits: Limits,
    nodes: BTreeSet<String>,
    node_selector: BTreeMap<String, String>,
    taints: TaintSet,
}

impl Manifests {
    /// Creates an empty cluster. `reads` is what webhooks read; `node_selector` selects the Nodes whose taints count.
    pub fn new(reads: &[Reads], node_selector: BTreeMap<String, String>) -> Self {
        let objects = reads.iter().filter_map(|read| match read {
            Reads::Objects(cached_kind) | Reads::ObjectsOf(cached_kind, _) => Some((*cached_kind, BTreeMap::new())),
            Reads::Autoscalers | Reads::NodeCount | Reads::NodeTaints => None,
        });
        Self {
            objects: objects.collect(),
            limits: Limits::default(),
            nodes: BTreeSet::new(),
            taints: TaintSet::new(node_selector.clone()),
            node_selector,
        }
    }

    /// Adds an object, which must be new. Returns false if no webhook reads such objects.
    pub fn add(&mut self, object: &Value) -> bool {
        let Some(GroupVersionKind { group, kind, .. }) = GroupVersionKind::of(object) else { return false };
        let name = NamespacedName::of(object);
        let mut is_read = false;
        for (cached_kind, known) in &mut self.objects {
            let objects = cached_kind.objects();
            let is_selected = match objects.selected {
                Selected::All => true,
                Selected::Named(wanted) => name.name == wanted,
                Selected::Labelled(label) => object::label(object, label).is_some(),
            };
            if (objects.group, objects.kind) == (&*group, &*kind) && is_selected {
                let name = NamespacedName::new(if objects.namespaced { &name.namespace } else { "" }, &name.name);
                known.insert(name, cached_kind.cached_fields(object));
                is_read = true;
            }
        }
        match (group.as_str(), kind.as_str()) {
            ("autoscaling", "HorizontalPodAutoscaler") => {
                self.limits.change(None, Some(&records::autoscaler(object)));
            }
            ("", "Node") => {
                let node = records::node(object, &self.node_selector);
                self.taints.replace(&name.name, Some((&node.labels, node.taints.as_slice())));
                self.nodes.insert(name.name);
            }
            _ => return is_read,
        }
        true
    }
}

impl View for Manifests {
    fn find(
        &self,
        cached_kind: &'static dyn AnyCachedKind,
        name: &NamespacedName,
        _: Recency,
    ) -> Result<Option<Fields>, Failure> {
        Ok(self.objects.get(cached_kind).and_then(|known| known.get(name)).cloned())
    }

    fn find_all(&self, cached_kind: &'static dyn AnyCachedKind) -> Result<Vec<(NamespacedName, Fields)>, Failure> {
        let known = self.objects.get(cached_kind).into_iter().flatten();
        Ok(known.map(|(name, fields)| (name.clone(), fields.clone())).collect())
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
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::webhooks::{
        mutating::{
            high_availability::NAMESPACES,
            load_balancing::{CONFIG_MAP, CONFIG_MAPS, SERVICE, SERVICES},
            token_mount::{SERVICE_ACCOUNTS, ServiceAccount},
        },
        testing::object,
    };

    const READS: [Reads; 4] = [
        Reads::Objects(&SERVICE_ACCOUNTS),
        Reads::Objects(&NAMESPACES),
        Reads::Objects(&CONFIG_MAPS),
        Reads::Objects(&SERVICES),
    ];

    #[test]
    fn manifests_answer_the_reads_of_webhooks() {
        let mut manifests = Manifests::new(&READS, [("pool".to_owned(), "system".to_owned())].into());
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

        let view: &dyn View = &manifests;
        let off = ServiceAccount { automount: Some(false) };
        assert_eq!(view.object(&SERVICE_ACCOUNTS, &NamespacedName::new("ns", "a")), Ok(Some(Arc::new(off))));
        assert_eq!(view.object(&SERVICE_ACCOUNTS, &NamespacedName::new("ns", "b")), Ok(None));
        assert_eq!(view.object(&NAMESPACES, &NamespacedName::new("", "ns")), Ok(Some(Arc::default())));
        let web = Scaled { namespace: "ns", api_version: "apps/v1", kind: "Deployment", name: "web" };
        assert_eq!(manifests.autoscaler(&web, true), Ok(Some(4)));
        assert_eq!(manifests.has_one_node(), Ok(true));
        let toleration = json!({"key": "k", "operator": "Exists", "effect": "NoSchedule"});
        assert_eq!(manifests.tolerations_of_nodes(), Ok(Arc::new(vec![toleration])));
        assert!(view.object(&CONFIG_MAPS, &NamespacedName::new("ns", CONFIG_MAP)).unwrap().is_some());
        let gateway = view.object(&SERVICES, &NamespacedName::new("istio", SERVICE));
        assert_eq!(gateway, Ok(Some(Arc::new(vec!["10.0.0.1".to_owned()]))));
    }
}

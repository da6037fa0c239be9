//! Properties of the mutating webhooks (spec 50).

use std::{collections::BTreeMap, sync::Arc};

use gardener_resource_manager::{
    api::{
        config::{PodSchedulerName, ProjectedTokenMount, SystemComponentsConfig},
        object::NamespacedName,
    },
    webhooks::{
        mutating::{
            Mutator, Outcome, Request,
            endpoint_slice_hints::EndpointSliceHints,
            load_balancing::LoadBalancing,
            scheduler_name::SchedulerName,
            seccomp::Seccomp,
            system_components::SystemComponents,
            system_components::node_taints::{Taint, TaintSet},
            token_mount::TokenMount,
            topology_spread::TopologySpread,
            vpa_in_place::VpaInPlace,
        },
        view::{Annotations, Failure, Scaled, ServiceAccount, View},
    },
};
use serde::Deserialize;
use serde_json::Value;

use super::{
    fields::{at, differences},
    kind_of, settings_and_objects,
};

/// One object, which every webhook gets to see.
#[derive(Debug, Clone)]
pub struct Case {
    /// Configuration and cluster.
    pub settings: Settings,
    /// The object.
    pub object: Value,
}

/// Configuration and cluster, as the first document of a file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Settings {
    /// Nothing exists in the cluster.
    pub empty: bool,
    /// `automountServiceAccountToken` of every ServiceAccount.
    pub automount: Option<bool>,
    /// Data of every ConfigMap of the load balancing.
    pub load_balancing: Annotations,
    /// `clusterIPs` of every gateway.
    pub addresses: Vec<String>,
    /// The Nodes.
    pub nodes: Vec<Value>,
    /// `podNodeSelector`.
    pub node_selector: BTreeMap<String, String>,
    /// `podTolerations`; none if some of it is no toleration.
    pub tolerations: Value,
    /// `schedulerName`.
    pub scheduler_name: String,
    /// `expirationSeconds`.
    pub expiration_seconds: i64,
}

/// A webhook, and what it may do.
struct Webhook {
    name: &'static str,
    mutator: Box<dyn Mutator>,
    /// Whether it may change this place.
    may_change: fn(&[&str]) -> bool,
    /// Whether the object may be one for it; if not, the object must stay.
    is_concerned: fn(&Value) -> bool,
}

/// Shows the object to every webhook.
pub fn check(case: &Case) {
    for webhook in webhooks(&case.settings) {
        case.check(&webhook);
    }
}

#[rustfmt::skip]
fn webhooks(settings: &Settings) -> [Webhook; 8] {
    let token_mount = ProjectedTokenMount { expiration_seconds: settings.expiration_seconds };
    let scheduler_name = PodSchedulerName { scheduler_name: settings.scheduler_name.clone() };
    let system_components = SystemComponentsConfig {
        node_selector: BTreeMap::new(),
        pod_node_selector: settings.node_selector.clone(),
        pod_tolerations: serde_json::from_value(settings.tolerations.clone()).unwrap_or_default(),
    };
    [
        Webhook {
            name: "token mount", mutator: Box::new(TokenMount::new(token_mount)),
            may_change: |path| matches!(path, ["spec", "volumes"] | ["spec", "containers" | "initContainers", _, "volumeMounts"]),
            is_concerned: |pod| !matches!(text(pod, &["spec", "serviceAccountName"]), "" | "default"),
        },
        Webhook {
            name: "scheduler name", mutator: Box::new(SchedulerName::new(scheduler_name)),
            may_change: |path| matches!(path, ["spec", "schedulerName"]),
            is_concerned: |pod| matches!(text(pod, &["spec", "schedulerName"]), "" | "default-scheduler"),
        },
        Webhook {
            name: "seccomp", mutator: Box::new(Seccomp),
            may_change: |path| matches!(path, ["spec", "securityContext", "seccompProfile", ..]),
            is_concerned: |pod| text(pod, &["spec", "os", "name"]) != "windows",
        },
        Webhook {
            name: "load balancing", mutator: Box::new(LoadBalancing),
            may_change: |path| match path {
                ["metadata", "labels", key] => key.starts_with("networking.resources.gardener.cloud/to-"),
                _ => matches!(path, ["spec", "hostAliases"]),
            },
            is_concerned: |pod| pod.to_string().contains("\"generic-token-kubeconfig"),
        },
        Webhook {
            name: "system components", mutator: Box::new(SystemComponents::new(&system_components)),
            may_change: |path| matches!(path, ["spec", "nodeSelector", _] | ["spec", "tolerations", ..]),
            is_concerned: |_| true,
        },
        Webhook {
            name: "topology spread", mutator: Box::new(TopologySpread),
            may_change: |path| matches!(path,
                ["spec", "topologySpreadConstraints", _, "labelSelector", "matchLabels", "pod-template-hash"]
                | ["spec", "topologySpreadConstraints", _, "matchLabelKeys", ..]),
            is_concerned: |pod| at(pod, &["metadata", "labels", "pod-template-hash"]).is_some(),
        },
        Webhook {
            name: "in-place updates", mutator: Box::new(VpaInPlace),
            may_change: |path| matches!(path,
                ["spec", "updatePolicy", "updateMode"]
                | ["metadata", "labels", "vpa-in-place-updates.resources.gardener.cloud/mutated"]),
            is_concerned: |autoscaler| matches!(text(autoscaler, &["spec", "updatePolicy", "updateMode"]), "" | "Auto" | "Recreate"),
        },
        Webhook {
            name: "endpoint hints", mutator: Box::new(EndpointSliceHints),
            may_change: |path| matches!(path, ["endpoints", _, "hints", ..]),
            is_concerned: |slice| slice.to_string().contains("\"zone\""),
        },
    ]
}

// === impl Case ===

impl Case {
    fn check(&self, Webhook { name, mutator, may_change, is_concerned }: &Webhook) {
        let once = self.mutated(mutator.as_ref(), &self.object);
        assert_eq!(self.mutated(mutator.as_ref(), &self.object), once, "{name}: the same object, the same result");

        let Ok(once) = once else { return };
        assert_eq!(self.mutated(mutator.as_ref(), &once).as_ref(), Ok(&once), "{name}: a second time changes nothing");
        if !is_concerned(&self.object) {
            assert_eq!(once, self.object, "{name}: not concerned");
        }
        for path in differences(&self.object, &once) {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            assert!(may_change(&path), "{name} changed {path:?}");
        }
    }

    fn mutated(&self, mutator: &dyn Mutator, object: &Value) -> Result<Value, Failure> {
        let request = Request { kind: kind_of(object), namespace: "ns", name: "", operation: "CREATE" };
        let mut object = object.clone();
        let outcome = mutator.mutate(&mut object, &request, &self.settings)?;
        assert_eq!(outcome, Outcome::Done);
        Ok(object)
    }
}

impl TryFrom<&[u8]> for Case {
    type Error = String;

    /// Two documents: settings and object.
    fn try_from(input: &[u8]) -> Result<Self, String> {
        let (settings, mut objects) = settings_and_objects(input)?;
        Ok(Self { settings, object: objects.next().ok_or("no object")? })
    }
}

// === impl Settings ===

impl Settings {
    fn unless_empty<T>(&self, answer: T) -> Result<Option<T>, Failure> {
        Ok((!self.empty).then_some(answer))
    }
}

impl View for Settings {
    fn service_account(&self, _: &NamespacedName) -> Result<Option<ServiceAccount>, Failure> {
        self.unless_empty(ServiceAccount { automount: self.automount })
    }

    fn namespace(&self, _: &str) -> Result<Option<Arc<Annotations>>, Failure> {
        self.unless_empty(Arc::default())
    }

    fn autoscaler(&self, _: &Scaled<'_>, _: bool) -> Result<Option<i64>, Failure> {
        Ok(None)
    }

    fn has_one_node(&self) -> Result<bool, Failure> {
        Ok(self.nodes.len() == 1)
    }

    fn tolerations_of_nodes(&self) -> Result<Arc<Vec<Value>>, Failure> {
        let mut taints = TaintSet::new(BTreeMap::new());
        for (name, node) in self.nodes.iter().enumerate() {
            taints.replace(&name.to_string(), Some((&BTreeMap::new(), &Taint::of(node))));
        }
        Ok(taints.tolerations())
    }

    fn load_balancing(&self, _: &str) -> Result<Option<Arc<Annotations>>, Failure> {
        self.unless_empty(Arc::new(self.load_balancing.clone()))
    }

    fn gateway(&self, _: &str) -> Result<Option<Arc<Vec<String>>>, Failure> {
        self.unless_empty(Arc::new(self.addresses.clone()))
    }
}

/// The text at a path; empty if there is none.
fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or_default()
}

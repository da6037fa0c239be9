//! Properties of the mutating webhooks (spec 50, spec 51).

use std::{collections::BTreeMap, sync::Arc};

use cluster::object::{GroupVersionKind, NamespacedName};
use gardener_resource_manager::{
    api::config::resource_manager::{
        HighAvailabilityConfig, KubernetesServiceHost, PodSchedulerName, ProjectedTokenMount, Switch,
        SystemComponentsConfig, Webhooks,
    },
    webhooks::{
        cached_kind::{AnyCachedKind, Fields},
        endpoint::Mutating,
        mutating::{
            Mutation, Request,
            high_availability::Space,
            system_components::node_taints::{Taint, TaintSet},
            token_mount::ServiceAccount,
        },
        registry::{self, WebhookEntry},
        review::{FEW, difference},
        view::{Annotations, Failure, Recency, Scaled, View},
    },
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    fields::{at, differences},
    kind_of, patch, settings_and_objects,
};

#[derive(Debug, Clone)]
pub struct Case {
    pub settings: Settings,
    pub object: Value,
}

/// Configuration and cluster: the first document of a file.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Settings {
    pub empty: bool,
    pub operation: String,
    pub name: String,
    pub namespace: Annotations,
    pub max_replicas: Option<i64>,
    pub not_ready_seconds: Option<i64>,
    pub unreachable_seconds: Option<i64>,
    pub host: String,
    pub automount: Option<bool>,
    pub load_balancing: Annotations,
    pub addresses: Vec<String>,
    pub nodes: Vec<Value>,
    pub node_selector: BTreeMap<String, String>,
    /// `podTolerations`; ignored if any element is not a toleration.
    pub tolerations: Value,
    pub scheduler_name: String,
    pub expiration_seconds: i64,
}

pub fn check(case: &Case) {
    let webhooks = registry::mutating(&case.settings.config());
    assert!(
        registry::KEYS.starts_with(&webhooks.iter().map(|webhook| webhook.key).collect::<Vec<_>>()),
        "all are enabled"
    );
    for webhook in &webhooks {
        case.check(webhook);
    }
}

fn may_change(webhook: &str, path: &[&str]) -> bool {
    match webhook {
        "projectedTokenMount" => {
            matches!(path, ["spec", "volumes"] | ["spec", "containers" | "initContainers", _, "volumeMounts"])
        }
        "highAvailabilityConfig" => match path {
            ["spec", "replicas" | "minReplicas" | "maxReplicas"] => true,
            ["spec", "template", "spec", "topologySpreadConstraints" | "tolerations", ..] => true,
            ["spec", "template", "spec", "affinity", "nodeAffinity", group, "nodeSelectorTerms", ..] => {
                *group == "requiredDuringSchedulingIgnoredDuringExecution"
            }
            _ => false,
        },
        "podSchedulerName" => matches!(path, ["spec", "schedulerName"]),
        "seccompProfile" => matches!(path, ["spec", "securityContext", "seccompProfile", ..]),
        "kubernetesServiceHost" => matches!(path, ["spec", "containers" | "initContainers", _, "env"]),
        "podKubeAPIServerLoadBalancing" => match path {
            ["metadata", "labels", key] => key.starts_with("networking.resources.gardener.cloud/to-"),
            _ => matches!(path, ["spec", "hostAliases"]),
        },
        "systemComponentsConfig" => matches!(path, ["spec", "nodeSelector", _] | ["spec", "tolerations", ..]),
        "endpointSliceHints" => matches!(path, ["endpoints", _, "hints", ..]),
        "podTopologySpreadConstraints" => match path {
            ["spec", "topologySpreadConstraints", _, rest @ ..] => {
                matches!(rest, ["labelSelector", "matchLabels", "pod-template-hash"] | ["matchLabelKeys", ..])
            }
            _ => false,
        },
        "vpaInPlaceUpdates" => match path {
            ["metadata", "labels", key] => *key == "vpa-in-place-updates.resources.gardener.cloud/mutated",
            _ => matches!(path, ["spec", "updatePolicy", "updateMode"]),
        },
        "tokenInvalidator" => matches!(path, ["data", "token"]),
        other => panic!("{other}: say what it may change"),
    }
}

/// Whether a webhook may act on the object. If not, the object must not change.
fn is_concerned(webhook: &str, object: &Value) -> bool {
    match webhook {
        "projectedTokenMount" => !matches!(text(object, &["spec", "serviceAccountName"]), "" | "default"),
        "highAvailabilityConfig" => {
            let GroupVersionKind { group, kind, .. } = kind_of(object);
            matches!(
                (&*group, &*kind),
                ("apps", "Deployment" | "StatefulSet") | ("autoscaling", "HorizontalPodAutoscaler")
            )
        }
        "podSchedulerName" => matches!(text(object, &["spec", "schedulerName"]), "" | "default-scheduler"),
        "seccompProfile" => text(object, &["spec", "os", "name"]) != "windows",
        "kubernetesServiceHost" => ["containers", "initContainers"].iter().any(|list| has_any(object, &["spec", list])),
        "podKubeAPIServerLoadBalancing" => object.to_string().contains("\"generic-token-kubeconfig"),
        "systemComponentsConfig" => true,
        "endpointSliceHints" => object.to_string().contains("\"zone\""),
        "podTopologySpreadConstraints" => at(object, &["metadata", "labels", "pod-template-hash"]).is_some(),
        "vpaInPlaceUpdates" => {
            matches!(text(object, &["spec", "updatePolicy", "updateMode"]), "" | "Auto" | "Recreate")
        }
        "tokenInvalidator" => at(object, &["data"]).is_some(),
        other => panic!("{other}: say what it is concerned with"),
    }
}

impl Case {
    fn check(&self, webhook: &WebhookEntry<Mutating>) {
        let name = webhook.key;
        let once = self.mutated(webhook, &self.object);
        assert_eq!(self.mutated(webhook, &self.object), once, "{name}: the same object, the same result");

        let Ok(once) = once else { return };
        assert_eq!(self.mutated(webhook, &once).as_ref(), Ok(&once), "{name}: a second time changes nothing");
        if !is_concerned(name, &self.object) {
            assert_eq!(once, self.object, "{name}: not concerned");
        }
        for path in differences(&self.object, &once) {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            assert!(may_change(name, &path), "{name} changed {path:?}");
        }
        let steps = json!(difference(&self.object, &once));
        assert_eq!(patch::applied(&self.object, &steps), once, "{name}: the patch has the result of the webhook");
        let most = length(&once) + FEW + 64;
        assert!(length(&steps) <= most, "{name}: the patch has {} bytes, more than {most}", length(&steps));
        assert!(length(&once) <= self.most_bytes(), "{name}: {} bytes became {}", length(&self.object), length(&once));
    }

    fn mutated(&self, webhook: &WebhookEntry<Mutating>, before: &Value) -> Result<Value, Failure> {
        let Settings { operation, name, .. } = &self.settings;
        let request = Request { kind: kind_of(before), namespace: "ns", name, operation };
        let mut after = before.clone();
        match webhook.endpoint.mutator.mutate(&mut after, &request, &self.settings)? {
            Mutation::Done => {}
            Mutation::Unexpected(_) => assert!(webhook.endpoint.mutator.takes().is_none() && after == *before),
        }
        Ok(after)
    }

    /// The largest allowed size: some fields and the settings in each list and map, but no multiple of the object.
    fn most_bytes(&self) -> usize {
        let settings = serde_json::to_value(&self.settings).expect("settings are JSON");
        1024 + 32 * length(&self.object) + (8 + count(&self.object) + count(&settings)) * length(&settings)
    }
}

impl TryFrom<&[u8]> for Case {
    type Error = String;

    fn try_from(input: &[u8]) -> Result<Self, String> {
        let (settings, mut objects) = settings_and_objects(input)?;
        Ok(Self { settings, object: objects.next().ok_or("no object")? })
    }
}

impl Settings {
    pub fn config(&self) -> Webhooks {
        Webhooks {
            high_availability_config: HighAvailabilityConfig {
                default_not_ready_toleration_seconds: self.not_ready_seconds,
                default_unreachable_toleration_seconds: self.unreachable_seconds,
            }
            .into(),
            kubernetes_service_host: KubernetesServiceHost { host: self.host.clone() }.into(),
            system_components_config: SystemComponentsConfig {
                node_selector: BTreeMap::new(),
                pod_node_selector: self.node_selector.clone(),
                pod_tolerations: serde_json::from_value(self.tolerations.clone()).unwrap_or_default(),
            }
            .into(),
            pod_kube_apiserver_load_balancing: Switch::ON,
            pod_scheduler_name: PodSchedulerName { scheduler_name: self.scheduler_name.clone() }.into(),
            pod_topology_spread_constraints: Switch::ON,
            projected_token_mount: ProjectedTokenMount { expiration_seconds: self.expiration_seconds }.into(),
            seccomp_profile: Switch::ON,
            vpa_in_place_updates: Switch::ON,
            token_invalidator: Switch::ON,
            endpoint_slice_hints: Switch::ON,
            ..Webhooks::default()
        }
    }

    fn of_kind(&self, kind: &str) -> Fields {
        match kind {
            "ServiceAccount" => Arc::new(ServiceAccount { automount: self.automount }),
            "Namespace" => Arc::new(Space { considered: true, annotations: self.namespace.clone() }),
            "ConfigMap" => Arc::new(self.load_balancing.clone()),
            "Service" => Arc::new(self.addresses.clone()),
            other => panic!("{other}: say what there is"),
        }
    }
}

impl View for Settings {
    fn find(
        &self,
        wanted: &'static dyn AnyCachedKind,
        _: &NamespacedName,
        _: Recency,
    ) -> Result<Option<Fields>, Failure> {
        Ok((!self.empty).then(|| self.of_kind(wanted.objects().kind)))
    }

    fn find_all(&self, _: &'static dyn AnyCachedKind) -> Result<Vec<(NamespacedName, Fields)>, Failure> {
        panic!("no mutating webhook asks that")
    }

    fn autoscaler(&self, _: &Scaled<'_>, _: bool) -> Result<Option<i64>, Failure> {
        Ok(self.max_replicas)
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
}

fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or_default()
}

fn has_any(object: &Value, path: &[&str]) -> bool {
    at(object, path).and_then(Value::as_array).is_some_and(|items| !items.is_empty())
}

fn length(value: &Value) -> usize {
    value.to_string().len()
}

fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(count).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

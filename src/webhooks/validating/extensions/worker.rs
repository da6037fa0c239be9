//! Worker (spec 62 §9).

use serde::Deserialize;

use super::rules::{
    ExtensionKind, Nothing, Object, REGION, Rules, SECRET_NAME, SPEC, SecretReference, TYPE, TextRule, required,
};
use crate::api::meta::field::{
    Errors, Loose, Opaque, Path, Shown,
    formats::qualified_name,
    shapes::{Bytes, IntOrText, List, Map, Part, Plain, Quantity, Text, Time},
};

const ARCHITECTURES: [&str; 2] = ["amd64", "arm64"];
/// Resources counted in whole numbers, like extended resources.
const COUNTED: [&str; 9] = [
    "pods",
    "services",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

pub(super) struct Worker;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct WorkerSpec<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    class: Option<Text<'a>>,
    provider_config: Option<Opaque<'a>>,
    infrastructure_provider_status: Option<Opaque<'a>>,
    region: Text<'a>,
    secret_ref: Part<SecretReference<'a>>,
    ssh_public_key: Bytes,
    pools: List<Part<Pool<'a>>>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Pool<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    machine_type: Text<'a>,
    machine_image: Part<MachineImage<'a>>,
    architecture: Option<Text<'a>>,
    node_template: Option<Part<NodeTemplate<'a>>>,
    minimum: Plain<i32>,
    maximum: Plain<i32>,
    max_surge: IntOrText<'a>,
    max_unavailable: IntOrText<'a>,
    annotations: Map<'a, Text<'a>>,
    labels: Map<'a, Text<'a>>,
    taints: List<Part<Taint<'a>>>,
    node_agent_secret_name: Option<Text<'a>>,
    provider_config: Option<Opaque<'a>>,
    user_data_secret_ref: Part<SecretKey<'a>>,
    volume: Option<Part<Volume<'a>>>,
    data_volumes: List<Part<Volume<'a>>>,
    kubelet_data_volume_name: Option<Text<'a>>,
    zones: List<Text<'a>>,
    machine_controller_manager: Option<Loose<'a>>,
    kubernetes_version: Option<Text<'a>>,
    kubelet_config: Option<Loose<'a>>,
    cluster_autoscaler: Option<Loose<'a>>,
    priority: Option<i32>,
    update_strategy: Option<Text<'a>>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct MachineImage<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    version: Text<'a>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct NodeTemplate<'a> {
    #[serde(borrow)]
    capacity: Map<'a, Quantity<'a>>,
    virtual_capacity: Map<'a, Quantity<'a>>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Taint<'a> {
    #[serde(borrow)]
    key: Text<'a>,
    value: Text<'a>,
    effect: Text<'a>,
    time_added: Option<Time>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct SecretKey<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    key: Text<'a>,
    optional: Option<bool>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Volume<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    r#type: Option<Text<'a>>,
    size: Text<'a>,
    encrypted: Option<bool>,
}

impl Rules for Worker {
    type Spec<'a> = WorkerSpec<'a>;
    type Status<'a> = Nothing;

    const KIND: ExtensionKind = ExtensionKind::new("Worker", "workers", "worker");

    fn texts<'s>(spec: &'s WorkerSpec<'_>) -> Vec<TextRule<'s>> {
        vec![
            TextRule::fixed(TYPE, &spec.r#type),
            TextRule::fixed(REGION, &spec.region),
            TextRule::required(SECRET_NAME, &spec.secret_ref.name),
        ]
    }

    fn check(object: &Object<'_, Self>, errors: &mut Errors) {
        let pools = SPEC.child("pools");
        for (at, pool) in object.spec.pools.iter().enumerate() {
            check_pool(&pools.at(at), pool, errors);
        }
    }
}

/// Rules 4 to 10.
fn check_pool(path: &Path<'_>, pool: &Pool<'_>, errors: &mut Errors) {
    let image = path.child("machineImage");
    required(&path.child("machineType"), &pool.machine_type, errors);
    required(&image.child("name"), &pool.machine_image.name, errors);
    required(&image.child("version"), &pool.machine_image.version, errors);
    if let Some(architecture) = pool.architecture.as_ref().filter(|found| !ARCHITECTURES.contains(&&***found)) {
        errors.unsupported(&path.child("architecture"), Shown::Text(architecture), &ARCHITECTURES);
    }
    required(&path.child("name"), &pool.name, errors);
    let Some(template) = &pool.node_template else { return };
    let (template_path, capacity) = (path.child("nodeTemplate"), &template.capacity);
    let capacity_path = template_path.child("capacity");
    for (resource, quantity) in capacity.iter() {
        let path = capacity_path.child(resource);
        let text = || quantity.amount.canonical(&quantity.text);
        if quantity.amount.is_negative() {
            errors.invalid(&path, Shown::Text(&text()), "must be greater than or equal to 0");
        }
        if is_counted(resource) && !quantity.amount.is_whole() {
            errors.invalid(&path, Shown::Json(&text()), "must be an integer");
        }
    }
}

fn is_counted(resource: &str) -> bool {
    let is_extended = || {
        resource.contains('/')
            && !resource.contains("kubernetes.io/")
            && !resource.starts_with("requests.")
            && qualified_name(&format!("requests.{resource}")).is_empty()
    };
    COUNTED.contains(&resource) || is_extended()
}

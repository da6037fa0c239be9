//! NetworkPolicies of Services (spec 40) in the whole program.

mod changes;
mod exposure;
mod gating;
mod ports;
mod random;
mod requests;
mod sources;

use std::collections::{BTreeMap, BTreeSet};

use gardener_resource_manager::api::config::resource_manager::{IngressControllerSelector, NetworkPolicyController};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, json};

use crate::world::{World, seconds};

pub(super) const P: &str = "networking.resources.gardener.cloud/";
pub(super) const TCP: &str = "TCP";

pub(super) fn settings() -> NetworkPolicyController {
    NetworkPolicyController::default()
}

pub(super) fn with_ingress_controller(namespace: &str) -> NetworkPolicyController {
    let pod_selector = labels(&[("app", "edge-proxy")]);
    let selector = IngressControllerSelector { namespace: namespace.into(), pod_selector };
    NetworkPolicyController { ingress_controller_selector: Some(selector), ..settings() }
}

pub(super) fn labels(pairs: &[(&str, &str)]) -> LabelSelector {
    let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    LabelSelector { match_labels: Some(pairs.collect()), match_expressions: None }
}

pub(super) async fn start(world: &World, settings: NetworkPolicyController) {
    namespace(world, "shop", &[]);
    begin(world, settings).await;
}

pub(super) async fn begin(world: &World, settings: NetworkPolicyController) {
    world.config.borrow_mut().controllers.network_policy = settings.into();
    world.start().await;
    seconds(1).await;
    world.sim.clear_requests();
}

pub(super) fn put(world: &World, object: Value) {
    world.sim.put(object).expect("it is valid");
}

pub(super) fn namespace(world: &World, name: &str, labels: &[(&str, &str)]) {
    let mut all = json!({ "kubernetes.io/metadata.name": name });
    labels.iter().for_each(|(key, value)| all[*key] = json!(value));
    put(world, json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": all } }));
}

pub(super) fn set_label(world: &World, namespace: &str, key: &str, value: Value) {
    world.sim.edit("namespaces", "", namespace, |live| live["metadata"]["labels"][key] = value);
}

pub(super) fn terminate(world: &World, namespace: &str) {
    world.sim.edit("namespaces", "", namespace, |live| {
        live["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
    });
}

/// The Service `cart` in `shop` with port 443 → 8443 and these annotations, without their prefix.
pub(super) fn cart(annotations: &[(&str, &str)]) -> Value {
    let all: BTreeMap<String, &str> = annotations.iter().map(|(key, value)| (format!("{P}{key}"), *value)).collect();
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "namespace": "shop", "name": "cart", "annotations": all },
        "spec": {
            "selector": { "app": "cart" },
            "ports": [{ "name": "https", "port": 443, "protocol": TCP, "targetPort": 8443 }],
        },
    })
}

pub(super) fn cart_with_ports(ports: Value) -> Value {
    let mut cart = cart(&[]);
    cart["spec"]["ports"] = ports;
    cart
}

pub(super) const BLUE: (&str, &str) = ("namespace-selectors", r#"[{"matchLabels":{"team":"blue"}}]"#);

pub(super) fn policies_of(world: &World, namespace: &str, name: &str) -> BTreeMap<String, Value> {
    let all = world.sim.objects("networkpolicies.networking.k8s.io").into_iter();
    let label = |policy: &Value, key: &str| policy["metadata"]["labels"][format!("{P}{key}")].clone();
    all.filter(|it| label(it, "service-name") == name && label(it, "service-namespace") == namespace)
        .map(|it| (key(&it["metadata"]), it))
        .collect()
}

fn key(metadata: &Value) -> String {
    let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
    format!("{}/{}", text("namespace"), text("name"))
}

pub(super) fn names(world: &World) -> BTreeSet<String> {
    policies_of(world, "shop", "cart").into_keys().collect()
}

pub(super) async fn has(world: &World, expected: &[&str]) {
    let expected: BTreeSet<String> = expected.iter().map(|name| (*name).to_owned()).collect();
    world.eventually(&format!("{expected:?}, found {:?}", names(world)), || names(world) == expected).await;
    seconds(1).await;
    assert_eq!(names(world), expected);
}

pub(super) fn policy(world: &World, name: &str) -> Value {
    let (namespace, name) = name.split_once('/').expect("a namespace and a name");
    world
        .sim
        .object("networkpolicies.networking.k8s.io", namespace, name)
        .unwrap_or_else(|| panic!("there is a policy {name}"))
}

pub(super) fn pod(world: &World, namespace: &str, name: &str, labels: Value) {
    let spec = json!({ "containers": [{ "name": "c", "image": "i" }] });
    let metadata = json!({ "namespace": namespace, "name": name, "labels": labels });
    put(world, json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec }));
}

pub(super) const OWN: [&str; 2] = ["shop/ingress-to-cart-tcp-8443", "shop/egress-to-cart-tcp-8443"];
pub(super) const WEB: [&str; 2] = ["shop/ingress-to-cart-tcp-8443-from-web", "web/egress-to-shop-cart-tcp-8443"];

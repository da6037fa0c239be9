//! NetworkPolicies of Services: they follow annotations, namespaces and Services.

use serde_json::{Value, json};
use sim::Sim;

use super::{Scenario, ensure};
use crate::{
    policies::{BLUE, cart, namespace, put, set_label, settings},
    world::{World, seconds},
};

const POLICIES: &str = "networkpolicies.networking.k8s.io";

fn prepare(world: &World) {
    world.config.borrow_mut().controllers.network_policy = settings().into();
    namespace(world, "shop", &[]);
    namespace(world, "web", &[("team", "red")]);
    let spec = json!({ "podSelector": {}, "policyTypes": ["Ingress"] });
    let metadata = json!({ "namespace": "shop", "name": "foreign" });
    put(
        world,
        json!({ "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec }),
    );
    put(world, basket());
}

/// A Service that stays as it is.
fn basket() -> Value {
    let mut basket = cart(&[]);
    basket["metadata"]["name"] = json!("basket");
    basket
}

/// A foreign policy and the policies of the other Service stay.
fn others_stay(sim: &Sim) -> Result<(), String> {
    for name in ["foreign", "ingress-to-basket-tcp-8443", "egress-to-basket-tcp-8443"] {
        ensure(sim.object(POLICIES, "shop", name).is_some(), format!("the policy {name} is deleted"))?;
    }
    Ok(())
}

async fn namespaces(world: &World) {
    put(world, cart(&[BLUE]));
    seconds(20).await;
    set_label(world, "web", "team", json!("blue"));
    seconds(20).await;
    set_label(world, "web", "team", json!("red"));
    seconds(20).await;
    namespace(world, "late", &[("team", "blue")]);
    seconds(20).await;
}

/// spec 40 §11 P3
#[test]
fn policies_survive_each_single_fault_when_namespaces_change() {
    Scenario { prepare, invariant: others_stay, ..Scenario::new("policies-namespaces") }.survives(namespaces);
}

async fn service(world: &World) {
    put(world, cart(&[]));
    seconds(20).await;
    put(world, cart(&[("from-world-to-ports", r#"[{"port":8443}]"#)]));
    seconds(20).await;
    world.sim.remove("services", "shop", "cart");
    seconds(20).await;
}

/// spec 40 §11 P9: the policies go with their Service.
#[test]
fn policies_survive_each_single_fault_when_their_service_goes() {
    Scenario { prepare, invariant: others_stay, ..Scenario::new("policies-service") }.survives(service);
}

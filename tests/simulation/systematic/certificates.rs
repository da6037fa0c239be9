//! Certificates of kubelets: of a Node that exists, and of another signer.

use gardener_resource_manager::api::config::resource_manager::{CsrApprover, Workers};
use serde_json::Value;
use sim::Sim;

use super::{Scenario, ensure};
use crate::{
    certificates::{node, pem, request},
    world::{World, seconds},
};

const REQUESTS: &str = "certificatesigningrequests.certificates.k8s.io";

fn prepare(world: &World) {
    let settings = CsrApprover { concurrent_syncs: Workers::new(5), machine_namespace: None };
    world.config.borrow_mut().controllers.csr_approver = settings.into();
    node(world);
}

fn ask(world: &World, name: &str, signer: &str) {
    world.sim.put(request(name, signer, &pem())).expect("a request");
}

fn invariant(sim: &Sim) -> Result<(), String> {
    let foreign = sim.object(REQUESTS, "", "foreign").unwrap_or_default();
    ensure(foreign["status"]["conditions"].is_null(), "the request to another signer is judged")?;
    let is_denied = |request: &Value| {
        let conditions = request["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|condition| condition["type"] == "Denied")
    };
    let denied = sim.look_at_all(REQUESTS, is_denied);
    ensure(!denied.contains(&true), "a request is denied that will be approved")
}

async fn life(world: &World) {
    ask(world, "one", "kubernetes.io/kubelet-serving");
    ask(world, "foreign", "example.com/foo");
    seconds(20).await;
    ask(world, "two", "kubernetes.io/kubelet-serving");
    seconds(20).await;
}

/// spec 32 scenario 1
#[test]
fn certificates_of_kubelets_survive_each_single_fault() {
    Scenario { prepare, invariant, ..Scenario::new("kubelet-certificates") }.survives(life);
}

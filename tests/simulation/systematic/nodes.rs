//! Nodes: the taint of a new Node, delays of node agents, workloads when the second Node comes.

use std::time::Duration;

use gardener_resource_manager::api::config::resource_manager::{NodeAgentReconciliationDelay, NodeCriticalComponents};
use serde_json::{Value, json};
use sim::Sim;

use super::{Scenario, ensure};
use crate::{
    nodes::{SYSTEM, TAINT, availability, daemon_set, delays, node, pod, put, set_ready},
    world::{World, seconds},
};

fn prepare_components(world: &World) {
    world.config.borrow_mut().controllers.node_critical_components = NodeCriticalComponents::default().into();
    put(world, daemon_set("cni"));
}

fn taint_stays_until_all_is_ready(sim: &Sim) -> Result<(), String> {
    let Some(node) = sim.object("nodes", "", "n1") else { return Ok(()) };
    let is_tainted = node["spec"]["taints"].as_array().is_some_and(|all| all.iter().any(|taint| taint["key"] == TAINT));
    let pod = sim.object("pods", SYSTEM, "cni-1").unwrap_or_default();
    let is_ready = pod["status"]["conditions"][0]["status"] == "True";
    ensure(is_tainted || is_ready, "a Node loses its taint before its critical components are ready")
}

async fn components(world: &World) {
    put(world, node("n1"));
    seconds(20).await;
    put(world, pod(world, "n1", "cni-1", Some("cni")));
    seconds(20).await;
    set_ready(world, "cni-1");
    seconds(20).await;
}

/// spec 41 part A, scenarios 2 and 3
#[test]
fn nodes_with_critical_components_survive_each_single_fault() {
    Scenario {
        prepare: prepare_components,
        invariant: taint_stays_until_all_is_ready,
        ..Scenario::new("node-critical-components")
    }
    .survives(components);
}

fn prepare_delays(world: &World) {
    let (min_delay, max_delay) = (Duration::from_secs(5), Duration::from_secs(30));
    let settings = NodeAgentReconciliationDelay { min_delay: min_delay.into(), max_delay: max_delay.into() };
    world.config.borrow_mut().controllers.node_agent_reconciliation_delay = settings.into();
}

async fn come_and_go(world: &World) {
    for name in ["a0", "a1", "a2"] {
        delays::join(world, name, Some("ordinary"));
    }
    seconds(20).await;
    delays::join(world, "a3", Some("ordinary"));
    seconds(20).await;
    world.sim.remove("nodes", "", "a0");
    seconds(20).await;
}

/// spec 41 part B, scenarios 21 and 23
#[test]
fn nodes_with_delays_survive_each_single_fault() {
    Scenario { prepare: prepare_delays, ..Scenario::new("node-agent-delays") }.survives(come_and_go);
}

fn prepare_availability(world: &World) {
    world.config.borrow_mut().webhooks.high_availability_config = availability::SETTINGS.into();
    availability::namespace(world, "x", json!({}));
    availability::join(world, "one");
    for name in ["web", "api"] {
        availability::deployment(world, name, availability::SOFT);
    }
    // The webhook's part.
    world.sim.set_mutation(|reviewed, written| {
        if reviewed.resource == "deployments" && reviewed.operation == "UPDATE" {
            let constraint = &mut written["spec"]["template"]["spec"]["topologySpreadConstraints"][0];
            constraint["whenUnsatisfiable"] = json!(availability::HARD);
        }
    });
}

/// With one Node, nothing is asked of the webhook.
fn soft_with_one_node(sim: &Sim) -> Result<(), String> {
    let is_hard = |deployment: &Value| {
        let constraint = &deployment["spec"]["template"]["spec"]["topologySpreadConstraints"][0];
        constraint["whenUnsatisfiable"] == availability::HARD
    };
    let hard = sim.look_at_all("deployments.apps", is_hard);
    let has_two = sim.object("nodes", "", "two").is_some();
    ensure(has_two || !hard.contains(&true), "a workload is reviewed with one Node")
}

async fn second_node(world: &World) {
    availability::join(world, "two");
    seconds(30).await;
    availability::join(world, "three");
    seconds(30).await;
    world.sim.remove("nodes", "", "three");
    seconds(30).await;
}

/// spec 41 part C, scenarios 31 and 33
#[test]
fn nodes_that_make_workloads_available_survive_each_single_fault() {
    Scenario { prepare: prepare_availability, invariant: soft_with_one_node, ..Scenario::new("high-availability") }
        .survives(second_node);
}

//! Static tokens: one is invalidated at once, one when no Pod mounts it any more.

use serde_json::json;
use sim::Sim;

use super::{Scenario, ensure};
use crate::{
    invalidation::{CONSIDER, account, configure, mounts, pod, token},
    world::{NAMESPACE, World, seconds},
};

fn prepare(world: &World) {
    configure(world);
    account(world, Some(false), json!({}));
    pod(world, "p", mounts("mounted"));
}

fn invariant(sim: &Sim) -> Result<(), String> {
    let is_mounted = sim.object("pods", NAMESPACE, "p").is_some();
    let secret = sim.object("secrets", NAMESPACE, "mounted").unwrap_or_default();
    let is_considered = !secret["metadata"]["labels"][CONSIDER].is_null();
    ensure(!is_mounted || !is_considered, "a token is invalidated that a Pod mounts")
}

async fn life(world: &World) {
    token(world, "free");
    token(world, "mounted");
    seconds(30).await;
    world.sim.remove("pods", NAMESPACE, "p");
    seconds(30).await;
    account(world, None, json!({}));
    seconds(30).await;
    account(world, Some(false), json!({}));
    seconds(30).await;
}

/// spec 31 §4.2, scenario 10
#[test]
fn invalidation_of_tokens_survives_each_single_fault() {
    Scenario { prepare, invariant, ..Scenario::new("token-invalidation") }.survives(life);
}

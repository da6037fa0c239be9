//! The start of the program with many controllers and with what each of them has to do.

use gardener_resource_manager::api::config::resource_manager::NodeCriticalComponents;
use serde_json::{Value, json};

use super::Scenario;
use crate::{
    invalidation, nodes, policies, tokens,
    world::{World, config_map, seconds},
};

fn prepare(world: &World) {
    invalidation::configure(world);
    tokens::configure(world, false, false);
    {
        let mut config = world.config.borrow_mut();
        config.controllers.network_policy = policies::settings().into();
        config.controllers.node_critical_components = NodeCriticalComponents::default().into();
    }
    invalidation::account(world, Some(false), json!({}));
    invalidation::token(world, "t");
    tokens::put(world, "access", &[], &[]);
    policies::namespace(world, "shop", &[]);
    policies::put(world, policies::cart(&[]));
    nodes::put(world, nodes::node("n1"));
    world.bundle("one", &[config_map("a", "1"), config_map("b", "1")]);
}

/// No token is like another.
fn blur(object: &mut Value) {
    if object["metadata"]["name"] == "access" {
        object["data"]["token"] = json!(null);
    }
}

async fn life(_: &World) {
    seconds(90).await;
}

/// architecture §5 and §6; faults rows 4 to 8
#[test]
fn start_of_all_controllers_survives_each_single_fault() {
    Scenario { prepare, blur, hits_start: true, ..Scenario::new("start") }.survives(life);
}

//! EnvoyFilters of Istio's gateways: they follow DestinationRules and gateways.

use gardener_resource_manager::api::config::resource_manager::WorkersOnly;
use serde_json::json;
use sim::Sim;

use super::{Scenario, ensure};
use crate::{
    istio::{https, install, namespace, put, role, rule, service},
    world::{World, seconds},
};

const FILTERS: &str = "envoyfilters.networking.istio.io";

fn prepare(world: &World) {
    install(world);
    namespace(world, "istio-ingress", role());
    namespace(world, "team-a", json!({}));
    put(
        world,
        json!({
            "apiVersion": "networking.istio.io/v1alpha3", "kind": "EnvoyFilter",
            "metadata": { "namespace": "istio-ingress", "name": "foreign" }, "spec": { "configPatches": [] },
        }),
    );
    world.config.borrow_mut().controllers.istio_cluster_configuration = WorkersOnly::default().into();
}

fn invariant(sim: &Sim) -> Result<(), String> {
    ensure(sim.object(FILTERS, "istio-ingress", "foreign").is_some(), "a foreign EnvoyFilter is deleted")
}

async fn life(world: &World) {
    service(world, Some("*"), https());
    rule(world, json!({}));
    seconds(20).await;
    rule(world, json!({ "exportTo": ["."] }));
    seconds(20).await;
    rule(world, json!({ "exportTo": ["*"] }));
    seconds(20).await;
    namespace(world, "istio-ingress-b", role());
    seconds(20).await;
}

/// spec 42 scenario 1
#[test]
fn istio_filters_survive_each_single_fault() {
    Scenario { prepare, invariant, ..Scenario::new("istio-filters") }.survives(life);
}

//! The start of the program amid objects of many controllers: discovery, lists, watches, and the first writes.

use gardener_resource_manager::api::kinds;
use serde_json::json;

use super::{Scenario, edit, seconds};
use crate::controller_manager::{
    bindings::{binding, put_both},
    cloud_profiles::profile,
    garden::Garden,
    installations,
    projects::put_dev,
    references::{put_object, referrer, to},
    seed_secrets::share,
    shoots::operation,
};

fn prepare(garden: &Garden) {
    put_both(garden);
    garden.put(binding(&kinds::SECRET_BINDING, "a", "o", "aws"));
    garden.put(profile("o", json!({ "kubernetes": { "versions": [{ "version": "1.1.0" }] } })));
    put_dev(garden, json!({}));
    share(garden, "x", "eA==");
    put_object(garden, &kinds::CONFIG_MAP, "garden", "c");
    garden.put(referrer(&kinds::SEED, "", "s2", &[to(&kinds::CONFIG_MAP, "c")]));
    installations::put_seed(garden, json!({}));
    garden.put(installations::shoot("sh", "s1", json!({ "secretBindingName": "o" })));
    edit(garden, &kinds::SHOOT, "a", "sh", |shoot| {
        shoot["status"] = json!({ "lastOperation": operation("Reconcile", "Failed") });
    });
}

async fn life(_: &Garden) {
    seconds(90).await;
}

/// spec 80 §9 and §16; faults rows 4 to 8
#[test]
fn garden_start_survives_each_single_fault() {
    Scenario { prepare, hits_start: true, ..Scenario::new("garden-start") }.survives(life);
}

//! A CloudProfile and a NamespacedCloudProfile below it, from the creation to the end.

use gardener_resource_manager::api::kinds;
use serde_json::json;
use sim::Sim;

use super::{Scenario, exists, seconds};
use crate::{
    controller_manager::{
        cloud_profiles::{child, profile},
        garden::Garden,
    },
    systematic::ensure,
};

fn prepare(garden: &Garden) {
    garden.put(profile("o", json!({ "kubernetes": { "versions": [{ "version": "1.1.0" }] } })));
    garden.put(profile("other", json!({ "kubernetes": { "versions": [{ "version": "1.1.0" }] } })));
}

fn invariant(sim: &Sim) -> Result<(), String> {
    let is_used = exists(sim, &kinds::NAMESPACED_CLOUD_PROFILE, "a", "c");
    ensure(!is_used || exists(sim, &kinds::CLOUD_PROFILE, "", "o"), "the parent is released while its child exists")
}

async fn change(garden: &Garden) {
    let extended = json!([{ "version": "1.1.0", "expirationDate": "2031-01-01T00:00:00Z" }]);
    garden.put(child("c", json!({ "kubernetes": { "versions": extended } })));
    seconds(30).await;
    let versions = json!([{ "version": "1.1.0" }, { "version": "1.2.0" }]);
    garden.patch(&kinds::CLOUD_PROFILE, "", "o", json!({ "spec": { "kubernetes": { "versions": versions } } })).await;
    seconds(30).await;
}

async fn end(garden: &Garden) {
    garden.put(child("c", json!({})));
    seconds(30).await;
    garden.delete(&kinds::CLOUD_PROFILE, "", "o").await;
    seconds(30).await;
    garden.delete(&kinds::NAMESPACED_CLOUD_PROFILE, "a", "c").await;
    seconds(60).await;
}

/// spec 81 C and D, scenarios 33 and 36
#[test]
fn cloud_profiles_survive_each_single_fault_at_a_change() {
    Scenario { prepare, invariant, ..Scenario::new("cloud-profiles-change") }.survives(change);
}

/// spec 81 §3.1, C and D: the child holds its parent.
#[test]
fn cloud_profiles_survive_each_single_fault_at_their_end() {
    Scenario { prepare, invariant, ..Scenario::new("cloud-profiles-end") }.survives(end);
}

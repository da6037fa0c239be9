//! Guards: an object in use is deleted, and goes when nobody refers to it any more.

use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::Sim;

use super::{Scenario, edit, exists, look, seconds};
use crate::{
    controller_manager::{
        garden::{Garden, object},
        guards::shoot,
    },
    systematic::ensure,
};

fn put_class(garden: &Garden) {
    garden.put(object(&kinds::EXPOSURE_CLASS, "", "o", json!({})));
    garden.put(object(&kinds::EXPOSURE_CLASS, "", "other", json!({})));
    garden.put(shoot("a", "r", json!({ "exposureClassName": "o" })));
}

fn class_is_kept(sim: &Sim) -> Result<(), String> {
    let is_used = look(sim, &kinds::SHOOT, "a", "r")["spec"]["exposureClassName"] == "o";
    ensure(!is_used || exists(sim, &kinds::EXPOSURE_CLASS, "", "o"), "an ExposureClass in use is released")
}

async fn end_class(garden: &Garden) {
    garden.delete(&kinds::EXPOSURE_CLASS, "", "o").await;
    seconds(30).await;
    edit(garden, &kinds::SHOOT, "a", "r", |shoot| shoot["spec"] = json!({}));
    seconds(60).await;
}

/// spec 81 §3.1, I
#[test]
fn guard_of_exposure_classes_survives_each_single_fault() {
    Scenario { prepare: put_class, invariant: class_is_kept, ..Scenario::new("exposure-classes") }.survives(end_class);
}

fn refer(garden: &Garden, name: &str, references: Value) {
    let spec = json!({ "deployment": { "deploymentRefs": references } });
    garden.put(object(&kinds::CONTROLLER_REGISTRATION, "", name, json!({ "spec": spec })));
}

fn put_deployment(garden: &Garden) {
    garden.put(object(&kinds::CONTROLLER_DEPLOYMENT, "", "o", json!({})));
    refer(garden, "r", json!([{ "name": "o" }]));
}

fn deployment_is_kept(sim: &Sim) -> Result<(), String> {
    let refers = |name: &str| {
        let registration = look(sim, &kinds::CONTROLLER_REGISTRATION, "", name);
        registration["spec"]["deployment"]["deploymentRefs"][0]["name"] == "o"
    };
    let is_used = refers("r") || refers("late");
    ensure(!is_used || exists(sim, &kinds::CONTROLLER_DEPLOYMENT, "", "o"), "a ControllerDeployment in use is released")
}

/// A second registration refers to the deployment after the first.
async fn end_deployment(garden: &Garden) {
    refer(garden, "late", json!([{ "name": "o" }]));
    seconds(20).await;
    garden.delete(&kinds::CONTROLLER_DEPLOYMENT, "", "o").await;
    seconds(20).await;
    for name in ["r", "late"] {
        edit(garden, &kinds::CONTROLLER_REGISTRATION, "", name, |it| it["spec"] = json!({}));
        seconds(60).await;
    }
}

/// spec 81 §3.1, E
#[test]
fn guard_of_controller_deployments_survives_each_single_fault() {
    Scenario { prepare: put_deployment, invariant: deployment_is_kept, ..Scenario::new("controller-deployments") }
        .survives(end_deployment);
}

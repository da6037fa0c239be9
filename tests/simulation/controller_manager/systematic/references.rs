//! What Seeds, Shoots and ControllerDeployments refer to: it is held while any of them refers to it.

use cluster::Resource;
use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::Sim;

use super::{Scenario, edit, is_going, let_go, look, seconds};
use crate::{
    controller_manager::{
        garden::{Garden, object},
        references::{PROTECTION, delete_in_use, put_object, refer, referrer, to},
    },
    systematic::ensure,
};

const OBJECTS: [&Resource; 2] = [&kinds::SECRET, &kinds::CONFIG_MAP];

fn references() -> Vec<Value> {
    OBJECTS.iter().map(|kind| to(kind, "x")).collect()
}

fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| finalizers.contains(&json!(finalizer)))
}

fn prepare_of(garden: &Garden, kind: &Resource, namespace: &str) {
    OBJECTS.iter().for_each(|kind| put_object(garden, kind, "garden", "x"));
    garden.put(referrer(kind, namespace, "one", &references()));
}

/// `one` refers to the objects from the begin, and `two` from the first step on.
fn invariant_of(sim: &Sim, kind: &Resource, namespace: &str) -> Result<(), String> {
    let refers = |name: &str| {
        let referrer = look(sim, kind, namespace, name);
        let has_some = |list: &Value| list.as_array().is_some_and(|list| !list.is_empty());
        let is_needed = !is_going(&referrer) || has_finalizer(&referrer, "gardener");
        has_some(&referrer["spec"]["resources"]) && is_needed
    };
    let is_used = refers("one") || refers("two");
    for object in OBJECTS {
        let is_held = has_finalizer(&look(sim, object, "garden", "x"), PROTECTION);
        ensure(!is_used || is_held, format!("{object} is released while {kind} refers to it"))?;
    }
    Ok(())
}

async fn live(garden: &Garden, kind: &Resource, namespace: &str) {
    garden.put(referrer(kind, namespace, "two", &references()));
    seconds(30).await;
    refer(garden, kind, namespace, "one", &[]);
    seconds(30).await;
    delete_in_use(garden, kind, namespace, "two", "gardener").await;
    seconds(30).await;
    // gardenlet is done. `two` goes at once if the program missed it, and did not hold it.
    let_go(garden, kind, namespace, "two", &["gardener"]);
    seconds(90).await;
}

fn prepare_seeds(garden: &Garden) {
    prepare_of(garden, &kinds::SEED, "");
}

fn seeds_hold(sim: &Sim) -> Result<(), String> {
    invariant_of(sim, &kinds::SEED, "")
}

async fn live_of_seeds(garden: &Garden) {
    live(garden, &kinds::SEED, "").await;
}

/// spec 83 D, scenarios 27 to 29
#[test]
fn references_of_seeds_survive_each_single_fault() {
    Scenario { prepare: prepare_seeds, invariant: seeds_hold, ..Scenario::new("seed-references") }
        .survives(live_of_seeds);
}

fn prepare_shoots(garden: &Garden) {
    prepare_of(garden, &kinds::SHOOT, "garden");
}

fn shoots_hold(sim: &Sim) -> Result<(), String> {
    invariant_of(sim, &kinds::SHOOT, "garden")
}

async fn live_of_shoots(garden: &Garden) {
    live(garden, &kinds::SHOOT, "garden").await;
}

/// spec 84 E, scenarios 83 and 84
#[test]
fn references_of_shoots_survive_each_single_fault() {
    Scenario { prepare: prepare_shoots, invariant: shoots_hold, ..Scenario::new("shoot-references") }
        .survives(live_of_shoots);
}

fn registry(secret: Option<&str>) -> Value {
    json!({ "ociRepository": { "ref": "r:1", "pullSecretRef": secret.map(|name| json!({ "name": name })) } })
}

fn prepare_deployment(garden: &Garden) {
    ["c", "d"].iter().for_each(|name| put_object(garden, &kinds::SECRET, "garden", name));
    garden.put(object(&kinds::CONTROLLER_DEPLOYMENT, "", "o", json!({ "helm": registry(Some("c")) })));
}

fn deployment_holds(sim: &Sim) -> Result<(), String> {
    let deployment = look(sim, &kinds::CONTROLLER_DEPLOYMENT, "", "o");
    let is_used = deployment["helm"]["ociRepository"]["pullSecretRef"]["name"] == "c";
    let is_held = has_finalizer(&look(sim, &kinds::SECRET, "garden", "c"), PROTECTION);
    ensure(!is_used || is_held, "the Secret of a ControllerDeployment is released")
}

async fn live_of_deployment(garden: &Garden) {
    for secret in [Some("d"), None] {
        edit(garden, &kinds::CONTROLLER_DEPLOYMENT, "", "o", |it| it["helm"] = registry(secret));
        seconds(40).await;
    }
}

/// spec 81 F, scenarios 51 and 52
#[test]
fn references_of_controller_deployments_survive_each_single_fault() {
    Scenario {
        prepare: prepare_deployment,
        invariant: deployment_holds,
        ..Scenario::new("controller-deployment-references")
    }
    .survives(live_of_deployment);
}

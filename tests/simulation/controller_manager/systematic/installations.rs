//! ControllerInstallations: what a Shoot needs comes and goes; registrations, Seeds and Shoots keep their finalizer; the
//! ServiceAccounts of extensions are bound.

use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::Sim;

use super::{Scenario, edit, exists, is_going, let_go, look, seconds};
use crate::{
    controller_manager::{
        extension_cluster_roles::{RELEVANT, put_account, put_role},
        garden::{Garden, object, resource},
        installation_finalizers::{KINDS, foreign},
        installations::{put_seed, register, shoot},
    },
    systematic::ensure,
};

fn prepare(garden: &Garden) {
    put_seed(garden, json!({}));
    register(garden, "re", &["Extension/x"], Value::Null);
}

/// The provider of the Seed stays installed.
fn provider_stays(sim: &Sim) -> Result<(), String> {
    let is_provider = |it: &Value| it["spec"]["registrationRef"]["name"] == "rp" && !is_going(it);
    let all = sim.look_at_all(&resource(&kinds::CONTROLLER_INSTALLATION), is_provider);
    ensure(all.contains(&true), "the installation of the provider is deleted")
}

async fn needs_come_and_go(garden: &Garden) {
    garden.put(shoot("sh", "s1", json!({ "extensions": [{ "type": "x" }] })));
    seconds(60).await;
    garden.patch(&kinds::SHOOT, "a", "sh", json!({ "spec": { "extensions": [] } })).await;
    seconds(60).await;
    garden.delete(&kinds::CONTROLLER_REGISTRATION, "", "re").await;
    garden.delete(&kinds::SHOOT, "a", "sh").await;
    seconds(60).await;
}

/// spec 85 A.4, A.8, scenarios 1 and 3
#[test]
fn installations_survive_each_single_fault() {
    Scenario { prepare, invariant: provider_stays, ..Scenario::new("installations") }.survives(needs_come_and_go);
}

async fn need_stays(garden: &Garden) {
    garden.put(shoot("sh", "s1", json!({ "extensions": [{ "type": "x" }] })));
    seconds(60).await;
    register(garden, "rz", &["Extension/z"], json!({ "policy": "Always" }));
    seconds(60).await;
}

/// spec 85 A.4, A.8, trap T-15: nothing is installed twice.
#[test]
fn installations_that_come_survive_each_single_fault() {
    Scenario { prepare, invariant: provider_stays, ..Scenario::new("installations-begin") }.survives(need_stays);
}

fn prepare_seed(garden: &Garden) {
    put_seed(garden, json!({}));
}

/// What an installation refers to exists.
fn referred_objects_stay(sim: &Sim) -> Result<(), String> {
    for installation in sim.objects(&resource(&kinds::CONTROLLER_INSTALLATION)) {
        let name = |field: &str| installation["spec"][field]["name"].as_str().unwrap_or_default().to_owned();
        let (of_seed, of_registration) = (name("seedRef"), name("registrationRef"));
        let has_seed = of_seed.is_empty() || exists(sim, &kinds::SEED, "", &of_seed);
        ensure(has_seed, "a Seed goes before its installations")?;
        let has_registration = exists(sim, &kinds::CONTROLLER_REGISTRATION, "", &of_registration);
        ensure(has_registration, "a registration goes before its installations")?;
    }
    Ok(())
}

async fn end(garden: &Garden) {
    garden.delete(&kinds::SEED, "", "s1").await;
    seconds(60).await;
    garden.delete(&kinds::CONTROLLER_REGISTRATION, "", "rp").await;
    seconds(60).await;
}

/// spec 85 A.7, C and D, scenarios 50 and 51
#[test]
fn installations_survive_each_single_fault_at_the_end_of_their_seed() {
    Scenario { prepare: prepare_seed, invariant: referred_objects_stay, ..Scenario::new("installations-end") }
        .survives(end);
}

/// A self-hosted Shoot with the registration `rh` for its provider, and `re` for an extension.
fn prepare_self_hosted(garden: &Garden) {
    register(garden, "rh", &["ControlPlane/h", "Infrastructure/h", "Worker/h"], Value::Null);
    register(garden, "re", &["Extension/x"], Value::Null);
    let provider = json!({ "type": "h", "workers": [{ "controlPlane": {} }] });
    garden.put(object(&kinds::SHOOT, "garden", "h", json!({ "spec": { "provider": provider } })));
}

async fn self_hosted(garden: &Garden) {
    for extensions in [json!([{ "type": "x" }]), json!([])] {
        garden.patch(&kinds::SHOOT, "garden", "h", json!({ "spec": { "extensions": extensions } })).await;
        seconds(60).await;
    }
    let mut seed = object(&kinds::SEED, "", "h", json!({ "spec": { "provider": { "type": "h" } } }));
    seed["metadata"]["labels"] = json!({ "seed.gardener.cloud/self-hosted-shoot-cluster": "true" });
    garden.put(seed);
    seconds(60).await;
}

/// spec 85 A.8, B.1, DEV-18
#[test]
fn installations_of_a_self_hosted_shoot_survive_each_single_fault() {
    let name = "installations-self-hosted";
    Scenario { prepare: prepare_self_hosted, invariant: referred_objects_stay, ..Scenario::new(name) }
        .survives(self_hosted);
}

const FOREIGN: [&str; 2] = ["example.com/b", "example.com/a"];

/// Only other programs remove the foreign finalizers, in the last step. The ConfigMap `begun` exists when they have been put,
/// and `over` when they may go.
fn foreign_finalizers_stay(sim: &Sim) -> Result<(), String> {
    let exists = |name| sim.object("configmaps", "garden", name).is_some();
    if !exists("begun") || exists("over") {
        return Ok(());
    }
    for (kind, namespace) in KINDS {
        let object = look(sim, kind, namespace, "o");
        let finalizers = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        let all_stay = FOREIGN.iter().all(|other| finalizers.contains(&json!(other)));
        ensure(all_stay, format!("{kind} o loses a foreign finalizer"))?;
    }
    Ok(())
}

async fn finalizers(garden: &Garden) {
    for (kind, namespace) in KINDS {
        garden.put(foreign(kind, namespace));
    }
    seconds(40).await;
    for (kind, namespace) in KINDS {
        let without = json!({ "metadata": { "finalizers": FOREIGN } });
        garden.patch(kind, namespace, "o", without).await;
    }
    garden.put(object(&kinds::CONFIG_MAP, "garden", "begun", json!({})));
    seconds(40).await;
    for (kind, namespace) in KINDS {
        garden.delete(kind, namespace, "o").await;
    }
    seconds(40).await;
    garden.put(object(&kinds::CONFIG_MAP, "garden", "over", json!({})));
    for (kind, namespace) in KINDS {
        let_go(garden, kind, namespace, "o", &FOREIGN);
    }
    seconds(40).await;
}

/// spec 85 C and D, scenarios 49 and 53
#[test]
fn installation_finalizers_survive_each_single_fault() {
    Scenario { invariant: foreign_finalizers_stay, ..Scenario::new("installation-finalizers") }.survives(finalizers);
}

fn prepare_role(garden: &Garden) {
    put_role(garden, RELEVANT);
    put_account(garden, "seed-c", "kept");
}

/// A binding that exists binds nobody else.
fn nobody_else_is_bound(sim: &Sim) -> Result<(), String> {
    let binding = look(sim, &kinds::CLUSTER_ROLE_BINDING, "", "x");
    let subjects = binding["subjects"].as_array().cloned().unwrap_or_default();
    ensure(subjects.iter().all(|subject| subject["namespace"] != "other"), "a foreign ServiceAccount is bound")
}

async fn accounts(garden: &Garden) {
    put_account(garden, "other", "extension-shoot--a--b");
    put_account(garden, "seed-a", "one");
    seconds(20).await;
    put_account(garden, "seed-a", "two");
    seconds(20).await;
    edit(garden, &kinds::SERVICE_ACCOUNT, "seed-a", "one", |it| it["metadata"]["labels"] = json!({ "b": "c" }));
    seconds(20).await;
    garden.delete(&kinds::SERVICE_ACCOUNT, "seed-a", "two").await;
    seconds(20).await;
    put_account(garden, "seed-b", "three");
    seconds(20).await;
}

/// spec 85 E, scenarios 54 to 57
#[test]
fn extension_bindings_survive_each_single_fault() {
    Scenario { prepare: prepare_role, invariant: nobody_else_is_bound, ..Scenario::new("extension-cluster-roles") }
        .survives(accounts);
}

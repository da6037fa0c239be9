//! The token requestor: a Secret gets a token, a new one, and goes with its ServiceAccount.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use sim::Sim;

use super::{Scenario, ensure};
use crate::{
    tokens::{RENEW, annotate, configure, put},
    world::{NAMESPACE, World, seconds},
};

/// No token is like another.
fn blur(object: &mut Value) {
    if !object["data"]["token"].is_null() {
        let is_empty = object["data"]["token"] == "";
        object["data"]["token"] = json!(BASE64_STANDARD.encode(if is_empty { "none" } else { "some" }));
    }
}

fn keep(world: &World) {
    configure(world, false, false);
    put_foreign(world);
}

fn give_and_take(world: &World) {
    configure(world, true, false);
    put_foreign(world);
}

fn put_foreign(world: &World) {
    let metadata = json!({ "namespace": NAMESPACE, "name": "foreign" });
    let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata });
    world.sim.put(account).expect("a ServiceAccount");
}

fn foreign_account_stays(sim: &Sim) -> Result<(), String> {
    ensure(sim.object("serviceaccounts", NAMESPACE, "foreign").is_some(), "a foreign ServiceAccount is deleted")
}

async fn renewal(world: &World) {
    put(world, "access", &[], &[("other", "kept")]);
    seconds(30).await;
    annotate(world, RENEW, json!("2029-12-31T00:00:00Z"));
    seconds(30).await;
}

/// spec 30 scenarios 1 and 38
#[test]
fn tokens_survive_each_single_fault_when_they_are_issued_and_renewed() {
    Scenario { prepare: keep, invariant: foreign_account_stays, blur, ..Scenario::new("tokens") }.survives(renewal);
}

async fn deletion(world: &World) {
    put(world, "access", &[], &[]);
    seconds(30).await;
    let path = format!("/api/v1/namespaces/{NAMESPACE}/secrets/access");
    world.ask("DELETE", &path, None).await.expect("it is deleted");
    seconds(60).await;
}

/// spec 30 §9, scenario 33
#[test]
fn tokens_survive_each_single_fault_at_their_end() {
    Scenario { prepare: give_and_take, invariant: foreign_account_stays, blur, ..Scenario::new("tokens-end") }
        .survives(deletion);
}

//! Both kinds of bindings: what they refer to is protected, and released with them. A Shoot holds its binding, and a
//! binding its Quota.

use gardener_resource_manager::api::kinds;
use serde_json::json;
use sim::Sim;

use super::{Scenario, edit, exists, look, seconds};
use crate::{
    controller_manager::{
        bindings::{KINDS, binding, put_both},
        garden::Garden,
        guards::shoot,
    },
    systematic::ensure,
};

const SECRET_BINDINGS: usize = 0;
const CREDENTIALS_BINDINGS: usize = 1;

fn prepare<const KIND: usize>(garden: &Garden) {
    let (kind, _, _, field) = KINDS[KIND];
    put_both(garden);
    garden.put(binding(kind, "a", "o", "aws"));
    garden.put(shoot("a", "r", json!({ field: "o" })));
}

fn invariant<const KIND: usize>(sim: &Sim) -> Result<(), String> {
    let (kind, finalizer, _, field) = KINDS[KIND];
    if look(sim, &kinds::SHOOT, "a", "r")["spec"][field] != "o" {
        return Ok(());
    }
    ensure(exists(sim, kind, "a", "o"), "a binding in use is released")?;
    ensure(exists(sim, &kinds::QUOTA, "a", "q"), "the Quota of a binding in use is released")?;
    let secret = look(sim, &kinds::SECRET, "a", "s");
    let finalizers = secret["metadata"]["finalizers"].as_array();
    let is_held = finalizers.is_some_and(|finalizers| finalizers.contains(&json!(finalizer)));
    ensure(is_held, "the Secret of a binding in use is released")
}

async fn life<const KIND: usize>(garden: &Garden) {
    let (kind, _, _, field) = KINDS[KIND];
    garden.delete(&kinds::QUOTA, "a", "q").await;
    garden.delete(kind, "a", "o").await;
    seconds(60).await;
    edit(garden, &kinds::SHOOT, "a", "r", |shoot| shoot["spec"][field] = json!(null));
    seconds(120).await;
}

/// spec 81 §3.1, G and H, scenarios 57 and 59
#[test]
fn bindings_of_secrets_survive_each_single_fault_at_their_end() {
    Scenario {
        prepare: prepare::<SECRET_BINDINGS>,
        invariant: invariant::<SECRET_BINDINGS>,
        ..Scenario::new("secret-bindings-end")
    }
    .survives(life::<SECRET_BINDINGS>);
}

/// spec 81 §3.1, G and H, scenarios 57 and 59
#[test]
fn bindings_of_credentials_survive_each_single_fault_at_their_end() {
    Scenario {
        prepare: prepare::<CREDENTIALS_BINDINGS>,
        invariant: invariant::<CREDENTIALS_BINDINGS>,
        ..Scenario::new("credentials-bindings-end")
    }
    .survives(life::<CREDENTIALS_BINDINGS>);
}

async fn two_lives(garden: &Garden) {
    garden.put(binding(&kinds::CREDENTIALS_BINDING, "a", "o", "aws"));
    seconds(30).await;
    garden.put(binding(&kinds::SECRET_BINDING, "b", "p", "gcp"));
    seconds(30).await;
    garden.delete(&kinds::CREDENTIALS_BINDING, "a", "o").await;
    seconds(60).await;
}

/// spec 81 H, scenario 57: the mark of one kind goes, and the mark of the other stays.
#[test]
fn bindings_of_both_kinds_survive_each_single_fault() {
    Scenario { prepare: put_both, ..Scenario::new("bindings-begin") }.survives(two_lives);
}

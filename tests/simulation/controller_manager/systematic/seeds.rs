//! Seeds: copies of shared Secrets in their Namespaces, and the conditions of their buckets and extensions.

use gardener_resource_manager::{actors::controller_manager::seed::secrets::roles::PRIVATE_ROLES, api::kinds};
use serde_json::{Value, json};
use sim::Sim;

use super::{Scenario, exists, seconds, stays};
use crate::{
    controller_manager::{
        garden::Garden,
        seed_checks::{GOOD, bucket, installation, put_seed, report, set_error},
        seed_secrets::{secret, share},
    },
    systematic::ensure,
};

fn prepare_secrets(garden: &Garden) {
    share(garden, "x", "eA==");
    garden.put(secret("garden", "private", Some(PRIVATE_ROLES[0]), "cA=="));
    garden.put(secret("a", "foreign", Some("foo"), "Zg=="));
}

fn secrets_are_safe(sim: &Sim) -> Result<(), String> {
    stays(sim, &kinds::SECRET, "garden", "private")?;
    stays(sim, &kinds::SECRET, "a", "foreign")?;
    ensure(!exists(sim, &kinds::SECRET, "seed-s1", "private"), "a private Secret is copied")?;
    ensure(!exists(sim, &kinds::SECRET, "seed-s1", "foreign"), "a Secret of another namespace is copied")
}

async fn copies(garden: &Garden) {
    put_seed(garden, "s1");
    seconds(30).await;
    share(garden, "y", "eQ==");
    seconds(30).await;
    share(garden, "x", "eHg=");
    seconds(30).await;
    garden.delete(&kinds::SECRET, "garden", "x").await;
    seconds(60).await;
}

/// spec 83 A, scenarios 1 to 3
#[test]
fn seed_secrets_survive_each_single_fault() {
    Scenario { prepare: prepare_secrets, invariant: secrets_are_safe, ..Scenario::new("seed-secrets") }
        .survives(copies);
}

fn prepare_checks(garden: &Garden) {
    put_seed(garden, "s1");
}

async fn checks(garden: &Garden) {
    garden.put(bucket("1", "s1"));
    seconds(20).await;
    set_error(garden, "1", json!({ "description": "foo" }));
    seconds(20).await;
    set_error(garden, "1", Value::Null);
    seconds(20).await;
    garden.put(installation("a", "s1", &[]));
    seconds(20).await;
    report(garden, "a", &GOOD);
    seconds(20).await;
}

/// spec 83 B and C, scenarios 13, 14, 17 and 21
#[test]
fn seed_conditions_survive_each_single_fault() {
    Scenario { prepare: prepare_checks, ..Scenario::new("seed-conditions") }.survives(checks);
}

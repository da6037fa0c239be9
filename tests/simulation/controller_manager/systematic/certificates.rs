//! Certificates of gardenlets: of a Seed, of a self-hosted Shoot, and of somebody else.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::Sim;

use super::{Scenario, look, seconds};
use crate::{
    builder::Parts,
    controller_manager::{
        garden::{Garden, object, resource},
        gardenlet_certificates::{OF_SEED, OF_SHOOT, SEEDS, SHOOTS, SIGNER, TOKEN_USER, allow, put_token},
    },
    systematic::ensure,
};

/// Puts a complete request at once: the API server sets the user when it creates one.
fn ask(garden: &Garden, name: &str, common_name: &str, organization: &str, user: &str) {
    let pem = Parts::usual(common_name, &[organization], &[], &[]).pem();
    let spec = json!({
        "request": BASE64_STANDARD.encode(pem), "signerName": SIGNER,
        "usages": ["key encipherment", "digital signature", "client auth"],
        "username": user, "groups": ["system:bootstrappers", "system:authenticated"],
    });
    garden.put(object(&kinds::CERTIFICATE_SIGNING_REQUEST, "", name, json!({ "spec": spec })));
}

fn prepare(garden: &Garden) {
    allow(garden);
    put_token(garden, "Used for connecting the self-hosted Shoot ns/s via x");
}

fn invariant(sim: &Sim) -> Result<(), String> {
    let foreign = look(sim, &kinds::CERTIFICATE_SIGNING_REQUEST, "", "foreign");
    ensure(foreign["status"]["conditions"].is_null(), "the request of somebody else is judged")?;
    let is_denied = |request: &Value| {
        let conditions = request["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|condition| condition["type"] == "Denied")
    };
    let denied = sim.look_at_all(&resource(&kinds::CERTIFICATE_SIGNING_REQUEST), is_denied);
    ensure(!denied.contains(&true), "a request is denied that will be approved")
}

async fn life(garden: &Garden) {
    ask(garden, "seed", OF_SEED, SEEDS, TOKEN_USER);
    ask(garden, "foreign", OF_SEED, SEEDS, "gardener.cloud:system:seed:y");
    seconds(20).await;
    ask(garden, "shoot", OF_SHOOT, SHOOTS, TOKEN_USER);
    seconds(20).await;
}

/// spec 81 B, scenarios 9, 13 and 18
#[test]
fn certificates_of_gardenlets_survive_each_single_fault() {
    Scenario { prepare, invariant, ..Scenario::new("gardenlet-certificates") }.survives(life);
}

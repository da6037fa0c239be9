//! The token invalidator (spec 31) in the whole program. The simulator calls no webhooks: [`admit`] applies the webhook
//! to the controller's patch, as an API server would.

mod accounts;
mod labels;
mod pods;
mod watches;
mod writes;

use gardener_resource_manager::{
    api::config::resource_manager::WorkersOnly,
    webhooks::{
        mutating::{Mutator, token_invalidator::TokenInvalidator},
        testing::{TestView, request},
    },
};
use serde_json::{Value, json};

use crate::world::{NAMESPACE, PROGRAM, World, seconds};

pub(super) const PURPOSE: &str = "resources.gardener.cloud/purpose";
pub(super) const CONSIDER: &str = "token-invalidator.resources.gardener.cloud/consider";
pub(super) const SKIP: &str = "token-invalidator.resources.gardener.cloud/skip";
pub(super) const VALID: &str = "dmFsaWQ=";

pub(super) fn configure(world: &World) {
    let mut config = world.config.borrow_mut();
    config.controllers.token_invalidator = WorkersOnly::default().into();
    config.webhooks.token_invalidator.enabled = true;
}

pub(super) async fn start(world: &World) {
    configure(world);
    world.start().await;
    seconds(1).await;
    world.sim.clear_requests();
}

pub(super) fn put(world: &World, kind: &str, mut object: Value, name: &str) {
    (object["apiVersion"], object["kind"]) = (json!("v1"), json!(kind));
    (object["metadata"]["namespace"], object["metadata"]["name"]) = (json!(NAMESPACE), json!(name));
    world.sim.put(object).expect("it is valid");
}

pub(super) fn account(world: &World, automount: Option<bool>, labels: Value) {
    let account = json!({ "metadata": { "labels": labels }, "automountServiceAccountToken": automount });
    put(world, "ServiceAccount", account, "a");
}

pub(super) fn token_with(world: &World, name: &str, labels: Value) {
    let annotations = json!({ "kubernetes.io/service-account.name": "a" });
    let data = json!({ "token": VALID, "ca.crt": "Y2E=", "namespace": "c2hvb3Q=" });
    let metadata = json!({ "annotations": annotations, "labels": labels });
    put(world, "Secret", json!({ "metadata": metadata, "data": data }), name);
}

pub(super) fn token(world: &World, name: &str) {
    token_with(world, name, json!({}));
}

pub(super) fn pod(world: &World, name: &str, volume: Value) {
    let mut volume = volume;
    volume["name"] = json!("v");
    let spec = json!({ "containers": [{ "name": "c", "image": "i" }], "volumes": [volume] });
    put(world, "Pod", json!({ "spec": spec }), name);
}

pub(super) fn mounts(secret: &str) -> Value {
    json!({ "secret": { "secretName": secret } })
}

pub(super) fn labels(world: &World, name: &str) -> Value {
    world.sim.object("secrets", NAMESPACE, name).expect("the Secret")["metadata"]["labels"].clone()
}

pub(super) fn labelled() -> Value {
    json!({ PURPOSE: "token-invalidator" })
}

pub(super) fn considered() -> Value {
    json!({ PURPOSE: "token-invalidator", CONSIDER: "true" })
}

/// Applies the webhook to the Secret as the controller left it. Returns the data then.
pub(super) fn admit(world: &World, name: &str) -> Value {
    world.sim.edit("secrets", NAMESPACE, name, |live| {
        let request = request(&TokenInvalidator, live);
        TokenInvalidator.mutate(live, &request, &TestView::new()).expect("a Secret");
    });
    world.sim.object("secrets", NAMESPACE, name).expect("the Secret")["data"].clone()
}

pub(super) fn last_error(world: &World, name: &str) -> String {
    let path = format!("token-invalidator/{NAMESPACE}/{name}");
    let actor = world.actors_of(PROGRAM).into_iter().find(|actor| actor.path == path);
    actor.and_then(|actor| actor.last_error).map(|(_, text)| text).unwrap_or_default()
}

pub(super) fn reconciles(world: &World) -> u64 {
    let actors = world.actors_of(PROGRAM).into_iter();
    actors.filter(|actor| actor.path.starts_with("token-invalidator/")).map(|actor| actor.finished).sum()
}

pub(super) fn asked(world: &World) -> Vec<String> {
    let of_watch = |asked: &String| asked.starts_with("watch") || (asked.starts_with("list") && asked != "list pods");
    world.asked().into_iter().filter(|asked| !of_watch(asked)).collect()
}

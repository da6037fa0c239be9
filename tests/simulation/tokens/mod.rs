//! The token requestor (spec 30) in the whole program: source and target are one simulated cluster.

mod deleting;
mod issuing;
mod long_run;
mod renewing;
mod requests;

use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use gardener_resource_manager::api::config::resource_manager::{TokenRequestor, Workers};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::world::{NAMESPACE, PROGRAM, World, seconds};

pub(super) const SA: &str = "serviceaccount.resources.gardener.cloud/";
pub(super) const RENEW: &str = "serviceaccount.resources.gardener.cloud/token-renew-timestamp";
pub(super) const TARGET: &str = "token-requestor.resources.gardener.cloud/target-secret-";
pub(super) const PURPOSE: &str = "resources.gardener.cloud/purpose";
pub(super) const CLASS: &str = "resources.gardener.cloud/class";
pub(super) const FINALIZER: &str = "resources.gardener.cloud/token-requestor";

pub(super) fn configure(world: &World, deletes: bool, any_class: bool) {
    let settings = TokenRequestor { concurrent_syncs: Workers::new(5), delete_service_accounts: deletes, any_class };
    world.config.borrow_mut().controllers.token_requestor = settings.into();
}

pub(super) async fn start(world: &World) {
    configure(world, false, false);
    world.start().await;
    seconds(1).await;
    world.sim.clear_requests();
}

pub(super) async fn start_deleting(world: &World) {
    configure(world, true, false);
    world.start().await;
    seconds(1).await;
    world.sim.clear_requests();
}

pub(super) fn access(name: &str, annotations: &[(&str, &str)], data: &[(&str, &str)]) -> Value {
    let mut all = json!({ format!("{SA}name"): "client", format!("{SA}namespace"): NAMESPACE });
    for (key, value) in annotations {
        all[*key] = json!(value);
    }
    let mut encoded = json!({});
    for (key, value) in data {
        encoded[*key] = json!(BASE64_STANDARD.encode(value));
    }
    json!({
        "apiVersion": "v1", "kind": "Secret", "data": encoded,
        "metadata": { "namespace": NAMESPACE, "name": name, "annotations": all,
            "labels": { PURPOSE: "token-requestor", CLASS: "shoot" } },
    })
}

pub(super) fn put(world: &World, name: &str, annotations: &[(&str, &str)], data: &[(&str, &str)]) {
    world.sim.put(access(name, annotations, data)).expect("a Secret");
}

pub(super) async fn given(world: &World, annotations: &[(&str, &str)], data: &[(&str, &str)]) {
    put(world, "access", annotations, data);
    seconds(2).await;
}

pub(super) fn secret(world: &World, name: &str) -> Value {
    world.sim.object("secrets", NAMESPACE, name).unwrap_or_default()
}

pub(super) fn value(secret: &Value, key: &str) -> String {
    let text = secret["data"][key].as_str().unwrap_or_default();
    String::from_utf8(BASE64_STANDARD.decode(text).expect("base64")).expect("text")
}

pub(super) fn token(world: &World) -> String {
    value(&secret(world, "access"), "token")
}

pub(super) fn renewal(world: &World) -> Option<Timestamp> {
    secret(world, "access")["metadata"]["annotations"][RENEW].as_str().and_then(|text| text.parse().ok())
}

pub(super) fn left(world: &World) -> i64 {
    let now = world.universe.env.clock.wall();
    renewal(world).map(|time| time.duration_since(now).as_secs()).unwrap_or_default()
}

pub(super) fn in_future(world: &World, seconds: i64) -> String {
    let time = world.universe.env.clock.wall() + jiff::SignedDuration::from_secs(seconds);
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub(super) fn annotate(world: &World, key: &str, text: Value) {
    world.sim.edit("secrets", NAMESPACE, "access", |live| match text.is_null() {
        true => drop(live["metadata"]["annotations"].as_object_mut().expect("annotations").remove(key)),
        false => live["metadata"]["annotations"][key] = text.clone(),
    });
}

pub(super) fn account(world: &World) -> Option<Value> {
    world.sim.object("serviceaccounts", NAMESPACE, "client")
}

pub(super) fn claims(token: &str) -> Value {
    let payload = token.split('.').nth(1).unwrap_or_default();
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(payload).expect("base64")).expect("JSON")
}

pub(super) fn last_error(world: &World) -> String {
    let path = format!("token-requestor/{NAMESPACE}/access");
    let actor = world.actors_of(PROGRAM).into_iter().find(|actor| actor.path == path);
    actor.and_then(|actor| actor.last_error).map(|(_, text)| text).unwrap_or_default()
}

pub(super) fn asked(world: &World) -> Vec<String> {
    let is_other =
        |asked: &String| ["watch ", "list ", "create events", "patch events"].iter().all(|it| !asked.starts_with(it));
    world.asked().into_iter().filter(is_other).collect()
}

pub(super) fn issued(world: &World) -> usize {
    world.requests().iter().filter(|request| request.info.subresource == "token").count()
}

pub(super) const KUBECONFIG: &str = "
apiVersion: v1
kind: Config
current-context: c
contexts:
- {name: other, context: {cluster: k, user: two}}
- {name: c, context: {cluster: k, user: one}}
clusters:
- {name: k, cluster: {server: https://old}}
users:
- {name: two, user: {token: theirs}}
- {name: one, user: {tokenFile: /t, client-certificate-data: YQ==}}
";

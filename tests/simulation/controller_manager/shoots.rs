//! What tests of Shoots share.

use std::time::Duration;

use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::{EventFault, Fault, Sim};

use super::garden::{Garden, STATUS_LABEL, object};

/// The Shoots, as the simulator names them.
pub(super) const SHOOTS: &str = "shoots.core.gardener.cloud";

/// Returns a Shoot with this status, and with the label that no controller corrects.
pub(super) fn shoot_with_status(namespace: &str, name: &str, label: &str, status: Value) -> Value {
    let labels = json!({ STATUS_LABEL: label });
    object(&kinds::SHOOT, namespace, name, json!({ "metadata": { "labels": labels }, "status": status }))
}

/// Returns `spec.maintenance` with a time window that is hours away: virtual time begins at midnight.
pub(super) fn maintained_in_the_evening() -> Value {
    json!({ "timeWindow": { "begin": "220000+0000", "end": "230000+0000" } })
}

/// Gives a Shoot the label that it needs, so that no controller corrects it.
pub(super) fn relabel(shoot: &mut Value, label: &str) {
    shoot["metadata"]["labels"][STATUS_LABEL] = label.into();
}

/// Returns a last operation.
pub(super) fn operation(kind: &str, state: &str) -> Value {
    json!({ "type": kind, "state": state, "progress": 50, "description": "d", "lastUpdateTime": "2026-08-21T12:00:00Z" })
}

/// Returns a condition, or a constraint.
pub(super) fn condition(kind: &str, status: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": "R", "message": "m.", "codes": ["ERR_X"],
        "lastTransitionTime": "2026-08-21T10:00:00Z", "lastUpdateTime": "2026-08-21T11:00:00Z",
    })
}

/// Puts a Seed whose gardenlet stays alive for a year.
pub(super) fn put_seed(garden: &Garden, seed: Value) {
    let name = seed["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let renewed = json!({ "spec": { "renewTime": garden.time(365 * 24 * 3600) } });
    garden.put(object(&kinds::LEASE, "gardener-system-seed-lease", &name, renewed));
    garden.put(seed);
}

/// Returns the Shoot.
pub(super) fn shoot_of(garden: &Garden, namespace: &str, name: &str) -> Value {
    garden.find(&kinds::SHOOT, namespace, name).expect("the Shoot exists")
}

/// Changes the status of a Shoot, as gardenlet does.
pub(super) fn set_status(garden: &Garden, namespace: &str, name: &str, field: &str, value: Value) {
    garden.edit(&kinds::SHOOT, namespace, name, |shoot| shoot["status"][field] = value);
}

/// Lets the watches miss the events of a kind from now on.
pub(super) fn miss_events(garden: &Garden, plural: &'static str) {
    garden.sim.set_event_faults(move |event| match event.resource == plural {
        true => EventFault::Drop,
        false => EventFault::Deliver,
    });
}

/// Runs `change` before the first request of the program with this verb that concerns a kind.
pub(super) fn before_first(
    garden: &Garden,
    (verb, plural): (&'static str, &'static str),
    change: impl Fn(&Sim) + Send + 'static,
) {
    let (sim, mut is_done) = (garden.sim.clone(), false);
    garden.sim.set_faults(move |info| {
        let is_meant = info.verb == verb && info.user == "gcm" && info.resource == plural;
        if is_meant && !std::mem::replace(&mut is_done, true) {
            change(&sim);
        }
        Fault::None
    });
}

/// Returns the writes among what the program has asked for.
pub(super) fn writes(garden: &Garden) -> Vec<String> {
    let is_write = |asked: &String| !["get ", "list "].iter().any(|verb| asked.starts_with(verb));
    garden.asked().into_iter().filter(is_write).collect()
}

pub(super) async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

mod waiting;
mod writing;

use std::collections::BTreeMap;

use kit::{Clock, Random};
use serde_json::{Value, json};
use sim::{Sim, SimOptions};

use crate::api::resources::crd;

fn cluster() -> (Sim, kube::Client) {
    let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let sim = Sim::new(SimOptions::new(clock, Random::seeded(1)));
    sim.put(serde_saphyr::from_str(crd::MANAGED_RESOURCES).unwrap()).unwrap();
    sim.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}})).unwrap();
    let client = sim.client_as("producer", "producer/1.0");
    (sim, client)
}

fn managed_resource(sim: &Sim, name: &str) -> Option<Value> {
    sim.object("managedresources.resources.gardener.cloud", "ns", name)
}

fn put_managed_resource(sim: &Sim, name: &str, conditions: &[(&str, &str, &str, &str)]) {
    let conditions: Vec<_> = conditions
        .iter()
        .map(|(kind, status, reason, message)| {
            json!({"type": kind, "status": status, "reason": reason, "message": message,
                "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"})
        })
        .collect();
    let object = json!({
        "apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
        "metadata": {"namespace": "ns", "name": name, "generation": 1, "labels": {"part": "x"}},
        "spec": {"secretRefs": []},
        "status": {"observedGeneration": 1, "conditions": conditions},
    });
    sim.put(object).unwrap();
}

fn texts(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn data(text: &str) -> BTreeMap<String, Vec<u8>> {
    BTreeMap::from([("data.yaml".to_owned(), text.as_bytes().to_vec())])
}

/// `verb path` of the requests since the last call.
fn requests(sim: &Sim) -> Vec<String> {
    let lines = sim.requests().iter().map(|request| format!("{} {}", request.info.verb, request.info.path)).collect();
    sim.clear_requests();
    lines
}

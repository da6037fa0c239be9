//! The commands in-process: input as values, clusters of the simulator.

#[cfg(feature = "sim")]
mod diff;
#[cfg(feature = "sim")]
mod get;
mod packing;
mod review;
mod validating;

use super::{Said, input::Source};
#[cfg(feature = "sim")]
use crate::{
    actors::kit::{Clock, Random},
    api::crd,
    sim::{Sim, SimOptions},
};

#[cfg(feature = "sim")]
const MANAGED_RESOURCE: &str = "managedresources.resources.gardener.cloud";

/// A cluster that serves ManagedResources, and its clock.
#[cfg(feature = "sim")]
fn cluster_and_clock() -> (Sim, Clock) {
    let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let sim = Sim::new(SimOptions::new(clock.clone(), Random::seeded(1)));
    sim.put(serde_saphyr::from_str(crd::MANAGED_RESOURCES).unwrap()).unwrap();
    sim.put(serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}})).unwrap();
    (sim, clock)
}

fn source(name: &str, text: &str) -> Source {
    Source { name: name.into(), bytes: text.as_bytes().to_vec() }
}

fn config_map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: ns\ndata:\n  key: value\n")
}

/// The remarks without those that are warnings.
fn errors(said: &Said) -> Vec<&str> {
    said.remarks.iter().map(String::as_str).filter(|remark| !remark.starts_with("warning: ")).collect()
}

//! The commands in-process: input as values, clusters of the simulator.

#[cfg(feature = "sim")]
mod diff;
mod packing;
mod validating;

use super::{Said, input::Source};

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

//! The objects of deployers: read from `objects/`, with the ports and names of one roll-out.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::support::free_port;

pub(super) const HOSTED: &str = include_str!("objects/hosted.yaml");
pub(super) const SELF_HOSTED_RUNTIME: &str = include_str!("objects/self-hosted-runtime.yaml");
pub(super) const SELF_HOSTED_TARGET: &str = include_str!("objects/self-hosted-target.yaml");
pub(super) const GARDEN: &str = include_str!("objects/garden.yaml");

/// The ports of deployers (spec 71 §1).
const PORTS: [&str; 9] = ["8080", "8081", "10250", "8082", "8083", "19250", "9417", "9418", "11587"];
/// Suffix of names that change with the content.
const SUFFIX: &str = "00000000";

/// Returns the objects of a file with free ports and another suffix of names.
pub(super) fn on_free_ports(text: &str, suffix: &str) -> Result<Vec<Value>> {
    let mut text = text.replace(SUFFIX, suffix);
    // A new number may contain an old one.
    for (index, port) in PORTS.iter().enumerate() {
        text = text.replace(port, &format!("<{index}>"));
    }
    for index in 0..PORTS.len() {
        text = text.replace(&format!("<{index}>"), &free_port()?.to_string());
    }
    read(&text)
}

pub(super) fn read(text: &str) -> Result<Vec<Value>> {
    text.split("\n---\n").map(|document| Ok(serde_saphyr::from_str(document)?)).collect()
}

pub(super) fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Result<&'a Value> {
    objects.iter().find(|object| object["kind"] == kind).with_context(|| format!("no {kind} is rendered"))
}

pub(super) fn of_kind_mut<'a>(objects: &'a mut [Value], kind: &str) -> Result<&'a mut Value> {
    objects.iter_mut().find(|object| object["kind"] == kind).with_context(|| format!("no {kind} is rendered"))
}

/// Returns the paths of the collection and of the object itself.
pub(super) fn path(object: &Value) -> Result<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, version, metadata) = (text(&object["kind"]), text(&object["apiVersion"]), &object["metadata"]);
    let plural = match kind.as_str() {
        "Namespace"
        | "Secret"
        | "ConfigMap"
        | "Service"
        | "ServiceAccount"
        | "Pod"
        | "Node"
        | "Deployment"
        | "Role"
        | "RoleBinding"
        | "ClusterRole"
        | "ClusterRoleBinding"
        | "PodDisruptionBudget"
        | "ManagedResource"
        | "Machine" => {
            format!("{}s", kind.to_lowercase())
        }
        other => bail!("no path is known for {other}"),
    };
    let root = if version == "v1" { "/api/v1".to_owned() } else { format!("/apis/{version}") };
    let collection = match metadata["namespace"].as_str() {
        Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}"),
        None => format!("{root}/{plural}"),
    };
    let own = format!("{collection}/{}", text(&metadata["name"]));
    Ok((collection, own))
}

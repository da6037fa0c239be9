//! The rules of the ServiceMonitor that Gardener deploys (spec 71 §11), evaluated as Prometheus and its operator do.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::rendered::of_kind;

const LABELS: &str = "__meta_kubernetes_service_label_";

/// Returns the labels of the series that are scraped from the rendered Service, and the number of the port.
pub(super) fn target(objects: &[Value]) -> Result<(BTreeMap<String, String>, u64)> {
    let (monitor, service) = (of_kind(objects, "ServiceMonitor")?, of_kind(objects, "Service")?);
    let labels = service["metadata"]["labels"].as_object().context("labels of the Service")?;
    for (key, value) in monitor["spec"]["selector"]["matchLabels"].as_object().context("a selector")? {
        ensure!(labels.get(key) == Some(value), "the Service is not selected by {key}: {value}");
    }
    let endpoint = &monitor["spec"]["endpoints"][0];
    let ports = service["spec"]["ports"].as_array().context("ports")?;
    let port = ports.iter().find(|port| port["name"] == endpoint["port"]).context("the port exists")?;
    // The operator takes the name of the Service if there is no `jobLabel`.
    let name = service["metadata"]["name"].as_str().unwrap_or_default();
    let mut series = BTreeMap::from([("job".to_owned(), name.to_owned())]);
    for relabeling in endpoint["relabelings"].as_array().context("rules")? {
        ensure!(relabeling["action"] == "labelmap", "an unknown rule: {relabeling}");
        let kept = relabeling["regex"].as_str().and_then(|regex| regex.strip_suffix("(.+)")).context("a regex")?;
        for (key, value) in labels {
            let found = format!("{LABELS}{}", key.replace(['.', '/', '-'], "_"));
            if let Some(label) = found.strip_prefix(kept) {
                series.insert(label.to_owned(), value.as_str().unwrap_or_default().to_owned());
            }
        }
    }
    Ok((series, port["port"].as_u64().context("a number")?))
}

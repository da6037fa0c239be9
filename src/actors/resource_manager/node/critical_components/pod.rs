//! The cached fields of critical pods (spec 41 §A.3, §A.4).

use cluster::object;
use serde_json::Value;

/// Annotation prefix; the value names a CSI driver.
const WAIT_FOR_DRIVER: &str = "node.gardener.cloud/wait-for-csi-node-";

/// The cached fields of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// Its node; empty until it is scheduled.
    pub node: Box<str>,
    /// Uid of its controlling DaemonSet.
    pub daemon_set: Option<Box<str>>,
    /// Its condition `Ready` is true.
    pub is_ready: bool,
    /// Its phase is `Succeeded` or `Failed`.
    pub is_over: bool,
    /// It has a deletion timestamp.
    pub is_terminating: bool,
    /// The CSI drivers that it waits for.
    pub drivers: Vec<Box<str>>,
}

impl Pod {
    /// Reads a pod.
    pub fn of(pod: &Value) -> Self {
        let owners = pod.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
        let daemon_set = owners.into_iter().find(|owner| owner["controller"] == true);
        let daemon_set = daemon_set.filter(|owner| owner["kind"] == "DaemonSet" && owner["apiVersion"] == "apps/v1");
        let conditions = pod.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
        let annotations = pod.pointer("/metadata/annotations").and_then(Value::as_object).into_iter().flatten();
        let drivers = annotations.filter(|(key, _)| key.starts_with(WAIT_FOR_DRIVER));
        Self {
            node: pod.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default().into(),
            daemon_set: daemon_set.and_then(|owner| owner["uid"].as_str()).map(Into::into),
            is_ready: conditions.into_iter().any(|it| it["type"] == "Ready" && it["status"] == "True"),
            is_over: matches!(pod.pointer("/status/phase").and_then(Value::as_str), Some("Succeeded" | "Failed")),
            is_terminating: object::deletion_timestamp(pod).is_some(),
            drivers: drivers.filter_map(|(_, driver)| Some(driver.as_str()?.into())).collect(),
        }
    }
}

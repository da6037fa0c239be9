//! Deployments and the other kinds that create pods.

use serde_json::{Value, json};

use super::{child, empty, fill, items, pod, remove};
use crate::kinds::ServedKind;

/// Counts the pod templates of a DaemonSet.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Completes a workload; returns `false` for any other kind.
pub(super) fn apply(kind: &ServedKind, new: &mut Value, old: Option<&Value>) -> bool {
    match kind.kind.as_str() {
        "Deployment" => deployment(child(new, "spec")),
        "StatefulSet" => stateful_set(child(new, "spec")),
        "DaemonSet" => daemon_set(new, old),
        "ReplicaSet" => {
            fill(child(new, "spec"), "replicas", 1);
            pod::template(child(&mut new["spec"], "template"));
        }
        "ReplicationController" => replication_controller(new),
        "Job" => job(new, old.is_none()),
        "CronJob" => cron_job(child(new, "spec")),
        _ => return false,
    }
    true
}

fn deployment(spec: &mut Value) {
    fill(spec, "replicas", 1);
    fill(spec, "revisionHistoryLimit", 10);
    fill(spec, "progressDeadlineSeconds", 600);
    let strategy = child(spec, "strategy");
    fill(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        let rolling = child(strategy, "rollingUpdate");
        fill(rolling, "maxUnavailable", "25%");
        fill(rolling, "maxSurge", "25%");
    }
    pod::template(child(spec, "template"));
}

fn stateful_set(spec: &mut Value) {
    fill(spec, "replicas", 1);
    fill(spec, "revisionHistoryLimit", 10);
    fill(spec, "podManagementPolicy", "OrderedReady");
    let strategy = child(spec, "updateStrategy");
    fill(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        fill(child(strategy, "rollingUpdate"), "partition", 0);
    }
    let retention = child(spec, "persistentVolumeClaimRetentionPolicy");
    fill(retention, "whenDeleted", "Retain");
    fill(retention, "whenScaled", "Retain");
    for claim in items(spec, "volumeClaimTemplates") {
        fill(claim, "apiVersion", "v1");
        fill(claim, "kind", "PersistentVolumeClaim");
        self::claim(child(claim, "spec"));
        fill(child(claim, "status"), "phase", "Pending");
    }
    pod::template(child(spec, "template"));
}

pub(super) fn claim(spec: &mut Value) {
    fill(spec, "volumeMode", "Filesystem");
    if let Some(resources) = spec.get_mut("resources") {
        pod::resources(resources);
    }
}

fn daemon_set(new: &mut Value, old: Option<&Value>) {
    let spec = child(new, "spec");
    fill(spec, "revisionHistoryLimit", 10);
    let strategy = child(spec, "updateStrategy");
    fill(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        let rolling = child(strategy, "rollingUpdate");
        fill(rolling, "maxUnavailable", 1);
        fill(rolling, "maxSurge", 0);
    }
    pod::template(child(spec, "template"));
    let generation = match old {
        None => 1,
        Some(old) => {
            let before = old["metadata"]["annotations"][TEMPLATE_GENERATION].as_str();
            let before: i64 = before.and_then(|text| text.parse().ok()).unwrap_or(1);
            before + i64::from(old["spec"]["template"] != spec["template"])
        }
    };
    let annotations = child(child(new, "metadata"), "annotations");
    annotations[TEMPLATE_GENERATION] = generation.to_string().into();
}

fn replication_controller(new: &mut Value) {
    let spec = child(new, "spec");
    fill(spec, "replicas", 1);
    let template = child(spec, "template");
    pod::template(template);
    let labels = template["metadata"].get("labels").cloned();
    if let Some(labels) = labels {
        fill(spec, "selector", labels.clone());
        fill(child(new, "metadata"), "labels", labels);
    }
}

fn job(new: &mut Value, is_new: bool) {
    let uid = new["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    let name = new["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let spec = child(new, "spec");
    if spec.get("completions").is_none() && spec.get("parallelism").is_none() {
        fill(spec, "completions", 1);
    }
    fill(spec, "parallelism", 1);
    fill(spec, "backoffLimit", 6);
    fill(spec, "completionMode", "NonIndexed");
    fill(spec, "suspend", false);
    fill(spec, "manualSelector", false);
    let replacement = if spec.get("podFailurePolicy").is_some() { "Failed" } else { "TerminatingOrFailed" };
    fill(spec, "podReplacementPolicy", replacement);
    pod::template(child(spec, "template"));
    if !is_new || spec["manualSelector"] == true {
        return;
    }
    let added = [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ];
    fill(spec, "selector", json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}));
    for metadata in ["/spec/template/metadata", "/metadata"] {
        let Some(metadata) = new.pointer_mut(metadata) else { continue };
        let labels = child(metadata, "labels");
        for (label, value) in &added {
            labels[*label] = value.as_str().into();
        }
    }
}

fn cron_job(spec: &mut Value) {
    fill(spec, "concurrencyPolicy", "Allow");
    fill(spec, "suspend", false);
    fill(spec, "successfulJobsHistoryLimit", 3);
    fill(spec, "failedJobsHistoryLimit", 1);
    let template = child(spec, "jobTemplate");
    fill(template, "metadata", empty());
    remove(template, "status");
    pod::template(child(child(template, "spec"), "template"));
}

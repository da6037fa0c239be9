//! Workloads (spec 10 §12.4, §12.5).

use serde_json::{Map, Value};

use super::{Rule, copy_field, pod_template::merge_template_of, spec_mut};

pub(super) fn merge_daemon_set(merged: &mut Value, rule: &Rule<'_>) {
    if let Some(spec) = spec_mut(merged) {
        merge_template_of(spec, rule.live_spec(), rule);
    }
}

/// `batch/Job`: the API server generates selector and template labels; they cannot be changed.
pub(super) fn merge_job(merged: &mut Value, rule: &Rule<'_>) {
    let Some(spec) = spec_mut(merged) else { return };
    copy_field(spec, rule.live_spec(), "selector");
    keep_template_labels(spec, rule.live);
    merge_template_of(spec, rule.live_spec(), rule);
}

pub(super) fn merge_cron_job(merged: &mut Value, rule: &Rule<'_>) {
    let job_spec = merged.pointer_mut("/spec/jobTemplate/spec").and_then(Value::as_object_mut);
    if let Some(job_spec) = job_spec {
        merge_template_of(job_spec, rule.live.pointer("/spec/jobTemplate/spec"), rule);
    }
}

pub(super) fn merge_deployment(merged: &mut Value, rule: &Rule<'_>) {
    let Some(spec) = spec_mut(merged) else { return };
    merge_replicas(spec, rule);
    merge_template_of(spec, rule.live_spec(), rule);
}

/// `StatefulSet` of `apps` and `extensions`: its volume claim templates cannot be changed once it exists.
pub(super) fn merge_stateful_set(merged: &mut Value, rule: &Rule<'_>) {
    let exists = rule.live.pointer("/metadata/creationTimestamp").is_some_and(|timestamp| !timestamp.is_null());
    let Some(spec) = spec_mut(merged) else { return };
    merge_replicas(spec, rule);
    merge_template_of(spec, rule.live_spec(), rule);
    if exists {
        copy_field(spec, rule.live_spec(), "volumeClaimTemplates");
    }
}

fn merge_replicas(spec: &mut Map<String, Value>, rule: &Rule<'_>) {
    let wanted = spec.get("replicas").is_some_and(|replicas| !replicas.is_null());
    if !wanted || rule.preserve_replicas {
        copy_field(spec, rule.live_spec(), "replicas");
    }
}

/// Live labels of the template, overlaid by the manifest's. Label injection has created the maps above them.
fn keep_template_labels(spec: &mut Map<String, Value>, live: &Value) {
    let labels = spec
        .get_mut("template")
        .and_then(|template| template.get_mut("metadata"))
        .and_then(|metadata| metadata.get_mut("labels"))
        .and_then(Value::as_object_mut);
    let live = live.pointer("/spec/template/metadata/labels").and_then(Value::as_object);
    if let (Some(labels), Some(live)) = (labels, live) {
        for (key, value) in live {
            labels.entry(key).or_insert_with(|| value.clone());
        }
    }
}

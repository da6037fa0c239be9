//! Fields that an update may not change (facts §4).

use serde_json::{Map, Value};

use super::{Cause, events};
use crate::kinds::ServedKind;

const IMMUTABLE: &str = "field is immutable";
const FROZEN: &str = "field is immutable when `immutable` is set";

/// Mutable fields of a StatefulSet's spec.
const STATEFUL_SET: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

const APPROVALS: [&str; 2] = ["Approved", "Denied"]; // conditions that only `/approval` adds

pub(super) fn check(kind: &ServedKind, old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    if kind.custom {
        return;
    }
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "Deployment" | "DaemonSet" | "ReplicaSet") => same(old, new, "spec.selector", causes),
        ("apps", "StatefulSet") => stateful_set(old, new, causes),
        ("apps", "ControllerRevision") => same(old, new, "data", causes),
        ("batch", "Job") => job(old, new, causes),
        ("", "Secret") => {
            same(old, new, "type", causes);
            frozen(old, new, &["data"], causes);
        }
        ("", "ConfigMap") => frozen(old, new, &["data", "binaryData"], causes),
        ("", "PersistentVolumeClaim") => claim(old, new, causes),
        ("", "Pod") => pod(old, new, causes),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") if old["roleRef"] != new["roleRef"] => {
            causes.push(Cause::invalid("roleRef", &new["roleRef"], "cannot change roleRef"));
        }
        ("apiextensions.k8s.io", _) => {
            same(old, new, "spec.scope", causes);
            same(old, new, "spec.group", causes);
        }
        ("storage.k8s.io", "StorageClass") => {
            for field in ["parameters", "provisioner", "reclaimPolicy"] {
                if old[field] != new[field] {
                    causes.push(Cause::forbidden(field, &format!("updates to {field} are forbidden.")));
                }
            }
            same(old, new, "volumeBindingMode", causes);
        }
        ("scheduling.k8s.io", _) if old["value"] != new["value"] => {
            causes.push(Cause::forbidden("value", "may not be changed in an update."));
        }
        ("discovery.k8s.io", _) => same(old, new, "addressType", causes),
        ("events.k8s.io", _) => events::on_update(old, new, causes),
        _ => {}
    }
}

pub(super) fn conditions(old: &Value, new: &Value, part: &str, causes: &mut Vec<Cause>) {
    let types = |object: &Value| -> Vec<String> {
        let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        conditions.map(|condition| condition["type"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let (before, after) = (types(old), types(new));
    for name in ["Approved", "Denied", "Failed"] {
        let (was_there, is_there) = (before.iter().any(|other| other == name), after.iter().any(|other| other == name));
        if was_there && !is_there {
            let text = format!("updates may not remove a condition of type \"{name}\"");
            causes.push(Cause::forbidden("status.conditions", &text));
        }
        if !was_there && is_there && part != "approval" && APPROVALS.contains(&name) {
            let text = format!("updates may not add a condition of type \"{name}\"");
            causes.push(Cause::forbidden("status.conditions", &text));
        }
    }
    if APPROVALS.into_iter().all(|name| after.iter().any(|other| other == name)) {
        let text = "Approved and Denied conditions are mutually exclusive";
        causes.push(Cause::invalid("status.conditions[1].type", &"Denied".into(), text));
    }
}

fn same(old: &Value, new: &Value, field: &str, causes: &mut Vec<Cause>) {
    let pointer = format!("/{}", field.replace('.', "/"));
    let after = new.pointer(&pointer).unwrap_or(&Value::Null);
    if old.pointer(&pointer).unwrap_or(&Value::Null) != after {
        causes.push(Cause::invalid(field, after, IMMUTABLE));
    }
}

fn without(value: &Value, fields: &[&str]) -> Map<String, Value> {
    let mut rest = value.as_object().cloned().unwrap_or_default();
    rest.retain(|field, _| !fields.contains(&field.as_str()));
    rest
}

fn stateful_set(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    if without(&old["spec"], &STATEFUL_SET) != without(&new["spec"], &STATEFUL_SET) {
        let quoted = STATEFUL_SET.map(|field| format!("'{field}'"));
        let (last, others) = quoted.split_last().map_or(("", &quoted[..]), |(last, others)| (last.as_str(), others));
        let text =
            format!("updates to statefulset spec for fields other than {} and {last} are forbidden", others.join(", "));
        causes.push(Cause::forbidden("spec", &text));
    }
}

fn job(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    same(old, new, "spec.selector", causes);
    same(old, new, "spec.template", causes);
    same(old, new, "spec.completionMode", causes);
    if new["spec"]["completionMode"] != "Indexed" {
        same(old, new, "spec.completions", causes);
    }
}

/// ConfigMaps and Secrets marked as immutable. The texts do not contain their contents.
fn frozen(old: &Value, new: &Value, fields: &[&str], causes: &mut Vec<Cause>) {
    if old["immutable"] != true {
        return;
    }
    for field in ["immutable"].iter().chain(fields) {
        if old[*field] != new[*field] {
            causes.push(Cause::forbidden(field, FROZEN));
        }
    }
}

fn claim(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let mut before = without(&old["spec"], &["volumeAttributesClassName"]);
    let mut after = without(&new["spec"], &["volumeAttributesClassName"]);
    for spec in [&mut before, &mut after] {
        if let Some(Value::Object(resources)) = spec.get_mut("resources") {
            resources.remove("requests");
        }
    }
    // The volume is chosen after the claim is created.
    if before.get("volumeName").is_none() {
        after.remove("volumeName");
    }
    if before != after {
        let text = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound \
                    claims\n";
        causes.push(Cause::forbidden("spec", text));
    }
}

fn pod(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let fixed = |object: &Value| {
        let free = ["activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations", "schedulingGates"];
        let mut spec = without(&object["spec"], &free);
        for list in ["containers", "initContainers"] {
            for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(fields) = container.as_object_mut() {
                    fields.remove("image");
                }
            }
        }
        spec.remove("nodeName"); // the scheduler sets it through another path
        spec
    };
    if fixed(old) != fixed(new) {
        let text = "pod updates may not change fields other than `spec.containers[*].image`, \
                    `spec.initContainers[*].image`, `spec.activeDeadlineSeconds`, `spec.tolerations` (only additions to \
                    existing tolerations), `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
                    previously negative)\n";
        causes.push(Cause::forbidden("spec", text));
    }
}

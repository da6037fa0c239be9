//! Where a merged object may differ from its manifest: spec 10 §12, read in the opposite direction.

use cluster::object::GroupKind;
use gardener_resource_manager::api::resources::keys;
use serde_json::{Map, Value};

use super::merge::Case;

/// Returns the paths at which two objects differ. Absent, null and empty map are equal; a list of other length differs.
pub(super) fn differences(a: &Value, b: &Value) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    collect(a, b, &mut Vec::new(), &mut found);
    found
}

fn collect(a: &Value, b: &Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    let empty = Map::new();
    let mut visit = |step: String, a: &Value, b: &Value| {
        path.push(step);
        collect(a, b, path, found);
        path.pop();
    };
    let (a_fields, b_fields) = match (a, b) {
        (Value::Object(a), Value::Object(b)) => (a, b),
        (Value::Null, Value::Object(b)) => (&empty, b),
        (Value::Object(a), Value::Null) => (a, &empty),
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().for_each(|(index, (a, b))| visit(index.to_string(), a, b));
            return;
        }
        _ => {
            if a != b {
                found.push(path.clone());
            }
            return;
        }
    };
    for (key, a) in a_fields {
        visit(key.clone(), a, b_fields.get(key).unwrap_or(&Value::Null));
    }
    for (key, b) in b_fields.iter().filter(|(key, _)| !a_fields.contains_key(*key)) {
        visit(key.clone(), &Value::Null, b);
    }
}

/// Whether spec 10 §11.4 or §12 lets the merged object differ from its manifest outside of metadata and status.
pub(super) fn may_differ(case: &Case, kind: &GroupKind, path: &[&str]) -> bool {
    let injected = |key: &str| case.labels().contains_key(key);
    match path {
        ["spec", "template", "metadata", "labels", key] if injected(key) => return true,
        ["spec", "volumeClaimTemplates", _, "metadata", "labels", key] if injected(key) => return true,
        _ => {}
    }

    let template = match path {
        ["spec", "jobTemplate", "spec", "template", rest @ ..] if kind.kind == "CronJob" => Some(rest),
        ["spec", "template", rest @ ..] if kind.kind != "CronJob" => Some(rest),
        _ => None,
    };
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "DaemonSet") | ("batch", "CronJob") => template.is_some_and(|rest| template_may_differ(case, rest)),
        ("batch", "Job") => match path {
            ["spec", "selector", ..] => true,
            ["spec", "template", "metadata", "labels", _, ..] => at(&case.manifest, &path[..5]).is_none(),
            _ => template.is_some_and(|rest| template_may_differ(case, rest)),
        },
        ("apps" | "extensions", "Deployment" | "StatefulSet") => match path {
            ["spec", "replicas", ..] => {
                case.keeps_replicas() || at(&case.manifest, &["spec", "replicas"]).is_none_or(Value::is_null)
            }
            ["spec", "volumeClaimTemplates", ..] if kind.kind == "StatefulSet" => {
                at(case.live(), &["metadata", "creationTimestamp"]).is_some_and(|time| !time.is_null())
            }
            _ => template.is_some_and(|rest| template_may_differ(case, rest)),
        },
        ("", "ServiceAccount") => matches!(path, ["secrets" | "imagePullSecrets", ..]),
        ("", "Service") => service_may_differ(case, path),
        ("", "PersistentVolume") => claim_may_differ(case, path),
        ("rbac.authorization.k8s.io", "ClusterRole") => {
            let rule = at(&case.manifest, &["aggregationRule"]).and_then(Value::as_object);
            matches!(path, ["rules", ..]) && rule.is_some_and(|rule| !rule.is_empty())
        }
        ("", "Secret") => match path {
            ["data", key @ ("token" | "ca.crt" | "namespace")] => {
                let is_open = |field| at(&case.manifest, &[field, key]).is_none_or(Value::is_null);
                case.manifest["type"] == "kubernetes.io/service-account-token"
                    && is_open("data")
                    && is_open("stringData")
            }
            _ => false,
        },
        _ => false,
    }
}

/// spec 10 §12.8a: fields of a bound volume's claim that the manifest leaves open.
fn claim_may_differ(case: &Case, path: &[&str]) -> bool {
    let wanted = at(&case.manifest, &["spec", "claimRef"]).unwrap_or(&Value::Null);
    let live = at(case.live(), &["spec", "claimRef"]).unwrap_or(&Value::Null);
    let text = |claim: &Value, field: &str| claim.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    match path {
        ["spec", "claimRef", ..] if wanted.is_null() => true,
        ["spec", "claimRef", field @ ("uid" | "resourceVersion" | "apiVersion" | "kind"), ..] => {
            text(wanted, field).is_empty()
                && text(wanted, "namespace") == text(live, "namespace")
                && text(wanted, "name") == text(live, "name")
        }
        _ => false,
    }
}

/// spec 10 §12.3. The path starts below the pod template.
fn template_may_differ(case: &Case, path: &[&str]) -> bool {
    match path {
        ["metadata", "annotations", keys::RESTARTED_AT, ..] => true,
        ["spec", "containers", _, "resources", "requests" | "limits", "cpu" | "memory", ..] => case.keeps_resources(),
        _ => false,
    }
}

/// spec 10 §12.7: the API server allocates these fields where the manifest leaves them open.
fn service_may_differ(case: &Case, path: &[&str]) -> bool {
    let manifest = |length: usize| at(&case.manifest, &path[..length]).unwrap_or(&Value::Null);
    let is_zero = |value: &Value| value.is_null() || value.as_f64() == Some(0.0);
    match path {
        ["spec", "type" | "loadBalancerIP" | "loadBalancerClass", ..] => manifest(2).is_null() || manifest(2) == "",
        ["spec", "ports", _, "nodePort", ..] => is_zero(manifest(4)),
        ["spec", "healthCheckNodePort", ..] => is_zero(manifest(2)),
        ["spec", "clusterIP", ..] => manifest(2) != "None",
        _ => false,
    }
}

pub(super) fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => value.get(step),
    })
}

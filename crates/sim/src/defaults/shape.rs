//! Drops what typed objects do not keep: null, and empty values of fields that are omitted when empty.

use serde_json::Value;

use crate::kinds::ServedKind;

/// Maps that are left out when empty.
const MAPS: [&str; 10] = [
    "labels",
    "annotations",
    "data",
    "binaryData",
    "stringData",
    "matchLabels",
    "nodeSelector",
    "limits",
    "requests",
    "parameters",
];

/// Lists that are kept when empty.
const KEPT_LISTS: [&str; 6] = ["containers", "rules", "endpoints", "addresses", "sources", "limits"];

/// Flags that are left out when false, and numbers that are left out when 0.
const ZEROS: [&str; 16] = [
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "readOnly",
    "stdin",
    "stdinOnce",
    "tty",
    "publishNotReadyAddresses",
    "paused",
    "unschedulable",
    "minReadySeconds",
    "initialDelaySeconds",
    "nodePort",
    "hostPort",
    "healthCheckNodePort",
    "globalDefault",
];

/// Strings that are left out when empty.
const TEXTS: [&str; 9] = [
    "subPath",
    "subPathExpr",
    "hostname",
    "subdomain",
    "nodeName",
    "serviceAccountName",
    "serviceAccount",
    "priorityClassName",
    "workingDir",
];

/// Drops from a built-in object what the server does not keep, except in the status: the server writes it.
pub(super) fn tidy(kind: &ServedKind, object: &mut Value) {
    // These kinds contain arbitrary JSON.
    if matches!(kind.kind.as_str(), "CustomResourceDefinition" | "ControllerRevision") {
        return;
    }
    let Value::Object(fields) = object else { return };
    fields.retain(|field, value| {
        if field == "status" && kind.has_status {
            return true;
        }
        // Keys of maps are free: an entry may have one of the names above.
        if !matches!(field.as_str(), "data" | "binaryData" | "stringData" | "metadata") {
            tidy_value(value);
        }
        keeps(field, value)
    });
    if kind.kind == "Service" && object["spec"]["selector"].as_object().is_some_and(|selector| selector.is_empty()) {
        super::remove(&mut object["spec"], "selector");
    }
}

fn tidy_value(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|field, value| {
            if !MAPS.contains(&field.as_str()) {
                tidy_value(value);
            }
            if field == "env" {
                tidy_environment(value);
            }
            keeps(field, value)
        }),
        Value::Array(items) => items.iter_mut().for_each(tidy_value),
        _ => {}
    }
}

/// The server drops the empty value of an environment variable.
fn tidy_environment(variables: &mut Value) {
    for variable in variables.as_array_mut().into_iter().flatten() {
        if variable["value"] == "" {
            super::remove(variable, "value");
        }
    }
}

fn keeps(field: &str, value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Object(fields) => !fields.is_empty() || !MAPS.contains(&field),
        Value::Array(items) => !items.is_empty() || KEPT_LISTS.contains(&field),
        Value::Bool(false) => !ZEROS.contains(&field),
        Value::Number(number) => number.as_i64() != Some(0) || !ZEROS.contains(&field),
        Value::String(text) => !text.is_empty() || !TEXTS.contains(&field),
        Value::Bool(true) => true,
    }
}

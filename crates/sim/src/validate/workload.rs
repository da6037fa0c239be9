use serde_json::Value;

use super::Cause;
use crate::kinds::ServedKind;

/// Checks a workload or pod; returns `false` for any other kind.
pub(super) fn check(kind: &ServedKind, new: &Value, causes: &mut Vec<Cause>) -> bool {
    let spec = &new["spec"];
    match kind.kind.as_str() {
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" => {
            not_negative("spec.replicas", &spec["replicas"], causes);
            not_negative("spec.minReadySeconds", &spec["minReadySeconds"], causes);
            selector(kind, spec, causes);
            template("spec.template", &spec["template"], &["Always"], causes);
        }
        "ReplicationController" => {
            not_negative("spec.replicas", &spec["replicas"], causes);
            template("spec.template", &spec["template"], &["Always"], causes);
        }
        "Job" => job("spec", spec, causes),
        "CronJob" => {
            if spec["schedule"].as_str().unwrap_or_default().is_empty() {
                causes.push(Cause::required("spec.schedule", ""));
            }
            job("spec.jobTemplate.spec", &spec["jobTemplate"]["spec"], causes);
        }
        "Pod" => pod("spec", spec, causes),
        _ => return false,
    }
    true
}

fn not_negative(field: &str, value: &Value, causes: &mut Vec<Cause>) {
    if value.as_i64().is_some_and(|number| number < 0) {
        causes.push(Cause::invalid(field, value, "must be greater than or equal to 0"));
    }
}

fn selector(kind: &ServedKind, spec: &Value, causes: &mut Vec<Cause>) {
    let selector = &spec["selector"];
    if selector.is_null() {
        causes.push(Cause::required("spec.selector", ""));
    } else if is_empty(&selector["matchLabels"]) && is_empty(&selector["matchExpressions"]) {
        let text = format!("empty selector is invalid for {}", kind.kind.to_lowercase());
        causes.push(Cause::invalid("spec.selector", selector, &text));
        return;
    }
    let labels = &spec["template"]["metadata"]["labels"];
    if selector.is_null() || !matches(selector, labels) {
        let text = "`selector` does not match template `labels`";
        causes.push(Cause::invalid("spec.template.metadata.labels", labels, text));
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => true,
    }
}

fn matches(selector: &Value, labels: &Value) -> bool {
    let wanted = selector["matchLabels"].as_object().into_iter().flatten();
    let expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    let label = |key: &str| labels.get(key);
    wanted.into_iter().all(|(key, value)| label(key) == Some(value))
        && expressions.into_iter().all(|expression| {
            let label = label(expression["key"].as_str().unwrap_or_default());
            let values = expression["values"].as_array().map(Vec::as_slice).unwrap_or_default();
            let is_listed = label.is_some_and(|label| values.contains(label));
            match expression["operator"].as_str() {
                Some("In") => is_listed,
                Some("NotIn") => !is_listed,
                Some("Exists") => label.is_some(),
                Some("DoesNotExist") => label.is_none(),
                _ => false,
            }
        })
}

fn job(field: &str, spec: &Value, causes: &mut Vec<Cause>) {
    for name in ["parallelism", "completions", "backoffLimit", "ttlSecondsAfterFinished"] {
        not_negative(&format!("{field}.{name}"), &spec[name], causes);
    }
    let labels = &spec["template"]["metadata"]["labels"];
    if !spec["selector"].is_null() && !matches(&spec["selector"], labels) {
        let text = "`selector` does not match template `labels`";
        causes.push(Cause::invalid(&format!("{field}.template.metadata.labels"), labels, text));
    }
    template(&format!("{field}.template"), &spec["template"], &["OnFailure", "Never"], causes);
}

fn template(field: &str, template: &Value, policies: &[&str], causes: &mut Vec<Cause>) {
    super::labels(&format!("{field}.metadata.labels"), &template["metadata"]["labels"], causes);
    let spec = &template["spec"];
    pod(&format!("{field}.spec"), spec, causes);
    let policy = spec["restartPolicy"].as_str().unwrap_or_default();
    if !policies.contains(&policy) {
        let field = format!("{field}.spec.restartPolicy");
        causes.push(match policy {
            "Always" => Cause::required(&field, "valid values: \"OnFailure\", \"Never\""),
            policy => Cause::not_supported(&field, &policy.into(), policies),
        });
    }
}

fn pod(field: &str, spec: &Value, causes: &mut Vec<Cause>) {
    let list = |name: &str| spec[name].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut volumes: Vec<&str> = Vec::new();
    for (index, volume) in list("volumes").iter().enumerate() {
        named(&format!("{field}.volumes[{index}].name"), volume, &mut volumes, causes);
    }
    if list("containers").is_empty() {
        causes.push(Cause::required(&format!("{field}.containers"), ""));
    }
    let mut names: Vec<&str> = Vec::new();
    for kind in ["containers", "initContainers"] {
        for (index, container) in list(kind).iter().enumerate() {
            let field = format!("{field}.{kind}[{index}]");
            named(&format!("{field}.name"), container, &mut names, causes);
            if container["image"].as_str().unwrap_or_default().is_empty() {
                causes.push(Cause::required(&format!("{field}.image"), ""));
            }
            let mounts = container["volumeMounts"].as_array().map(Vec::as_slice).unwrap_or_default();
            for (index, mount) in mounts.iter().enumerate() {
                let name = mount["name"].as_str().unwrap_or_default();
                if !volumes.contains(&name) {
                    causes.push(Cause::not_found(&format!("{field}.volumeMounts[{index}].name"), &name.into()));
                }
            }
        }
    }
}

fn named<'v>(field: &str, item: &'v Value, known: &mut Vec<&'v str>, causes: &mut Vec<Cause>) {
    let name = item["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        causes.push(Cause::required(field, ""));
    } else if known.contains(&name) {
        causes.push(Cause::duplicate(field, &name.into()));
    } else {
        known.push(name);
    }
}

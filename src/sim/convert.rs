//! One object, several versions.
//!
//! Versions of a custom kind differ in `apiVersion` only (conversion `None`), and so do most built-in ones as far as they
//! are served. Events are one store behind two groups with different field names. HorizontalPodAutoscalers are converted
//! as far as the old version can say the same; the rest, which the real server hides in annotations, is refused.

use serde_json::{Value, json};

use super::{kinds::Kind, status::Failure};

/// Core field and its name in `events.k8s.io`.
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// A stored value in the version of `kind`; `None` where only `apiVersion` differs, if anything does.
pub(super) fn to_version(kind: &Kind, value: &Value) -> Result<Option<Value>, Failure> {
    let stored = value["apiVersion"].as_str().unwrap_or_default();
    if stored == kind.api_version() || kind.custom {
        return Ok(None);
    }
    match (kind.plural.as_str(), kind.group.as_str(), stored) {
        ("events", "events.k8s.io", _) => Ok(Some(rename(kind, value, |core, new| (core, new)))),
        ("events", "", _) => Ok(Some(rename(kind, value, |core, new| (new, core)))),
        ("horizontalpodautoscalers", _, "autoscaling/v1") => to_metrics(kind, value).map(Some),
        ("horizontalpodautoscalers", ..) => from_metrics(kind, value).map(Some),
        _ => Ok(None),
    }
}

fn rename<'a>(kind: &Kind, value: &Value, names: fn(&'a str, &'a str) -> (&'a str, &'a str)) -> Value {
    let mut value = value.clone();
    if let Some(fields) = value.as_object_mut() {
        for (core, new) in EVENT_FIELDS {
            let (from, to) = names(core, new);
            if let Some(content) = fields.remove(from) {
                fields.insert(to.into(), content);
            }
        }
        fields.insert("apiVersion".into(), kind.api_version().into());
    }
    value
}

/// What the real server hides in annotations of the old version.
const HIDDEN: &str = "autoscaling.alpha.kubernetes.io/";

/// HorizontalPodAutoscaler v1 → v2.
fn to_metrics(kind: &Kind, value: &Value) -> Result<Value, Failure> {
    let mut value = value.clone();
    let annotations = value["metadata"]["annotations"].as_object();
    if annotations.is_some_and(|annotations| annotations.keys().any(|key| key.starts_with(HIDDEN))) {
        return Err(hidden());
    }
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut)
        && let Some(target) = spec.remove("targetCPUUtilizationPercentage")
    {
        let target = json!({"type": "Utilization", "averageUtilization": target});
        spec.insert("metrics".into(), json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]));
    }
    if let Some(status) = value.get_mut("status").and_then(Value::as_object_mut)
        && let Some(current) = status.remove("currentCPUUtilizationPercentage")
    {
        let metric = json!({"name": "cpu", "current": {"averageUtilization": current}});
        status.insert("currentMetrics".into(), json!([{"type": "Resource", "resource": metric}]));
    }
    value["apiVersion"] = kind.api_version().into();
    Ok(value)
}

/// HorizontalPodAutoscaler v2 → v1.
fn from_metrics(kind: &Kind, value: &Value) -> Result<Value, Failure> {
    let mut value = value.clone();
    let is_absent = |part: &Value| part.is_null() || *part == json!([]);
    let status = &value["status"];
    if !value["spec"]["behavior"].is_null()
        || !is_absent(&status["conditions"])
        || !is_absent(&status["currentMetrics"])
    {
        return Err(hidden());
    }
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut)
        && let Some(metrics) = spec.remove("metrics").filter(|metrics| !is_absent(metrics))
    {
        let target = &metrics[0]["resource"]["target"];
        let is_cpu = metrics[0]["type"] == "Resource" && metrics[0]["resource"]["name"] == "cpu";
        let is_only = metrics.as_array().is_some_and(|metrics| metrics.len() == 1);
        match target.get("averageUtilization") {
            Some(percent) if is_cpu && is_only => spec.insert("targetCPUUtilizationPercentage".into(), percent.clone()),
            _ => return Err(hidden()),
        };
    }
    value["apiVersion"] = kind.api_version().into();
    Ok(value)
}

fn hidden() -> Failure {
    Failure::not_simulated("what annotations of an autoscaling/v1 HorizontalPodAutoscaler say")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::kinds::built_in;

    fn kind(group: &str, version: &str, plural: &str) -> Kind {
        let wanted = |kind: &Kind| kind.group == group && kind.version == version && kind.plural == plural;
        built_in().into_iter().find(wanted).unwrap()
    }

    #[test]
    fn autoscalers_are_converted_there_and_back() {
        let old = json!({
            "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
            "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 70},
        });

        let new = to_version(&kind("autoscaling", "v2", "horizontalpodautoscalers"), &old).unwrap().unwrap();
        let back = to_version(&kind("autoscaling", "v1", "horizontalpodautoscalers"), &new).unwrap().unwrap();

        assert_eq!(new["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 70);
        assert_eq!(back, old);
    }

    #[test]
    fn what_the_old_version_cannot_say_is_refused() {
        let new = json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
            "spec": {"maxReplicas": 3, "behavior": {}},
        });

        let refused = to_version(&kind("autoscaling", "v1", "horizontalpodautoscalers"), &new);

        assert_eq!(refused.unwrap_err().code, 501);
    }

    #[test]
    fn events_have_two_groups() {
        let core = json!({"apiVersion": "v1", "kind": "Event", "message": "m", "involvedObject": {"name": "a"}});

        let new = to_version(&kind("events.k8s.io", "v1", "events"), &core).unwrap().unwrap();

        assert_eq!(
            new,
            json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "note": "m", "regarding": {"name": "a"}})
        );
        assert_eq!(to_version(&kind("", "v1", "events"), &new).unwrap().unwrap(), core);
    }
}

//! HorizontalPodAutoscaler v1 and v2. v1 keeps the fields that it lacks as JSON text in annotations. Only metrics of
//! resources are converted.

use serde_json::{Map, Value, json};

use super::super::status::Failure;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

pub(super) fn to_old(value: &Value) -> Result<Value, Failure> {
    let mut value = value.clone();
    let mut hidden = Map::new();
    if let Some(spec) = fields(&mut value, "spec") {
        let metrics = list(spec.remove("metrics"));
        let (cpu, others): (Vec<_>, Vec<_>) = metrics.into_iter().partition(is_cpu_utilization);
        if let Some(percent) = cpu.first().and_then(|metric| metric.pointer("/resource/target/averageUtilization")) {
            spec.insert("targetCPUUtilizationPercentage".into(), percent.clone());
        }
        let others: Result<Vec<_>, _> = others.iter().chain(cpu.iter().skip(1)).map(old_target).collect();
        hide(&mut hidden, METRICS, others?);
        if let Some(behavior) = spec.remove("behavior") {
            hidden.insert(BEHAVIOR.into(), behavior.to_string().into());
        }
    }
    if let Some(status) = fields(&mut value, "status") {
        hide(&mut hidden, CONDITIONS, list(status.remove("conditions")));
        let metrics = list(status.remove("currentMetrics"));
        let cpu = metrics.iter().find(|metric| metric["resource"]["name"] == "cpu");
        if let Some(percent) = cpu.and_then(|metric| metric.pointer("/resource/current/averageUtilization")) {
            status.insert("currentCPUUtilizationPercentage".into(), percent.clone());
        }
        let metrics: Result<Vec<_>, _> = metrics.iter().map(old_current).collect();
        hide(&mut hidden, CURRENT_METRICS, metrics?);
    }
    if !hidden.is_empty() {
        let annotations = &mut value["metadata"]["annotations"];
        if !annotations.is_object() {
            *annotations = json!({});
        }
        annotations.as_object_mut().into_iter().for_each(|annotations| annotations.extend(hidden.clone()));
    }
    value["apiVersion"] = "autoscaling/v1".into();
    Ok(value)
}

pub(super) fn to_new(value: &Value) -> Result<Value, Failure> {
    let mut value = value.clone();
    let mut hidden = Map::new();
    if let Some(metadata) = fields(&mut value, "metadata")
        && let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
    {
        for key in [METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR] {
            let text = annotations.remove(key).and_then(|text| text.as_str().map(str::to_owned));
            if let Some(content) = text.and_then(|text| serde_json::from_str(&text).ok()) {
                hidden.insert(key.into(), content);
            }
        }
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    if let Some(spec) = fields(&mut value, "spec") {
        let cpu = spec.remove("targetCPUUtilizationPercentage").map(|percent| {
            let target = json!({"type": "Utilization", "averageUtilization": percent});
            json!({"type": "Resource", "resource": {"name": "cpu", "target": target}})
        });
        let others: Result<Vec<_>, _> = list(hidden.remove(METRICS)).iter().map(new_target).collect();
        let metrics: Vec<Value> = others?.into_iter().chain(cpu).collect();
        if !metrics.is_empty() {
            spec.insert("metrics".into(), metrics.into());
        }
        spec.extend(hidden.remove(BEHAVIOR).map(|behavior| ("behavior".to_owned(), behavior)));
    }
    if let Some(status) = fields(&mut value, "status") {
        status.remove("currentCPUUtilizationPercentage");
        status.extend(hidden.remove(CONDITIONS).map(|conditions| ("conditions".to_owned(), conditions)));
        let metrics: Result<Vec<_>, _> = list(hidden.remove(CURRENT_METRICS)).iter().map(new_current).collect();
        let metrics = metrics?;
        if !metrics.is_empty() {
            status.insert("currentMetrics".into(), metrics.into());
        }
    }
    value["apiVersion"] = "autoscaling/v2".into();
    Ok(value)
}

fn fields<'a>(value: &'a mut Value, part: &str) -> Option<&'a mut Map<String, Value>> {
    value.get_mut(part).and_then(Value::as_object_mut)
}

fn list(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

fn hide(hidden: &mut Map<String, Value>, key: &str, items: Vec<Value>) {
    if !items.is_empty() {
        hidden.insert(key.into(), Value::Array(items).to_string().into());
    }
}

fn is_cpu_utilization(metric: &Value) -> bool {
    metric["type"] == "Resource"
        && metric["resource"]["name"] == "cpu"
        && metric.pointer("/resource/target/averageUtilization").is_some()
}

fn resource(metric: &Value) -> Result<&Value, Failure> {
    match metric["type"].as_str() {
        Some("Resource") => Ok(&metric["resource"]),
        _ => Err(Failure::not_simulated("autoscaling/v1 of metrics other than those of resources")),
    }
}

fn old_target(metric: &Value) -> Result<Value, Failure> {
    renamed(
        metric,
        "target",
        [("averageUtilization", "targetAverageUtilization"), ("averageValue", "targetAverageValue")],
    )
}

fn old_current(metric: &Value) -> Result<Value, Failure> {
    renamed(
        metric,
        "current",
        [("averageUtilization", "currentAverageUtilization"), ("averageValue", "currentAverageValue")],
    )
}

/// Moves the numbers of a metric out of `part` and renames them.
fn renamed(metric: &Value, part: &str, names: [(&str, &str); 2]) -> Result<Value, Failure> {
    let resource = resource(metric)?;
    let mut old = json!({"name": resource["name"]});
    for (new, name) in names {
        if let Some(content) = resource[part].get(new) {
            old[name] = content.clone();
        }
    }
    Ok(json!({"type": "Resource", "resource": old}))
}

fn new_target(metric: &Value) -> Result<Value, Failure> {
    let resource = resource(metric)?;
    let target = match (resource.get("targetAverageUtilization"), resource.get("targetAverageValue")) {
        (Some(percent), _) => json!({"type": "Utilization", "averageUtilization": percent}),
        (None, value) => json!({"type": "AverageValue", "averageValue": value}),
    };
    Ok(json!({"type": "Resource", "resource": {"name": resource["name"], "target": target}}))
}

fn new_current(metric: &Value) -> Result<Value, Failure> {
    let resource = resource(metric)?;
    let mut current = json!({});
    for (old, name) in [("currentAverageUtilization", "averageUtilization"), ("currentAverageValue", "averageValue")] {
        if let Some(content) = resource.get(old) {
            current[name] = content.clone();
        }
    }
    Ok(json!({"type": "Resource", "resource": {"name": resource["name"], "current": current}}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn autoscaler_v1_keeps_v2_fields_in_annotations() {
        let metric = |name: &str| {
            let target = json!({"type": "Utilization", "averageUtilization": 50});
            json!({"type": "Resource", "resource": {"name": name, "target": target}})
        };
        let new = json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
            "spec": {"maxReplicas": 3, "metrics": [metric("memory"), metric("cpu")], "behavior": {"scaleUp": {}}},
            "status": {"conditions": [{"type": "AbleToScale", "status": "True"}], "currentMetrics": [
                {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 7}}},
            ]},
        });

        let old = to_old(&new).unwrap();

        assert_eq!(old["spec"], json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": 50}));
        assert_eq!(old["status"], json!({"currentCPUUtilizationPercentage": 7}));
        let expected = r#"[{"resource":{"name":"memory","targetAverageUtilization":50},"type":"Resource"}]"#;
        assert_eq!(old["metadata"]["annotations"][METRICS], expected);
        assert_eq!(to_new(&old).unwrap(), new);
    }

    #[test]
    fn autoscaler_v1_refuses_other_metrics() {
        let new = json!({"apiVersion": "autoscaling/v2", "spec": {"metrics": [{"type": "External"}]}});

        assert_eq!(to_old(&new).unwrap_err().code, 501);
    }
}

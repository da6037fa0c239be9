//! Tests of the whole webhook, one file for each step. The default is as in spec 51, "Scenarios": three nodes, no
//! autoscaler, no tolerations configured, and a Namespace without annotations.

mod affinity;
mod framework;
mod replicas;
mod spread;
mod tolerations;

use cluster::object::GroupVersionKind;
use serde_json::{Value, json};

use super::*;
use crate::webhooks::testing::{NAMESPACE, TestView, object};

const NAME: &str = "web";

const NO_TOLERATIONS: HighAvailabilityConfig =
    HighAvailabilityConfig { default_not_ready_toleration_seconds: None, default_unreachable_toleration_seconds: None };

fn annotated<const N: usize>(annotations: [(&str, &str); N]) -> TestView {
    TestView::new().namespace(NAMESPACE, annotations).nodes(3)
}

fn plain() -> TestView {
    annotated([])
}

fn cluster(tolerance: Option<&str>, zones: Option<&str>) -> TestView {
    match (tolerance, zones) {
        (None, None) => plain(),
        (Some(tolerance), None) => annotated([(FAILURE_TOLERANCE_TYPE, tolerance)]),
        (None, Some(zones)) => annotated([(ZONES, zones)]),
        (Some(tolerance), Some(zones)) => annotated([(FAILURE_TOLERANCE_TYPE, tolerance), (ZONES, zones)]),
    }
}

fn scaled(view: TestView, max_replicas: i64) -> TestView {
    let scaled = Scaled { namespace: NAMESPACE, api_version: "apps/v1", kind: "Deployment", name: NAME };
    view.autoscaler(&scaled, max_replicas)
}

fn deployment(component: &str, replicas: i64) -> Value {
    let labels = if component.is_empty() { json!({}) } else { json!({ TYPE: component }) };
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": NAME, "labels": labels },
        "spec": { "replicas": replicas, "template": { "metadata": { "labels": { "app": "x" } }, "spec": {} } },
    })
}

fn stateful_set(component: &str, replicas: i64) -> Value {
    let mut object = deployment(component, replicas);
    object["kind"] = json!("StatefulSet");
    object["spec"]["selector"] = json!({ "matchLabels": { "app": "x" } });
    object
}

fn autoscaler(component: &str, min: i64, max: i64) -> Value {
    let mut object = deployment(component, 0);
    object["apiVersion"] = json!("autoscaling/v2");
    object["kind"] = json!("HorizontalPodAutoscaler");
    object["spec"] = json!({ "minReplicas": min, "maxReplicas": max });
    object
}

fn with_annotation(mut object: Value, key: &str, value: &str) -> Value {
    object["metadata"]["annotations"][key] = json!(value);
    object
}

fn with_pods(mut object: Value, yaml: &str) -> Value {
    object["spec"]["template"]["spec"] = self::object(yaml);
    object
}

fn request<'a>(object: &Value, operation: &'a str) -> Request<'a> {
    let kind = object["kind"].as_str().unwrap_or_default();
    let kind = match kind {
        "HorizontalPodAutoscaler" => GroupVersionKind::new("autoscaling", "v2", kind),
        _ => GroupVersionKind::new("apps", "v1", kind),
    };
    Request { kind, namespace: NAMESPACE, name: NAME, operation }
}

fn mutated_with(config: HighAvailabilityConfig, view: &TestView, before: &Value) -> Value {
    let (webhook, mut object) = (HighAvailability(config), before.clone());
    let outcome = webhook.mutate(&mut object, &request(before, "CREATE"), view);
    assert_eq!(outcome, Ok(Mutation::Done), "{before}");

    let mut again = object.clone();
    let outcome = webhook.mutate(&mut again, &request(before, "UPDATE"), view);
    assert_eq!((outcome, &again), (Ok(Mutation::Done), &object), "sent again: {before}");
    object
}

fn mutated(view: &TestView, before: &Value) -> Value {
    mutated_with(NO_TOLERATIONS, view, before)
}

fn outcome(view: &TestView, object: &Value, operation: &str) -> Result<Mutation, Failure> {
    HighAvailability(NO_TOLERATIONS).mutate(&mut object.clone(), &request(object, operation), view)
}

fn replicas(view: &TestView, before: &Value) -> i64 {
    mutated(view, before)["spec"]["replicas"].as_i64().expect("there are replicas")
}

fn constraints(view: &TestView, before: &Value) -> Value {
    mutated(view, before)["spec"]["template"]["spec"]["topologySpreadConstraints"].take()
}

fn terms(view: &TestView, before: &Value) -> Value {
    let path =
        "/spec/template/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    mutated(view, before).pointer(path).cloned().unwrap_or_default()
}

fn tolerations(config: HighAvailabilityConfig, view: &TestView, before: &Value) -> Value {
    mutated_with(config, view, before)["spec"]["template"]["spec"]["tolerations"].take()
}

fn overlaid(mut object: Value, changed: Value) -> Value {
    match (&mut object, changed) {
        (Value::Object(fields), Value::Object(changed)) => {
            for (key, value) in changed {
                let before = fields.remove(&key).unwrap_or_default();
                fields.insert(key, overlaid(before, value));
            }
            object
        }
        (_, changed) => changed,
    }
}

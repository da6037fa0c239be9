//! The rules of spec 62, from the bytes of a review to the answer.

mod frame;
mod kinds;
mod metadata;
mod names;
mod operating_system_configs;
mod properties;

use serde_json::{Value, json};

use super::*;
use crate::webhooks::{
    exchange::{Body, Received},
    testing::TestView,
    validating::decode,
};

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
    must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

fn extension(kind: &str) -> Extension {
    all().into_iter().find(|extension| extension.kind.kind == kind).expect("the kind exists")
}

fn good_spec(kind: &str) -> Value {
    let secret = json!({ "name": "s", "namespace": "ns" });
    match kind {
        "BackupBucket" | "ControlPlane" | "Infrastructure" => {
            json!({ "type": "t", "region": "r", "secretRef": secret })
        }
        "BackupEntry" => json!({ "type": "t", "region": "r", "bucketName": "b", "secretRef": secret }),
        "Bastion" => json!({ "type": "t", "userData": "YQ==", "ingress": [{ "ipBlock": { "cidr": "10.0.0.0/8" } }] }),
        "ContainerRuntime" => json!({ "type": "t", "binaryPath": "/bin", "workerPool": { "name": "p" } }),
        "DNSRecord" => json!({
            "type": "t", "secretRef": secret, "name": "api.example.org", "recordType": "A", "values": ["10.0.0.1"],
        }),
        "Etcd" => json!({ "replicas": 1, "backup": { "store": { "prefix": "ns--u/o", "provider": "aws" } } }),
        "Extension" => json!({ "type": "t" }),
        "Network" => json!({ "type": "t", "podCIDR": "100.64.0.0/12", "serviceCIDR": "10.96.0.0/12" }),
        "OperatingSystemConfig" => json!({
            "type": "t", "purpose": "reconcile", "units": [{ "name": "u" }],
            "files": [{ "path": "/a", "content": { "inline": { "data": "x" } } }],
        }),
        "SelfHostedShootExposure" => json!({
            "type": "t", "port": 443,
            "endpoints": [{ "nodeName": "n", "addresses": [{ "type": "InternalIP", "address": "10.0.0.1" }] }],
        }),
        "Worker" => json!({ "type": "t", "region": "r", "secretRef": secret, "pools": [
            { "name": "p", "machineType": "m", "machineImage": { "name": "i", "version": "1" } },
        ]}),
        other => panic!("no kind: {other}"),
    }
}

fn good(kind: &str) -> Value {
    let ExtensionKind { group, namespaced, .. } = extension(kind).kind;
    let mut metadata = json!({ "name": "o", "uid": "u", "resourceVersion": "1", "generation": 1 });
    if namespaced {
        metadata["namespace"] = json!("ns");
    }
    json!({ "apiVersion": format!("{group}/v1alpha1"), "kind": kind, "metadata": metadata, "spec": good_spec(kind) })
}

fn with<const N: usize>(mut object: Value, changes: [(&str, Value); N]) -> Value {
    for (pointer, value) in changes {
        let (above, last) = pointer.rsplit_once('/').expect("a pointer");
        let mut at = &mut object;
        for step in above.split('/').skip(1) {
            at = match at {
                Value::Array(items) => &mut items[step.parse::<usize>().expect("a position")],
                other => &mut other[step],
            };
        }
        match at {
            Value::Array(items) => items[last.parse::<usize>().expect("a position")] = value,
            other => other[last] = value,
        }
    }
    object
}

fn spec_with<const N: usize>(kind: &str, changes: [(&str, Value); N]) -> Value {
    let mut object = good(kind);
    object["spec"] = with(object["spec"].take(), changes);
    object
}

fn judged(kind: &str, operation: &str, new: &Value, old: &Value) -> ReviewVerdict {
    let review = json!({ "request": { "uid": "u", "operation": operation, "object": new, "oldObject": old } });
    let received =
        Received { body: Body::Whole(review.to_string().into()), content_type: "application/json".to_owned() };
    let review = decode(&received, extension(kind).extent()).expect("it is a review");
    extension(kind).judge(&review, &TestView::new()).expect("nothing is read").verdict
}

fn reported(verdict: ReviewVerdict) -> Vec<String> {
    match verdict {
        ReviewVerdict::Allowed => Vec::new(),
        ReviewVerdict::Invalid { status, .. } => {
            let causes = status.causes.iter();
            causes.map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
        }
        ReviewVerdict::Errored { code, message } => vec![format!("{code} {message}")],
        other => panic!("{other:?}"),
    }
}

fn created(object: &Value) -> Vec<String> {
    reported(judged(object["kind"].as_str().expect("a kind"), "CREATE", object, &Value::Null))
}

fn updated(new: &Value, old: &Value) -> Vec<String> {
    reported(judged(new["kind"].as_str().expect("a kind"), "UPDATE", new, old))
}

fn required<const N: usize>(fields: [&str; N]) -> Vec<String> {
    fields.iter().map(|field| format!("{field}: Required value: field is required")).collect()
}

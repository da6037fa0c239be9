use std::sync::LazyLock;

use serde_json::json;

use super::*;

mod filled_in;
mod objects;
mod services;
mod workloads;

fn context() -> MergeContext<'static> {
    static LABELS: LazyLock<BTreeMap<String, String>> =
        LazyLock::new(|| inject::labels_to_inject(&BTreeMap::new(), "gardener"));
    MergeContext {
        origin: "ns/mr",
        labels: &LABELS,
        old: None,
        force_overwrite_labels: false,
        force_overwrite_annotations: false,
        preserve_replicas: false,
    }
}

fn old(labels: &[(&str, &str)]) -> Old {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Old { labels, annotations: BTreeMap::new() }
}

fn merged(manifest: &Value, live: &Value) -> Value {
    merge(manifest, live, &context()).unwrap()
}

fn object(api_version: &str, kind: &str, spec: Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"namespace": "ns", "name": "a"}, "spec": spec})
}

fn annotated(mut object: Value, key: &str, value: &str) -> Value {
    object["metadata"]["annotations"][key] = json!(value);
    object
}

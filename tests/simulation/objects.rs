use serde_json::{Value, json};

use crate::world::NAMESPACE;

pub(crate) fn object(api_version: &str, kind: &str, name: &str, fields: Value) -> Value {
    let mut object =
        json!({ "apiVersion": api_version, "kind": kind, "metadata": { "namespace": NAMESPACE, "name": name } });
    if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), fields) {
        object.extend(fields);
    }
    object
}

pub(crate) fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    let (parent, field) = pointer.rsplit_once('/').expect("a pointer to a field");
    object.pointer_mut(parent).expect("the parent exists")[field] = value;
    object
}

pub(crate) fn annotated(mut object: Value, key: &str, value: &str) -> Value {
    object["metadata"]["annotations"][format!("resources.gardener.cloud/{key}")] = json!(value);
    object
}

/// A workload of `apps/v1` whose pods have the label `app` with its name, one container `c` and no defaults.
pub(crate) fn workload(kind: &str, name: &str) -> Value {
    let template = json!({
        "metadata": { "labels": { "app": name } }, "spec": { "containers": [{ "name": "c", "image": "i:1" }] }
    });
    let spec = json!({ "selector": { "matchLabels": { "app": name } }, "template": template });
    object("apps/v1", kind, name, json!({ "spec": spec }))
}

pub(crate) fn stateful_set(name: &str, size: &str) -> Value {
    let claim = json!({
        "metadata": { "name": "data" },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": size } } }
    });
    let set = with(workload("StatefulSet", name), "/spec/volumeClaimTemplates", json!([claim]));
    with(set, "/spec/serviceName", json!(name))
}

pub(crate) fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.org" },
        "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": { "kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": { "spec": { "type": "object", "properties": { "size": { "type": "integer" } } } }
                } }
            }]
        }
    })
}

pub(crate) fn widget(size: u32) -> Value {
    object("example.org/v1", "Widget", "kept", json!({ "spec": { "size": size } }))
}

pub(crate) fn machine_definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "machines.machine.sapcloud.io" },
        "spec": {
            "group": "machine.sapcloud.io", "scope": "Namespaced",
            "names": { "kind": "Machine", "listKind": "MachineList", "plural": "machines", "singular": "machine" },
            "versions": [{ "name": "v1alpha1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true
            } } }]
        }
    })
}

pub(crate) fn istio_definition(version: &str, kind: &str, plural: &str) -> Value {
    let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.networking.istio.io") },
        "spec": {
            "group": "networking.istio.io", "scope": "Namespaced",
            "names": { "kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase() },
            "versions": [{ "name": version, "served": true, "storage": true, "schema": { "openAPIV3Schema": any } }],
        },
    })
}

//! Annotations that name the immutable Secrets and ConfigMaps of an object, and so keep them alive (spec 10 §19.3).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::unique::sha256_hex;
use crate::api::resources::{keys::REFERENCE_PREFIX, managed_resource::SecretRef};

/// The references of this type are unknown (spec 33 §6).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unhandled object type {0}")]
pub struct UnhandledType(String);

/// Kind of the referenced object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReferenceKind {
    /// A ConfigMap.
    ConfigMap,
    /// A Secret.
    Secret,
}

/// Returns the key of the annotation for an object. The annotation's value is the object's name.
/// ```
/// use gardener_resource_manager::producer::references::{ReferenceKind, annotation_key};
///
/// assert_eq!(
///     annotation_key(ReferenceKind::Secret, "managedresource-demo-0a1b2c3d"),
///     "reference.resources.gardener.cloud/secret-5befeaee"
/// );
/// ```
pub fn annotation_key(kind: ReferenceKind, name: &str) -> String {
    let kind = match kind {
        ReferenceKind::ConfigMap => "configmap",
        ReferenceKind::Secret => "secret",
    };
    format!("{REFERENCE_PREFIX}{kind}-{}", &sha256_hex(name.as_bytes())[..8])
}

/// Replaces all reference annotations of a ManagedResource by those of its `secretRefs`.
pub fn refresh(annotations: &mut BTreeMap<String, String>, secret_refs: &[SecretRef]) {
    annotations.retain(|key, _| !key.starts_with(REFERENCE_PREFIX));
    let wanted = secret_refs.iter().filter(|reference| !reference.name.is_empty());
    annotations.extend(
        wanted.map(|reference| (annotation_key(ReferenceKind::Secret, &reference.name), reference.name.clone())),
    );
}

type Found = Vec<(ReferenceKind, String)>;

/// Replaces the reference annotations of an object and its templates, and adds the keys `further` with empty values.
/// Other annotations stay. Fails, without a change, if the references of the type are unknown.
pub fn inject(object: &mut Value, further: &[&str]) -> Result<(), UnhandledType> {
    const POD: &str = "/spec/template/spec";
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let template: &[&str] = &["/metadata", "/spec/template/metadata"];
    let (spec, maps): (&str, &[&str]) = match (text("apiVersion"), text("kind")) {
        ("v1", "Pod") | ("monitoring.coreos.com/v1", "Prometheus") => ("/spec", &["/metadata"]),
        ("apps/v1" | "apps/v1beta2" | "apps/v1beta1", "Deployment" | "StatefulSet") => (POD, template),
        ("apps/v1" | "apps/v1beta2", "DaemonSet") | ("batch/v1", "Job") => (POD, template),
        ("batch/v1" | "batch/v1beta1", "CronJob") => (
            "/spec/jobTemplate/spec/template/spec",
            &["/metadata", "/spec/jobTemplate/metadata", "/spec/jobTemplate/spec/template/metadata"],
        ),
        ("resources.gardener.cloud/v1alpha1", "ManagedResource") => ("/spec", &["/metadata"]),
        (version, kind) => return Err(UnhandledType(format!("{version}, Kind={kind}"))),
    };
    let of_spec = match text("kind") {
        "ManagedResource" => |spec: &Value| names(&spec["secretRefs"], "/name", ReferenceKind::Secret),
        "Prometheus" => of_prometheus,
        _ => of_pod,
    };
    let found: Found = object.pointer(spec).map(of_spec).unwrap_or_default();
    let mut annotations: Map<String, Value> =
        found.into_iter().map(|(kind, name)| (annotation_key(kind, &name), name.into())).collect();
    annotations.extend(further.iter().map(|key| ((*key).to_owned(), "".into())));
    for path in maps {
        write(object, path, &annotations);
    }
    Ok(())
}

fn of_pod(spec: &Value) -> Found {
    let mut found = of_containers_and_volumes(spec);
    found.extend(names(&spec["imagePullSecrets"], "/name", ReferenceKind::Secret));
    found
}

fn of_containers_and_volumes(spec: &Value) -> Found {
    use ReferenceKind::{ConfigMap, Secret};
    let mut found = Vec::new();
    for container in items(&spec["containers"]) {
        found.extend(names(&container["envFrom"], "/secretRef/name", Secret));
        found.extend(names(&container["envFrom"], "/configMapRef/name", ConfigMap));
        found.extend(names(&container["env"], "/valueFrom/secretKeyRef/name", Secret));
        found.extend(names(&container["env"], "/valueFrom/configMapKeyRef/name", ConfigMap));
    }
    found.extend(names(&spec["volumes"], "/secret/secretName", Secret));
    found.extend(names(&spec["volumes"], "/configMap/name", ConfigMap));
    for volume in items(&spec["volumes"]) {
        found.extend(names(&volume["projected"]["sources"], "/secret/name", Secret));
        found.extend(names(&volume["projected"]["sources"], "/configMap/name", ConfigMap));
    }
    found
}

/// A missing half of a `basicAuth` counts as an empty name.
fn of_prometheus(spec: &Value) -> Found {
    let mut found = of_containers_and_volumes(spec);
    let auths = items(&spec["remoteWrite"]).map(|write| &write["basicAuth"]).filter(|auth| auth.is_object());
    for auth in auths {
        for half in ["username", "password"] {
            found.push((ReferenceKind::Secret, auth[half]["name"].as_str().unwrap_or_default().to_owned()));
        }
    }
    found
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn names(list: &Value, place: &str, kind: ReferenceKind) -> Found {
    let name = |item: &Value| item.pointer(place).and_then(Value::as_str).map(str::to_owned);
    items(list).filter_map(name).map(|name| (kind, name)).collect()
}

fn write(object: &mut Value, metadata: &str, annotations: &Map<String, Value>) {
    let Some((parent, last)) = metadata.rsplit_once('/') else { return };
    let Some(parent) = object.pointer_mut(parent).and_then(Value::as_object_mut) else { return };
    let metadata = parent.entry(last).or_insert(Value::Null);
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
    }
    let Some(metadata) = metadata.as_object_mut() else { return };
    let mut all = match metadata.remove("annotations") {
        Some(Value::Object(all)) => all,
        _ => Map::new(),
    };
    all.retain(|key, _| !key.starts_with(REFERENCE_PREFIX));
    all.extend(annotations.clone());
    if !all.is_empty() {
        metadata.insert("annotations".to_owned(), all.into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// spec 10 §19.3, example
    #[test]
    fn reference_annotations_name_present_references_only() {
        let stale = annotation_key(ReferenceKind::Secret, "old");
        let mut annotations = BTreeMap::from([(stale, "old".to_owned()), ("other".to_owned(), "kept".to_owned())]);

        refresh(&mut annotations, &[SecretRef { name: "managedresource-demo-0a1b2c3d".to_owned() }]);

        let expected = [
            ("other", "kept"),
            ("reference.resources.gardener.cloud/secret-5befeaee", "managedresource-demo-0a1b2c3d"),
        ];
        assert_eq!(annotations, expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    }

    #[test]
    fn reference_annotation_keys_differ_by_kind() {
        assert!(annotation_key(ReferenceKind::ConfigMap, "a").contains("/configmap-"));
    }

    fn injected(mut object: Value, further: &[&str]) -> Value {
        inject(&mut object, further).unwrap();
        let mut again = object.clone();
        inject(&mut again, further).unwrap();
        assert_eq!(again, object, "twice is once");
        object
    }

    fn pod_spec() -> Value {
        json!({
            "containers": [
                { "envFrom": [{ "secretRef": { "name": "s1" } }, { "configMapRef": { "name": "c1" } }] },
                { "env": [
                    { "valueFrom": { "secretKeyRef": { "name": "s2" } } },
                    { "valueFrom": { "configMapKeyRef": { "name": "c2" } } },
                    { "name": "plain", "value": "v" },
                ] },
            ],
            "initContainers": [{ "envFrom": [{ "secretRef": { "name": "not-covered" } }] }],
            "volumes": [
                { "secret": { "secretName": "s3" } },
                { "configMap": { "name": "c3" } },
                { "projected": { "sources": [{ "secret": { "name": "s4" } }, { "configMap": { "name": "c4" } }] } },
            ],
            "imagePullSecrets": [{ "name": "s5" }],
        })
    }

    fn expected(further: &[(&str, &str)]) -> Value {
        use ReferenceKind::{ConfigMap, Secret};
        let secrets = ["s1", "s2", "s3", "s4", "s5"].map(|name| (annotation_key(Secret, name), name));
        let config_maps = ["c1", "c2", "c3", "c4"].map(|name| (annotation_key(ConfigMap, name), name));
        let further = further.iter().map(|(key, value)| ((*key).to_owned(), *value));
        let all = secrets.into_iter().chain(config_maps).chain(further);
        Value::Object(all.map(|(key, value)| (key, value.into())).collect())
    }

    /// spec 33 §2
    #[test]
    fn reference_annotation_hashes_match_the_test_vectors() {
        for (name, hash) in [
            ("name", "82a3537f"),
            ("test-5678", "4ed34879"),
            ("managedresource-example1", "edb3f6e2"),
            ("app-config-4f2a9c1d", "e1333a37"),
            ("", "e3b0c442"),
        ] {
            let expected = format!("reference.resources.gardener.cloud/configmap-{hash}");
            assert_eq!(annotation_key(ReferenceKind::ConfigMap, name), expected);
        }
    }

    /// spec 33 §6, scenarios 26, 28 and 32
    #[test]
    fn reference_annotations_cover_a_pod_and_drop_stale_ones() {
        let stale = annotation_key(ReferenceKind::Secret, "stale");
        let metadata = json!({ "annotations": { stale: "stale", "foreign": "kept" } });
        let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec() });

        let pod = injected(pod, &["x"]);

        assert_eq!(pod["metadata"]["annotations"], expected(&[("foreign", "kept"), ("x", "")]));
    }

    /// spec 33 §6, scenario 27
    #[test]
    fn reference_annotations_are_set_in_templates_too() {
        let job = json!({ "spec": { "template": { "spec": pod_spec() } } });
        let cron_job = json!({ "apiVersion": "batch/v1", "kind": "CronJob", "spec": { "jobTemplate": job } });
        let cron_job = injected(cron_job, &[]);
        for map in ["/metadata", "/spec/jobTemplate/metadata", "/spec/jobTemplate/spec/template/metadata"] {
            assert_eq!(cron_job.pointer(map).unwrap()["annotations"], expected(&[]), "{map}");
        }

        for (version, kind) in [
            ("apps/v1", "Deployment"),
            ("apps/v1beta1", "StatefulSet"),
            ("apps/v1beta2", "DaemonSet"),
            ("batch/v1", "Job"),
        ] {
            let spec = json!({ "template": { "spec": pod_spec() } });
            let object = injected(json!({ "apiVersion": version, "kind": kind, "spec": spec }), &[]);

            assert_eq!(object["metadata"]["annotations"], expected(&[]), "{kind}");
            assert_eq!(object["spec"]["template"]["metadata"]["annotations"], expected(&[]), "{kind}");
        }
    }

    /// spec 33 §6, scenario 29
    #[test]
    fn reference_annotations_of_a_managed_resource_name_its_secrets() {
        let spec = json!({ "secretRefs": [{ "name": "a" }, { "name": "b" }] });
        let object =
            json!({ "apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource", "spec": spec });

        let annotations = injected(object, &[])["metadata"]["annotations"].take();

        let key = |name: &str| annotation_key(ReferenceKind::Secret, name);
        assert_eq!(annotations, json!({ key("a"): "a", key("b"): "b" }));
    }

    /// spec 33 §6, scenario 30
    #[test]
    fn reference_annotations_of_a_prometheus_with_half_a_basic_auth() {
        let writes = json!([{ "basicAuth": { "username": { "name": "user" } } }, { "url": "u" }]);
        let spec = json!({ "remoteWrite": writes, "imagePullSecrets": [{ "name": "not-covered" }] });
        let object = json!({ "apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus", "spec": spec });

        let annotations = injected(object, &[])["metadata"]["annotations"].take();

        let empty = "reference.resources.gardener.cloud/secret-e3b0c442";
        assert_eq!(annotations, json!({ annotation_key(ReferenceKind::Secret, "user"): "user", empty: "" }));
    }

    /// spec 33 §6, scenario 31
    #[test]
    fn reference_annotations_of_an_unknown_type_fail() {
        for (version, kind) in [("v1", "Service"), ("apps/v1beta1", "DaemonSet"), ("batch/v2", "Job"), ("", "")] {
            let mut object = json!({ "apiVersion": version, "kind": kind });
            let before = object.clone();

            let error = inject(&mut object, &["x"]).unwrap_err();

            assert!(error.to_string().starts_with("unhandled object type "), "{error}");
            assert_eq!(object, before);
        }
    }
}

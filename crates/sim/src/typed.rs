//! Unknown fields and fields of the wrong type (facts §1, §5). The schema of a custom kind knows its fields. An object
//! of a built-in kind is read as the client library's type and written again: what is missing then was unknown.

use std::fmt::Write;

use k8s_openapi::{
    api::{
        admissionregistration::v1 as admission,
        apps::v1 as apps,
        authentication::v1 as authentication,
        authorization::v1 as authorization,
        autoscaling::{v1 as autoscaling_v1, v2 as autoscaling_v2},
        batch::v1 as batch,
        certificates::v1 as certificates,
        coordination::v1 as coordination,
        core::v1 as core,
        discovery::v1 as discovery,
        events::v1 as events,
        networking::v1 as networking,
        policy::v1 as policy,
        rbac::v1 as rbac,
        scheduling::v1 as scheduling,
        storage::v1 as storage,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1 as extensions,
    kube_aggregator::pkg::apis::apiregistration::v1 as registration,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{kinds::ServedKind, schema};

/// Reads an object as its type and writes it again.
type Reread = fn(&Value) -> Result<Value, String>;

const LARGEST_SEARCH: usize = 65_536; // larger objects (bytes) are not searched for the field of the wrong type

/// Removes unknown fields, and null fields of built-in kinds. Returns the paths of the unknown fields. Fails with the
/// field of the wrong type; types in custom kinds belong to validation.
pub(super) fn prune(kind: &ServedKind, value: &mut Value) -> Result<Vec<String>, String> {
    if let Some(schema) = &kind.schema {
        let mut known = value.clone();
        schema::prune(schema, &mut known);
        let mut unknown = Vec::new();
        drop_unknown(value, &known, "", &mut unknown);
        return Ok(unknown);
    }
    let Some(reread) = reread(kind) else { return Ok(Vec::new()) };
    // Nulls in schemas have a meaning.
    if kind.plural != "customresourcedefinitions" {
        drop_nulls(value);
    }
    super::defaults::numbers_to_texts(value);
    add_null_times(kind, value);
    let known = match untimed_series(kind, value) {
        Some(timed) => reread(&timed),
        None => reread(value),
    };
    let known = known.map_err(|error| explain(kind, value, reread, &error))?;
    check_times(kind, value)?;
    let mut unknown = Vec::new();
    drop_unknown(value, &known, "", &mut unknown);
    Ok(unknown)
}

/// Returns an Event whose series has no time with one: validation, not decoding, misses the time.
fn untimed_series(kind: &ServedKind, value: &Value) -> Option<Value> {
    let is_untimed = |series: &Value| series.is_object() && series.get("lastObservedTime").is_none();
    if kind.kind != "Event" || !value.get("series").is_some_and(is_untimed) {
        return None;
    }
    let mut timed = value.clone();
    timed["series"]["lastObservedTime"] = "1970-01-01T00:00:00.000000Z".into();
    Some(timed)
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, content| !content.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Conditions show missing times as null.
fn add_null_times(kind: &ServedKind, value: &mut Value) {
    let fields: &[&str] = match kind.kind.as_str() {
        "Deployment" => &["lastTransitionTime", "lastUpdateTime"],
        "DaemonSet" | "ReplicaSet" | "ReplicationController" | "StatefulSet" => &["lastTransitionTime"],
        "Node" => &["lastHeartbeatTime", "lastTransitionTime"],
        "Job" | "PersistentVolumeClaim" | "Pod" => &["lastProbeTime", "lastTransitionTime"],
        _ => return,
    };
    let conditions = value.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        for field in fields {
            condition.entry(*field).or_insert(Value::Null);
        }
    }
}

fn drop_unknown(value: &mut Value, known: &Value, path: &str, unknown: &mut Vec<String>) {
    match (value, known) {
        (Value::Object(fields), Value::Object(known)) => fields.retain(|field, content| {
            let dot = if path.is_empty() { "" } else { "." };
            let path = format!("{path}{dot}{field}");
            match known.get(field) {
                Some(known) => {
                    drop_unknown(content, known, &path, unknown);
                    true
                }
                None => {
                    if !content.is_null() {
                        unknown.push(path);
                    }
                    content.is_null()
                }
            }
        }),
        (Value::Array(items), Value::Array(known)) => {
            for (index, (item, known)) in items.iter_mut().zip(known).enumerate() {
                drop_unknown(item, known, &format!("{path}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}

/// Times of Leases and Events have six decimals.
fn check_times(kind: &ServedKind, value: &Value) -> Result<(), String> {
    let pointers: &[&str] = match kind.kind.as_str() {
        "Lease" => &["/spec/acquireTime", "/spec/renewTime"],
        "Event" => &["/eventTime", "/series/lastObservedTime"],
        _ => return Ok(()),
    };
    for text in pointers.iter().filter_map(|pointer| value.pointer(pointer)).filter_map(Value::as_str) {
        let decimals = text.split_once('.').map_or(0, |(_, rest)| rest.bytes().take_while(u8::is_ascii_digit).count());
        if decimals != 6 {
            return Err(format!("parsing time \"{text}\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse it"));
        }
    }
    Ok(())
}

/// The error text of the Go decoder, as far as the type's error reveals it.
fn explain(kind: &ServedKind, value: &Value, reread: Reread, error: &str) -> String {
    let go_type = match error.split("expected ").nth(1).unwrap_or_default() {
        text if text.starts_with("i32") => "int32",
        text if text.starts_with("i64") => "int64",
        text if text.starts_with("a boolean") => "bool",
        text if text.starts_with("a string") => "string",
        _ => "another type",
    };
    let mut path = Vec::new();
    let mut place = value;
    if super::encode::to_vec(value).len() <= LARGEST_SEARCH {
        let mut probe = value.clone();
        while let Some(step) = culprit(&mut probe, &path, reread) {
            match place.get(&step) {
                Some(content) => place = content,
                None => break,
            }
            path.push(step);
        }
    }
    let found = match place {
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
        Value::Array(_) => "array",
        Value::Object(_) | Value::Null => "object",
    };
    let structure = match path.as_slice() {
        [] | [_] => kind.kind.clone(),
        [first, _] if first == "metadata" => "ObjectMeta".to_owned(),
        [.., parent, _] => format!("{}{}{}", kind.kind, parent[..1].to_uppercase(), &parent[1..]),
    };
    let mut text = format!("json: cannot unmarshal {found} into Go struct field {structure}");
    for step in &path {
        let _ = write!(text, ".{step}"); // writing to a String cannot fail
    }
    format!("{text} of type {go_type}")
}

/// Returns the field below `path` without which the object can be read. Ignores lists.
fn culprit(probe: &mut Value, path: &[String], reread: Reread) -> Option<String> {
    let pointer: String = path.iter().map(|step| format!("/{}", step.replace('~', "~0").replace('/', "~1"))).collect();
    let fields: Vec<String> = probe.pointer(&pointer)?.as_object()?.keys().cloned().collect();
    for field in fields {
        let taken = probe.pointer_mut(&pointer)?.as_object_mut()?.remove(&field)?;
        let is_fine = reread(probe).is_ok();
        probe.pointer_mut(&pointer)?.as_object_mut()?.insert(field.clone(), taken);
        if is_fine {
            return Some(field);
        }
    }
    None
}

fn as_type<T: DeserializeOwned + Serialize>(value: &Value) -> Result<Value, String> {
    let typed = T::deserialize(value).map_err(|error| error.to_string())?;
    serde_json::to_value(typed).map_err(|error| error.to_string())
}

fn reread(kind: &ServedKind) -> Option<Reread> {
    if kind.custom {
        return None;
    }
    let reread: Reread = match (kind.group.as_str(), kind.version.as_str(), kind.kind.as_str()) {
        ("", "v1", kind) => return core_kind(kind),
        ("apps", "v1", kind) => return apps_kind(kind),
        ("autoscaling", "v1", "HorizontalPodAutoscaler") => as_type::<autoscaling_v1::HorizontalPodAutoscaler>,
        ("autoscaling", "v2", "HorizontalPodAutoscaler") => as_type::<autoscaling_v2::HorizontalPodAutoscaler>,
        ("batch", "v1", "CronJob") => as_type::<batch::CronJob>,
        ("batch", "v1", "Job") => as_type::<batch::Job>,
        ("policy", "v1", "PodDisruptionBudget") => as_type::<policy::PodDisruptionBudget>,
        ("scheduling.k8s.io", "v1", "PriorityClass") => as_type::<scheduling::PriorityClass>,
        ("discovery.k8s.io", "v1", "EndpointSlice") => as_type::<discovery::EndpointSlice>,
        ("networking.k8s.io", "v1", "Ingress") => as_type::<networking::Ingress>,
        ("networking.k8s.io", "v1", "IngressClass") => as_type::<networking::IngressClass>,
        ("networking.k8s.io", "v1", "NetworkPolicy") => as_type::<networking::NetworkPolicy>,
        ("storage.k8s.io", "v1", kind) => return storage_kind(kind),
        ("authentication.k8s.io", "v1", "TokenReview") => as_type::<authentication::TokenReview>,
        ("authorization.k8s.io", "v1", "SubjectAccessReview") => as_type::<authorization::SubjectAccessReview>,
        ("certificates.k8s.io", "v1", "CertificateSigningRequest") => {
            as_type::<certificates::CertificateSigningRequest>
        }
        ("rbac.authorization.k8s.io", "v1", "ClusterRole") => as_type::<rbac::ClusterRole>,
        ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding") => as_type::<rbac::ClusterRoleBinding>,
        ("rbac.authorization.k8s.io", "v1", "Role") => as_type::<rbac::Role>,
        ("rbac.authorization.k8s.io", "v1", "RoleBinding") => as_type::<rbac::RoleBinding>,
        ("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration") => {
            as_type::<admission::MutatingWebhookConfiguration>
        }
        ("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy") => {
            as_type::<admission::ValidatingAdmissionPolicy>
        }
        ("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding") => {
            as_type::<admission::ValidatingAdmissionPolicyBinding>
        }
        ("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration") => {
            as_type::<admission::ValidatingWebhookConfiguration>
        }
        ("apiextensions.k8s.io", "v1", "CustomResourceDefinition") => as_type::<extensions::CustomResourceDefinition>,
        ("apiregistration.k8s.io", "v1", "APIService") => as_type::<registration::APIService>,
        ("coordination.k8s.io", "v1", "Lease") => as_type::<coordination::Lease>,
        ("events.k8s.io", "v1", "Event") => as_type::<events::Event>,
        _ => return None,
    };
    Some(reread)
}

fn core_kind(kind: &str) -> Option<Reread> {
    let reread: Reread = match kind {
        "ConfigMap" => as_type::<core::ConfigMap>,
        "Endpoints" => as_type::<core::Endpoints>,
        "Event" => as_type::<core::Event>,
        "LimitRange" => as_type::<core::LimitRange>,
        "Namespace" => as_type::<core::Namespace>,
        "Node" => as_type::<core::Node>,
        "PersistentVolume" => as_type::<core::PersistentVolume>,
        "PersistentVolumeClaim" => as_type::<core::PersistentVolumeClaim>,
        "Pod" => as_type::<core::Pod>,
        "PodTemplate" => as_type::<core::PodTemplate>,
        "ReplicationController" => as_type::<core::ReplicationController>,
        "ResourceQuota" => as_type::<core::ResourceQuota>,
        "Secret" => as_type::<core::Secret>,
        "Service" => as_type::<core::Service>,
        "ServiceAccount" => as_type::<core::ServiceAccount>,
        _ => return None,
    };
    Some(reread)
}

fn apps_kind(kind: &str) -> Option<Reread> {
    let reread: Reread = match kind {
        "ControllerRevision" => as_type::<apps::ControllerRevision>,
        "DaemonSet" => as_type::<apps::DaemonSet>,
        "Deployment" => as_type::<apps::Deployment>,
        "ReplicaSet" => as_type::<apps::ReplicaSet>,
        "StatefulSet" => as_type::<apps::StatefulSet>,
        _ => return None,
    };
    Some(reread)
}

fn storage_kind(kind: &str) -> Option<Reread> {
    let reread: Reread = match kind {
        "CSIDriver" => as_type::<storage::CSIDriver>,
        "CSINode" => as_type::<storage::CSINode>,
        "CSIStorageCapacity" => as_type::<storage::CSIStorageCapacity>,
        "StorageClass" => as_type::<storage::StorageClass>,
        "VolumeAttachment" => as_type::<storage::VolumeAttachment>,
        _ => return None,
    };
    Some(reread)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::built_in;

    fn kind(plural: &str) -> ServedKind {
        built_in().into_iter().find(|kind| kind.plural == plural).unwrap()
    }

    #[test]
    fn unknown_fields_are_named_and_dropped() {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"any": "thing"}, "foo": 1},
            "spec": {"containers": [{"name": "c", "bar": {}}], "nodeName": null}, "baz": [],
        });

        let unknown = prune(&kind("pods"), &mut pod).unwrap();

        assert_eq!(unknown, ["baz", "metadata.foo", "spec.containers[0].bar"]);
        let metadata = json!({"name": "p", "labels": {"any": "thing"}});
        let spec = json!({"containers": [{"name": "c"}]});
        assert_eq!(pod, json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}));
    }

    #[test]
    fn quantities_may_be_numbers() {
        let limits =
            |cpu: Value| json!({"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": cpu}}}]}});
        let mut pod = limits(json!(1));

        prune(&kind("pods"), &mut pod).unwrap();

        assert_eq!(pod, limits(json!("1")));
    }

    #[test]
    fn a_field_of_the_wrong_type_is_named() {
        let mut deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": "x"}});

        let error = prune(&kind("deployments"), &mut deployment).unwrap_err();

        let expected = "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32";
        assert_eq!(error, expected);
    }

    #[test]
    fn every_built_in_kind_that_is_stored_has_a_type() {
        let missing = built_in().into_iter().filter(|kind| !kind.is_review() && reread(kind).is_none());

        let missing: Vec<_> = missing.map(|kind| kind.kind).collect();

        assert_eq!(missing, [""; 0]);
    }
}

//! The types of built-in kinds: values of the wrong type are refused, unknown fields are dropped (facts §1).

use k8s_openapi::{
    api::{
        admissionregistration::v1 as admission, apps::v1 as apps, autoscaling::v1 as autoscaling_v1,
        autoscaling::v2 as autoscaling_v2, batch::v1 as batch, certificates::v1 as certificates,
        coordination::v1 as coordination, core::v1 as core, discovery::v1 as discovery, events::v1 as events,
        networking::v1 as networking, policy::v1 as policy, rbac::v1 as rbac, scheduling::v1 as scheduling,
        storage::v1 as storage,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1 as extensions,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
    kube_aggregator::pkg::apis::apiregistration::v1 as registration,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{kinds::Kind, status::Failure};

/// Maps whose values are quantities; numbers are allowed there too.
const QUANTITY_MAPS: [&str; 10] = [
    "limits",
    "requests",
    "capacity",
    "hard",
    "overhead",
    "default",
    "defaultRequest",
    "max",
    "min",
    "maxLimitRequestRatio",
];
const QUANTITIES: [&str; 3] = ["sizeLimit", "divisor", "averageValue"];

/// Checks the types of a decoded object and removes the fields that its kind does not have; returns their paths, for
/// warnings. Of custom kinds only the metadata is looked at: the rest is the schema's.
pub(super) fn decode(kind: &Kind, object: &mut Value) -> Result<Vec<String>, Failure> {
    if !object.is_object() {
        return Err(Failure::cannot_be_handled(kind, "json: cannot unmarshal the body into a Go struct"));
    }
    let mut unknown = Vec::new();
    let decoded = if kind.custom {
        decode_part(object.get_mut("metadata"), "metadata", &mut unknown, |copy| {
            round_trip::<ObjectMeta>(copy).map(Some)
        })
    } else {
        decode_part(Some(object), "", &mut unknown, |copy| built_in(kind, copy))
    };
    match decoded {
        Ok(()) => {}
        // The text may contain the value.
        Err(_) if kind.kind == "Secret" => {
            return Err(Failure::cannot_be_handled(kind, "json: cannot unmarshal a value into a Go struct field"));
        }
        Err(error) => return Err(Failure::cannot_be_handled(kind, &go_text(&error.to_string()))),
    }
    if kind.kind == "Lease" {
        check_times(kind, &object["spec"], &["acquireTime", "renewTime"])?;
    } else if kind.kind == "Event" {
        check_times(kind, object, &["eventTime"])?;
    }
    Ok(unknown)
}

/// Reads a value as its type and drops what the type does not have. `path` is where the value is.
fn decode_part(
    value: Option<&mut Value>,
    path: &str,
    unknown: &mut Vec<String>,
    read: impl FnOnce(&Value) -> Result<Option<Value>, serde_json::Error>,
) -> Result<(), serde_json::Error> {
    let Some(value) = value else { return Ok(()) };
    let mut copy = value.clone();
    texts_of_numbers(&mut copy);
    if let Some(typed) = read(&copy)? {
        prune(value, &typed, &mut path.to_owned(), unknown);
    }
    Ok(())
}

/// An object read and written as its type; `None` for kinds that have none here.
fn built_in(kind: &Kind, object: &Value) -> Result<Option<Value>, serde_json::Error> {
    /// Picks the type of a kind from rows of group and version, and its kinds.
    macro_rules! types {
        ($($group:literal $version:literal $module:ident: $($name:ident)+;)+) => {
            match (kind.group.as_str(), kind.version.as_str(), kind.kind.as_str()) {
                $($(($group, $version, stringify!($name)) => round_trip::<$module::$name>(object).map(Some),)+)+
                _ => Ok(None),
            }
        };
    }
    types! {
        "" "v1" core: ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume PersistentVolumeClaim Pod
            PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount;
        "admissionregistration.k8s.io" "v1" admission: MutatingWebhookConfiguration ValidatingAdmissionPolicy
            ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration;
        "apiextensions.k8s.io" "v1" extensions: CustomResourceDefinition;
        "apiregistration.k8s.io" "v1" registration: APIService;
        "apps" "v1" apps: ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet;
        "autoscaling" "v1" autoscaling_v1: HorizontalPodAutoscaler;
        "autoscaling" "v2" autoscaling_v2: HorizontalPodAutoscaler;
        "batch" "v1" batch: CronJob Job;
        "certificates.k8s.io" "v1" certificates: CertificateSigningRequest;
        "coordination.k8s.io" "v1" coordination: Lease;
        "discovery.k8s.io" "v1" discovery: EndpointSlice;
        "events.k8s.io" "v1" events: Event;
        "networking.k8s.io" "v1" networking: Ingress IngressClass NetworkPolicy;
        "policy" "v1" policy: PodDisruptionBudget;
        "rbac.authorization.k8s.io" "v1" rbac: ClusterRole ClusterRoleBinding Role RoleBinding;
        "scheduling.k8s.io" "v1" scheduling: PriorityClass;
        "storage.k8s.io" "v1" storage: CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment;
    }
}

fn round_trip<T: DeserializeOwned + Serialize>(value: &Value) -> Result<Value, serde_json::Error> {
    serde_json::to_value(T::deserialize(value)?)
}

/// Writes numbers as texts where both mean a quantity.
fn texts_of_numbers(value: &mut Value) {
    let to_text = |value: &mut Value| {
        if value.is_number() {
            *value = value.to_string().into();
        }
    };
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                if QUANTITY_MAPS.contains(&field.as_str())
                    && let Value::Object(amounts) = value
                {
                    amounts.values_mut().for_each(to_text);
                } else if QUANTITIES.contains(&field.as_str()) {
                    to_text(value);
                } else if field == "target"
                    && let Some(amount) = value.get_mut("value")
                {
                    to_text(amount);
                }
                texts_of_numbers(value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(texts_of_numbers),
        _ => {}
    }
}

/// Removes what the typed form does not have.
fn prune(value: &mut Value, typed: &Value, path: &mut String, unknown: &mut Vec<String>) {
    let length = path.len();
    match (value, typed) {
        (Value::Object(fields), Value::Object(typed)) => fields.retain(|field, value| {
            if length > 0 {
                path.push('.');
            }
            path.push_str(field);
            let known = typed.get(field);
            match known {
                Some(typed) => prune(value, typed, path, unknown),
                // Null is no value of any field.
                None if !value.is_null() => unknown.push(path.clone()),
                None => {}
            }
            path.truncate(length);
            known.is_some()
        }),
        (Value::Array(items), Value::Array(typed)) => {
            for (index, (item, typed)) in items.iter_mut().zip(typed).enumerate() {
                path.push_str(&format!("[{index}]"));
                prune(item, typed, path, unknown);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

/// The decoder's text in the words of the real server, as far as they are the same.
fn go_text(text: &str) -> String {
    let Some((found, wanted)) = text.strip_prefix("invalid type: ").and_then(|rest| rest.split_once(", expected "))
    else {
        return format!("json: {text}");
    };
    let found = match found.split(' ').next().unwrap_or_default() {
        "integer" | "floating" => "number",
        "boolean" => "bool",
        "map" => "object",
        "sequence" => "array",
        other => other,
    };
    let wanted = match wanted {
        "i32" => "int32",
        "i64" => "int64",
        "a boolean" => "bool",
        "a string" => "string",
        other => other,
    };
    format!("json: cannot unmarshal {found} into Go struct field of type {wanted}")
}

/// Times with microseconds are written with exactly six decimals.
fn check_times(kind: &Kind, value: &Value, fields: &[&str]) -> Result<(), Failure> {
    for time in fields.iter().filter_map(|field| value[*field].as_str()) {
        let decimals = time.split_once('.').map(|(_, rest)| rest.bytes().take_while(u8::is_ascii_digit).count());
        if decimals != Some(6) {
            let text = format!(
                "parsing time \"{time}\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse the decimals as \".000000\""
            );
            return Err(Failure::cannot_be_handled(kind, &text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sim::kinds;

    fn kind(plural: &str) -> Kind {
        kinds::built_in().into_iter().find(|kind| kind.plural == plural).unwrap()
    }

    #[test]
    fn unknown_fields_are_dropped_and_named() {
        let mut deployment = json!({
            "metadata": {"name": "a", "labels": null, "more": 1},
            "spec": {"bar": 1, "replicas": 0, "template": {"spec": {"containers": [
                {"name": "c", "extra": {}, "resources": {"limits": {"cpu": 1}}}]}}},
        });

        let unknown = decode(&kind("deployments"), &mut deployment).unwrap();

        assert_eq!(unknown, ["metadata.more", "spec.bar", "spec.template.spec.containers[0].extra"]);
        assert_eq!(
            deployment,
            json!({
                "metadata": {"name": "a"},
                "spec": {"replicas": 0, "template": {"spec": {"containers": [
                    {"name": "c", "resources": {"limits": {"cpu": 1}}}]}}},
            })
        );
    }

    #[test]
    fn wrong_types_are_refused() {
        let table = [
            ("deployments", json!({"spec": {"replicas": "x"}})),
            ("configmaps", json!({"data": {"a": 1}})),
            ("configmaps", json!({"metadata": {"labels": "x"}})),
            ("services", json!({"spec": {"ports": ["x"]}})),
            ("leases", json!({"spec": {"renewTime": "2026-01-01T00:00:00Z"}})),
            ("pods", json!([])),
        ];
        for (plural, mut object) in table {
            assert_eq!(decode(&kind(plural), &mut object).unwrap_err().code, 400, "{object}");
        }
        let mut deployment = json!({"spec": {"replicas": "x"}});
        assert_eq!(
            decode(&kind("deployments"), &mut deployment).unwrap_err(),
            Failure::bad_request(
                "Deployment in version \"v1\" cannot be handled as a Deployment: json: cannot unmarshal string into Go \
                 struct field of type int32"
            )
        );
    }

    #[test]
    fn a_refused_secret_is_not_in_the_text() {
        let mut secret = json!({"data": "hidden"});

        let failure = decode(&kind("secrets"), &mut secret).unwrap_err();

        assert!(!String::from_utf8_lossy(&failure.body).contains("hidden"));
    }
}

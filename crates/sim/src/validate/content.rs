//! Contents of built-in kinds, as far as tests depend on them.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{
    Cause, events,
    fields::{require, text},
    names, workload,
};
use crate::kinds::ServedKind;

const MOST_DATA: usize = 1_048_576; // bytes of all values of a ConfigMap or Secret
const APPROVAL: &str = "api-approved.kubernetes.io";

pub(super) fn check(kind: &ServedKind, new: &Value, causes: &mut Vec<Cause>) {
    let spec = &new["spec"];
    match kind.kind.as_str() {
        _ if workload::check(kind, new, causes) => {}
        "ConfigMap" => config_map(new, causes),
        "Secret" => secret(new, causes),
        "Service" => service(spec, causes),
        "NetworkPolicy" => network_policy(spec, causes),
        "Ingress" => ingress(spec, causes),
        "PodDisruptionBudget" if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() => {
            causes.push(Cause::invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"));
        }
        "HorizontalPodAutoscaler" => autoscaler(spec, causes),
        "Role" | "ClusterRole" => rules(&new["rules"], causes),
        "RoleBinding" | "ClusterRoleBinding" => role_reference(&new["roleRef"], kind.namespaced, causes),
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => webhooks(&new["webhooks"], causes),
        "Lease" => lease(spec, causes),
        "Event" => events::check(kind, new, causes),
        "CustomResourceDefinition" => definition(new, causes),
        "APIService" => api_service(new, causes),
        _ => {}
    }
}

pub(super) fn on_create(kind: &ServedKind, new: &Value, causes: &mut Vec<Cause>) {
    match kind.kind.as_str() {
        _ if kind.custom => {}
        "Event" => events::on_create(kind, new, causes),
        "PersistentVolumeClaim" => claim(new, causes),
        _ => {}
    }
}

fn claim(new: &Value, causes: &mut Vec<Cause>) {
    if items(&new["spec"]["accessModes"]).is_empty() {
        causes.push(Cause::required("spec.accessModes", "at least 1 access mode is required"));
    }
    if new["spec"]["resources"]["requests"]["storage"].is_null() {
        causes.push(Cause::required("spec.resources[storage]", ""));
    }
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn keys(field: &str, data: &Value, causes: &mut Vec<Cause>) -> usize {
    let mut size = 0;
    for (key, value) in data.as_object().into_iter().flatten() {
        for text in names::config_key(key) {
            causes.push(Cause::invalid(&format!("{field}[{key}]"), &key.as_str().into(), &text));
        }
        size += value.as_str().unwrap_or_default().len();
    }
    size
}

fn config_map(new: &Value, causes: &mut Vec<Cause>) {
    for key in new["data"].as_object().into_iter().flatten().map(|(key, _)| key) {
        if new["binaryData"].get(key).is_some() {
            let text = "duplicate of key present in binaryData";
            causes.push(Cause::invalid(&format!("data[{key}]"), &key.as_str().into(), text));
        }
    }
    let texts = keys("data", &new["data"], causes);
    keys("binaryData", &new["binaryData"], causes);
    if texts + decoded_size(&new["binaryData"]) > MOST_DATA {
        causes.push(Cause::too_long("[]", MOST_DATA as u64));
    }
}

fn decoded_size(data: &Value) -> usize {
    let values = data.as_object().into_iter().flatten().filter_map(|(_, value)| value.as_str());
    values.map(|text| STANDARD.decode(text).map_or(0, |bytes| bytes.len())).sum()
}

fn secret(new: &Value, causes: &mut Vec<Cause>) {
    keys("data", &new["data"], causes);
    if decoded_size(&new["data"]) > MOST_DATA {
        causes.push(Cause::too_long("data", MOST_DATA as u64));
    }
    let has = |key: &str| new["data"].get(key).is_some();
    let missing = |key: &str| Cause::required(&format!("data[{key}]"), "");
    let required: &[&str] = match text(new, "type") {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => &["username", "password"],
        "kubernetes.io/service-account-token" => {
            let annotation = "kubernetes.io/service-account.name";
            if text(&new["metadata"]["annotations"], annotation).is_empty() {
                causes.push(Cause::required(&format!("metadata.annotations[{annotation}]"), ""));
            }
            &[]
        }
        _ => &[],
    };
    causes.extend(required.iter().filter(|key| !has(key)).map(|key| missing(key)));
}

fn service(spec: &Value, causes: &mut Vec<Cause>) {
    let types = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    if !types.contains(&text(spec, "type")) {
        causes.push(Cause::not_supported("spec.type", &spec["type"], &types));
    }
    let ports = items(&spec["ports"]);
    if ports.is_empty() && spec["clusterIP"] != "None" && spec["type"] != "ExternalName" {
        causes.push(Cause::required("spec.ports", ""));
    }
    if spec["type"] == "ExternalName" && text(spec, "externalName").is_empty() {
        causes.push(Cause::required("spec.externalName", ""));
    }
    for (index, port) in ports.iter().enumerate() {
        let field = format!("spec.ports[{index}]");
        if ports.len() > 1 && text(port, "name").is_empty() {
            causes.push(Cause::required(&format!("{field}.name"), ""));
        }
        let number = port["port"].as_i64().unwrap_or_default();
        if !(1..=65_535).contains(&number) {
            let text = "must be between 1 and 65535, inclusive";
            causes.push(Cause::invalid(&format!("{field}.port"), &number.into(), text));
        }
        let same = |other: &Value| other["port"] == port["port"] && other["protocol"] == port["protocol"];
        if ports[..index].iter().any(same) {
            let port = serde_json::json!({"protocol": port["protocol"], "port": port["port"]});
            causes.push(Cause::duplicate(&field, &port));
        }
    }
}

fn network_policy(spec: &Value, causes: &mut Vec<Cause>) {
    for direction in ["ingress", "egress"] {
        for (rule, content) in items(&spec[direction]).iter().enumerate() {
            for (index, port) in items(&content["ports"]).iter().enumerate() {
                let Some(name) = port["port"].as_str() else { continue };
                if !name.bytes().any(|byte| byte.is_ascii_lowercase()) {
                    let field = format!("spec.{direction}[{rule}].ports[{index}].port");
                    causes.push(Cause::invalid(&field, &name.into(), "must contain at least one letter (a-z)"));
                }
            }
        }
    }
}

fn ingress(spec: &Value, causes: &mut Vec<Cause>) {
    for (rule, content) in items(&spec["rules"]).iter().enumerate() {
        for (index, path) in items(&content["http"]["paths"]).iter().enumerate() {
            if path["pathType"].is_null() {
                let field = format!("spec.rules[{rule}].http.paths[{index}].pathType");
                causes.push(Cause::required(&field, "pathType must be specified"));
            }
        }
    }
}

fn autoscaler(spec: &Value, causes: &mut Vec<Cause>) {
    let most = spec["maxReplicas"].as_i64().unwrap_or_default();
    if most < 1 {
        causes.push(Cause::invalid("spec.maxReplicas", &most.into(), "must be greater than 0"));
    }
    if spec["minReplicas"].as_i64().is_some_and(|least| most < least) {
        let text = "must be greater than or equal to `minReplicas`";
        causes.push(Cause::invalid("spec.maxReplicas", &most.into(), text));
    }
}

fn rules(rules: &Value, causes: &mut Vec<Cause>) {
    for (index, rule) in items(rules).iter().enumerate() {
        if items(&rule["verbs"]).is_empty() {
            let field = format!("rules[{index}].verbs");
            causes.push(Cause::required(&field, "verbs must contain at least one value"));
        }
        if items(&rule["nonResourceURLs"]).is_empty() {
            for (field, text) in [
                ("apiGroups", "resource rules must supply at least one api group"),
                ("resources", "resource rules must supply at least one resource"),
            ] {
                if items(&rule[field]).is_empty() {
                    causes.push(Cause::required(&format!("rules[{index}].{field}"), text));
                }
            }
        }
    }
}

fn role_reference(reference: &Value, is_namespaced: bool, causes: &mut Vec<Cause>) {
    let kinds: &[&str] = if is_namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !kinds.contains(&text(reference, "kind")) {
        causes.push(Cause::not_supported("roleRef.kind", &text(reference, "kind").into(), kinds));
    }
    require(reference, "name", "roleRef.name", causes);
}

fn webhooks(webhooks: &Value, causes: &mut Vec<Cause>) {
    for (index, webhook) in items(webhooks).iter().enumerate() {
        if webhook["sideEffects"].is_null() {
            let field = format!("webhooks[{index}].sideEffects");
            causes.push(Cause::required(&field, "must specify one of None, NoneOnDryRun"));
        }
        if items(&webhook["admissionReviewVersions"]).is_empty() {
            let field = format!("webhooks[{index}].admissionReviewVersions");
            causes.push(Cause::required(&field, "must specify one of v1, v1beta1"));
        }
        require(webhook, "name", &format!("webhooks[{index}].name"), causes);
    }
}

fn lease(spec: &Value, causes: &mut Vec<Cause>) {
    if spec["leaseDurationSeconds"].as_i64().is_some_and(|seconds| seconds <= 0) {
        let field = "spec.leaseDurationSeconds";
        causes.push(Cause::invalid(field, &spec["leaseDurationSeconds"], "must be greater than 0"));
    }
    if spec["leaseTransitions"].as_i64().is_some_and(|count| count < 0) {
        let field = "spec.leaseTransitions";
        causes.push(Cause::invalid(field, &spec["leaseTransitions"], "must be greater than or equal to 0"));
    }
}

fn definition(new: &Value, causes: &mut Vec<Cause>) {
    let spec = &new["spec"];
    let group = text(spec, "group");
    let name = text(&new["metadata"], "name");
    if name != format!("{}.{group}", text(&spec["names"], "plural")) {
        let text = "must be spec.names.plural+\".\"+spec.group";
        causes.push(Cause::invalid("metadata.name", &name.into(), text));
    }
    let is_protected =
        ["k8s.io", "kubernetes.io"].into_iter().any(|domain| group == domain || group.ends_with(&format!(".{domain}")));
    if is_protected && text(&new["metadata"]["annotations"], APPROVAL).is_empty() {
        let field = format!("metadata.annotations[{APPROVAL}]");
        let text = format!(
            "protected groups must have approval annotation \"{APPROVAL}\", see \
             https://github.com/kubernetes/enhancements/pull/1111"
        );
        causes.push(Cause::required(&field, &text));
    }
    let scopes = ["Cluster", "Namespaced"];
    if !scopes.contains(&text(spec, "scope")) {
        causes.push(Cause::not_supported("spec.scope", &text(spec, "scope").into(), &scopes));
    }
    let versions = items(&spec["versions"]);
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        let text = "must have exactly one version marked as storage version";
        causes.push(Cause::invalid("spec.versions", &spec["versions"], text));
    }
    for (index, version) in versions.iter().enumerate() {
        if version["schema"]["openAPIV3Schema"].is_null() {
            let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
            causes.push(Cause::required(&field, "schemas are required"));
        }
    }
}

fn api_service(new: &Value, causes: &mut Vec<Cause>) {
    let spec = &new["spec"];
    let name = text(&new["metadata"], "name");
    if name != format!("{}.{}", text(spec, "version"), text(spec, "group")) {
        let text = "must be `spec.version+\".\"+spec.group`";
        causes.push(Cause::invalid("metadata.name", &name.into(), text));
    }
    for field in ["groupPriorityMinimum", "versionPriority"] {
        let number = spec[field].as_i64().unwrap_or_default();
        if number <= 0 {
            let text = "must be positive";
            causes.push(Cause::invalid(&format!("spec.{field}"), &number.into(), text));
        }
    }
}

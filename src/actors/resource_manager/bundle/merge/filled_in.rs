//! Fields that controllers of Kubernetes fill in (spec 10 §12.8a): an update must not remove them.

use serde_json::{Map, Value};

use super::{Rule, child_map, copy_field, spec_mut};

/// Fields that the PersistentVolume controller adds to the reference to a reserved claim.
const ADDED_TO_CLAIM_REF: [&str; 4] = ["uid", "resourceVersion", "apiVersion", "kind"];
const TOKEN_SECRET_TYPE: &str = "kubernetes.io/service-account-token";
const TOKEN_DATA: [&str; 3] = ["token", "ca.crt", "namespace"]; // data that the token controller writes into a Secret
const SERVICE_ACCOUNT_UID: &str = "kubernetes.io/service-account.uid"; // annotation that the token controller sets

/// Core `PersistentVolume`: without the `uid` of its claim a bound volume counts as released, and the claim is `Lost`.
pub(super) fn merge_persistent_volume(merged: &mut Value, rule: &Rule<'_>) {
    let Some(spec) = spec_mut(merged) else { return };
    let live = rule.live_spec().and_then(|spec| spec.get("claimRef"));
    let Some(Value::Object(live)) = live else { return };
    match spec.get_mut("claimRef") {
        None | Some(Value::Null) => {
            spec.insert("claimRef".to_owned(), Value::Object(live.clone()));
        }
        Some(Value::Object(wanted)) if is_same_claim(wanted, live) => {
            let filled_in = ADDED_TO_CLAIM_REF.into_iter().filter_map(|field| Some((field, live.get(field)?)));
            for (field, value) in filled_in {
                if text(wanted, field).is_empty() {
                    wanted.insert(field.to_owned(), value.clone());
                }
            }
        }
        Some(_) => {}
    }
}

fn is_same_claim(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    ["namespace", "name"].into_iter().all(|field| text(a, field) == text(b, field))
}

fn text<'a>(map: &'a Map<String, Value>, field: &str) -> &'a str {
    map.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Core `ServiceAccount` (spec 10 §12.6): token controllers and users write the references to Secrets; the manifest's
/// count only at the creation.
pub(super) fn merge_service_account(merged: &mut Value, rule: &Rule<'_>) {
    let Some(root) = merged.as_object_mut() else { return };
    copy_field(root, Some(rule.live), "secrets");
    copy_field(root, Some(rule.live), "imagePullSecrets");
}

/// `ClusterRole` of `rbac.authorization.k8s.io`: the aggregation controller owns the rules of an aggregated role.
pub(super) fn merge_cluster_role(merged: &mut Value, rule: &Rule<'_>) {
    let Some(root) = merged.as_object_mut() else { return };
    let is_aggregated = root.get("aggregationRule").and_then(Value::as_object).is_some_and(|rule| !rule.is_empty());
    if is_aggregated {
        copy_field(root, Some(rule.live), "rules");
    }
}

/// Core `Secret`: the token controller writes the token of a ServiceAccount into the Secret that asks for it.
pub(super) fn merge_secret(merged: &mut Value, rule: &Rule<'_>) {
    if merged.get("type").and_then(Value::as_str) != Some(TOKEN_SECRET_TYPE) {
        return;
    }
    let written: Vec<(&str, &Value)> = TOKEN_DATA
        .into_iter()
        .filter_map(|key| Some((key, rule.live.get("data")?.get(key)?)))
        .filter(|(key, value)| {
            !value.is_null() && merged.get("stringData").is_none_or(|text| text.get(key).is_none_or(Value::is_null))
        })
        .collect();
    if !written.is_empty()
        && let Some(data) = merged.as_object_mut().and_then(|root| child_map(root, "data"))
    {
        for (key, value) in written {
            if data.get(key).is_none_or(Value::is_null) {
                data.insert(key.to_owned(), value.clone());
            }
        }
    }
    let uid = rule.live.pointer("/metadata/annotations").and_then(|annotations| annotations.get(SERVICE_ACCOUNT_UID));
    let annotations = merged.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    if let (Some(annotations), Some(uid)) = (annotations, uid) {
        annotations.entry(SERVICE_ACCOUNT_UID).or_insert_with(|| uid.clone());
    }
}

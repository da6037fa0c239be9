//! stand-in
use super::kinds::Kind;
use serde_json::{Value, json};
use std::sync::Arc;
pub(super) fn api_versions() -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
}
fn versions(kinds: &[Arc<Kind>], group: &str) -> Vec<String> {
    let mut v: Vec<_> = kinds.iter().filter(|k| k.group == group).map(|k| k.version.clone()).collect();
    v.dedup();
    v
}
pub(super) fn group(kinds: &[Arc<Kind>], group: &str) -> Option<Value> {
    let v: Vec<_> = versions(kinds, group)
        .into_iter()
        .map(|v| json!({"groupVersion": format!("{group}/{v}"), "version": v}))
        .collect();
    let first = v.first()?.clone();
    Some(json!({"kind": "APIGroup", "apiVersion": "v1", "name": group, "versions": v, "preferredVersion": first}))
}
pub(super) fn group_list(kinds: &[Arc<Kind>]) -> Value {
    let mut names: Vec<_> = kinds.iter().map(|k| k.group.clone()).filter(|g| !g.is_empty()).collect();
    names.dedup();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": names.iter().filter_map(|g| group(kinds, g)).collect::<Vec<_>>()})
}
pub(super) fn resource_list(kinds: &[Arc<Kind>], group: &str, version: &str) -> Option<Value> {
    let list: Vec<_> = kinds.iter().filter(|k| k.group == group && k.version == version).map(|k| json!({"name": k.plural, "singularName": k.singular, "namespaced": k.namespaced, "kind": k.kind, "verbs": k.verbs})).collect();
    if list.is_empty() {
        return None;
    }
    let gv = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Some(json!({"kind": "APIResourceList", "groupVersion": gv, "resources": list}))
}
pub(super) fn aggregated(kinds: &[Arc<Kind>], core: bool) -> Value {
    let mut names: Vec<_> = kinds.iter().map(|k| k.group.clone()).filter(|g| g.is_empty() == core).collect();
    names.dedup();
    let items: Vec<_> = names.iter().map(|g| json!({"metadata": {"name": g}, "versions": versions(kinds, g).into_iter().map(|v| json!({"version": v, "freshness": "Current", "resources": kinds.iter().filter(|k| k.group == *g && k.version == v).map(|k| json!({"resource": k.plural, "responseKind": {"group": "", "version": "", "kind": k.kind}, "scope": if k.namespaced { "Namespaced" } else { "Cluster" }, "singularResource": k.singular, "verbs": k.verbs})).collect::<Vec<_>>()})).collect::<Vec<_>>()})).collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

//! Discovery documents (facts §7).

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::kinds::{ServedKind, Subresource, version_order};

pub(super) fn api_versions() -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "10.0.0.1:443"}],
    })
}

pub(super) fn group_list(kinds: &[Arc<ServedKind>]) -> Value {
    let groups = groups(kinds, false).into_iter().filter_map(|name| group_fields(kinds, name));
    let groups: Vec<_> = groups.map(Value::Object).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/<group>`, or `None` if it is not served.
pub(super) fn group(kinds: &[Arc<ServedKind>], name: &str) -> Option<Value> {
    let mut group = group_fields(kinds, name).filter(|_| !name.is_empty())?;
    group.insert("kind".into(), "APIGroup".into());
    group.insert("apiVersion".into(), "v1".into());
    Some(Value::Object(group))
}

/// `/api/v1` and `/apis/<group>/<version>`, or `None` if it is not served.
pub(super) fn resource_list(kinds: &[Arc<ServedKind>], group: &str, version: &str) -> Option<Value> {
    let served = served(kinds, group, version);
    let first = served.first()?;
    let mut list = json!({
        "kind": "APIResourceList",
        "groupVersion": first.api_version(),
        "resources": served.iter().flat_map(|kind| resources(kind)).collect::<Vec<_>>(),
    });
    if !group.is_empty() {
        list["apiVersion"] = "v1".into();
    }
    Some(list)
}

/// The `APIGroupDiscoveryList` (v2) of `/api` or `/apis`.
pub(super) fn aggregated(kinds: &[Arc<ServedKind>], core: bool) -> Value {
    let group = |name: &str| {
        let versions = versions(kinds, name).into_iter().map(|version| {
            let resources: Vec<_> =
                served(kinds, name, version).into_iter().map(|kind| aggregated_resource(kind)).collect();
            json!({"version": version, "freshness": "Current", "resources": resources})
        });
        let metadata = if name.is_empty() { json!({}) } else { json!({"name": name}) };
        json!({"metadata": metadata, "versions": versions.collect::<Vec<_>>()})
    };
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": groups(kinds, core).into_iter().map(group).collect::<Vec<_>>(),
    })
}

/// Groups in order of appearance: only the core group, or all others.
fn groups(kinds: &[Arc<ServedKind>], core: bool) -> Vec<&str> {
    let mut groups: Vec<&str> = Vec::new();
    for kind in kinds {
        if kind.group.is_empty() == core && !groups.contains(&kind.group.as_str()) {
            groups.push(&kind.group);
        }
    }
    groups
}

fn versions<'a>(kinds: &'a [Arc<ServedKind>], group: &str) -> Vec<&'a str> {
    let of_group = kinds.iter().filter(|kind| kind.group == group);
    let mut versions: Vec<&str> = of_group.map(|kind| kind.version.as_str()).collect();
    versions.sort_by_key(|version| version_order(version));
    versions.dedup();
    versions
}

fn served<'a>(kinds: &'a [Arc<ServedKind>], group: &str, version: &str) -> Vec<&'a Arc<ServedKind>> {
    let mut served: Vec<_> = kinds.iter().filter(|kind| kind.group == group && kind.version == version).collect();
    served.sort_by(|a, b| a.plural.cmp(&b.plural));
    served
}

fn group_fields(kinds: &[Arc<ServedKind>], name: &str) -> Option<Map<String, Value>> {
    let versions: Vec<Value> = versions(kinds, name)
        .into_iter()
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    let mut group = Map::new();
    group.insert("name".into(), name.into());
    group.insert("preferredVersion".into(), versions.first()?.clone());
    group.insert("versions".into(), versions.into());
    Some(group)
}

fn resources(kind: &ServedKind) -> Vec<Value> {
    let mut resource = json!({
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": kind.verbs,
    });
    add_names(&mut resource, kind);
    let subresource = |part: &Subresource| {
        let mut entry = json!({
            "name": format!("{}/{}", kind.plural, part.name),
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": part.kind,
            "verbs": part.verbs,
        });
        if !part.version.is_empty() {
            entry["group"] = part.group.clone().into();
            entry["version"] = part.version.clone().into();
        }
        entry
    };
    std::iter::once(resource).chain(kind.subresources.iter().map(subresource)).collect()
}

fn aggregated_resource(kind: &ServedKind) -> Value {
    // Built-in kinds omit the group and version that they share with their parent.
    let own = if kind.custom { (kind.group.as_str(), kind.version.as_str()) } else { ("", "") };
    let response_kind =
        |group: &str, version: &str, name: &str| json!({"group": group, "version": version, "kind": name});
    let mut resource = json!({
        "resource": kind.plural,
        "responseKind": response_kind(own.0, own.1, &kind.kind),
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular,
        "verbs": kind.verbs,
    });
    add_names(&mut resource, kind);
    let subresource = |part: &Subresource| {
        let (group, version) = if part.version.is_empty() { own } else { (part.group.as_str(), part.version.as_str()) };
        json!({"subresource": part.name, "responseKind": response_kind(group, version, &part.kind), "verbs": part.verbs})
    };
    if !kind.subresources.is_empty() {
        resource["subresources"] = kind.subresources.iter().map(subresource).collect();
    }
    resource
}

fn add_names(resource: &mut Value, kind: &ServedKind) {
    for (field, names) in [("shortNames", &kind.short_names), ("categories", &kind.categories)] {
        if !names.is_empty() {
            resource[field] = names.clone().into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    fn all() -> Vec<Arc<ServedKind>> {
        let definition = json!({"spec": {"group": "g.io", "scope": "Cluster",
            "names": {"kind": "Thing", "plural": "things"}, "versions": [{"name": "v1", "served": true}]}});
        kinds::built_in().into_iter().chain(kinds::of_definition(&definition)).map(Arc::new).collect()
    }

    #[test]
    fn a_group_prefers_its_newest_version() {
        let group = group(&all(), "autoscaling").unwrap();

        assert_eq!(
            group,
            json!({
                "kind": "APIGroup",
                "apiVersion": "v1",
                "name": "autoscaling",
                "versions": [
                    {"groupVersion": "autoscaling/v2", "version": "v2"},
                    {"groupVersion": "autoscaling/v1", "version": "v1"},
                ],
                "preferredVersion": {"groupVersion": "autoscaling/v2", "version": "v2"},
            })
        );
        assert_eq!(super::group(&all(), "none"), None);
        assert_eq!(super::group(&all(), ""), None);
    }

    #[test]
    fn subresources_are_entries_of_their_own_kind() {
        let list = resource_list(&all(), "apps", "v1").unwrap();

        let of = |name: &str| list["resources"].as_array().unwrap().iter().find(|entry| entry["name"] == name).unwrap();
        assert_eq!(
            *of("deployments"),
            json!({"name": "deployments", "singularName": "deployment", "namespaced": true, "kind": "Deployment",
                "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
                "shortNames": ["deploy"], "categories": ["all"]})
        );
        assert_eq!(
            *of("deployments/scale"),
            json!({"name": "deployments/scale", "singularName": "", "namespaced": true, "group": "autoscaling",
                "version": "v1", "kind": "Scale", "verbs": ["get", "patch", "update"]})
        );
    }

    #[test]
    fn discovery_documents_of_the_core_group_lack_their_own_version() {
        assert_eq!(resource_list(&all(), "", "v1").unwrap().get("apiVersion"), None);
        assert_eq!(resource_list(&all(), "apps", "v1").unwrap()["apiVersion"], "v1");
        assert_eq!(resource_list(&all(), "apps", "v2"), None);
    }

    #[test]
    fn the_aggregated_document_names_response_kinds_of_custom_kinds_in_full() {
        let core = aggregated(&all(), true);
        let others = aggregated(&all(), false);

        assert_eq!(core["items"].as_array().map(Vec::len), Some(1));
        assert_eq!(core["items"][0]["metadata"], json!({}));
        assert_eq!(
            core["items"][0]["versions"][0]["resources"][0]["responseKind"],
            json!({"group": "", "version": "", "kind": "ConfigMap"})
        );
        let custom = others["items"].as_array().unwrap().last().unwrap();
        assert_eq!(custom["metadata"]["name"], "g.io");
        assert_eq!(
            custom["versions"][0]["resources"][0],
            json!({"resource": "things", "responseKind": {"group": "g.io", "version": "v1", "kind": "Thing"},
                "scope": "Cluster", "singularResource": "thing",
                "verbs": ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]})
        );
    }
}

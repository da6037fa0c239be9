//! The server's discovery documents as a table of kinds. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::{ApiError, ApiName, Resource};
use crate::object::{GroupKind, GroupVersionKind, api_version};

/// The kinds a server serves, by group; versions in the server's order of preference.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Served(pub(super) BTreeMap<ApiName, Vec<Version>>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) name: ApiName,
    pub(super) resources: Vec<Resource>,
    /// Why the resources are incomplete or stale.
    pub(super) stale: Option<String>,
}

pub(super) type GroupVersions = (ApiName, Vec<ApiName>);

impl Served {
    /// Returns the resource of a kind in a version. Fails if it is not served, or if the version is stale.
    pub(super) fn resource(&self, kind: &GroupVersionKind) -> Result<Resource, ApiError> {
        let missing = || ApiError::NoMatch(kind.clone());
        let version = self.versions(&kind.group).find(|version| *version.name == kind.version).ok_or_else(missing)?;
        version.resource(&kind.kind).cloned().ok_or_else(|| version.unknown().unwrap_or_else(missing))
    }

    pub(super) fn preferred(&self, kind: &GroupKind) -> Option<Resource> {
        self.versions(&kind.group).find_map(|version| version.resource(&kind.kind)).cloned()
    }

    pub(super) fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.0.values().flatten().flat_map(|version| &version.resources)
    }

    /// Keeps the resources known before for each version that is stale and empty now.
    pub(super) fn keeping(mut self, before: Option<&Self>) -> Self {
        for (group, versions) in &mut self.0 {
            for version in versions.iter_mut().filter(|version| version.stale.is_some() && version.resources.is_empty())
            {
                let known = before.and_then(|before| before.versions(group).find(|old| old.name == version.name));
                version.resources = known.map(|known| known.resources.clone()).unwrap_or_default();
            }
        }
        self
    }

    /// Returns the fresh versions that lack kinds known before, which does not prove that these are gone (facts §7).
    pub(super) fn lost_since(&self, before: &Self) -> Vec<(ApiName, ApiName)> {
        let versions =
            before.0.iter().flat_map(|(group, versions)| versions.iter().map(move |version| (group, version)));
        let is_lost = |(group, old): &(&ApiName, &Version)| {
            let new = self.versions(group).find(|new| new.name == old.name);
            let has = |resource: &Resource| new.is_some_and(|new| new.resource(&resource.kind).is_some());
            new.is_none_or(|new| new.stale.is_none()) && !old.resources.iter().all(has)
        };
        versions.filter(is_lost).map(|(group, version)| (group.clone(), version.name.clone())).collect()
    }

    pub(super) fn keep(&mut self, group: &ApiName, version: &str, before: &Self, why: ApiError) {
        if let Some(old) = before.version(group, version) {
            self.put(group, Version { stale: Some(why.into_discovery_text()), ..old.clone() });
        }
    }

    /// Replaces a version by its own document; a new version comes last. Returns true if that is a change.
    pub(super) fn put(&mut self, group: &ApiName, version: Version) -> bool {
        let versions = self.0.entry(group.clone()).or_default();
        match versions.iter_mut().find(|known| known.name == version.name) {
            // The documents list resources in different orders.
            Some(known) if known.stale == version.stale && known.sorted() == version.sorted() => return false,
            Some(known) => *known = version,
            None => versions.push(version),
        }
        true
    }

    pub(super) fn remove(&mut self, group: &str, version: &str) -> bool {
        let Some(versions) = self.0.get_mut(group) else { return false };
        let before = versions.len();
        versions.retain(|known| &*known.name != version);
        let is_changed = versions.len() < before;
        if versions.is_empty() {
            self.0.remove(group);
        }
        is_changed
    }

    pub(super) fn version(&self, group: &str, version: &str) -> Option<&Version> {
        self.versions(group).find(|known| &*known.name == version)
    }

    fn versions(&self, group: &str) -> impl Iterator<Item = &Version> {
        self.0.get(group).into_iter().flatten()
    }
}

impl Version {
    pub(super) fn resource(&self, kind: &str) -> Option<&Resource> {
        self.resources.iter().find(|resource| &*resource.kind == kind)
    }

    fn sorted(&self) -> BTreeSet<&Resource> {
        self.resources.iter().collect()
    }

    /// The error for a miss in a stale version: the kind may exist.
    fn unknown(&self) -> Option<ApiError> {
        self.stale.clone().map(ApiError::Discovery)
    }
}

/// From an `APIGroupDiscoveryList` (of `/api` or `/apis`).
pub(super) fn aggregated(document: &Value) -> Result<Served, ApiError> {
    let mut served = Served::default();
    for group in list(document, "items")? {
        let name: ApiName = text(&group["metadata"], "name").into();
        let versions = list(group, "versions")?.iter().map(|version| aggregated_version(&name, version));
        let versions = versions.collect::<Result<_, _>>()?;
        served.0.insert(name, versions);
    }
    Ok(served)
}

fn aggregated_version(group: &ApiName, version: &Value) -> Result<Version, ApiError> {
    let name: ApiName = text(version, "version").into();
    let resources = version["resources"].as_array().into_iter().flatten();
    let resources = resources.filter_map(|resource| {
        let kind = text(&resource["responseKind"], "kind");
        let namespaced = resource["scope"] == "Namespaced";
        let resource = text(resource, "resource");
        // an API that answers with another kind than it stores has no kind to look up
        (!kind.is_empty() && !resource.is_empty()).then(|| Resource {
            group: group.clone(),
            version: name.clone(),
            kind: kind.into(),
            plural: resource.into(),
            namespaced,
        })
    });
    let resources = resources.collect();
    let stale = (version["freshness"] == "Stale").then(|| {
        let api_version = api_version(group, &name);
        format!("{api_version}: stale GroupVersion discovery: {api_version}")
    });
    Ok(Version { name, resources, stale })
}

/// Returns groups and their versions in order of preference, from `APIVersions` (`/api`) or `APIGroupList` (`/apis`).
pub(super) fn legacy_groups(document: &Value) -> Result<Vec<GroupVersions>, ApiError> {
    if document["kind"] == "APIVersions" {
        let versions = list(document, "versions")?.iter().filter_map(Value::as_str).map(ApiName::from).collect();
        return Ok(vec![("".into(), versions)]);
    }
    let groups = list(document, "groups")?.iter();
    groups
        .map(|group| {
            let preferred = text(&group["preferredVersion"], "version");
            let mut versions: Vec<_> = list(group, "versions")?.iter().map(|it| text(it, "version")).collect();
            versions.sort_by_key(|version| *version != preferred); // stable: the rest keeps its order
            Ok((text(group, "name").into(), versions.into_iter().map(ApiName::from).collect()))
        })
        .collect()
}

/// Returns the names of a group's versions, from `APIVersions` (`/api`) or `APIGroup` (`/apis/<group>`).
pub(super) fn version_names(document: &Value) -> Result<Vec<ApiName>, ApiError> {
    let names = list(document, "versions")?.iter();
    Ok(names
        .filter_map(|version| version.as_str().or_else(|| version["version"].as_str()))
        .map(ApiName::from)
        .collect())
}

/// Returns the resources of an `APIResourceList`, without subresources.
pub(super) fn legacy_resources(group: &ApiName, version: &ApiName, document: &Value) -> Result<Version, ApiError> {
    let resources = list(document, "resources")?.iter().filter(|resource| !text(resource, "name").contains('/'));
    let resources = resources.map(|resource| Resource {
        group: group.clone(),
        version: version.clone(),
        kind: text(resource, "kind").into(),
        plural: text(resource, "name").into(),
        namespaced: resource["namespaced"] == true,
    });
    Ok(Version { name: version.clone(), resources: resources.collect(), stale: None })
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, field: &str) -> Result<&'a Vec<Value>, ApiError> {
    let missing = || ApiError::Decode(format!("the discovery document has no {field}"));
    value[field].as_array().ok_or_else(missing)
}

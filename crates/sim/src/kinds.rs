//! What the server knows about kinds: names, verbs and the habits in which kinds differ (facts §4, §6, §7).

mod definition;
mod table;

use std::{cmp::Reverse, sync::Arc};

use serde_json::Value;

pub(super) use self::{definition::of_definition, table::built_in};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServedKind {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) plural: String,
    pub(super) singular: String,
    pub(super) list_kind: String,
    pub(super) short_names: Vec<String>,
    pub(super) categories: Vec<String>,
    pub(super) namespaced: bool,
    /// The status is a subresource: writes of the object do not change it.
    pub(super) has_status: bool,
    pub(super) generation: Generation,
    pub(super) verbs: Vec<&'static str>,
    pub(super) subresources: Vec<Subresource>,
    pub(super) scale: Option<Scale>,
    /// An update must name the version it read.
    pub(super) requires_resource_version: bool,
    /// An update of a missing object creates it.
    pub(super) creates_on_update: bool,
    /// DELETE answers with the removed object instead of a `Status`.
    pub(super) answers_delete_with_object: bool,
    pub(super) custom: bool,
    pub(super) schema: Option<Arc<Value>>,
    pub(super) warning: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Subresource {
    pub(super) name: String,
    /// Group of its bodies. An empty version means that of the parent.
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) verbs: Vec<&'static str>,
}

/// JSON pointers into the scaled object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scale {
    pub(super) spec_replicas: String,
    pub(super) status_replicas: String,
    /// A label selector: an object in built-in kinds, a string in custom ones.
    pub(super) selector: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Generation {
    None,
    /// Always 1: PriorityClasses.
    Constant,
    Spec,
    /// Deployments.
    SpecAndAnnotations,
    /// EndpointSlices: everything except the other metadata.
    ContentAndLabels,
    /// Everything except metadata: custom kinds without a status subresource, and kinds without `spec`.
    Content,
    /// Everything except metadata and status: custom kinds with a status subresource.
    ContentWithoutStatus,
}

impl ServedKind {
    pub(super) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Group and resource under which objects are stored. Events have two groups and one store.
    pub(super) fn home(&self) -> (&str, &str) {
        match (self.group.as_str(), self.plural.as_str()) {
            ("events.k8s.io", "events") => ("", "events"),
            home => home,
        }
    }

    pub(super) fn is_review(&self) -> bool {
        self.verbs == ["create"]
    }

    pub(super) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    pub(super) fn resource(&self) -> (&str, &str) {
        (&self.group, &self.plural)
    }
}

impl Scale {
    fn built_in() -> Self {
        Self {
            spec_replicas: "/spec/replicas".into(),
            status_replicas: "/status/replicas".into(),
            selector: Some("/spec/selector".into()),
        }
    }
}

/// Returns true if a write is a new generation. Callers exclude `/status`: it may change a Deployment's annotations.
pub(super) fn bumps_generation(kind: &ServedKind, old: &Value, new: &Value) -> bool {
    let differ = |pointer: &str| old.pointer(pointer) != new.pointer(pointer);
    let changed = match kind.generation {
        Generation::None | Generation::Constant => return false,
        Generation::Spec => differ("/spec"),
        Generation::SpecAndAnnotations => differ("/spec") || differ("/metadata/annotations"),
        Generation::ContentAndLabels => content_differs(old, new, &[]) || differ("/metadata/labels"),
        Generation::Content => content_differs(old, new, &[]),
        Generation::ContentWithoutStatus => content_differs(old, new, &["status"]),
    };
    let is_deleting = |value: &Value| value.pointer("/metadata/deletionTimestamp").is_some();
    changed || (is_deleting(new) && !is_deleting(old))
}

fn content_differs(old: &Value, new: &Value, except: &[&str]) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return old != new };
    let counts = |field: &&String| {
        !matches!(field.as_str(), "apiVersion" | "kind" | "metadata") && !except.contains(&field.as_str())
    };
    old.keys().chain(new.keys()).filter(counts).any(|field| old.get(field) != new.get(field))
}

/// Sorts versions as Kubernetes does: `v2`, `v1`, `v2beta1`, `v1alpha3`, then other names alphabetically.
pub(super) fn version_order(version: &str) -> (u8, Reverse<u32>, Reverse<u32>, String) {
    let numbers = || {
        let rest = version.strip_prefix('v')?;
        let (major, stage) = match rest.find(|letter: char| !letter.is_ascii_digit()) {
            None => (rest, None),
            Some(at) => (&rest[..at], Some(&rest[at..])),
        };
        let major = major.parse().ok()?;
        match stage {
            None => Some((0, major, 0)),
            Some(stage) => {
                let (rank, minor) = match (stage.strip_prefix("beta"), stage.strip_prefix("alpha")) {
                    (Some(minor), _) => (1, minor),
                    (None, Some(minor)) => (2, minor),
                    (None, None) => return None,
                };
                Some((rank, major, minor.parse().ok()?))
            }
        }
    };
    match numbers() {
        Some((rank, major, minor)) => (rank, Reverse(major), Reverse(minor), String::new()),
        None => (3, Reverse(0), Reverse(0), version.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kind(plural: &str) -> ServedKind {
        built_in().into_iter().find(|kind| kind.plural == plural).unwrap()
    }

    /// The table of facts §4.
    #[test]
    fn generations_are_bumped_by_what_each_kind_counts() {
        let old = json!({"metadata": {"name": "a"}, "spec": {"a": 1}, "status": {"b": 1}, "endpoints": []});
        let spec = json!({"metadata": {"name": "a"}, "spec": {"a": 2}, "status": {"b": 1}, "endpoints": []});
        let status = json!({"metadata": {"name": "a"}, "spec": {"a": 1}, "status": {"b": 2}, "endpoints": []});
        let labels = json!({"metadata": {"name": "a", "labels": {"l": "m"}}, "spec": {"a": 1}, "status": {"b": 1}, "endpoints": []});
        let annotations = json!({"metadata": {"name": "a", "annotations": {"l": "m"}}, "spec": {"a": 1}, "status": {"b": 1}, "endpoints": []});
        let deleted = json!({"metadata": {"name": "a", "deletionTimestamp": "t"}, "spec": {"a": 1}, "status": {"b": 1}, "endpoints": []});
        // plural → spec, status, labels, annotations, deletion
        let table = [
            ("deployments", [true, false, false, true, true]),
            ("statefulsets", [true, false, false, false, true]),
            ("endpointslices", [true, true, true, false, true]),
            ("configmaps", [false, false, false, false, false]),
            ("services", [false, false, false, false, false]),
        ];
        for (plural, expected) in table {
            let kind = kind(plural);

            let bumps = [&spec, &status, &labels, &annotations, &deleted].map(|new| bumps_generation(&kind, &old, new));

            assert_eq!(bumps, expected, "{plural}");
        }
    }

    #[test]
    fn versions_are_sorted_by_maturity_and_age() {
        let mut versions = ["foo", "v1alpha1", "v1", "v2beta1", "v10", "v1beta2", "v2", "bar"];

        versions.sort_by_key(|version| version_order(version));

        assert_eq!(versions, ["v10", "v2", "v1", "v2beta1", "v1beta2", "v1alpha1", "bar", "foo"]);
    }
}

//! Names of kinds and objects as the API server addresses them: resource, request path, query.

use std::{fmt, fmt::Write as _};

use super::{ApiError, ApiName};
use crate::object::{self, GroupKind, GroupVersionKind, NamespacedName};

/// One kind as the API server serves it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: ApiName,
    /// Version, e.g. `v1`.
    pub version: ApiName,
    /// Kind in upper camel case, e.g. `ConfigMap`.
    pub kind: ApiName,
    /// Its name in paths and RBAC rules, e.g. `configmaps`.
    pub plural: ApiName,
    /// Whether its objects have a namespace.
    pub namespaced: bool,
}

/// Whether the objects of a kind have a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceScope {
    /// They have one.
    Namespaced,
    /// They have none.
    Cluster,
}

/// The address of one object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    /// Kind.
    pub resource: Resource,
    /// Namespace; not used for cluster-scoped kinds.
    pub namespace: String,
    /// Name; may be empty for a creation with `generateName`.
    pub name: String,
}

/// A query string under construction; values are percent-encoded.
#[derive(Debug, Default, Clone)]
pub(super) struct Query(String);

impl Resource {
    /// Creates the resource of a kind that the program names in its code.
    pub const fn constant(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
        scope: ResourceScope,
    ) -> Self {
        Self {
            group: ApiName::constant(group),
            version: ApiName::constant(version),
            kind: ApiName::constant(kind),
            plural: ApiName::constant(plural),
            namespaced: matches!(scope, ResourceScope::Namespaced),
        }
    }

    /// Creates a resource from texts that are known at run time.
    pub fn new(group: &str, version: &str, kind: &str, plural: &str, namespaced: bool) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into(), plural: plural.into(), namespaced }
    }

    /// Returns group and kind.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(&*self.group, &*self.kind)
    }

    /// Returns group, version and kind.
    pub fn group_version_kind(&self) -> GroupVersionKind {
        GroupVersionKind::new(&*self.group, &*self.version, &*self.kind)
    }

    /// Returns `group/version`, or `version` for the core group.
    pub fn api_version(&self) -> String {
        object::api_version(&self.group, &self.version)
    }

    /// Returns true if a user means it by this word: `Kind`, `plural`, `Kind.group` or `plural.group`, kind and plural in
    /// any case. Without a group, several kinds may be meant.
    pub fn is_called(&self, word: &str) -> bool {
        let (kind, group) = word.split_once('.').map_or((word, None), |(kind, group)| (kind, Some(group)));
        let has_name = kind.eq_ignore_ascii_case(&self.kind) || kind.eq_ignore_ascii_case(&self.plural);
        has_name && group.is_none_or(|group| *group == *self.group)
    }

    /// Returns the address of an object of this kind by namespace and name.
    pub fn named(&self, name: &NamespacedName) -> ObjectRef {
        self.at(name.namespace.as_str(), name.name.as_str())
    }

    /// Returns the address of an object of this kind.
    pub fn at(&self, namespace: impl Into<String>, name: impl Into<String>) -> ObjectRef {
        ObjectRef { resource: self.clone(), namespace: namespace.into(), name: name.into() }
    }

    /// Returns true for Secrets, whose contents must not get into error texts.
    pub(super) fn is_secret(&self) -> bool {
        self.group.is_empty() && &*self.plural == "secrets"
    }

    /// Returns the path of the collection: of one namespace, or of all namespaces and of cluster-scoped kinds.
    pub fn collection_path(&self, namespace: Option<&str>) -> String {
        let mut path = if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        };
        if let Some(namespace) = namespace.filter(|namespace| self.namespaced && !namespace.is_empty()) {
            path.push_str("/namespaces/");
            push_encoded(&mut path, namespace);
        }
        path.push('/');
        path.push_str(&self.plural);
        path
    }
}

impl fmt::Display for Resource {
    /// `plural.version.group`, or `plural.version` for the core group.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.plural, self.version)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}

impl ObjectRef {
    /// Returns the path of the object or a subresource. Fails for a bad name: a DELETE without one hits all objects.
    pub fn path(&self, subresource: Option<&str>) -> Result<String, ApiError> {
        if self.name.is_empty() {
            return Err(ApiError::BadRequest("resource name may not be empty".into()));
        }
        if matches!(self.name.as_str(), "." | "..") || self.name.contains(['/', '%']) {
            return Err(ApiError::BadRequest(format!("invalid resource name {:?}", self.name)));
        }
        let mut path = self.collection_path()?;
        path.push('/');
        push_encoded(&mut path, &self.name);
        if let Some(subresource) = subresource {
            path.push('/');
            path.push_str(subresource);
        }
        Ok(path)
    }

    /// Returns the path of the object's collection. Fails for an empty or malformed namespace.
    pub fn collection_path(&self) -> Result<String, ApiError> {
        if self.resource.namespaced && self.namespace.is_empty() {
            let message = format!("an empty namespace may not be set for {} {:?}", self.resource, self.name);
            return Err(ApiError::BadRequest(message));
        }
        if matches!(self.namespace.as_str(), "." | "..") || self.namespace.contains(['/', '%']) {
            return Err(ApiError::BadRequest(format!("invalid namespace {:?}", self.namespace)));
        }
        Ok(self.resource.collection_path(Some(&self.namespace)))
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.resource.namespaced {
            write!(f, "{} {}/{}", self.resource, self.namespace, self.name)
        } else {
            write!(f, "{} {}", self.resource, self.name)
        }
    }
}

impl Query {
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        if !self.0.is_empty() {
            self.0.push('&');
        }
        self.0.push_str(name);
        self.0.push('=');
        push_encoded(&mut self.0, value);
        self
    }

    pub(super) fn maybe(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) if !value.is_empty() => self.with(name, value),
            Some(_) | None => self,
        }
    }

    pub(super) fn after(&self, path: &str) -> String {
        if self.0.is_empty() { path.to_owned() } else { format!("{path}?{}", self.0) }
    }
}

/// Appends `text`; everything except the unreserved characters of RFC 3986 is percent-encoded.
fn push_encoded(into: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            into.push(byte.into());
        } else {
            write!(into, "%{byte:02X}").unwrap_or_default(); // cannot fail for a String
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_constant_equals_a_resource_made_at_run_time() {
        const SECRET: Resource = Resource::constant("", "v1", "Secret", "secrets", ResourceScope::Namespaced);
        let made = Resource::new("", "v1", "Secret", "secrets", true);

        assert_eq!(SECRET, made);
        assert_eq!(SECRET.cmp(&made), std::cmp::Ordering::Equal);
        assert!(std::collections::HashSet::from([SECRET]).contains(&made));
    }

    #[test]
    fn resource_is_called_by_kind_or_plural_and_perhaps_its_group() {
        let quota = Resource::new("core.gardener.cloud", "v1beta1", "Quota", "quotas", true);

        for word in ["Quota", "quota", "QUOTAS", "quotas.core.gardener.cloud", "Quota.core.gardener.cloud"] {
            assert!(quota.is_called(word), "{word}");
        }
        for word in ["", "quot", "quotas.", "quotas.core", "quota.v1beta1.core.gardener.cloud", ".core.gardener.cloud"]
        {
            assert!(!quota.is_called(word), "{word}");
        }
    }

    #[test]
    fn paths_follow_group_scope_and_subresource() {
        let config_map = Resource::new("", "v1", "ConfigMap", "configmaps", true);
        let role = Resource::new("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", false);

        assert_eq!(config_map.at("ns", "a.b").path(None), Ok("/api/v1/namespaces/ns/configmaps/a.b".into()));
        assert_eq!(
            role.at("", "system:x y").path(Some("status")),
            Ok("/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Ax%20y/status".into())
        );
        assert_eq!(config_map.collection_path(None), "/api/v1/configmaps");
    }

    #[test]
    fn path_rejects_a_name_that_would_hit_another_path() {
        let config_map = Resource::new("", "v1", "ConfigMap", "configmaps", true);

        for (namespace, name) in [("ns", ""), ("", "a"), ("ns", ".."), ("ns", "a/b"), ("..", "a"), ("ns", "%2e")] {
            let error = config_map.at(namespace, name).path(None).unwrap_err();

            assert!(matches!(error, ApiError::BadRequest(_)), "{namespace:?} {name:?}: {error}");
        }
    }

    #[test]
    fn query_values_are_encoded() {
        let query =
            Query::default().with("labelSelector", "a in (b,c)").maybe("limit", None).maybe("continue", Some(""));

        assert_eq!(query.after("/api"), "/api?labelSelector=a%20in%20%28b%2Cc%29");
    }
}

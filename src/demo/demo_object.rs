//! Address of an object, for requests and for `kubectl`.

use super::examples::NAMESPACE;
use crate::api::resources::keys;

#[derive(Debug, Clone, Copy)]
pub(super) struct DemoObject<'a> {
    pub(super) api_version: &'a str,
    pub(super) resource: &'a str,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
}

impl<'a> DemoObject<'a> {
    pub(super) const fn core(resource: &'a str, namespace: &'a str, name: &'a str) -> Self {
        Self { api_version: "v1", resource, namespace, name }
    }

    pub(super) const fn apps(resource: &'a str, namespace: &'a str, name: &'a str) -> Self {
        Self { api_version: "apps/v1", resource, namespace, name }
    }

    pub(super) const fn secret(name: &'a str) -> Self {
        Self::core("secrets", NAMESPACE, name)
    }

    /// A ManagedResource of the story.
    pub(super) const fn bundle(name: &'a str) -> Self {
        Self::managed_resource(NAMESPACE, name)
    }

    pub(super) const fn managed_resource(namespace: &'a str, name: &'a str) -> Self {
        Self { api_version: keys::API_VERSION, resource: keys::PLURAL, namespace, name }
    }

    pub(super) fn for_kubectl(self) -> String {
        match self.api_version.split_once('/') {
            Some((group, _)) => format!("{}.{group}", self.resource),
            None => self.resource.to_owned(),
        }
    }

    pub(super) fn collection(self) -> String {
        let root = if self.api_version.contains('/') { "apis" } else { "api" };
        match self.namespace {
            "" => format!("/{root}/{}/{}", self.api_version, self.resource),
            namespace => format!("/{root}/{}/namespaces/{namespace}/{}", self.api_version, self.resource),
        }
    }

    pub(super) fn path(self) -> String {
        format!("{}/{}", self.collection(), self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demo_objects_have_paths() {
        let role =
            DemoObject { api_version: "rbac.authorization.k8s.io/v1", resource: "roles", namespace: "n", name: "r" };

        assert_eq!(role.path(), "/apis/rbac.authorization.k8s.io/v1/namespaces/n/roles/r");
        assert_eq!(role.for_kubectl(), "roles.rbac.authorization.k8s.io");
        assert_eq!(DemoObject::secret("s").path(), "/api/v1/namespaces/default/secrets/s");
        assert_eq!(DemoObject::secret("s").for_kubectl(), "secrets");
    }
}

//! Stands in for `crate::api::{keys, managed_resource}`.
#![allow(missing_docs, unreachable_pub)]
use std::{collections::BTreeMap, fmt};

use crate::api::object::{GroupVersionKind, ObjectKey};

pub mod keys {
    pub const IGNORE: &str = "resources.gardener.cloud/ignore";
    pub const MODE: &str = "resources.gardener.cloud/mode";
    pub const MODE_IGNORE: &str = "Ignore";
    pub const PRESERVE_REPLICAS: &str = "resources.gardener.cloud/preserve-replicas";
    pub const PRESERVE_RESOURCES: &str = "resources.gardener.cloud/preserve-resources";
    pub const DELETE_ON_INVALID_UPDATE: &str = "resources.gardener.cloud/delete-on-invalid-update";
    pub const DELETION_PROPAGATION_ON_INVALID_UPDATE: &str =
        "resources.gardener.cloud/deletion-propagation-on-invalid-update";
    pub const KEEP_OBJECT: &str = "resources.gardener.cloud/keep-object";
    pub const FINALIZE_DELETION_AFTER: &str = "resources.gardener.cloud/finalize-deletion-after";
    pub const GARBAGE_COLLECTABLE: &str = "resources.gardener.cloud/garbage-collectable-reference";
    pub const SKIP_HEALTH_CHECK: &str = "resources.gardener.cloud/skip-health-check";
    pub const REFERENCE_PREFIX: &str = "reference.resources.gardener.cloud/";
    pub const ORIGIN: &str = "resources.gardener.cloud/origin";
    pub const DESCRIPTION: &str = "resources.gardener.cloud/description";
    pub const DESCRIPTION_TEXT: &str = "DO NOT EDIT - This resource is managed by gardener-resource-manager.\nAny modifications are discarded and the resource is returned to the original state.";
    pub const MANAGED_BY: &str = "resources.gardener.cloud/managed-by";
    pub const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";
    pub const OPENSTACK_LOAD_BALANCER_PREFIX: &str = "loadbalancer.openstack.org";
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ResourceRef {
    pub api_version: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}

impl ResourceRef {
    pub fn group_version_kind(&self) -> GroupVersionKind {
        GroupVersionKind::from_api_version(&self.api_version, &self.kind)
    }

    pub fn key(&self) -> ObjectKey {
        let gvk = self.group_version_kind();
        let namespace = effective_namespace(&self.kind, &self.namespace).to_owned();
        ObjectKey { group: gvk.group, kind: gvk.kind, namespace, name: self.name.clone() }
    }
}

impl fmt::Display for ResourceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}/{}/{}/{}",
            self.api_version,
            self.kind,
            effective_namespace(&self.kind, &self.namespace),
            self.name
        )
    }
}

pub fn effective_namespace<'a>(kind: &str, namespace: &'a str) -> &'a str {
    if namespace.is_empty() && kind != "Namespace" { "default" } else { namespace }
}

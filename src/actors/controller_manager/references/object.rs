//! The objects that are referred to: Secrets, ConfigMaps, WorkloadIdentities. Only their metadata is read. Pure.

use std::fmt;

use cluster::{Resource, object, object::NamespacedName};
use serde_json::Value;

use crate::{
    actors::controller_manager::held::DeletionTime,
    api::{kinds, meta::field::formats},
};

/// The finalizer of objects that are referred to, and of their referrers.
pub const PROTECTION: &str = "gardener.cloud/reference-protection";

/// A kind of referenced objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReferencedKind {
    /// `v1` Secret.
    Secret,
    /// `v1` ConfigMap.
    ConfigMap,
    /// `security.gardener.cloud/v1alpha1` WorkloadIdentity.
    WorkloadIdentity,
}

/// A referenced object; the key of its controller.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReferencedObject {
    /// Its kind.
    pub kind: ReferencedKind,
    /// Namespace and name.
    pub name: NamespacedName,
}

/// What is kept of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownObject {
    /// What counts.
    pub state: ObjectState,
    /// When its deletion began.
    pub deleted: Option<DeletionTime>,
}

/// What counts of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectState {
    /// It has the finalizer.
    pub is_held: bool,
    /// It is being deleted.
    pub is_deleting: bool,
}

impl ReferencedKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Secret, Self::ConfigMap, Self::WorkloadIdentity];

    /// Returns the kind to which `apiVersion` and `kind` of a reference lead; `None` for kinds that are not protected.
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.resource().api_version() == api_version && &*it.resource().kind == kind)
    }

    /// Returns the kind as the server addresses it.
    pub fn resource(self) -> &'static Resource {
        static SECRET: Resource = kinds::SECRET;
        static CONFIG_MAP: Resource = kinds::CONFIG_MAP;
        static WORKLOAD_IDENTITY: Resource = kinds::WORKLOAD_IDENTITY;
        match self {
            Self::Secret => &SECRET,
            Self::ConfigMap => &CONFIG_MAP,
            Self::WorkloadIdentity => &WORKLOAD_IDENTITY,
        }
    }
}

impl fmt::Display for ReferencedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.resource().kind, self.name)
    }
}

impl ReferencedObject {
    /// Creates it.
    pub fn new(kind: ReferencedKind, namespace: &str, name: &str) -> Self {
        Self { kind, name: NamespacedName::new(namespace, name) }
    }

    /// Returns false if its name is none that an object can have: the server is not asked about such.
    pub fn can_exist(&self) -> bool {
        formats::dns_subdomain(&self.name.name).is_empty()
    }

    /// Returns the error text about an object that cannot be protected, as API servers write it.
    pub fn missing(&self, is_deleting: bool) -> String {
        let Resource { plural, group, .. } = self.kind.resource();
        let dot = if group.is_empty() { "" } else { "." };
        let problem = if is_deleting { "is being deleted" } else { "not found" };
        format!("{plural}{dot}{group} {:?} {problem}", self.name.name)
    }
}

impl KnownObject {
    /// Reads an object's metadata.
    pub fn of(metadata: &Value) -> Self {
        Self { state: ObjectState::of(metadata), deleted: DeletionTime::of(metadata) }
    }

    /// Returns when its deletion began, if the finalizer keeps it.
    pub fn kept_since(self) -> Option<DeletionTime> {
        self.deleted.filter(|_| self.state.is_held)
    }
}

impl ObjectState {
    /// Reads an object's metadata.
    pub fn of(metadata: &Value) -> Self {
        Self {
            is_held: object::finalizers(metadata).any(|finalizer| finalizer == PROTECTION),
            is_deleting: object::deletion_timestamp(metadata).is_some(),
        }
    }

    /// Returns true if its referrers must be looked at when it changes into `other`.
    pub fn concerns_referrers_unlike(self, other: Self) -> bool {
        (self.is_held && !other.is_held) || self.is_deleting != other.is_deleting
    }

    /// Returns true if it can no longer be protected: it counts as missing.
    pub fn is_lost(self) -> bool {
        self.is_deleting && !self.is_held
    }
}

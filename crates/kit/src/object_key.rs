//! What a wake calls an object by. The kit compares and orders these names, and knows nothing else about them; they stand here
//! because a [`Wake`](crate::Wake) carries them. `cluster::object` has them for everybody else.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An API group and a kind, without a version: what equivalences and interest are keyed by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct GroupKind {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind in upper camel case, e.g. `ConfigMap`.
    pub kind: String,
}

/// What identifies an object within one cluster, whatever version it is read in (spec 10 §10.1).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ObjectKey {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name.
    pub name: String,
}

// === impl GroupKind ===

impl GroupKind {
    /// A group and a kind.
    pub fn new(group: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }
}

impl fmt::Display for GroupKind {
    /// `Kind.group`, or `Kind` for the core group: as messages of the API server write it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() { f.write_str(&self.kind) } else { write!(f, "{}.{}", self.kind, self.group) }
    }
}

// === impl ObjectKey ===

impl ObjectKey {
    /// Group and kind of the object.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(&self.group, &self.kind)
    }
}

impl fmt::Display for ObjectKey {
    /// `<group>/<kind>/<namespace>/<name>`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/{}", self.group, self.kind, self.namespace, self.name)
    }
}

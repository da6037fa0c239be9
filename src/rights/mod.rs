//! The rights that a configuration needs, and whether the process has them.
//! ```text
//! rights.yaml of the chart, configuration ─ table.rs ─► NeededRight … ─ reviews.rs ─► granted or missing ─► at_start.rs: the log
//!                                                                                                     └► the command `check`
//! ```
//! * here: a right as a value, and how it is granted
//! * `table`: which rights a configuration needs; pure
//! * `programs`: the tables of both programs. The charts make roles of the same files
//! * `reviews`: asks an API server
//! * `at_start`: what each replica logs when it starts

pub(crate) mod at_start;
pub(crate) mod programs;
pub(crate) mod reviews;
pub(crate) mod table;

#[cfg(feature = "sim")]
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, fmt};

use serde_json::{Value, json};

/// Something that the process may have to do in a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Right {
    /// Name of the cluster, e.g. `source`.
    pub(crate) cluster: &'static str,
    /// `None` for all namespaces and for cluster-scoped kinds.
    pub(crate) namespace: Option<String>,
    pub(crate) object: RightObject,
    pub(crate) verb: String,
}

/// What a right is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RightObject {
    Resource {
        /// API group; empty for the core group.
        group: String,
        /// Plural, with the subresource after a slash, as in a role.
        resource: String,
        /// A single object; `None` for all.
        name: Option<String>,
    },
    /// A path that is no resource, e.g. `/version`.
    Path(String),
}

/// A right that a configuration needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NeededRight {
    pub(crate) right: Right,
    /// Keys of the configuration that need it; empty if the program always does.
    pub(crate) parts: BTreeSet<String>,
    /// What is not done without it while everything else works; `None` if parts do not work without it.
    pub(crate) without: Option<String>,
    /// The value of the chart that grants it.
    pub(crate) chart_value: &'static str,
}

impl Right {
    /// Returns the SelfSubjectAccessReview that asks for it.
    pub(crate) fn review(&self) -> Value {
        let attributes = match &self.object {
            RightObject::Resource { group, resource, name } => {
                let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
                json!({"resourceAttributes": {
                    "namespace": self.namespace, "verb": self.verb, "group": group, "resource": resource,
                    "subresource": subresource, "name": name,
                }})
            }
            RightObject::Path(path) => json!({"nonResourceAttributes": {"path": path, "verb": self.verb}}),
        };
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": attributes})
    }
}

impl NeededRight {
    /// Returns how it is granted.
    pub(crate) fn remedy(&self) -> String {
        let Right { cluster, namespace, .. } = &self.right;
        let role = match namespace {
            Some(namespace) => format!("a Role in namespace {namespace} of the {cluster} cluster"),
            None => format!("a ClusterRole of the {cluster} cluster"),
        };
        format!("grant it with {role}; the chart does so with the value {}", self.chart_value)
    }
}

/// Returns who needs one of these rights.
pub(crate) fn needed_by(rights: &[&NeededRight]) -> String {
    let parts: BTreeSet<&str> = rights.iter().flat_map(|needed| &needed.parts).map(String::as_str).collect();
    if parts.is_empty() || rights.iter().any(|needed| needed.parts.is_empty()) {
        return "the program".to_owned();
    }
    parts.into_iter().collect::<Vec<_>>().join(", ")
}

/// As a role names it: `pods`, `deployments.apps`, `leases.coordination.k8s.io "web"`.
impl fmt::Display for RightObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resource { group, resource, name } => {
                f.write_str(resource)?;
                if !group.is_empty() {
                    write!(f, ".{group}")?;
                }
                name.iter().try_for_each(|name| write!(f, " \"{name}\""))
            }
            Self::Path(path) => f.write_str(path),
        }
    }
}

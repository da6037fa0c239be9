//! What is kept of a Project. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use cluster::{Cached, object};
use serde_json::{Value, json};

use crate::{
    actors::controller_manager::{
        fields::{list, text},
        guards::GARDENER,
        rbac::Subject,
    },
    api::meta::selector::{Labels, labels_in},
};

/// Prefix of the role of a member that an extension defines.
const EXTENSION: &str = "extension:";

/// Most extension roles of a Project that are granted: the first ones in the order of their names. Each costs two objects,
/// so a tenant must not have any number of them (spec 82 A.7.1).
pub const MOST_EXTENSION_ROLES: usize = 500;

/// A Project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// Its uid.
    pub uid: Box<str>,
    /// Its generation; 0 if the server keeps none.
    pub generation: i64,
    /// It is being deleted.
    pub is_deleting: bool,
    /// All finalizers in their order.
    pub finalizers: Box<[Box<str>]>,
    /// Its labels.
    pub labels: Labels,
    /// `spec.namespace`; `None` if it is absent or empty.
    pub namespace: Option<Box<str>>,
    /// `spec.owner`; `None` if it is absent or empty.
    pub owner: Option<Subject>,
    /// `spec.members` in their order.
    pub members: Box<[Member]>,
    /// `status.phase`; empty if there is none.
    pub phase: Box<str>,
    /// `status.observedGeneration`.
    pub observed_generation: i64,
}

/// A member of a Project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Who it is.
    pub subject: Subject,
    /// `role` and `roles`, without empty ones.
    roles: Box<[Box<str>]>,
}

/// A Project in the cache.
#[derive(Debug, Clone)]
pub struct CachedProject {
    version: u64,
    /// The Project.
    pub project: Arc<Project>,
}

impl Project {
    /// Reads a Project.
    pub fn of(project: &Value) -> Self {
        let owner = project.pointer("/spec/owner").filter(|owner| owner.is_object());
        let members = list(project, "/spec/members").filter(|member| member.is_object());
        Self {
            uid: object::uid(project).into(),
            generation: object::generation(project),
            is_deleting: object::deletion_timestamp(project).is_some(),
            finalizers: object::finalizers(project).map(Box::from).collect(),
            labels: labels_in(project.pointer("/metadata/labels").unwrap_or(&Value::Null)),
            namespace: Some(text(project, "/spec/namespace")).filter(|name| !name.is_empty()).map(Box::from),
            owner: owner.map(Subject::of).filter(|owner| !owner.is_empty()), // spec 80 §10 A12
            members: members.map(Member::of).collect(),
            phase: text(project, "/status/phase").into(),
            observed_generation: project
                .pointer("/status/observedGeneration")
                .and_then(Value::as_i64)
                .unwrap_or_default(),
        }
    }

    /// Returns true if it has the finalizer of this controller.
    pub fn is_held(&self) -> bool {
        self.finalizers.iter().any(|finalizer| &**finalizer == GARDENER)
    }

    /// Returns the merge patch that adds (`held`) or removes the finalizer; other finalizers keep their order.
    pub fn finalizer_patch(&self, held: bool) -> Option<Value> {
        object::finalizer_patch(&json!({"metadata": {"finalizers": self.finalizers}}), GARDENER, held)
    }

    /// Returns true if another state of it has the same spec.
    pub fn has_spec_of(&self, other: &Self) -> bool {
        self.namespace == other.namespace && self.owner == other.owner && self.members == other.members
    }

    /// Returns it with the phase that another state of it shows.
    #[must_use]
    pub fn with_phase_of(&self, other: &Self) -> Self {
        let (phase, observed_generation) = (other.phase.clone(), other.observed_generation);
        Self { phase, observed_generation, ..self.clone() }
    }

    /// Returns the names of the extension roles that are granted: those of members, up to [`MOST_EXTENSION_ROLES`] in
    /// order (spec 82 A.7.1).
    pub fn extension_roles(&self) -> BTreeSet<&str> {
        self.all_extension_roles().into_iter().take(MOST_EXTENSION_ROLES).collect()
    }

    /// Returns the number of distinct extension roles that members have, also of those that are not granted.
    pub fn extension_role_count(&self) -> usize {
        self.all_extension_roles().len()
    }

    fn all_extension_roles(&self) -> BTreeSet<&str> {
        self.members.iter().flat_map(Member::extension_roles).collect()
    }

    /// Returns the members of each extension role that is granted, in their order.
    pub fn members_by_extension(&self) -> BTreeMap<&str, Vec<&Subject>> {
        let mut members: BTreeMap<&str, Vec<&Subject>> =
            self.extension_roles().into_iter().map(|role| (role, Vec::new())).collect();
        for member in &self.members {
            for role in member.extension_roles() {
                if let Some(members) = members.get_mut(role) {
                    members.push(&member.subject);
                }
            }
        }
        members
    }

    /// Returns the members that have one of these roles, in their order.
    pub fn members_with<'p>(&'p self, roles: &'p [&str]) -> impl Iterator<Item = &'p Subject> {
        let has_role = move |member: &&Member| member.roles.iter().any(|role| roles.contains(&&**role));
        self.members.iter().filter(has_role).map(|member| &member.subject)
    }
}

impl Member {
    fn of(member: &Value) -> Self {
        let roles = list(member, "/roles").filter_map(Value::as_str);
        let roles = std::iter::once(text(member, "/role")).chain(roles).filter(|role| !role.is_empty());
        Self { subject: Subject::of(member), roles: roles.map(Box::from).collect() }
    }

    fn extension_roles(&self) -> impl Iterator<Item = &str> {
        self.roles.iter().filter_map(|role| role.strip_prefix(EXTENSION)).filter(|role| !role.is_empty())
    }
}

impl CachedProject {
    /// Reads a Project; `None` if it has no valid version.
    pub fn of(project: &Value) -> Option<Self> {
        let version = object::resource_version(project).parse().ok()?;
        Some(Self { version, project: Arc::new(Project::of(project)) })
    }
}

impl Cached for CachedProject {
    fn uid(&self) -> &str {
        &self.project.uid
    }

    fn version(&self) -> u64 {
        self.version
    }
}

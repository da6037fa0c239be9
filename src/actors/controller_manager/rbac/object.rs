//! Builders of RBAC objects. Pure.

use std::collections::BTreeSet;

use cluster::{Resource, object::NamespacedName};
use serde_json::{Map, Value, json};

use super::state::RbacState;
use crate::{
    actors::controller_manager::fields::text,
    api::{kinds, meta::selector::Labels},
};

/// The API group of RBAC.
const GROUP: &str = "rbac.authorization.k8s.io";

/// A kind of RBAC objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RbacKind {
    /// Rules.
    ClusterRole,
    /// A ClusterRole for subjects, in the whole cluster.
    ClusterRoleBinding,
    /// A ClusterRole for subjects, in one namespace.
    RoleBinding,
}

/// Who gets the rights of a binding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject {
    api_group: String,
    kind: String,
    name: String,
    namespace: String,
}

/// A rule of a ClusterRole about resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRule {
    /// API group of the resources; empty for the core group.
    pub api_group: &'static str,
    /// The resources, in plural.
    pub resource: &'static str,
    /// The only object that the rule is about.
    pub name: String,
    /// What is allowed.
    pub verbs: &'static [&'static str],
}

/// What all RBAC objects of one owner have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keeper {
    /// The only owner reference.
    pub owner: Value,
    /// All labels.
    pub labels: Labels,
}

/// An RBAC object as it must be. Its labels, owner reference and grant are authoritative: all others are removed.
/// Annotations are not touched.
#[derive(Debug, Clone)]
pub struct RbacObject {
    pub(super) kind: RbacKind,
    pub(super) name: NamespacedName,
    pub(super) object: Value,
    pub(super) state: RbacState,
}

impl RbacKind {
    /// Returns the kind as the server addresses it.
    pub fn resource(self) -> &'static Resource {
        static CLUSTER_ROLE: Resource = kinds::CLUSTER_ROLE;
        static CLUSTER_ROLE_BINDING: Resource = kinds::CLUSTER_ROLE_BINDING;
        static ROLE_BINDING: Resource = kinds::ROLE_BINDING;
        match self {
            Self::ClusterRole => &CLUSTER_ROLE,
            Self::ClusterRoleBinding => &CLUSTER_ROLE_BINDING,
            Self::RoleBinding => &ROLE_BINDING,
        }
    }
}

impl Subject {
    /// Reads a subject. A missing `apiGroup` is that which an API server fills in for the kind (spec 82 §2.2, B4).
    pub fn of(subject: &Value) -> Self {
        let field = |pointer| text(subject, pointer).to_owned();
        let mut subject = Self {
            api_group: field("/apiGroup"),
            kind: field("/kind"),
            name: field("/name"),
            namespace: field("/namespace"),
        };
        if subject.api_group.is_empty() && matches!(subject.kind.as_str(), "User" | "Group") {
            GROUP.clone_into(&mut subject.api_group);
        }
        subject
    }

    /// Returns true if it names nobody: all fields are empty.
    pub fn is_empty(&self) -> bool {
        let Self { api_group, kind, name, namespace } = self;
        [api_group, kind, name, namespace].into_iter().all(String::is_empty)
    }

    /// Returns it as in a binding, without empty fields.
    pub fn to_json(&self) -> Value {
        let Self { api_group, kind, name, namespace } = self;
        let fields = [("apiGroup", api_group), ("kind", kind), ("name", name), ("namespace", namespace)];
        let fields = fields.into_iter().filter(|(_, value)| !value.is_empty());
        fields.map(|(field, value)| (field.to_owned(), Value::from(value.as_str()))).collect()
    }
}

impl PolicyRule {
    fn to_json(&self) -> Value {
        json!({
            "apiGroups": [self.api_group], "resources": [self.resource], "resourceNames": [self.name],
            "verbs": self.verbs,
        })
    }
}

impl RbacObject {
    /// A ClusterRole with these rules.
    pub fn cluster_role(name: &str, keeper: &Keeper, rules: &[PolicyRule]) -> Self {
        let rules: Vec<Value> = rules.iter().map(PolicyRule::to_json).collect();
        Self::new(RbacKind::ClusterRole, NamespacedName::new("", name), keeper, [("rules", rules.into())])
    }

    /// A ClusterRole whose rules another controller collects from the ClusterRoles with this label. The rules belong to
    /// that controller: they are not compared and not written.
    pub fn aggregated_cluster_role(name: &str, keeper: &Keeper, (label, value): (&str, &str)) -> Self {
        let rule = json!({"clusterRoleSelectors": [{"matchLabels": {label: value}}]});
        Self::new(RbacKind::ClusterRole, NamespacedName::new("", name), keeper, [("aggregationRule", rule)])
    }

    /// A ClusterRoleBinding of the ClusterRole `role`.
    pub fn cluster_role_binding(name: &str, keeper: &Keeper, role: &str, subjects: &[&Subject]) -> Self {
        Self::new(RbacKind::ClusterRoleBinding, NamespacedName::new("", name), keeper, binding(role, subjects))
    }

    /// A RoleBinding of the ClusterRole `role`.
    pub fn role_binding(name: NamespacedName, keeper: &Keeper, role: &str, subjects: &[&Subject]) -> Self {
        Self::new(RbacKind::RoleBinding, name, keeper, binding(role, subjects))
    }

    fn new<'f>(
        kind: RbacKind,
        name: NamespacedName,
        keeper: &Keeper,
        content: impl IntoIterator<Item = (&'f str, Value)>,
    ) -> Self {
        let resource = kind.resource();
        let namespace = (!name.namespace.is_empty()).then(|| ("namespace", name.namespace.as_str().into()));
        let labels = (!keeper.labels.is_empty()).then(|| ("labels", json!(keeper.labels)));
        let named = [("name", name.name.as_str().into()), ("ownerReferences", json!([keeper.owner]))];
        let metadata = map(named.into_iter().chain(namespace).chain(labels));
        let head =
            [("apiVersion", resource.api_version().into()), ("kind", (*resource.kind).into()), ("metadata", metadata)];
        let object = map(head.into_iter().chain(content));
        let state = RbacState::of(&object);
        Self { kind, name, object, state }
    }

    /// Returns its kind.
    pub fn kind(&self) -> RbacKind {
        self.kind
    }

    /// Returns its name; the namespace is empty for cluster-scoped kinds.
    pub fn name(&self) -> &NamespacedName {
        &self.name
    }

    /// Returns the object to be created.
    pub fn object(&self) -> &Value {
        &self.object
    }
}

/// Duplicates after the first subject are left out (B4). Without subjects there is no field (B5).
fn binding(role: &str, subjects: &[&Subject]) -> impl Iterator<Item = (&'static str, Value)> + use<> {
    let role = json!({"apiGroup": GROUP, "kind": &*kinds::CLUSTER_ROLE.kind, "name": role});
    let mut known = BTreeSet::new();
    let subjects: Vec<Value> =
        subjects.iter().filter(|subject| known.insert(**subject)).map(|subject| subject.to_json()).collect();
    let subjects = (!subjects.is_empty()).then(|| ("subjects", subjects.into()));
    [("roleRef", role)].into_iter().chain(subjects)
}

fn map<'f>(fields: impl IntoIterator<Item = (&'f str, Value)>) -> Value {
    let fields: Map<String, Value> = fields.into_iter().map(|(field, value)| (field.to_owned(), value)).collect();
    fields.into()
}

//! The RBAC objects of a Project (spec 82 A.7), and which of them are stale (A.8). Pure.

use std::collections::BTreeSet;

use cluster::object::NamespacedName;

use super::{
    cached::{MOST_EXTENSION_ROLES, Project},
    namespace::{PROJECT, ProjectId, ROLE},
};
use crate::{
    actors::controller_manager::rbac::{Keeper, PolicyRule, RbacObject, RbacState, Subject},
    api::meta::selector::Labels,
};

/// Prefix of the names of objects 1 to 5.
const SYSTEM: &str = "gardener.cloud:system:";
/// Prefix of the names of extension roles; project and role follow.
const EXTENSION: &str = "gardener.cloud:extension:project:";

/// Value of the role label of extension roles.
const EXTENSION_ROLE: &str = "extension-project-role";

/// The ClusterRoles with this label make up an extension role.
const AGGREGATION: &str = "rbac.gardener.cloud/aggregate-to-extension-role";

const OWNER: &str = "project";
const UAM: &str = "project-uam";
const SERVICE_ACCOUNTS: &str = "project-serviceaccountmanager";
const MEMBER: &str = "project-member";
const VIEWER: &str = "project-viewer";

/// Objects that are written one after another. The first failure ends the row; rows do not depend on each other (B10).
pub type Row = Vec<RbacObject>;

/// Returns all RBAC objects of a Project, as they must be. Extension roles beyond the cap have none
/// ([`excess_of_roles`]).
pub fn rows(project: ProjectId<'_>, spec: &Project, namespace: &str) -> Vec<Row> {
    let builder = Builder {
        project,
        namespace,
        keeper: Keeper { owner: project.weak_reference(), labels: Labels::new() },
        extension: Keeper {
            owner: project.weak_reference(),
            labels: [(ROLE, EXTENSION_ROLE), (PROJECT, project.name)].map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        },
    };
    let owner = || spec.owner.iter();
    let members = |roles| spec.members_with(roles).collect::<Vec<_>>();
    let managers = owner().chain(spec.members_with(&["serviceaccountmanager", "owner"])).collect::<Vec<_>>();
    let rows = vec![
        builder.in_cluster(
            OWNER,
            &["get", "patch", "manage-members", "update", "delete"],
            &owner().collect::<Vec<_>>(),
        ),
        builder.in_cluster(UAM, &["get", "manage-members", "patch", "update"], &members(&["uam"])),
        vec![builder.in_namespace(SERVICE_ACCOUNTS, &managers)],
        builder.everywhere(MEMBER, &["get", "patch", "update", "delete"], &members(&["admin", "owner"])),
        builder.everywhere(VIEWER, &["get"], &members(&["viewer"])),
    ];
    let extensions = spec.members_by_extension().into_iter();
    let extensions = extensions.map(|(role, members)| builder.extension(role, &members));
    rows.into_iter().chain(extensions).collect()
}

/// Returns the error of a Project whose members have more extension roles than are granted.
pub fn excess_of_roles(spec: &Project) -> Option<String> {
    let count = spec.extension_role_count();
    let text = || {
        format!(
            "the members have {count} extension roles, and only the first {MOST_EXTENSION_ROLES} in the order of their \
             names are granted: remove roles from spec.members"
        )
    };
    (count > MOST_EXTENSION_ROLES).then(text)
}

struct Builder<'a> {
    project: ProjectId<'a>,
    namespace: &'a str,
    keeper: Keeper,
    extension: Keeper,
}

impl Builder<'_> {
    /// The rules about the Project itself and, except for user access managers, its Namespace (A.7.2).
    fn rules(&self, role: &str, verbs: &'static [&'static str]) -> Vec<PolicyRule> {
        let namespace =
            PolicyRule { api_group: "", resource: "namespaces", name: self.namespace.to_owned(), verbs: &["get"] };
        let project = PolicyRule {
            api_group: "core.gardener.cloud",
            resource: "projects",
            name: self.project.name.to_owned(),
            verbs,
        };
        let namespace = (role != UAM).then_some(namespace);
        namespace.into_iter().chain([project]).collect()
    }

    /// A ClusterRole with its ClusterRoleBinding.
    fn in_cluster(&self, role: &str, verbs: &'static [&'static str], subjects: &[&Subject]) -> Row {
        let name = format!("{SYSTEM}{role}:{}", self.project.name);
        vec![
            RbacObject::cluster_role(&name, &self.keeper, &self.rules(role, verbs)),
            RbacObject::cluster_role_binding(&name, &self.keeper, &name, subjects),
        ]
    }

    /// A RoleBinding of the ClusterRole that all Projects share.
    fn in_namespace(&self, role: &str, subjects: &[&Subject]) -> RbacObject {
        let name = format!("{SYSTEM}{role}");
        RbacObject::role_binding(NamespacedName::new(self.namespace, &name), &self.keeper, &name, subjects)
    }

    fn everywhere(&self, role: &str, verbs: &'static [&'static str], subjects: &[&Subject]) -> Row {
        let mut row = self.in_cluster(role, verbs, subjects);
        row.push(self.in_namespace(role, subjects));
        row
    }

    fn extension(&self, role: &str, subjects: &[&Subject]) -> Row {
        let name = format!("{EXTENSION}{}:{role}", self.project.name);
        vec![
            RbacObject::aggregated_cluster_role(&name, &self.extension, (AGGREGATION, role)),
            RbacObject::role_binding(NamespacedName::new(self.namespace, &name), &self.extension, &name, subjects),
        ]
    }
}

/// Returns the Project whose ClusterRole or ClusterRoleBinding has this name. No Project has a colon in its name.
pub fn project_of(name: &str) -> Option<&str> {
    let project = match name.strip_prefix(EXTENSION) {
        Some(rest) => rest.split_once(':').map(|(project, _)| project),
        None => {
            let (role, project) = name.strip_prefix(SYSTEM)?.split_once(':')?;
            [OWNER, UAM, MEMBER, VIEWER].contains(&role).then_some(project)
        }
    };
    project.filter(|project| !project.is_empty() && !project.contains(':'))
}

/// Returns the Projects whose extension role an object is, by its labels or by its name.
pub fn extended_projects(name: &str, object: &RbacState) -> BTreeSet<String> {
    let by_name = project_of(name).filter(|_| name.starts_with(EXTENSION));
    labelled_project(object).into_iter().chain(by_name).map(str::to_owned).collect()
}

fn labelled_project(object: &RbacState) -> Option<&str> {
    object.label(PROJECT).filter(|_| object.label(ROLE) == Some(EXTENSION_ROLE))
}

/// Returns true if an object is an extension role of a Project that no member has (A.8). Only names of extension roles
/// count: whoever labels another object, such as one of objects 1 to 5, must not get it deleted. With the labels, the name
/// of another Project is that of an unknown role. The name alone is enough: labels may be lost.
pub fn is_stale(project: &str, roles: &BTreeSet<&str>, name: &str, object: &RbacState) -> bool {
    let Some(rest) = name.strip_prefix(EXTENSION) else { return false };
    let role = rest.strip_prefix(project).and_then(|rest| rest.strip_prefix(':'));
    match role {
        Some(role) => !roles.contains(role),
        None => labelled_project(object) == Some(project),
    }
}

/// Returns true if a RoleBinding may be one of those that each Project has.
pub fn is_role_of_project(name: &str) -> bool {
    let role = name.strip_prefix(SYSTEM);
    role.is_some_and(|role| [SERVICE_ACCOUNTS, MEMBER, VIEWER].contains(&role)) || name.starts_with(EXTENSION)
}

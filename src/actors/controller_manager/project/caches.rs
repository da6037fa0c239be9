//! The watches of the controller, and which Projects a change wakes (spec 82 A.2, "better" 1).

use std::{collections::BTreeSet, rc::Rc};

use cluster::{ApiError, CachedFields, Cluster, Index, Predicate, Watch, WatchOptions, object::NamespacedName};
use kit::{Supervised, SyncRequirement};

use super::{
    Projects,
    cached::CachedProject,
    live_shoots::LiveShoots,
    namespace::{CachedNamespace, namespace_of},
    quota::{self, QuotaState, Template},
    roles,
};
use crate::{
    actors::controller_manager::{
        context::GardenContext,
        project_namespace::may_belong_to_project,
        rbac::{RbacKind, RbacState, writer::RbacWatch},
    },
    api::kinds,
};

/// What the controller knows of the garden cluster.
pub(super) struct Caches {
    pub(super) cluster: Cluster,
    pub(super) projects: Watch<CachedProject>,
    /// Projects by the name of their Namespace. Several may claim one.
    by_namespace: Index<String>,
    pub(super) namespaces: Watch<CachedNamespace>,
    /// Namespaces by the uids of their owners.
    by_owner: Index<String>,
    /// Only those with the name of the default ResourceQuota.
    pub(super) quotas: Watch<CachedFields<QuotaState>>,
    cluster_roles: RbacWatch,
    /// ClusterRoles by the Projects whose extension role they are.
    pub(super) extension_roles: Index<String>,
    cluster_role_bindings: RbacWatch,
    role_bindings: RbacWatch,
    pub(super) shoots: Watch<CachedFields<()>>,
    live_shoots: LiveShoots,
}

impl Caches {
    /// Opens the watches. Shoots that are not served do not exist (A.10 step 4).
    pub(super) fn open(ctx: &GardenContext, templates: &Rc<[Template]>) -> Self {
        let watches = &ctx.garden.watches;
        let is_in_project = |name: &NamespacedName| may_belong_to_project(&name.namespace);
        let projects = watches.open(WatchOptions::new(kinds::PROJECT, CachedProject::of));
        let namespaces = WatchOptions::new(kinds::NAMESPACE, CachedNamespace::of).metadata();
        let namespaces = watches.open(namespaces.keeping(|name| may_belong_to_project(&name.name)));
        let templates = templates.clone();
        let quotas = WatchOptions::fields(kinds::RESOURCE_QUOTA, move |quota| QuotaState::of(quota, &templates));
        let rbac = |kind: RbacKind| WatchOptions::fields(kind.resource().clone(), RbacState::of);
        let cluster_roles = watches.open(rbac(RbacKind::ClusterRole));
        let role_bindings = rbac(RbacKind::RoleBinding).keeping(is_in_project);
        let bindings = rbac(RbacKind::ClusterRoleBinding).keeping(|name| roles::project_of(&name.name).is_some());
        Self {
            cluster: ctx.garden.cluster.clone(),
            by_namespace: projects
                .index(|name, cached: &CachedProject| vec![namespace_of(&name.name, &cached.project)]),
            projects,
            by_owner: namespaces.index(|_, cached: &CachedNamespace| cached.state.owner_uids()),
            namespaces,
            quotas: watches.open(quotas.keeping(move |name| name.name == quota::NAME && is_in_project(name))),
            extension_roles: cluster_roles
                .index(|name, role| roles::extended_projects(&name.name, &role.fields).into_iter().collect()),
            cluster_roles,
            cluster_role_bindings: watches.open(bindings),
            role_bindings: watches.open(role_bindings),
            shoots: watches.open(WatchOptions::fields(kinds::SHOOT, |_| ()).metadata().optional()),
            live_shoots: LiveShoots::default(),
        }
    }

    /// Returns the caches that a reconcile needs.
    pub(super) fn requirements(&self) -> [SyncRequirement; 7] {
        [
            self.projects.sync_requirement(),
            self.namespaces.sync_requirement(),
            self.quotas.sync_requirement(),
            self.cluster_roles.sync_requirement(),
            self.cluster_role_bindings.sync_requirement(),
            self.role_bindings.sync_requirement(),
            self.shoots.sync_requirement(),
        ]
    }

    /// Returns the Namespaces with an owner reference to this uid.
    pub(super) fn namespaces_owned_by(&self, uid: &str) -> Vec<NamespacedName> {
        self.by_owner.get(&uid.to_owned())
    }

    /// Returns the RBAC objects of a kind.
    pub(super) fn rbac(&self, kind: RbacKind) -> &RbacWatch {
        match kind {
            RbacKind::ClusterRole => &self.cluster_roles,
            RbacKind::ClusterRoleBinding => &self.cluster_role_bindings,
            RbacKind::RoleBinding => &self.role_bindings,
        }
    }

    /// Wakes Projects. The first lists of the other kinds wake nobody: each Project is in that of Projects.
    pub(super) fn subscribe(&self, supervised: &Supervised<Projects>) {
        self.projects.on_change(supervised, changed_project(), |name, _| [name.clone()]);

        let by_namespace = self.by_namespace.clone();
        let changed = Predicate::<CachedNamespace>::differing(|old, new| old.state != new.state).ignoring_first_list();
        self.namespaces.on_change(supervised, changed, move |name, _| by_namespace.get(&name.name));

        let by_namespace = self.by_namespace.clone();
        let changed = Predicate::fields_changed().ignoring_first_list();
        self.quotas.on_change(supervised, changed, move |name, _| by_namespace.get(&name.namespace));

        let changed = Predicate::fields_changed().ignoring_first_list();
        self.cluster_roles.on_change(supervised, changed, |name, role| {
            let mut projects = roles::extended_projects(&name.name, &role.fields);
            projects.extend(roles::project_of(&name.name).map(str::to_owned));
            projects.iter().map(|project| project_key(project)).collect::<Vec<_>>()
        });
        let changed = Predicate::fields_changed().ignoring_first_list();
        self.cluster_role_bindings
            .on_change(supervised, changed, |name, _| roles::project_of(&name.name).map(project_key));

        let by_namespace = self.by_namespace.clone();
        let changed = Predicate::fields_changed().ignoring_first_list();
        self.role_bindings.on_change(supervised, changed, move |name, binding| {
            let is_extension = !roles::extended_projects(&name.name, &binding.fields).is_empty();
            let is_meant = is_extension || roles::is_role_of_project(&name.name);
            if is_meant { by_namespace.get(&name.namespace) } else { Vec::new() }
        });
        self.subscribe_to_shoots(supervised);
    }

    /// The end of the last Shoot in a Namespace wakes the deleted Projects that wait for that (A.2.1).
    fn subscribe_to_shoots(&self, supervised: &Supervised<Projects>) {
        let (by_namespace, projects) = (self.by_namespace.clone(), self.projects.store().clone());
        let (shoots, namespaces) = (self.shoots.store().clone(), self.namespaces.store().clone());
        let gone = Predicate::<CachedFields<()>>::differing(|_, _| false).ignoring_creation();
        self.shoots.on_change(supervised, gone, move |name, _| {
            let mut has_more = false;
            let first = NamespacedName::new(name.namespace.as_str(), "");
            shoots.for_each_after(&first, 1, |next, _| has_more = next.namespace == name.namespace);
            if has_more {
                return Vec::new();
            }
            let namespace = NamespacedName::new("", &name.namespace);
            let former = namespaces.with(&namespace, |cached| cached.state.project().map(project_key)).flatten();
            let mut waiting: BTreeSet<_> = by_namespace.get(&name.namespace).into_iter().chain(former).collect();
            waiting.retain(|name| projects.with(name, |cached| cached.project.is_deleting) == Some(true));
            waiting.into_iter().collect()
        });
    }

    /// Returns true if the cache has a Shoot in a namespace.
    pub(super) fn has_cached_shoot(&self, namespace: &str) -> bool {
        let mut has_shoot = false;
        let first = NamespacedName::new(namespace, "");
        self.shoots.store().for_each_after(&first, 1, |next, _| has_shoot = next.namespace == namespace);
        has_shoot
    }

    /// Returns true if a namespace has a Shoot now. A kind that is not served has no objects. Projects that are deleted at
    /// about the same time share the look.
    pub(super) async fn has_live_shoot(&self, namespace: &str) -> Result<bool, ApiError> {
        let found = match self.live_shoots.look(self, namespace).await {
            Ok(clear) => !clear.contains(namespace),
            // The server denies the kind now, as discovery proved before.
            Err(error) if error.is_not_served() && self.shoots.absence().is_some() => false,
            Err(error) => return Err(error),
        };
        // A Shoot that was created after the list began is in the cache by now.
        Ok(found || (self.shoots.is_fresh() && self.has_cached_shoot(namespace)))
    }
}

/// Changes of the status, of labels, annotations and finalizers wake nobody (W1), except the loss of the own finalizer:
/// without it, a deletion would not wait for Shoots. Without a generation, the spec counts.
fn changed_project() -> Predicate<CachedProject> {
    Predicate::differing(|old: &CachedProject, new: &CachedProject| {
        let (old, new) = (&old.project, &new.project);
        let has_generation = old.generation != 0 || new.generation != 0;
        old.uid != new.uid
            || old.is_deleting != new.is_deleting
            || old.generation != new.generation
            || (old.is_held() && !new.is_held())
            || !(has_generation || old.has_spec_of(new))
    })
}

fn project_key(project: &str) -> NamespacedName {
    NamespacedName::new("", project)
}

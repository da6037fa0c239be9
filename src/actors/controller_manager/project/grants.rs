//! The RBAC objects of a Project: those that differ are written, rows side by side (spec 82 A.7, A.8).

use cluster::{CachedFields, Wrote, object::NamespacedName};
use futures::{StreamExt as _, stream};

use super::{
    roles::{self, Row, is_stale},
    run::{Repaired, Run, Stop, step},
};
use crate::actors::{
    controller_manager::rbac::{RbacKind, RbacObject, RbacState, RbacVerdict, writer::Settled},
    shared::texts::together,
};

/// Most requests of a reconcile at once (spec 80 §16 S-19).
const SIDE_BY_SIDE: usize = 16;

/// What came of the objects of a row, up to the first failure.
struct RowResult<'r> {
    settled: Vec<(&'r RbacObject, Settled)>,
    error: Option<String>,
}

impl Run<'_> {
    /// Grants what is wanted, and removes stale extension roles also if that failed: who lost a role must not keep it
    /// because the server refuses another object.
    pub(super) async fn keep_roles(&mut self, namespace: &str, may_create: bool) -> Result<(), Stop> {
        let granted = self.grant(namespace, may_create).await;
        let dropped = self.drop_stale_roles(namespace).await;
        match granted {
            Err(Stop::Overtaken) => dropped.and(Err(Stop::Overtaken)),
            granted => granted.and(dropped),
        }
    }

    /// Makes all RBAC objects as they must be. With `may_create` unset, the Namespace takes no new objects. Fails after all
    /// writes if the members have too many extension roles.
    async fn grant(&mut self, namespace: &str, may_create: bool) -> Result<(), Stop> {
        let mut rows = roles::rows(self.id(), &self.project, namespace);
        for row in &mut rows {
            row.retain(|object| !self.is_as_wanted(object) && self.may_repair(&repaired(object), object.intent()));
        }
        rows.retain(|row| !row.is_empty());
        if !rows.is_empty() {
            self.confirm_grants().await?;
        }
        let writes: Vec<_> = rows.iter().map(|row| self.write(row, may_create)).collect();
        let results: Vec<RowResult<'_>> = stream::iter(writes).buffered(SIDE_BY_SIDE).collect().await;
        let mut is_overtaken = false;
        for (object, settled) in results.iter().flat_map(|result| &result.settled) {
            match settled {
                Settled::Written => self.repaired(&repaired(object), object.intent()),
                Settled::Altered => self.altered(&repaired(object), object.intent()),
                Settled::Overtaken => is_overtaken = true,
                Settled::Same | Settled::Absent => {}
            }
        }
        let errors = results.into_iter().filter_map(|result| result.error);
        let errors: Vec<String> = roles::excess_of_roles(&self.project).into_iter().chain(errors).collect();
        if !errors.is_empty() {
            let (count, errors) = (errors.len(), together(&errors, "; "));
            let text = format!("Error while reconciling RBAC resources for namespace \"{namespace}\": ");
            return Err(Stop::failed(step::RBAC, format!("{text}{count} error(s) occurred: {errors}")));
        }
        if is_overtaken { Err(Stop::Overtaken) } else { Ok(()) }
    }

    /// Returns true if the cache proves that an object is as it must be.
    fn is_as_wanted(&self, object: &RbacObject) -> bool {
        let known = self.projects.caches.rbac(object.kind()).known(object.name()).flatten();
        known.is_some_and(|known| object.judge(&known.fields) == RbacVerdict::Keep)
    }

    async fn write<'r>(&self, row: &'r Row, may_create: bool) -> RowResult<'r> {
        let mut settled = Vec::new();
        for object in row {
            let watch = self.projects.caches.rbac(object.kind());
            let is_open = may_create || object.kind() != RbacKind::RoleBinding;
            match object.settle(watch, &self.context, is_open).await {
                Ok(result) => settled.push((object, result)),
                Err(error) => {
                    let error = format!("{} {}: {error}", object.kind().resource().kind, object.name());
                    return RowResult { settled, error: Some(error) };
                }
            }
        }
        RowResult { settled, error: None }
    }

    /// Deletes extension roles that no member has: RoleBindings, then ClusterRoles. Each deletion is bound to the cached
    /// version, and rests on a live answer about the members.
    async fn drop_stale_roles(&mut self, namespace: &str) -> Result<(), Stop> {
        let mut stale = self.stale_roles(namespace);
        stale.retain(|(kind, name)| self.may_repair(&Repaired::Stale(*kind, name.name.clone()), 0));
        if stale.is_empty() {
            return Ok(());
        }
        self.confirm().await?;
        let (project, key) = (self.project.clone(), self.key);
        let roles = project.extension_roles();
        for (kind, name) in stale {
            let watch = self.projects.caches.rbac(kind);
            let is_due = |object: &CachedFields<RbacState>| is_stale(&key.name, &roles, &name.name, &object.fields);
            let deleted = watch.delete_cached_if(&self.context, &name, None, is_due).await;
            let prefix = "Error while deleting stale RBAC rules for extension roles: ";
            match deleted.map_err(|error| Stop::failed(step::STALE_ROLES, format!("{prefix}{error}")))? {
                Wrote::Gone | Wrote::Deleting(_) => self.repaired(&Repaired::Stale(kind, name.name), 0),
                Wrote::Created(_) | Wrote::Updated(_) | Wrote::Altered(_) | Wrote::Unchanged(_) => {}
            }
        }
        Ok(())
    }

    fn stale_roles(&self, namespace: &str) -> Vec<(RbacKind, NamespacedName)> {
        let (project, present) = (&self.key.name, self.project.extension_roles());
        let mut stale = Vec::new();
        self.projects.caches.rbac(RbacKind::RoleBinding).store().for_each_in(namespace, |name, binding| {
            if is_stale(project, &present, &name.name, &binding.fields) && !binding.fields.is_deleting() {
                stale.push((RbacKind::RoleBinding, name.clone()));
            }
        });
        let cluster_roles = self.projects.caches.rbac(RbacKind::ClusterRole).store();
        for name in self.projects.caches.extension_roles.get(project) {
            // The role of another Project is its business, whatever its labels say.
            let is_of_another = roles::project_of(&name.name).is_some_and(|other| other != project);
            let is_stale = cluster_roles.with(&name, |role| {
                is_stale(project, &present, &name.name, &role.fields) && !role.fields.is_deleting()
            });
            if is_stale == Some(true) && !is_of_another {
                stale.push((RbacKind::ClusterRole, name));
            }
        }
        stale
    }
}

fn repaired(object: &RbacObject) -> Repaired {
    Repaired::Rbac(object.kind(), object.name().name.clone())
}

//! The steps of a Project that lives (spec 82 A.3 to A.6).

use cluster::{CachedFields, Lock, Wrote, object::NamespacedName};
use kit::{Outcome, hash_of};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    cached::CachedProject,
    namespace::{
        NamespaceState, NamespaceVerdict, Refusal, adoption_patch, judge_namespace, namespace_of, new_namespace,
    },
    phase::Phase,
    quota::{self, QuotaState, Template},
    run::{Repaired, Run, Stop, step},
    told::{self, Reason},
};
use crate::actors::controller_manager::project_namespace::may_belong_to_project;

/// The Namespace of a Project after its step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Namespace {
    Same,
    Written,
    /// It is being deleted.
    Ending,
}

impl Run<'_> {
    /// Gives a Project all that it must have. In a Namespace that is being deleted nothing is created, but what exists is
    /// kept as it must be: who is no member any more loses all rights.
    pub(super) async fn serve(&mut self) -> Result<Outcome, Stop> {
        tracing::info!("Reconciling project");
        self.hold().await?;
        if self.project.phase.is_empty() {
            self.show(Phase::Pending).await?;
        }
        let namespace = namespace_of(&self.key.name, &self.project);
        let is_ending = self.keep_namespace(&namespace).await? == Namespace::Ending;
        if !is_ending {
            self.write_namespace_name(&namespace).await?;
            self.keep_quota(&namespace).await?;
        }
        self.keep_roles(&namespace, !is_ending).await?;
        if is_ending {
            return Err(Stop::failed(step::NAMESPACE, Refusal::Terminating(namespace).to_string()));
        }
        self.show_ready().await?;
        Ok(self.memory.repairs.next_in(Instant::now()).map_or(Outcome::Done, Outcome::After))
    }

    /// Adds the finalizer.
    async fn hold(&mut self) -> Result<(), Stop> {
        if self.project.is_held() {
            return Ok(());
        }
        tracing::info!("Adding finalizer");
        let uid = self.project.uid.clone();
        let patch = |cached: &CachedProject| {
            let project = &cached.project;
            let is_due = project.uid == uid && !project.is_deleting;
            is_due.then(|| project.finalizer_patch(true)).flatten()
        };
        let held = self.projects.caches.projects.patch_cached(&self.context, self.key, Lock::Version, patch).await;
        let held = held.map_err(|error| Stop::Error(kit::Failure::new(format!("could not add finalizer: {error}"))))?;
        self.take(held)
    }

    /// Creates or adopts the Namespace.
    async fn keep_namespace(&mut self, name: &str) -> Result<Namespace, Stop> {
        let note = told::reconciled(name);
        let generation = self.project.generation;
        if Phase::Ready.is_observed_of(&self.project) {
            self.memory.told.assume(Reason::ReconcileSuccessful, &note, generation, Instant::now());
        }
        let namespace = self.settle_namespace(name).await?;
        let is_news = self.memory.told.is_news(Reason::ReconcileSuccessful, &note, generation);
        if namespace != Namespace::Ending && (is_news || namespace == Namespace::Written) {
            self.tell(Reason::ReconcileSuccessful, &note);
        }
        Ok(namespace)
    }

    /// A refusal that is news, and a name that is taken, are confirmed by a live read: the cache may lag.
    async fn settle_namespace(&mut self, name: &str) -> Result<Namespace, Stop> {
        let key = NamespacedName::new("", name);
        let failed = |error: &dyn std::fmt::Display| Stop::failed(step::NAMESPACE, error.to_string());
        let mut namespace = match may_belong_to_project(name) {
            true => self.namespace(&key).await.map_err(|error| failed(&error))?,
            false => None,
        };
        let mut is_live = !may_belong_to_project(name) || Phase::Failed.is_observed_of(&self.project);
        loop {
            match judge_namespace(self.id(), name, namespace.as_ref()) {
                Ok(NamespaceVerdict::Keep) => return Ok(Namespace::Same),
                Ok(NamespaceVerdict::Ending) => return Ok(Namespace::Ending),
                Ok(NamespaceVerdict::Adopt) => return self.adopt_namespace(&key).await,
                Ok(NamespaceVerdict::Create) => {
                    self.confirm().await?;
                    tracing::info!(namespaceName = name, "Creating Namespace for Project");
                    let namespace = new_namespace(self.id(), name);
                    match self.projects.caches.namespaces.create(&self.context, &namespace).await {
                        Ok(_) => return Ok(Namespace::Written),
                        Err(error) if !error.is_already_exists() => return Err(failed(&error)),
                        Err(_) if is_live => return Err(Stop::Overtaken),
                        Err(_) => {}
                    }
                }
                Err(refusal) if is_live => return Err(failed(&refusal)),
                Err(_) => {}
            }
            let live = self.projects.caches.namespaces.read_object(&self.context, &key).await;
            namespace = live.map_err(|error| failed(&error))?.as_ref().map(NamespaceState::of);
            is_live = true;
        }
    }

    /// Decides on the Namespace as the server has it, and binds the write to that version.
    async fn adopt_namespace(&mut self, key: &NamespacedName) -> Result<Namespace, Stop> {
        let intent = hash_of(&*self.project.uid);
        if !self.may_repair(&Repaired::Namespace, intent) {
            return Ok(Namespace::Same);
        }
        self.confirm().await?;
        tracing::info!(namespaceName = key.name, "Adopting Namespace for Project");
        let (id, namespaces) = (self.id(), &self.projects.caches.namespaces);
        let patch = |live: &Value| adoption_patch(id, live);
        let wrote = namespaces.patch(&self.context, key, Lock::Version, patch).await;
        match wrote.map_err(|error| Stop::failed(step::NAMESPACE, error.to_string()))? {
            Wrote::Updated(_) | Wrote::Created(_) => {
                self.repaired(&Repaired::Namespace, intent);
                Ok(Namespace::Written)
            }
            Wrote::Unchanged(live) => match judge_namespace(id, &key.name, Some(&NamespaceState::of(&live))) {
                Ok(NamespaceVerdict::Keep) => Ok(Namespace::Same),
                Ok(NamespaceVerdict::Ending) => Ok(Namespace::Ending),
                Ok(NamespaceVerdict::Create | NamespaceVerdict::Adopt) => Err(Stop::Overtaken),
                Err(refusal) => Err(Stop::failed(step::NAMESPACE, refusal.to_string())),
            },
            Wrote::Altered(_) | Wrote::Deleting(_) | Wrote::Gone => Err(Stop::Overtaken),
        }
    }

    /// Writes `spec.namespace` if it is absent (A.5). The Namespace exists by then.
    async fn write_namespace_name(&mut self, name: &str) -> Result<(), Stop> {
        if self.project.namespace.is_some() {
            return Ok(());
        }
        let uid = self.project.uid.clone();
        let patch = |cached: &CachedProject| {
            let project = &cached.project;
            let is_due = project.uid == uid && !project.is_deleting && project.namespace.is_none();
            is_due.then(|| json!({"spec": {"namespace": name}}))
        };
        let wrote = self.projects.caches.projects.patch_cached(&self.context, self.key, Lock::Version, patch).await;
        self.take(wrote.map_err(|error| Stop::failed(step::NAMESPACE, error.to_string()))?)?;
        self.memory.told.move_to(self.project.generation);
        if self.project.namespace.as_deref() == Some(name) { Ok(()) } else { Err(Stop::Overtaken) }
    }

    /// Keeps the default ResourceQuota (A.6).
    async fn keep_quota(&mut self, namespace: &str) -> Result<(), Stop> {
        let templates = self.projects.templates.clone();
        let Some((index, template)) = quota::first_match(&templates, &self.project.labels) else { return Ok(()) };
        let name = NamespacedName::new(namespace, quota::NAME);
        let failed = |error| Stop::failed(step::QUOTA, format!("Error while setting up ResourceQuota: {error}"));
        let quotas = &self.projects.caches.quotas;
        let known: Option<CachedFields<QuotaState>> = match quotas.known(&name) {
            Some(known) => known,
            None => quotas.read_live(&self.context, &name).await.map_err(failed)?,
        };
        let (repaired, intent) = (Repaired::Quota, hash_of(&(index, &*self.project.uid)));
        let fits = known.as_ref().is_some_and(|known| known.fields.fits(index, &self.project.uid));
        if fits || !self.may_repair(&repaired, intent) {
            return Ok(());
        }
        let is_created = known.is_none() && self.create_quota(namespace, template).await.map_err(failed)?;
        if !is_created {
            let owner = self.id().strong_reference();
            let patch = |live: &Value| template.patch(live, &owner);
            let wrote = quotas.patch(&self.context, &name, Lock::Version, patch).await.map_err(failed)?;
            match wrote {
                Wrote::Created(_) | Wrote::Updated(_) | Wrote::Unchanged(_) | Wrote::Deleting(_) => {}
                Wrote::Altered(_) => {
                    self.altered(&repaired, intent);
                    return Ok(());
                }
                Wrote::Gone => return Err(Stop::Overtaken),
            }
        }
        self.repaired(&repaired, intent);
        Ok(())
    }

    /// Returns false if it exists already.
    async fn create_quota(&self, namespace: &str, template: &Template) -> Result<bool, cluster::ApiError> {
        let quota = template.new_quota(namespace, &self.id().strong_reference());
        match self.projects.caches.quotas.create(&self.context, &quota).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_already_exists() => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn show_ready(&mut self) -> Result<(), Stop> {
        let Err(error) = self.show(Phase::Ready).await else { return Ok(()) };
        let note = format!("Error while trying to mark project as ready: {error}");
        self.tell(Reason::ReconcileFailed, &note);
        Err(error.into())
    }
}

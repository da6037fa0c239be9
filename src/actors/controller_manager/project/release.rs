//! A deleted Project: waits for its last Shoot, deletes or releases the Namespace, and lets the Project go (spec 82 A.10).

use std::time::Duration;

use cluster::{DeleteOptions, Lock, Propagation, Wrote, object::NamespacedName};
use kit::{Failure, Outcome};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    cached::CachedProject,
    namespace::{CachedNamespace, NamespaceState, Release, disown_patch, judge_release, release_patch},
    phase::Phase,
    run::{Run, Stop, step},
    told::{self, Reason, Tell},
};
use crate::{actors::controller_manager::project_namespace::may_belong_to_project, api::kinds};

/// A Project that waits is looked at again after this time.
const PERIOD: Duration = Duration::from_secs(60);

/// How long the server may take to end a Namespace, in seconds.
const GRACE_PERIOD: u32 = 60;

impl Run<'_> {
    /// Lets a deleted Project go, as soon as nothing of it is left.
    pub(super) async fn release(&mut self) -> Result<Outcome, Stop> {
        tracing::info!("Deleting project");
        if !self.project.is_held() {
            return Ok(Outcome::Retire);
        }
        if let Some(former) = self.release_former_namespaces().await? {
            return self.wait_for_shoots(&former, None).await;
        }
        let Some(name) = self.project.namespace.clone() else { return self.let_go().await };
        let key = NamespacedName::new("", &*name);
        let is_released = match self.judge_namespace(&key).await {
            Ok(Release::Foreign) => self.is_gone_or_foreign(&key).await,
            Ok(_) if self.has_shoot(&name).await? => return self.wait_for_shoots(&name, Some(&key)).await,
            Ok(Release::Gone) => self.is_gone_or_foreign(&key).await,
            Ok(kept @ (Release::Keep | Release::Disown)) => self.keep_released(&key, kept).await,
            Ok(Release::Delete) => self.delete_namespace(&key).await,
            Ok(Release::Ending) => self.wait_for_end(&key).await,
            Err(error) => Err(error),
        };
        match is_released {
            Ok(Released::Yes) => self.let_go().await,
            Ok(Released::Later) => {
                self.show(Phase::Terminating).await?;
                Ok(Outcome::After(PERIOD))
            }
            Ok(Released::Unclear) => Err(Stop::Overtaken),
            Err(error) => {
                let note = told::not_released(&name, &error.to_string());
                self.failed(step::RELEASE, Reason::DeletionFailed, &note).await;
                Err(Stop::Error(Failure::new(format!("failed to release project namespace: {error}"))))
            }
        }
    }

    /// Shows that the Shoots of a Namespace keep the Project. `own`: the Namespace whose roles are kept up.
    async fn wait_for_shoots(&mut self, namespace: &str, own: Option<&NamespacedName>) -> Result<Outcome, Stop> {
        self.tell(Reason::NotEmpty, &told::not_empty(namespace));
        tracing::info!("Cannot release Project Namespace because it still contains Shoots");
        if let Some(own) = own {
            self.keep_roles_of_own(own).await?;
        }
        self.show(Phase::Terminating).await?;
        let repair = self.memory.repairs.next_in(Instant::now());
        Ok(Outcome::After(repair.map_or(PERIOD, |repair| repair.min(PERIOD))))
    }

    /// Returns the Namespaces that the Project had before somebody changed or cleared `spec.namespace`, which a garden
    /// without gardener-apiserver allows. The garbage collector takes them with the Project.
    fn former_namespaces(&self) -> Vec<NamespacedName> {
        let own = self.project.namespace.as_deref();
        let mut names = self.projects.caches.namespaces_owned_by(&self.project.uid);
        names.retain(|name| own != Some(name.name.as_str()));
        names
    }

    /// Releases the former Namespaces: an adopted one loses its owner reference. Returns the first Namespace that would take
    /// a Shoot along, also if it is being deleted: its Shoots need the Project.
    async fn release_former_namespaces(&mut self) -> Result<Option<String>, Stop> {
        for key in self.former_namespaces() {
            match self.judge_namespace(&key).await.map_err(Stop::Error)? {
                Release::Gone | Release::Foreign => {}
                _ if self.has_shoot(&key.name).await? => return Ok(Some(key.name)),
                kept @ (Release::Keep | Release::Disown) => {
                    match self.keep_released(&key, kept).await.map_err(Stop::Error)? {
                        Released::Yes => {}
                        Released::Later | Released::Unclear => return Err(Stop::Overtaken),
                    }
                }
                Release::Delete | Release::Ending => {} // checked live right before the Project goes
            }
        }
        Ok(None)
    }

    /// Makes sure that the garbage collector takes no Shoot with the Project.
    async fn check_former_namespaces(&self) -> Result<(), Stop> {
        if !self.projects.caches.namespaces.is_fresh() {
            return Err(Stop::Overtaken); // the cache may lack a former Namespace
        }
        for key in self.former_namespaces() {
            let is_clear = match self.judge_namespace(&key).await.map_err(Stop::Error)? {
                Release::Gone | Release::Foreign => true,
                Release::Keep | Release::Disown => false,
                Release::Delete | Release::Ending => !self.has_live_shoot(&key).await.map_err(Stop::Error)?,
            };
            if !is_clear {
                return Err(Stop::Overtaken);
            }
        }
        Ok(())
    }

    /// Applies changed members while the Project waits: who is no member any more must not keep rights on the last Shoots.
    /// Nothing is created in the Namespace, and nothing is changed in that of another Project.
    async fn keep_roles_of_own(&mut self, key: &NamespacedName) -> Result<(), Stop> {
        let namespace = self.namespace(key).await?;
        let id = self.id();
        if namespace.is_some_and(|namespace| namespace.belongs_to(id)) {
            self.keep_roles(&key.name, false).await?;
        }
        Ok(())
    }

    async fn judge_namespace(&self, key: &NamespacedName) -> Result<Release, Failure> {
        if !may_belong_to_project(&key.name) {
            return Ok(Release::Foreign);
        }
        let namespace = self.namespace(key).await?;
        Ok(judge_release(self.id(), &key.name, namespace.as_ref()))
    }

    /// Returns true if the Namespace has a Shoot, as the cache or else the server says.
    async fn has_shoot(&self, namespace: &str) -> Result<bool, Stop> {
        let caches = &self.projects.caches;
        if caches.shoots.is_fresh() || caches.shoots.absence().is_some() {
            return Ok(caches.has_cached_shoot(namespace));
        }
        let has_shoot = caches.has_live_shoot(namespace).await;
        has_shoot.map_err(|error| Stop::Error(Failure::new(format!("failed to check if namespace is empty: {error}"))))
    }

    /// Confirms that the Namespace is gone, or that of somebody else. Its end, which has just woken the Project, is such a
    /// confirmation.
    async fn is_gone_or_foreign(&self, key: &NamespacedName) -> Result<Released, Failure> {
        let namespaces = &self.projects.caches.namespaces;
        if namespaces.saw_end_of(key) {
            return Ok(Released::Yes);
        }
        if may_belong_to_project(&key.name) {
            let live = namespaces.read_live(&self.context, key).await?;
            match judge_release(self.id(), &key.name, live.as_ref().map(|live| &live.state)) {
                Release::Gone => return Ok(Released::Yes),
                Release::Foreign => {}
                Release::Keep | Release::Disown | Release::Delete | Release::Ending => return Ok(Released::Unclear),
            }
        }
        let text = "Referenced Namespace does not belong to this Project, nothing to do for releasing it";
        tracing::info!(namespaceName = key.name, "{text}");
        Ok(Released::Yes)
    }

    /// Takes the marks of the Project from a Namespace that outlives it (A.10.1), or only the owner reference from a Namespace
    /// that does not belong to it any more.
    async fn keep_released(&self, key: &NamespacedName, kept: Release) -> Result<Released, Failure> {
        if self.has_live_shoot(key).await? {
            return Ok(Released::Unclear);
        }
        let text = "Project Namespace should be kept, removing owner references";
        tracing::info!(namespaceName = key.name, "{text}");
        let id = self.id();
        let judge = |live: &Value| judge_release(id, &key.name, Some(&NamespaceState::of(live)));
        let patch = |live: &Value| match judge(live) {
            Release::Keep if kept == Release::Keep => Some(release_patch(id, live)),
            Release::Disown if kept == Release::Disown => Some(disown_patch(id, live)),
            _ => None,
        };
        let namespaces = &self.projects.caches.namespaces;
        Ok(match namespaces.patch(&self.context, key, Lock::Version, patch).await? {
            Wrote::Updated(_) | Wrote::Created(_) => Released::Yes,
            Wrote::Gone | Wrote::Unchanged(_) | Wrote::Altered(_) | Wrote::Deleting(_) => Released::Unclear,
        })
    }

    /// Deletes a Namespace that has no Shoot now. The deletion is bound to the version that was judged.
    async fn delete_namespace(&mut self, key: &NamespacedName) -> Result<Released, Failure> {
        if self.has_live_shoot(key).await? {
            return Ok(Released::Unclear);
        }
        tracing::info!(namespaceName = key.name, "Deleting Project Namespace");
        let id = self.id();
        let is_due = |known: &CachedNamespace| judge_release(id, &key.name, Some(&known.state)) == Release::Delete;
        let options = DeleteOptions {
            propagation: Some(Propagation::Foreground),
            grace_period_seconds: Some(GRACE_PERIOD),
            ..DeleteOptions::default()
        };
        let namespaces = &self.projects.caches.namespaces;
        let deleted = namespaces.delete_cached_if_with(&self.context, key, &options, is_due).await?;
        if matches!(deleted, Wrote::Unchanged(_)) {
            return Ok(Released::Unclear);
        }
        self.tell(Reason::MarkedForDeletion, &told::marked(&key.name));
        // Without finalizers it is gone already.
        Ok(if matches!(deleted, Wrote::Gone) { Released::Unclear } else { Released::Later })
    }

    async fn has_live_shoot(&self, key: &NamespacedName) -> Result<bool, Failure> {
        let has_shoot = self.projects.caches.has_live_shoot(&key.name).await;
        has_shoot.map_err(|error| Failure::new(format!("failed to check if namespace is empty: {error}")))
    }

    /// The end of the Namespace wakes the Project. If that takes long, an Event says what is left ("better" 5).
    async fn wait_for_end(&mut self, key: &NamespacedName) -> Result<Released, Failure> {
        let text = "Project Namespace is already marked for deletion, nothing to do for releasing it";
        tracing::debug!(namespaceName = key.name, "{text}");
        let note = told::marked(&key.name);
        match self.memory.told.tell(Reason::MarkedForDeletion, &note, self.project.generation, Instant::now()) {
            Tell::Nothing => {}
            Tell::News => self.record(Reason::MarkedForDeletion, &note),
            Tell::Repetition => {
                let at = kinds::NAMESPACE.named(key);
                let namespace = self.projects.caches.cluster.find(&self.context, &at).await.ok().flatten();
                let note = told::with_obstacles(&note, &namespace.unwrap_or_default());
                self.record(Reason::MarkedForDeletion, &note);
            }
        }
        Ok(Released::Later)
    }

    /// Removes the finalizer.
    async fn let_go(&mut self) -> Result<Outcome, Stop> {
        self.check_former_namespaces().await?;
        tracing::info!("Removing finalizer");
        let known = self.project.clone();
        let patch = |cached: &CachedProject| {
            let project = &cached.project;
            let is_judged = project.uid == known.uid && project.is_deleting && project.namespace == known.namespace;
            is_judged.then(|| project.finalizer_patch(false)).flatten()
        };
        let removed = self.projects.caches.projects.patch_cached(&self.context, self.key, Lock::Version, patch).await;
        let removed =
            removed.map_err(|error| Stop::Error(Failure::new(format!("failed to remove finalizer: {error}"))))?;
        match removed {
            Wrote::Altered(_) => Err(Stop::Overtaken),
            Wrote::Unchanged(cached) if cached.project.is_held() => Err(Stop::Overtaken),
            Wrote::Created(_) | Wrote::Updated(_) | Wrote::Unchanged(_) | Wrote::Deleting(_) | Wrote::Gone => {
                Ok(Outcome::Retire)
            }
        }
    }
}

/// Whether the Namespace of a deleted Project is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Released {
    /// The Project may go.
    Yes,
    /// It is being deleted.
    Later,
    /// Somebody else changed it meanwhile: it is judged anew.
    Unclear,
}

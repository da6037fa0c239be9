//! What all steps of the controller share: settings, clusters, caches, and why a ManagedResource is reconciled.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc, time::Duration};

use cluster::{
    ApiError, Cached as _, Cluster, Context, ListQuery, Recorder, Reference, Watch,
    object::{NamespacedName, ObjectKey},
};
use kit::{Causes, Env, Failure, Reconcile, SyncRequirement};
use tokio::time::Instant;

use super::{
    known::{
        Autoscalers, CachedManagedResource, HealthRegistry, InitialSync, ManagedObjects, ParsedManagedResource, Pods,
        Revalidation, Secrets, millis,
    },
    record::BundleRecord,
    report::StatusCell,
};
use crate::{
    actors::resource_manager::health::warnings::{Warnings, field_selector},
    api::{
        config::resource_manager::{HealthController, ManagedResourceController},
        kinds,
        resources::{class::OwnClass, managed_resource::ManagedResource},
    },
};

/// A ManagedResource changed in a way that asks for a reconcile (spec 10 §5.1).
pub(super) const CHANGED: Causes = Causes::own(0);
/// A referenced Secret changed (spec 10 §5.3).
pub(super) const SECRET: Causes = Causes::own(1);
pub(super) const DRIFT: Causes = Causes::own(2);
/// Discovery changed, and the ManagedResource waits for a kind.
pub(super) const KIND: Causes = Causes::own(3);
/// An owned object got its first autoscaler or lost its last one: another manifest counts.
pub(super) const SCALED: Causes = Causes::own(4);

/// Mutating admission may answer differently about an owned object.
pub(super) const REVALIDATE: Causes = Causes::own(8);

/// The ManagedResource must be judged anew as a whole (spec 20 §5.1).
pub(super) const REJUDGE: Causes = Causes::own(5);
pub(super) const HEALTH: Causes = Causes::own(6);
pub(super) const ROLLOUT: Causes = Causes::own(7);

pub(super) const CAUSES: [&str; 9] =
    ["changed", "secret", "drift", "kind", "scaled", "rejudge", "health", "rollout", "revalidate"];

/// A conflict of two owners about one object is reported this often (decision 11).
const REPORT_AGAIN: Duration = Duration::from_secs(3600);

/// Settings of the controller (spec 10 §3.1).
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) apply: ManagedResourceController,
    pub(super) health: HealthController,
    pub(super) class: OwnClass,
    /// Cluster id of origin values; empty for none.
    pub(super) cluster_id: String,
    /// Objects of the target are not watched: each check reads them (spec 70 §8.5).
    pub(super) target_is_live: bool,
    /// Whether each ManagedResource has metrics of its own (`server.metrics.perManagedResource`).
    pub(super) metric_per_bundle: bool,
    /// Whether the garbage collector runs: objects that it collects are left to it (spec 10 §13.2).
    pub(super) garbage_collector: bool,
}

/// What the reconcilers of one ManagedResource share.
#[derive(Default)]
pub(super) struct ActorObject {
    pub(super) status: StatusCell,
    pub(super) record: Rc<BundleRecord>,
}

pub(super) struct ManagedResources {
    pub(super) settings: Settings,
    pub(super) env: Env,
    pub(super) source: Cluster,
    pub(super) target: Cluster,
    pub(super) bundles: Watch<CachedManagedResource>,
    pub(super) secrets: Secrets,
    pub(super) definitions: SyncRequirement,
    pub(super) objects: Rc<ManagedObjects>,
    pub(super) autoscalers: Autoscalers,
    pub(super) recorder: Recorder,
    pub(super) health_recorder: Recorder,
    pub(super) health_registry: Rc<HealthRegistry>,
    pub(super) pods: Pods,
    pub(super) initial_sync: InitialSync,
    pub(super) started: Instant,
    pub(super) revalidation: Revalidation,
    /// ManagedResources that wait for a kind, and the causes of their wakes when discovery changes.
    pub(super) awaiting_kinds: RefCell<BTreeMap<NamespacedName, Causes>>,
    /// Reported conflicts of two owners: ManagedResource, object, reason; when.
    pub(super) reported: RefCell<BTreeMap<(NamespacedName, String, &'static str), Instant>>,
}

impl ManagedResources {
    fn parsed(&self, key: &NamespacedName) -> Result<Option<ParsedManagedResource>, Failure> {
        match self.bundles.store().get(key) {
            Some(cached) => Ok(Some(cached.parsed()?)),
            None => Ok(None),
        }
    }

    /// Returns the ManagedResource: the cached one if that is reliable, otherwise the server's (architecture §5).
    /// Nothing may be written for a ManagedResource that was deleted unnoticed.
    pub(super) async fn bundle(
        &self,
        status: &StatusCell,
        context: &Context,
        key: &NamespacedName,
    ) -> Result<Option<ParsedManagedResource>, Failure> {
        let Some(known) = self.parsed(key)? else {
            self.awaiting_kinds.borrow_mut().remove(key);
            return Ok(None);
        };
        if self.bundles.is_fresh_for(key) && !status.is_unconfirmed_now() {
            return Ok(Some(known));
        }
        let asked = self.env.clock.monotonic();
        match self.source.get(context, &self.bundles.resource().named(key)).await {
            Ok(live) => {
                let live = ParsedManagedResource::of(&live)?;
                self.bundles.wrote_cached(key, live.cached.clone(), &context.key, asked);
                status.was_found();
                Ok(Some(live))
            }
            Err(error) if error.is_not_found() => {
                self.bundles.deleted(key, known.cached.version(), &context.key);
                Ok(None)
            }
            Err(error) => Err(Failure::new(format!("error retrieving object from store: {error}"))),
        }
    }

    /// Returns whether a ManagedResource exists now, for decisions 10 and 11. The cache proves existence only while it
    /// would receive a deletion. It never proves absence: it may be late, or limited to some namespaces.
    pub(super) async fn exists(&self, context: &Context, key: &NamespacedName) -> Result<bool, ApiError> {
        if self.bundles.is_fresh_for(key) && self.bundles.store().with(key, |_| ()).is_some() {
            return Ok(true);
        }
        match self.source.get(context, &self.bundles.resource().named(key)).await {
            Ok(_) => Ok(true),
            // No ManagedResource has a name that no request can carry.
            Err(error) if error.is_not_found() || matches!(error, ApiError::BadRequest(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the Events that say what is wrong with a Service.
    pub(super) async fn warnings_of(&self, context: &Context, service: &ObjectKey) -> Result<Warnings, ApiError> {
        let ObjectKey { namespace, name, .. } = service;
        let query = ListQuery { field_selector: Some(field_selector(namespace, name)), ..ListQuery::default() };
        let list = self.target.list(context, &kinds::CORE_EVENT, Some(namespace), &query).await?;
        Ok(Warnings::of(&list.items))
    }

    /// The ManagedResource is woken for these causes when discovery changes.
    pub(super) fn awaits_kind(&self, bundle: &NamespacedName, causes: Causes) {
        let mut awaiting = self.awaiting_kinds.borrow_mut();
        let known = awaiting.entry(bundle.clone()).or_insert(Causes::NONE);
        *known = known.with(causes);
    }

    /// Returns true if a conflict about an object has not been reported within the last hour (decision 11).
    pub(super) fn is_news(&self, bundle: &NamespacedName, object: &str, reason: &'static str) -> bool {
        let now = self.env.clock.monotonic();
        let mut reported = self.reported.borrow_mut();
        reported.retain(|_, when| now.saturating_duration_since(*when) < REPORT_AGAIN);
        let key = (bundle.clone(), object.to_owned(), reason);
        let is_news = !reported.contains_key(&key);
        if is_news {
            reported.insert(key, now);
        }
        is_news
    }

    /// What Events about a ManagedResource refer to.
    pub(super) fn reference(&self, mr: &ManagedResource) -> Reference {
        let (resource, metadata) = (self.bundles.resource(), &mr.metadata);
        Reference {
            api_version: resource.api_version(),
            kind: resource.kind.to_string(),
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            uid: metadata.uid.clone(),
        }
    }

    pub(super) fn elapsed(&self) -> u64 {
        millis(self.env.clock.monotonic().saturating_duration_since(self.started))
    }

    /// The key of the context is also the name under which own writes are entered into caches.
    pub(super) fn context(&self, reconcile: &Reconcile<NamespacedName, ObjectKey>) -> Context {
        Context { priority: reconcile.priority(), deadline: reconcile.deadline, key: reconcile.key.to_string().into() }
    }
}

//! Tunes the Istio gateways: one EnvoyFilter per ingress namespace for each namespace with DestinationRules (spec 42).
//! ```text
//! DestinationRules, Services ─ rule.rs ─┐
//! Namespaces ───────────────────────────┼─► reconcile: filter.rs (clusters, modes) ─► create, patch or delete filters
//! our EnvoyFilters ─────────────────────┘
//! ```
//! One actor per source namespace. [`rule`] and [`filter`] are pure.

pub mod filter;
pub mod rule;

use std::{collections::BTreeSet, rc::Rc, time::Duration};

use cluster::{
    ApiError, Cached as _, CachedFields, Cluster, Context, DeleteOptions, Deleted, How, Index, Lock, Resource, Watch,
    WatchOptions, Watches,
    object::{self, NamespacedName},
};
use kit::{Causes, Controller, Failure, Listening, Outcome, Reconcile, Reconciler, Supervised, Wake};
use serde_json::Value;

use self::{
    filter::Found,
    rule::{Rule, Service},
};
use super::{
    controller_context::ControllerContext,
    controller_registration::{ControllerRegistration, StartControllers},
    texts,
};
use crate::api::config::Config;

/// Name in metrics and logs (spec 70 §9.2).
pub const NAME: &str = "istio-cluster-configuration";

/// Registers the controller; `controllers.istioClusterConfiguration.enabled` turns it on.
pub const REGISTRATION: ControllerRegistration = ControllerRegistration { names: &[NAME], setup };

const ROLE: &str = "gardener.cloud/role";
const ROLE_INGRESS: &str = "istio-ingress";
const EXPOSURE_CLASS: &str = "handler.exposureclass.gardener.cloud/name";
const STALE_CACHE_RETRY: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Namespace {
    uid: Box<str>,
    is_ingress: bool,
    is_terminating: bool,
}

struct Configuration {
    permits: usize,
    resync: Duration,
    target: Cluster,
    rules: Watch<CachedFields<Rule>>,
    services: Watch<CachedFields<Service>>,
    namespaces: Watch<CachedFields<Namespace>>,
    filters: Watch<CachedFields<Found>>,
    by_service: Index<NamespacedName>,
    by_export: Index<Box<str>>,
    by_source: Index<Box<str>>,
    /// Logs that Istio is not installed.
    _reporting: Listening,
}

fn source(namespace: &str) -> NamespacedName {
    NamespacedName::new("", namespace)
}

fn istio(version: &str, kind: &str, plural: &str) -> Resource {
    Resource::new("networking.istio.io", version, kind, plural, true)
}

fn setup(config: &Config, ctx: &ControllerContext) -> Option<StartControllers> {
    let permits = config.controllers.istio_cluster_configuration?.concurrent_syncs;
    let resync = config.target.cache_resync_period;
    let watches: &Watches = &ctx.target.watches;
    let rules = istio("v1beta1", "DestinationRule", "destinationrules");
    let rules = watches.open(WatchOptions::new(rules, |rule| CachedFields::of(rule, Rule::of(rule))).optional());
    let services = Resource::new("", "v1", "Service", "services", true);
    let services = watches.open(WatchOptions::new(services, |service| CachedFields::of(service, Service::of(service))));
    let namespaces = Resource::new("", "v1", "Namespace", "namespaces", false);
    let options = WatchOptions::new(namespaces, |namespace| CachedFields::of(namespace, Namespace::of(namespace)));
    let namespaces = watches.open(options.metadata());
    let filters = istio("v1alpha3", "EnvoyFilter", "envoyfilters");
    let options = WatchOptions::new(filters, |filter| CachedFields::of(filter, Found::of(filter))).optional();
    let filters = watches.open(options.labelled(format!("{}={}", filter::MANAGED_BY, filter::MANAGED_BY_US)));
    let by_service = rules.index(|_, rule| rule.fields.service.iter().cloned().collect());
    let by_export = rules.index(|_, rule| {
        let mut entries = rule.fields.exports.0.clone();
        entries.sort();
        entries.dedup();
        entries
    });
    let by_source = filters.index(|_, filter| filter.fields.source.iter().cloned().collect());
    Some(Box::new(move |ctx| {
        let target = ctx.target.cluster.clone();
        let reporting = rules.on_absence(|| {
            tracing::info!("No watches will be added because Istio CRDs are not installed");
        });
        let controller = Rc::new(Configuration {
            _reporting: reporting,
            permits,
            resync,
            target,
            rules,
            services,
            namespaces,
            filters,
            by_service,
            by_export,
            by_source,
        });
        let supervised = Supervised::start(controller.clone(), &ctx.env);
        controller.subscribe(&supervised);
        supervised.into()
    }))
}

/// Objects of the initial list have low priority, later changes have high priority.
fn wake(how: How<'_>) -> Wake<()> {
    if how == How::First { Wake::low(Causes::OBJECT) } else { Wake::high(Causes::OBJECT) }
}

impl Configuration {
    /// Subscribes the event handlers (spec 42 §3). Reconciles wait for all caches, so most initial lists are ignored.
    fn subscribe(&self, supervised: &Supervised<Self>) {
        let waker = supervised.weak();
        self.rules.subscribe(move |change| {
            if change.old.map(|old| &old.fields) != change.new.map(|new| &new.fields) {
                waker.wake(&source(&change.name.namespace), wake(change.how));
            }
        });
        let (waker, by_service) = (supervised.weak(), self.by_service.clone());
        self.services.subscribe(move |change| {
            if change.how != How::First && change.old.map(|old| &old.fields) != change.new.map(|new| &new.fields) {
                let sources: BTreeSet<_> = by_service.get(change.name).into_iter().map(|rule| rule.namespace).collect();
                sources.iter().for_each(|namespace| waker.wake(&source(namespace), wake(change.how)));
            }
        });
        let (waker, by_export) = (supervised.weak(), self.by_export.clone());
        self.namespaces.subscribe(move |change| {
            let [old, new] = [change.old, change.new].map(|namespace| namespace.map(|namespace| &namespace.fields));
            if change.how == How::First || old == new {
                return;
            }
            let name = change.name.name.as_str();
            if [old, new].into_iter().flatten().any(|namespace| namespace.is_ingress) {
                let exporting = by_export.get(&name.into()).into_iter().chain(by_export.get(&"*".into()));
                let own = by_export.get(&".".into()).into_iter().filter(|rule| rule.namespace == name);
                let sources: BTreeSet<_> = exporting.chain(own).map(|rule| rule.namespace).collect();
                sources.iter().for_each(|namespace| waker.wake(&source(namespace), wake(change.how)));
            }
            // The source namespace is new or recreated; its rules may have arrived before.
            if old.map(|old| &old.uid) != new.map(|new| &new.uid) {
                waker.wake(&source(name), wake(change.how));
            }
        });
        let waker = supervised.weak();
        self.filters.subscribe(move |change| {
            let [old, new] = [change.old, change.new].map(|filter| filter.map(|filter| &filter.fields));
            // Ignore updates of other fields, or we would fight webhooks that change our filters in a loop.
            if old != new && !matches!(change.how, How::Own { .. }) {
                let sources: BTreeSet<_> =
                    [old, new].into_iter().flatten().filter_map(|it| it.source.clone()).collect();
                sources.iter().for_each(|namespace| waker.wake(&source(namespace), wake(change.how)));
            }
        });
    }

    fn is_evidence(&self) -> bool {
        self.services.is_fresh()
            && self.namespaces.is_fresh()
            && (self.rules.is_fresh() || self.rules.absence().is_some())
    }

    /// Creates or patches the filter (spec 42 §5.5). Returns false if the result differs from `wanted`: the patch is
    /// not bound to a version, and webhooks may change it.
    async fn bring_about(&self, context: &Context, at: &NamespacedName, wanted: &Value) -> Result<bool, ApiError> {
        let target = self.filters.resource().at(&*at.namespace, &*at.name);
        let asked = self.target.clock().monotonic();
        if self.filters.store().with(at, |_| ()).is_none() {
            match self.target.create(context, &target, wanted).await {
                Err(error) if error.is_already_exists() => {}
                answer => {
                    let answer = answer?;
                    self.filters.wrote(&answer, &at.to_string(), asked);
                    return Ok(Found::of(&answer).is_like(&Found::of(wanted)));
                }
            }
        }
        // Take over a filter created by somebody else, based on its live content.
        let live = self.target.get(context, &target).await?;
        let asked = self.target.clock().monotonic();
        let after = filter::bring_into(&live, wanted);
        let wrote = self.target.patch_to(context, &target, &live, &after, Lock::None).await?;
        self.filters.wrote(wrote.object(), &at.to_string(), asked);
        Ok(Found::of(wrote.object()).is_like(&Found::of(wanted)))
    }

    /// Deletes a filter in the seen version. Held by a finalizer, it stays cached until its watch reports the end.
    async fn delete(&self, context: &Context, at: &NamespacedName) -> Result<(), ApiError> {
        let seen = self.filters.store().with(at, |filter| (filter.version(), filter.fields.is_terminating));
        let Some((version, false)) = seen else { return Ok(()) };
        let target = self.filters.resource().at(&*at.namespace, &*at.name);
        let options = DeleteOptions { resource_version: Some(version.to_string()), ..DeleteOptions::default() };
        match self.target.delete(context, &target, &options).await {
            Ok(Deleted::Gone) => self.filters.deleted(at, version, &at.to_string()),
            Ok(Deleted::Pending(_)) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl Controller for Configuration {
    type Key = NamespacedName;
    type Ref = ();
    type Object = ();
    type Memory = ();

    fn name(&self) -> &'static str {
        NAME
    }

    fn reconcilers(&self) -> Vec<Reconciler> {
        let reconciler = Reconciler::new(NAME, self.permits).about(("", "Namespace")).resync(self.resync);
        let reconciler = reconciler.requires(self.rules.sync_requirement()).requires(self.filters.sync_requirement());
        vec![reconciler.requires(self.services.sync_requirement()).requires(self.namespaces.sync_requirement())]
    }

    fn object(&self, _: &NamespacedName) {}

    async fn reconcile(
        self: &Rc<Self>,
        _: &Rc<()>,
        (): &mut (),
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let name = &*reconcile.key.name;
        let Some(own) = self.namespaces.store().with(&reconcile.key, |namespace| namespace.fields.clone()) else {
            tracing::debug!("Source namespace is gone, nothing to do");
            return Ok(Outcome::Retire);
        };
        let mut ingress = Vec::new();
        self.namespaces.store().for_each(|name, namespace| {
            if namespace.fields.is_ingress {
                ingress.push((name.name.clone(), namespace.fields.is_terminating));
            }
        });
        let mut rules = Vec::new();
        self.rules.store().for_each_in(name, |_, rule| rules.push(rule.fields.clone()));
        let service = |name: &NamespacedName| self.services.store().with(name, |service| service.fields.clone());
        let targets: BTreeSet<&str> = ingress.iter().map(|(name, _)| name.as_str()).collect();
        let patches = filter::patches(name, rules.iter(), service, &targets);
        for cluster in &patches.contested {
            tracing::warn!(cluster, "DestinationRules disagree about a cluster; the first by name wins");
        }

        let context = Context::new(reconcile.priority(), reconcile.deadline, name.to_owned());
        let (mut errors, mut written, mut is_overtaken) = (Vec::new(), 0_usize, false);
        let terminating: BTreeSet<&str> =
            ingress.iter().filter(|(_, is_terminating)| *is_terminating).map(|(name, _)| name.as_str()).collect();
        for (target, clusters) in patches.by_target.iter().filter(|(target, _)| !terminating.contains(target.as_str()))
        {
            let at = NamespacedName::new(&**target, filter::name(name));
            let wanted = filter::filter(name, &own.uid, target, clusters);
            if self.filters.store().with(&at, |found| found.fields.is_like(&Found::of(&wanted))) == Some(true) {
                continue;
            }
            written += 1;
            match self.bring_about(&context, &at, &wanted).await {
                Ok(is_right) => is_overtaken |= !is_right,
                Err(error) => errors.push(format!("failed to create/update EnvoyFilter {at}: {error}")),
            }
        }
        let own_filters = self.by_source.get(&name.into());
        let stale: Vec<_> =
            own_filters.into_iter().filter(|at| !patches.by_target.contains_key(&at.namespace)).collect();
        let is_cache_stale = !stale.is_empty() && !self.is_evidence();
        for at in stale.iter().filter(|_| !is_cache_stale) {
            written += 1;
            match self.delete(&context, at).await {
                Err(error) if error.is_conflict() => is_overtaken = true,
                Err(error) => errors.push(format!("failed to delete EnvoyFilter {at}: {error}")),
                Ok(()) => {}
            }
        }
        reconcile.note(format!("{} filters, {written} written now", patches.by_target.len()));
        if !errors.is_empty() {
            return Err(Failure::new(texts::together(&errors, "; ")));
        }
        if is_overtaken {
            return Ok(Outcome::Again);
        }
        Ok(match (is_cache_stale, patches.by_target.is_empty()) {
            (true, _) => Outcome::After(STALE_CACHE_RETRY),
            (false, true) => Outcome::Retire,
            (false, false) => Outcome::Done,
        })
    }
}

impl Namespace {
    fn of(namespace: &Value) -> Self {
        let is_ingress =
            object::label(namespace, ROLE) == Some(ROLE_INGRESS) || object::label(namespace, EXPOSURE_CLASS).is_some();
        let is_terminating = object::deletion_timestamp(namespace).is_some();
        Self { uid: object::uid(namespace).into(), is_ingress, is_terminating }
    }
}

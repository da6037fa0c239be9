//! Tunes the Istio gateways: one EnvoyFilter per ingress namespace for each namespace with DestinationRules (spec 42).
//! ```text
//! DestinationRules, Services ─ rule.rs ─┐
//! Namespaces ───────────────────────────┼─► reconcile: filter.rs (clusters, modes) ─► create, patch or delete filters
//! our EnvoyFilters ─────────────────────┘
//! ```
//! One actor per source namespace. [`rule`] and [`filter`] are pure.

pub mod filter;
pub mod rule;

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    time::Duration,
};

use cluster::{
    ApiError, CachedFields, Context, Index, Lock, Predicate, Watch, WatchOptions, Wrote, difference,
    object::{self, NamespacedName},
};
use kit::{Controller, Failure, Listening, Outcome, Reconcile, Reconciler, Supervised};
use serde_json::Value;

use self::{
    filter::Found,
    rule::{Rule, Service},
};
use super::controller_context::{ControllerContext, Registration, StartControllers, start};
use crate::{
    actors::shared::texts,
    api::{config::resource_manager::Config, kinds},
};

/// Name in metrics and logs (spec 70 §9.2).
pub const NAME: &str = "istio-cluster-configuration";

/// Registers the controller; `controllers.istioClusterConfiguration.enabled` turns it on.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

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
    rules: Watch<CachedFields<Rule>>,
    services: Watch<CachedFields<Service>>,
    namespaces: Watch<CachedFields<Namespace>>,
    filters: Watch<CachedFields<Found>>,
    by_service: Index<NamespacedName>,
    by_export: Index<Box<str>>,
    by_source: Index<Box<str>>,
    /// Logs that Istio is not installed.
    reporting: OnceCell<Listening>,
}

fn source(namespace: &str) -> NamespacedName {
    NamespacedName::new("", namespace)
}

fn setup(config: &Config, ctx: &ControllerContext) -> Option<StartControllers> {
    let settings = config.controllers.istio_cluster_configuration.on()?;
    let watches = &ctx.target.watches;
    let rules = watches.open(WatchOptions::fields(kinds::DESTINATION_RULE, Rule::of).optional());
    let services = watches.open(WatchOptions::fields(kinds::SERVICE, Service::of));
    let namespaces = watches.open(WatchOptions::fields(kinds::NAMESPACE, Namespace::of).metadata());
    let ours = format!("{}={}", filter::MANAGED_BY, filter::MANAGED_BY_US);
    let filters = watches.open(WatchOptions::fields(kinds::ENVOY_FILTER, Found::of).optional().labelled(ours));
    let configuration = Configuration {
        permits: settings.concurrent_syncs.count(),
        resync: config.target.cache_resync_period.get(),
        by_service: rules.index(|_, rule| rule.fields.service.iter().cloned().collect()),
        by_export: rules.index(|_, rule| BTreeSet::from_iter(rule.fields.exports.0.clone()).into_iter().collect()),
        by_source: filters.index(|_, filter| filter.fields.source.iter().cloned().collect()),
        rules,
        services,
        namespaces,
        filters,
        reporting: OnceCell::new(),
    };
    Some(start(configuration, Configuration::subscribe))
}

impl Configuration {
    /// Subscribes the event handlers (spec 42 §3). Reconciles wait for all caches, so most initial lists are ignored.
    fn subscribe(self: &Rc<Self>, supervised: &Supervised<Self>) {
        self.reporting.get_or_init(|| {
            self.rules.on_absence(|| {
                tracing::info!("No watches will be added because Istio CRDs are not installed");
            })
        });
        self.rules.on_change(supervised, Predicate::fields_changed(), |name, _| [source(&name.namespace)]);
        let by_service = self.by_service.clone();
        let of_rules = |rules: Vec<NamespacedName>| rules.into_iter().map(|rule| source(&rule.namespace));
        let changed = Predicate::fields_changed().ignoring_first_list();
        self.services.on_change(supervised, changed, move |name, _| of_rules(by_service.get(name)));
        let by_export = self.by_export.clone();
        let exporting = move |name: &NamespacedName, namespace: &CachedFields<Namespace>| {
            let name = name.name.as_str();
            let to_name = by_export.get(&name.into()).into_iter().chain(by_export.get(&"*".into()));
            let own = by_export.get(&".".into()).into_iter().filter(|rule| rule.namespace == name);
            of_rules(if namespace.fields.is_ingress { to_name.chain(own).collect() } else { Vec::new() })
        };
        self.namespaces.on_change(supervised, Predicate::fields_changed().ignoring_first_list(), exporting);
        // The source namespace is new or recreated; its rules may have arrived before.
        let recreated = Predicate::differing(|old: &CachedFields<Namespace>, new| old.fields.uid != new.fields.uid);
        self.namespaces.on_change(supervised, recreated.ignoring_first_list(), |name, _| [name.clone()]);
        // Ignore updates of other fields, or we would fight webhooks that change our filters in a loop.
        let changed = Predicate::fields_changed();
        self.filters.on_change(supervised, changed, |_, filter| filter.fields.source.as_deref().map(source));
    }

    fn is_evidence(&self) -> bool {
        self.services.is_fresh()
            && self.namespaces.is_fresh()
            && (self.rules.is_fresh() || self.rules.absence().is_some())
    }

    /// Creates or patches the filter (spec 42 §5.5). Returns false if the result differs from `wanted`: the patch is
    /// not bound to a version, and webhooks may change it.
    async fn bring_about(&self, context: &Context, at: &NamespacedName, wanted: &Value) -> Result<bool, ApiError> {
        let is_right = |filter: &Value| Found::of(filter).is_like(&Found::of(wanted));
        if self.filters.store().with(at, |_| ()).is_none() {
            match self.filters.create(context, wanted).await {
                Err(error) if error.is_already_exists() => {}
                answer => return Ok(is_right(&answer?)),
            }
        }
        // Take over a filter created by somebody else, based on its live content.
        let decide = |live: &Value| {
            if is_right(live) { None } else { difference(live, &filter::bring_into(live, wanted)) }
        };
        let wrote = self.filters.patch(context, at, Lock::None, decide).await?;
        Ok(matches!(wrote, Wrote::Updated(_) | Wrote::Unchanged(_)))
    }

    /// Deletes a filter; returns false if it has changed. Held by a finalizer, it stays cached until its watch reports
    /// the end.
    async fn delete(&self, context: &Context, at: &NamespacedName) -> Result<bool, ApiError> {
        let Some(seen) = self.filters.store().with(at, |filter| filter.fields.clone()) else { return Ok(true) };
        if seen.is_terminating {
            return Ok(true);
        }
        let is_due = |filter: &CachedFields<Found>| !filter.fields.is_terminating && filter.fields.is_like(&seen);
        let wrote = self.filters.delete_cached_if(context, at, None, is_due).await?;
        Ok(!matches!(wrote, Wrote::Unchanged(_)))
    }
}

impl Controller for Configuration {
    type Key = NamespacedName;
    type Memory = ();

    fn reconcilers(&self) -> Vec<Reconciler> {
        let reconciler = Reconciler::new(NAME, self.permits).about(("", "Namespace")).resync(self.resync);
        let reconciler = reconciler.requires(self.rules.sync_requirement()).requires(self.filters.sync_requirement());
        vec![reconciler.requires(self.services.sync_requirement()).requires(self.namespaces.sync_requirement())]
    }

    async fn reconcile(
        self: &Rc<Self>,
        (): &mut (),
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let name = &*reconcile.key.name;
        let Some(own) = self.namespaces.store().with(&reconcile.key, |namespace| namespace.fields.clone()) else {
            tracing::debug!("Source namespace is gone, nothing to do");
            return Ok(Outcome::Retire);
        };
        let mut terminating_by_target = BTreeMap::new();
        self.namespaces.store().for_each(|name, namespace| {
            if namespace.fields.is_ingress {
                terminating_by_target.insert(name.name.clone(), namespace.fields.is_terminating);
            }
        });
        let mut rules = Vec::new();
        self.rules.store().for_each_in(name, |_, rule| rules.push(rule.fields.clone()));
        let service = |name: &NamespacedName| self.services.store().with(name, |service| service.fields.clone());
        let targets: BTreeSet<&str> = terminating_by_target.keys().map(String::as_str).collect();
        let patches = filter::patches(name, rules.iter(), service, &targets);
        for cluster in &patches.contested {
            tracing::warn!(cluster, "DestinationRules disagree about a cluster; the first by name wins");
        }

        let context = Context::new(reconcile.priority(), reconcile.deadline, name.to_owned());
        let (mut errors, mut written, mut is_overtaken) = (Vec::new(), 0_usize, false);
        let is_open = |target: &String| terminating_by_target.get(target) == Some(&false);
        for (target, clusters) in patches.by_target.iter().filter(|(target, _)| is_open(target)) {
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
                Ok(is_as_seen) => is_overtaken |= !is_as_seen,
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

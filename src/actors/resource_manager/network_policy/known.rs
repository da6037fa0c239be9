//! The caches that policies depend on, and indexes from a change to the Services that it affects (spec 40 §5).

use std::collections::BTreeSet;

use cluster::{CachedFields, Index, Watch, WatchOptions, Watches, object::NamespacedName};
use kit::Reconciler;

use super::{
    clients::{Client, Clients},
    desired::Backend,
    exposure::{self, Gateway, Gateways, Ingresses, VirtualService, VirtualServices},
    gateway_pods::GatewayPods,
    plan::{self, Namespace, NoPlan, Plan, Surroundings},
    policy::{Found, SERVICE_NAME, SERVICE_NAMESPACE},
    rules::Rules,
    service::Service,
};
use crate::api::{
    kinds,
    meta::selector::{Labels, Selector},
};

pub(super) struct Known {
    pub(super) services: Watch<CachedFields<Service>>,
    pub(super) policies: Watch<CachedFields<Found>>,
    pub(super) namespaces: Watch<CachedFields<Namespace>>,
    pub(super) ingresses: Option<Ingresses>,
    pub(super) virtual_services: VirtualServices,
    pub(super) gateways: Gateways,
    /// Present with `onlyForMatchingPods`.
    pub(super) clients: Option<Clients>,
    by_owner: Index<NamespacedName>,
    in_namespace: Index<Box<str>>,
    selecting: Index<()>,
    by_own_client: Option<Index<Client>>,
    by_shared_client: Option<Index<Box<str>>>,
    by_backend: Option<Index<NamespacedName>>,
    by_destination: Index<NamespacedName>,
    by_gateway: Index<NamespacedName>,
}

struct Around<'a> {
    known: &'a Known,
    pods: &'a GatewayPods,
}

impl Known {
    pub(super) fn open(watches: &Watches, rules: &Rules) -> Self {
        let services =
            watches.open(WatchOptions::new(kinds::SERVICE, |service| CachedFields::of(service, Service::of(service))));
        let options = WatchOptions::new(kinds::NETWORK_POLICY, |policy| CachedFields::of(policy, Found::of(policy)?));
        let policies = watches.open(options.labelled(format!("{SERVICE_NAME},{SERVICE_NAMESPACE}")));
        let options =
            WatchOptions::new(kinds::NAMESPACE, |namespace| CachedFields::of(namespace, Namespace::of(namespace)));
        let namespaces = watches.open(options.metadata());
        let ingresses = rules.ingress_controller.is_some().then(|| exposure::ingresses(watches));
        let virtual_services = exposure::virtual_services(watches);
        Self {
            by_owner: policies.index(|_, policy| vec![policy.fields.owner.clone()]),
            in_namespace: services.index(|name, _| vec![name.namespace.as_str().into()]),
            selecting: services.index(|_, service| vec![(); usize::from(service.fields.selects_namespaces())]),
            by_own_client: rules.only_for_matching_pods.then(|| {
                services.index(|name, service| {
                    let keys = service.fields.own_client_keys(&name.name).into_iter();
                    keys.map(|key| (name.namespace.as_str().into(), key)).collect()
                })
            }),
            by_shared_client: rules
                .only_for_matching_pods
                .then(|| services.index(|name, service| service.fields.shared_client_keys(name))),
            by_backend: ingresses.as_ref().map(exposure::by_backend),
            by_destination: exposure::by_destination(&virtual_services),
            by_gateway: exposure::by_gateway(&virtual_services),
            clients: rules.only_for_matching_pods.then(|| Clients::open(watches)),
            gateways: exposure::gateways(watches),
            services,
            policies,
            namespaces,
            ingresses,
            virtual_services,
        }
    }

    /// Adds all required caches. With Istio's, the first reconcile knows whether Istio is installed (spec 40 §5.5).
    pub(super) fn needed_by(&self, reconciler: Reconciler) -> Reconciler {
        let reconciler = reconciler
            .requires(self.services.sync_requirement())
            .requires(self.policies.sync_requirement())
            .requires(self.namespaces.sync_requirement());
        let reconciler =
            reconciler.requires(self.virtual_services.sync_requirement()).requires(self.gateways.sync_requirement());
        let ingresses = self.ingresses.as_ref().map(Watch::sync_requirement);
        let clients = self.clients.iter().flat_map(Clients::requires);
        ingresses.into_iter().chain(clients).fold(reconciler, Reconciler::requires)
    }

    /// Returns true if the caches are fresh enough to delete policies of the Service.
    pub(super) fn is_evidence(&self, service: &NamespacedName) -> bool {
        self.services.is_fresh_for(service)
            && self.namespaces.is_fresh()
            && self.ingresses.as_ref().is_none_or(Watch::is_fresh)
            && self.clients.as_ref().is_none_or(Clients::is_fresh)
            && (self.virtual_services.is_fresh() || self.virtual_services.absence().is_some())
            && (self.gateways.is_fresh() || self.gateways.absence().is_some())
    }

    pub(super) fn policies_of(&self, service: &NamespacedName) -> Vec<NamespacedName> {
        self.by_owner.get(service)
    }

    pub(super) async fn plan(&self, name: &NamespacedName, rules: &Rules, pods: &GatewayPods) -> Result<Plan, NoPlan> {
        plan::plan_in_turns(name, rules, &Around { known: self, pods }, tokio::task::yield_now).await
    }

    pub(super) fn is_open(&self, namespace: &str) -> bool {
        let namespace = NamespacedName::new("", namespace);
        self.namespaces.store().with(&namespace, |namespace| !namespace.fields.is_terminating) == Some(true)
    }

    /// Returns the selector of a Gateway's pods, or `None` if no VirtualService needs it or it is unusable.
    pub(super) fn needed_selector(&self, gateway: &NamespacedName) -> Option<Selector> {
        let is_needed = self.by_gateway.contains(gateway);
        let selector = |gateway: &CachedFields<Gateway>| gateway.fields.selector().cloned();
        Some(gateway).filter(|_| is_needed).and_then(|gateway| self.gateways.store().with(gateway, selector)).flatten()
    }

    /// Returns the Services of a namespace. Its labels matter also to Services that select it (spec 40 §5.2).
    pub(super) fn services_in(&self, namespace: &str) -> BTreeSet<NamespacedName> {
        self.in_namespace.get(&namespace.into()).into_iter().collect()
    }

    pub(super) fn selecting(&self) -> Vec<NamespacedName> {
        self.selecting.get(&())
    }

    pub(super) fn selects(&self, service: &NamespacedName, labels: &Labels) -> bool {
        self.services.store().with(service, |service| service.fields.selects(labels)) == Some(true)
    }

    pub(super) fn exposed(&self) -> BTreeSet<NamespacedName> {
        self.by_backend.iter().flat_map(Index::keys).collect()
    }

    pub(super) fn with_client(&self, client: &Client) -> Vec<NamespacedName> {
        self.by_own_client.iter().flat_map(|index| index.get(client)).collect()
    }

    /// Returns the Services that the client affects if they select its namespace, and the labels of that namespace.
    /// Returns `None` while the namespace is unknown: its arrival wakes the Services.
    pub(super) fn with_foreign_client(&self, (namespace, key): &Client) -> Option<(Vec<NamespacedName>, Labels)> {
        let name = NamespacedName::new("", &**namespace);
        let labels = self.namespaces.store().with(&name, |namespace| namespace.fields.labels.clone())?;
        Some((self.by_shared_client.iter().flat_map(|index| index.get(key)).collect(), labels))
    }

    pub(super) fn routes_by(&self, gateway: &NamespacedName) -> Vec<NamespacedName> {
        self.by_gateway.get(gateway)
    }

    pub(super) fn services_of(&self, virtual_service: &NamespacedName) -> Vec<NamespacedName> {
        self.virtual_services.store().with(virtual_service, |it| it.fields.services()).unwrap_or_default()
    }
}

impl Surroundings for Around<'_> {
    fn service(&self, name: &NamespacedName) -> Option<Service> {
        self.known.services.store().with(name, |service| service.fields.clone())
    }

    fn namespace(&self, name: &str) -> Option<Namespace> {
        self.known.namespaces.store().with(&NamespacedName::new("", name), |namespace| namespace.fields.clone())
    }

    fn namespaces(&self) -> Vec<String> {
        self.known.namespaces.store().names().into_iter().map(|name| name.name).collect()
    }

    fn has_client(&self, namespace: &str, key: &str) -> bool {
        self.known.clients.as_ref().is_none_or(|clients| clients.has(namespace, key))
    }

    fn backends(&self, service: &NamespacedName) -> Vec<Backend> {
        let (Some(ingresses), Some(by_backend)) = (&self.known.ingresses, &self.known.by_backend) else {
            return Vec::new();
        };
        let mut backends = Vec::new();
        for ingress in by_backend.get(service) {
            ingresses.store().with(&ingress, |ingress| backends.extend(exposure::ports_of(&ingress.fields, service)));
        }
        backends
    }

    fn routes_to(&self, service: &NamespacedName) -> Vec<NamespacedName> {
        self.known.by_destination.get(service)
    }

    fn virtual_service(&self, name: &NamespacedName) -> Option<VirtualService> {
        self.known.virtual_services.store().with(name, |it| it.fields.clone())
    }

    fn gateway(&self, name: &NamespacedName) -> Option<Gateway> {
        self.known.gateways.store().with(name, |gateway| gateway.fields.clone())
    }

    fn namespaces_of_pods(&self, labels: &Selector) -> Option<Vec<Box<str>>> {
        self.pods.namespaces(labels)
    }
}

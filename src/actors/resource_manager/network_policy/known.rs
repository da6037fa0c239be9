//! The caches that policies depend on, and indexes from a change to the Services that it affects (spec 40 §5).

use cluster::{CachedFields, Index, Watch, WatchOptions, Watches, object::NamespacedName};
use kit::SyncRequirement;

use super::{
    clients::{Client, Clients},
    exposure::{self, Backends, Gateway, VirtualService},
    gateway_pods::GatewayPods,
    plan::{Namespace, Surroundings},
    policy::{Found, SERVICE_NAME, SERVICE_NAMESPACE},
    port::Backend,
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
    pub(super) ingresses: Option<Watch<CachedFields<Backends>>>,
    pub(super) virtual_services: Watch<CachedFields<VirtualService>>,
    pub(super) gateways: Watch<CachedFields<Gateway>>,
    pub(super) gateway_pods: GatewayPods,
    /// Present with `onlyForMatchingPods`.
    pub(super) clients: Option<Clients>,
    /// Policies by the Service that their labels name.
    pub(super) by_owner: Index<NamespacedName>,
    /// Services by their namespace. Its labels matter also to Services that select it (spec 40 §5.2).
    pub(super) in_namespace: Index<Box<str>>,
    /// The Services that select namespaces.
    pub(super) selecting: Index<()>,
    pub(super) by_own_client: Option<Index<Client>>,
    by_shared_client: Option<Index<Box<str>>>,
    pub(super) by_backend: Option<Index<NamespacedName>>,
    by_destination: Index<NamespacedName>,
    /// VirtualServices by the Gateways that they name.
    pub(super) by_gateway: Index<NamespacedName>,
}

impl Known {
    pub(super) fn open(watches: &Watches, rules: &Rules) -> Self {
        let services = watches.open(WatchOptions::fields(kinds::SERVICE, Service::of));
        let policies = WatchOptions::new(kinds::NETWORK_POLICY, |policy| CachedFields::of(policy, Found::of(policy)?));
        let policies = watches.open(policies.labelled(format!("{SERVICE_NAME},{SERVICE_NAMESPACE}")));
        let namespaces = watches.open(WatchOptions::fields(kinds::NAMESPACE, Namespace::of).metadata());
        let with_edge = rules.ingress_controller.as_ref();
        let ingresses = with_edge.map(|_| watches.open(WatchOptions::fields(kinds::INGRESS, exposure::backends)));
        let virtual_services = WatchOptions::fields(kinds::VIRTUAL_SERVICE, VirtualService::of).optional();
        let virtual_services = watches.open(virtual_services);
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
            by_backend: ingresses.as_ref().map(|ingresses| {
                ingresses.index(|name, ingress| exposure::backend_services(&name.namespace, &ingress.fields))
            }),
            by_destination: virtual_services.index(|_, service| service.fields.services()),
            by_gateway: virtual_services.index(|_, service| service.fields.gateways.clone()),
            clients: rules.only_for_matching_pods.then(|| Clients::open(watches)),
            gateways: watches.open(WatchOptions::fields(kinds::GATEWAY, Gateway::of).optional()),
            gateway_pods: GatewayPods::new(watches),
            services,
            policies,
            namespaces,
            ingresses,
            virtual_services,
        }
    }

    /// Returns all required caches. With Istio's, the first reconcile knows whether Istio is installed (spec 40 §5.5).
    pub(super) fn requires(&self) -> impl Iterator<Item = SyncRequirement> {
        let always = [
            self.services.sync_requirement(),
            self.policies.sync_requirement(),
            self.namespaces.sync_requirement(),
            self.virtual_services.sync_requirement(),
            self.gateways.sync_requirement(),
        ];
        let ingresses = self.ingresses.as_ref().map(Watch::sync_requirement);
        always.into_iter().chain(ingresses).chain(self.clients.iter().flat_map(Clients::requires))
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

    pub(super) fn selects(&self, service: &NamespacedName, labels: &Labels) -> bool {
        self.services.store().with(service, |service| service.fields.selects(labels)) == Some(true)
    }

    /// Returns the Services that the client affects if they select its namespace, and the labels of that namespace.
    /// Returns `None` while the namespace is unknown: its arrival wakes the Services.
    pub(super) fn with_foreign_client(&self, (namespace, key): &Client) -> Option<(Vec<NamespacedName>, Labels)> {
        let name = NamespacedName::new("", &**namespace);
        let labels = self.namespaces.store().with(&name, |namespace| namespace.fields.labels.clone())?;
        Some((self.by_shared_client.iter().flat_map(|index| index.get(key)).collect(), labels))
    }
}

impl Surroundings for Known {
    fn service(&self, name: &NamespacedName) -> Option<Service> {
        self.services.store().with(name, |service| service.fields.clone())
    }

    fn namespace(&self, name: &str) -> Option<Namespace> {
        self.namespaces.store().with(&NamespacedName::new("", name), |namespace| namespace.fields.clone())
    }

    fn namespaces_after(&self, name: &str, most: usize, look: &mut dyn FnMut(&str, &Namespace)) {
        let after = NamespacedName::new("", name);
        self.namespaces.store().for_each_after(&after, most, |name, namespace| look(&name.name, &namespace.fields));
    }

    fn has_client(&self, namespace: &str, key: &str) -> bool {
        self.clients.as_ref().is_none_or(|clients| clients.has(namespace, key))
    }

    fn backends(&self, service: &NamespacedName) -> Vec<Backend> {
        let (Some(ingresses), Some(by_backend)) = (&self.ingresses, &self.by_backend) else {
            return Vec::new();
        };
        let mut backends = Vec::new();
        for ingress in by_backend.get(service) {
            ingresses.store().with(&ingress, |ingress| backends.extend(exposure::ports_of(&ingress.fields, service)));
        }
        backends
    }

    fn routes_to(&self, service: &NamespacedName) -> Vec<NamespacedName> {
        self.by_destination.get(service)
    }

    fn virtual_service(&self, name: &NamespacedName) -> Option<VirtualService> {
        self.virtual_services.store().with(name, |it| it.fields.clone())
    }

    fn gateway(&self, name: &NamespacedName) -> Option<Gateway> {
        self.gateways.store().with(name, |gateway| gateway.fields.clone())
    }

    fn namespaces_of_pods(&self, labels: &Selector) -> Option<Vec<Box<str>>> {
        self.gateway_pods.namespaces(labels)
    }
}

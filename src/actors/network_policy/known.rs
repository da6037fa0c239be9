//! What is known of a cluster that policies depend on, and which Services each part of it concerns (spec 40 §5).

use std::collections::BTreeSet;

use cluster::{Index, Projected, Record as _, Resource, StoreState, Want, Watch, Watches, object::NamespacedName};
use kit::Duty;

use super::{
    clients::Clients,
    desired::Backend,
    exposure::{self, Gateways, Ingresses, VirtualService, VirtualServices},
    gateway_pods::GatewayPods,
    plan::{self, Namespace, NoNamespace, Plan, Surroundings},
    policy::{Found, SERVICE_NAME, SERVICE_NAMESPACE},
    rules::Rules,
    service::Service,
};
use crate::api::selector::{Labels, Selector};

/// All of it.
pub(super) struct Known {
    pub(super) services: Watch<Projected<Service>>,
    pub(super) policies: Watch<Projected<Found>>,
    pub(super) namespaces: Watch<Projected<Namespace>>,
    pub(super) ingresses: Option<Ingresses>,
    pub(super) virtual_services: VirtualServices,
    pub(super) gateways: Gateways,
    /// With `onlyForMatchingPods`.
    pub(super) clients: Option<Clients>,
    by_owner: Index<NamespacedName>,
    in_namespace: Index<Box<str>>,
    selecting: Index<()>,
    by_client_key: Option<Index<Box<str>>>,
    by_backend: Option<Index<NamespacedName>>,
    by_destination: Index<NamespacedName>,
    by_gateway: Index<NamespacedName>,
}

/// A cluster as the watches show it.
struct Around<'a> {
    known: &'a Known,
    pods: &'a GatewayPods,
}

// === impl Known ===

impl Known {
    /// Opens the watches.
    pub(super) fn open(watches: &Watches, rules: &Rules) -> Self {
        let services = Resource::new("", "v1", "Service", "services", true);
        let services = watches.open(Want::new(services, |service| Projected::of(service, Service::of(service))));
        let policies = Resource::new("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", true);
        let want = Want::new(policies, |policy| Projected::of(policy, Found::of(policy)?));
        let policies = watches.open(want.labelled(format!("{SERVICE_NAME},{SERVICE_NAMESPACE}")));
        let namespaces = Resource::new("", "v1", "Namespace", "namespaces", false);
        let want = Want::new(namespaces, |namespace| Projected::of(namespace, Namespace::of(namespace)));
        let namespaces = watches.open(want.metadata());
        let ingresses = rules.ingress_controller.is_some().then(|| exposure::ingresses(watches));
        let virtual_services = exposure::virtual_services(watches);
        Self {
            by_owner: policies.index(|_, policy| vec![policy.fields.owner.clone()]),
            in_namespace: services.index(|name, _| vec![name.namespace.as_str().into()]),
            selecting: services.index(|_, service| vec![(); usize::from(service.fields.selects_namespaces())]),
            by_client_key: rules
                .only_for_matching_pods
                .then(|| services.index(|name, service| service.fields.client_keys(&name.namespace, &name.name))),
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

    /// A duty that waits for all of it. Whether Istio is there is known before the first pass (spec 40 §5.5).
    pub(super) fn needed_by(&self, duty: Duty) -> Duty {
        let duty = duty.needs(self.services.need()).needs(self.policies.need()).needs(self.namespaces.need());
        let duty = duty.needs(self.virtual_services.need()).needs(self.gateways.need());
        let more = [self.ingresses.as_ref().map(Watch::need), self.clients.as_ref().and_then(Clients::need)];
        more.into_iter().flatten().fold(duty, Duty::needs)
    }

    /// Whether policies may be deleted because of what is known.
    pub(super) fn is_evidence(&self, service: &NamespacedName) -> bool {
        let is_served_and_stale = |state: StoreState, is_fresh: bool| state != StoreState::Off && !is_fresh;
        self.services.is_fresh_for(service)
            && self.namespaces.is_fresh()
            && self.ingresses.as_ref().is_none_or(Watch::is_fresh)
            && self.clients.as_ref().is_none_or(Clients::is_fresh)
            && !is_served_and_stale(self.virtual_services.store().state(), self.virtual_services.is_fresh())
            && !is_served_and_stale(self.gateways.store().state(), self.gateways.is_fresh())
    }

    /// The policies that belong to a Service.
    pub(super) fn policies_of(&self, service: &NamespacedName) -> Vec<NamespacedName> {
        self.by_owner.get(service)
    }

    /// What a Service should have.
    pub(super) fn plan(&self, name: &NamespacedName, rules: &Rules, pods: &GatewayPods) -> Result<Plan, NoNamespace> {
        plan::plan(name, rules, &Around { known: self, pods })
    }

    /// All selectors of Gateways.
    pub(super) fn gateway_selectors(&self) -> BTreeSet<Selector> {
        let mut selectors = BTreeSet::new();
        self.gateways.store().for_each(|_, gateway| selectors.extend(gateway.fields.clone()));
        selectors
    }

    // --- whom a change concerns

    /// Services for which it matters which labels a namespace has (spec 40 §5.2).
    pub(super) fn concerned_by_namespace(&self, namespace: &str, labels: &[&Labels]) -> BTreeSet<NamespacedName> {
        let mut concerned: BTreeSet<_> = self.in_namespace.get(&namespace.into()).into_iter().collect();
        for name in self.selecting.get(&()) {
            let is_selecting =
                |service: &Projected<Service>| labels.iter().any(|labels| service.fields.selects(labels));
            if self.services.store().with(&name, is_selecting) == Some(true) {
                concerned.insert(name);
            }
        }
        concerned
    }

    /// Services whose policies stand in the namespace of a gateway or of the ingress controller: those that are exposed.
    pub(super) fn exposed(&self) -> BTreeSet<NamespacedName> {
        let by_ingress = self.by_backend.iter().flat_map(Index::keys);
        by_ingress.chain(self.by_destination.keys()).collect()
    }

    /// Services that have such clients.
    pub(super) fn with_client_key(&self, key: &str) -> Vec<NamespacedName> {
        self.by_client_key.as_ref().map(|index| index.get(&key.into())).unwrap_or_default()
    }

    /// Services that Gateways expose of which this is true.
    pub(super) fn behind_gateways(&self, is_one: impl Fn(&NamespacedName) -> bool) -> BTreeSet<NamespacedName> {
        let gateways = self.by_gateway.keys().into_iter().filter(|gateway| is_one(gateway));
        let services = gateways.flat_map(|gateway| self.by_gateway.get(&gateway));
        let destinations = services.flat_map(|name| {
            self.virtual_services.store().with(&name, |service| service.fields.services()).unwrap_or_default()
        });
        destinations.collect()
    }

    /// Services behind the Gateways with this selector.
    pub(super) fn behind_selector(&self, selector: &Selector) -> BTreeSet<NamespacedName> {
        let has_it = |gateway: &Projected<Option<Selector>>| gateway.fields.as_ref() == Some(selector);
        self.behind_gateways(|gateway| self.gateways.store().with(gateway, has_it) == Some(true))
    }

    /// The version at which a policy was seen.
    pub(super) fn policy_version(&self, name: &NamespacedName) -> Option<u64> {
        self.policies.store().with(name, |policy| policy.version())
    }
}

// === impl Around ===

impl Surroundings for Around<'_> {
    fn service(&self, name: &NamespacedName) -> Option<Service> {
        self.known.services.store().with(name, |service| service.fields.clone())
    }

    fn namespace(&self, name: &str) -> Option<Namespace> {
        self.known.namespaces.store().with(&NamespacedName::new("", name), |namespace| namespace.fields.clone())
    }

    fn each_namespace(&self, tell: &mut dyn FnMut(&str, &Namespace)) {
        self.known.namespaces.store().for_each(|name, namespace| tell(&name.name, &namespace.fields));
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

    fn virtual_services(&self, service: &NamespacedName) -> Vec<(NamespacedName, VirtualService)> {
        let names = self.known.by_destination.get(service).into_iter();
        let known = |name: &NamespacedName| self.known.virtual_services.store().with(name, |it| it.fields.clone());
        names.filter_map(|name| known(&name).map(|it| (name, it))).collect()
    }

    fn gateway(&self, name: &NamespacedName) -> Option<Option<Selector>> {
        self.known.gateways.store().with(name, |gateway| gateway.fields.clone())
    }

    fn namespaces_of_pods(&self, labels: &Selector) -> Option<Vec<Box<str>>> {
        self.pods.namespaces(labels)
    }
}

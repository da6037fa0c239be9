//! What is known of a cluster that policies depend on, and which Services each part of it concerns (spec 40 §5).

use std::collections::BTreeSet;

use cluster::{
    Index, Projected, Record as _, Resource, StoreState, Want, Watch, Watches,
    object::{self, NamespacedName},
};
use kit::Duty;
use serde_json::Value;

use super::{
    clients::Clients,
    desired::{self, Desired, IngressController, Route, View},
    exposure::{self, Gateways, Ingresses, VirtualServices},
    failing::Failing,
    gateway_pods::GatewayPods,
    policy::{Found, SERVICE_NAME, SERVICE_NAMESPACE},
    rules::Rules,
    service::Service,
};
use crate::api::selector::{Labels, Selector};

/// What is kept of a Namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Namespace {
    pub(super) labels: Labels,
    /// It is being deleted: nothing can be created in it.
    pub(super) is_terminating: bool,
}

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

/// What a Service should have, and what of it is not known.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) desired: Desired,
    pub(super) failing: Failing,
    /// Something is not known yet, but will be soon.
    pub(super) is_incomplete: bool,
}

/// A Service whose namespace is not known.
#[derive(Debug, thiserror::Error)]
#[error("failed fetching service namespace {0}: it is not there")]
pub(super) struct NoNamespace(String);

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

    fn namespace(&self, name: &str) -> Option<Namespace> {
        self.namespaces.store().with(&NamespacedName::new("", name), |namespace| namespace.fields.clone())
    }

    fn is_open(&self, namespace: &str) -> bool {
        self.namespace(namespace).is_some_and(|namespace| !namespace.is_terminating)
    }

    /// The policies that belong to a Service.
    pub(super) fn policies_of(&self, service: &NamespacedName) -> Vec<NamespacedName> {
        self.by_owner.get(service)
    }

    /// What a Service should have (spec 40 §6 steps 2 to 6).
    pub(super) fn plan(&self, name: &NamespacedName, rules: &Rules, pods: &GatewayPods) -> Result<Plan, NoNamespace> {
        let service = self.services.store().with(name, |service| service.fields.clone());
        let Some(service) = service.filter(|service| !service.is_terminating && !service.selector.is_empty()) else {
            return Ok(Plan::default());
        };
        let home = self.namespace(&name.namespace);
        let labels = home.as_ref().map(|home| home.labels.clone()).unwrap_or_default();
        if !rules.handles(&labels) || home.as_ref().is_some_and(|home| home.is_terminating) {
            return Ok(Plan::default());
        }
        if home.is_none() {
            return Err(NoNamespace(name.namespace.clone()));
        }
        let mut plan = Plan { failing: Failing::of(&service), ..Plan::default() };
        let controller = rules.ingress_controller.as_ref();
        let has_client = |namespace: &str, key: &str| self.clients.as_ref().is_none_or(|it| it.has(namespace, key));
        let view = View {
            name,
            service: &service,
            clients: self.clients_of(name, &service),
            has_client: &has_client,
            backends: self.backends_of(name),
            ingress_controller: controller.map(|(namespace, pods)| IngressController {
                namespace,
                pods,
                is_there: self.is_open(namespace),
            }),
            routes: self.routes_to(name, pods, &mut plan),
            explicit_world: rules.explicit_world,
        };
        plan.desired = desired::desired(&view);
        Ok(plan)
    }

    fn clients_of(&self, name: &NamespacedName, service: &Service) -> Vec<String> {
        let mut clients = Vec::new();
        if service.selects_namespaces() {
            self.namespaces.store().for_each(|client, namespace| {
                let is_other = client.name != name.namespace && !namespace.fields.is_terminating;
                if is_other && service.selects(&namespace.fields.labels) {
                    clients.push(client.name.clone());
                }
            });
        }
        clients
    }

    fn backends_of(&self, name: &NamespacedName) -> Vec<desired::Backend> {
        let (Some(ingresses), Some(by_backend)) = (&self.ingresses, &self.by_backend) else { return Vec::new() };
        let mut backends = Vec::new();
        for ingress in by_backend.get(name) {
            ingresses.store().with(&ingress, |ingress| {
                let of_service = ingress.fields.iter().filter(|(service, _)| **service == *name.name);
                backends.extend(of_service.filter_map(|(_, port)| port.clone()));
            });
        }
        backends
    }

    /// Routes of VirtualServices in the Service's own namespace (spec 40 §7.10).
    fn routes_to(&self, name: &NamespacedName, pods: &GatewayPods, plan: &mut Plan) -> Vec<Route> {
        let mut routes = BTreeSet::new();
        for virtual_service in self.by_destination.get(name) {
            if virtual_service.namespace != name.namespace {
                continue;
            }
            let known = self.virtual_services.store().with(&virtual_service, |known| known.fields.clone());
            let Some(known) = known else { continue };
            let ports: Vec<u16> =
                known.destinations.iter().filter(|(to, _)| to == name).filter_map(|(_, port)| *port).collect();
            if ports.is_empty() {
                continue;
            }
            for gateway in &known.gateways {
                let selector = match self.gateways.store().with(gateway, |gateway| gateway.fields.clone()) {
                    Some(Some(selector)) => selector,
                    Some(None) => {
                        plan.failing.gateway(gateway, &virtual_service.name, "has no selector");
                        continue;
                    }
                    None => {
                        plan.failing.gateway(gateway, &virtual_service.name, "does not exist");
                        continue;
                    }
                };
                let Some(namespaces) = pods.namespaces(&selector) else {
                    plan.failing.gateways_unknown();
                    plan.is_incomplete = true;
                    continue;
                };
                let namespaces: Vec<String> =
                    namespaces.iter().filter(|namespace| self.is_open(namespace)).map(ToString::to_string).collect();
                let route =
                    |port: &u16| Route { port: *port, gateway: selector.clone(), namespaces: namespaces.clone() };
                routes.extend(ports.iter().map(route));
            }
        }
        routes.into_iter().collect()
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

// === impl Namespace ===

impl Namespace {
    /// What is kept of a Namespace.
    fn of(namespace: &Value) -> Self {
        let labels = namespace.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
        Self {
            labels: labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect(),
            is_terminating: object::deletion_timestamp(namespace).is_some(),
        }
    }
}

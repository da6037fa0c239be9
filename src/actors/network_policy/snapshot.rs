//! A cluster as a heap of objects shows it: what files or lists say. For the command `policies` and for tests; the controller
//! knows its cluster by watches.

use std::collections::{BTreeMap, BTreeSet};

use cluster::object::{self, NamespacedName};
use serde_json::Value;

use super::{
    clients,
    desired::Backend,
    exposure::{self, Backends, Gateway, VirtualService},
    plan::{Namespace, Surroundings},
    policy::{Found, Policy},
    rules::Rules,
    service::Service,
};
use crate::api::selector::{Labels, Selector};

/// Objects that policies depend on.
#[derive(Debug, Default)]
pub struct Snapshot {
    namespaces: BTreeMap<String, Namespace>,
    services: BTreeMap<NamespacedName, Service>,
    ingresses: Vec<(String, Backends)>,
    virtual_services: BTreeMap<NamespacedName, VirtualService>,
    gateways: BTreeMap<NamespacedName, Gateway>,
    pods: BTreeSet<(Labels, Box<str>)>,
    clients: BTreeSet<(Box<str>, Box<str>)>,
    policies: BTreeMap<NamespacedName, Option<Found>>,
}

/// How a policy of the cluster compares with the one that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceState {
    /// It is as it should be.
    Right,
    /// It is not there.
    Missing,
    /// It is there, and not as it should be.
    Differs,
}

/// Group, kind and plural of what pods are made from.
pub fn templates() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    clients::TEMPLATES.into_iter().map(|(group, kind, plural, _)| (group, kind, plural))
}

impl Snapshot {
    /// Adds an object; whether policies can depend on one of its kind.
    pub fn add(&mut self, object: &Value) -> bool {
        let name = NamespacedName::new(object::namespace(object), object::name(object));
        let group = object["apiVersion"].as_str().unwrap_or_default();
        let group = group.split_once('/').map_or("", |(group, _)| group);
        match (group, object["kind"].as_str().unwrap_or_default()) {
            ("", "Namespace") => {
                self.namespaces.insert(name.name, namespace(object));
            }
            ("", "Service") => {
                self.services.insert(name, Service::of(object));
            }
            ("networking.k8s.io", "NetworkPolicy") => {
                self.policies.insert(name, Found::of(object));
            }
            ("networking.k8s.io", "Ingress") => self.ingresses.push((name.namespace, exposure::backends(object))),
            ("networking.istio.io", "VirtualService") => {
                self.virtual_services.insert(name, VirtualService::of(object));
            }
            ("networking.istio.io", "Gateway") => {
                self.gateways.insert(name, Gateway::of(object));
            }
            ("", "Pod") => self.add_pods(&name.namespace, object),
            (group, kind) if clients::TEMPLATES.iter().any(|known| (known.0, known.1) == (group, kind)) => {
                self.add_pods(&name.namespace, object);
            }
            _ => return false,
        }
        true
    }

    /// A pod, or what makes pods.
    fn add_pods(&mut self, namespace: &str, object: &Value) {
        self.clients.extend(clients::labels_of(object).into_iter().map(|key| (namespace.into(), key)));
        let labels = clients::place_of(object).and_then(|place| object.pointer(place)).and_then(Value::as_object);
        let labels = labels.into_iter().flatten();
        let labels = labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
        self.pods.insert((labels.collect(), namespace.into()));
    }

    /// Takes the namespaces that objects are in, and that of the ingress controller, for granted; those that were missing.
    pub fn assume_namespaces(&mut self, rules: &Rules) -> Vec<String> {
        let named = self.services.keys().map(|name| name.namespace.clone());
        let of_pods = self.pods.iter().map(|(_, namespace)| namespace.to_string());
        let edge = rules.ingress_controller.iter().map(|(namespace, _)| namespace.clone());
        let all: BTreeSet<String> = named.chain(of_pods).chain(edge).collect();
        let missing: Vec<String> = all.into_iter().filter(|name| !self.namespaces.contains_key(name)).collect();
        for name in &missing {
            let object = serde_json::json!({"metadata": {"name": name}});
            self.namespaces.insert(name.clone(), namespace(&object));
        }
        missing
    }

    /// All Services.
    pub fn services(&self) -> impl Iterator<Item = &NamespacedName> {
        self.services.keys()
    }

    /// The Gateways by which a Service is reached.
    pub fn gateways_of(&self, service: &NamespacedName) -> BTreeSet<NamespacedName> {
        let routes = self.routes_to(service).into_iter().filter(|name| name.namespace == service.namespace);
        routes.filter_map(|name| self.virtual_services.get(&name)).flat_map(|it| it.gateways.clone()).collect()
    }

    /// The Service whose labels a policy carries.
    pub fn owner_of(&self, policy: &NamespacedName) -> Option<&NamespacedName> {
        self.policies.get(policy)?.as_ref().map(|found| &found.owner)
    }

    /// The labels of all Gateways' pods.
    pub fn gateway_selectors(&self) -> BTreeSet<&Selector> {
        self.gateways.values().filter_map(Gateway::selector).collect()
    }

    /// How the policy that is there compares.
    pub fn state(&self, policy: &Policy, service: &NamespacedName) -> ServiceState {
        match self.policies.get(&policy.name) {
            None => ServiceState::Missing,
            Some(Some(found)) if policy.is(found, service) => ServiceState::Right,
            Some(_) => ServiceState::Differs,
        }
    }

    /// What is kept of a policy with the labels of a Service.
    pub fn found(&self, policy: &NamespacedName) -> Option<&Found> {
        self.policies.get(policy)?.as_ref()
    }

    /// Whether a namespace is there, and not being deleted.
    pub fn is_open(&self, namespace: &str) -> bool {
        self.namespaces.get(namespace).is_some_and(|namespace| !namespace.is_terminating)
    }

    /// Whether a policy of this name is there.
    pub fn has_policy(&self, name: &NamespacedName) -> bool {
        self.policies.contains_key(name)
    }

    /// The policies that belong to a Service.
    pub fn policies_of(&self, service: &NamespacedName) -> Vec<NamespacedName> {
        let is_its = |found: &Option<Found>| found.as_ref().is_some_and(|found| found.owner == *service);
        self.policies.iter().filter(|(_, found)| is_its(found)).map(|(name, _)| name.clone()).collect()
    }
}

/// Of a file, it may lack the label that the API server adds.
fn namespace(object: &Value) -> Namespace {
    let mut namespace = Namespace::of(object);
    namespace.labels.insert("kubernetes.io/metadata.name".to_owned(), object::name(object).to_owned());
    namespace
}

impl Surroundings for Snapshot {
    fn service(&self, name: &NamespacedName) -> Option<Service> {
        self.services.get(name).cloned()
    }

    fn namespace(&self, name: &str) -> Option<Namespace> {
        self.namespaces.get(name).cloned()
    }

    fn namespaces(&self) -> Vec<String> {
        self.namespaces.keys().cloned().collect()
    }

    fn has_client(&self, namespace: &str, key: &str) -> bool {
        self.clients.contains(&(namespace.into(), key.into()))
    }

    fn backends(&self, service: &NamespacedName) -> Vec<Backend> {
        let near = self.ingresses.iter().filter(|(namespace, _)| *namespace == service.namespace);
        near.flat_map(|(_, backends)| exposure::ports_of(backends, service)).collect()
    }

    fn routes_to(&self, service: &NamespacedName) -> Vec<NamespacedName> {
        let routes_to_it = |it: &VirtualService| it.destinations.iter().any(|(to, _)| to == service);
        self.virtual_services.iter().filter(|(_, it)| routes_to_it(it)).map(|(name, _)| name.clone()).collect()
    }

    fn virtual_service(&self, name: &NamespacedName) -> Option<VirtualService> {
        self.virtual_services.get(name).cloned()
    }

    fn gateway(&self, name: &NamespacedName) -> Option<Gateway> {
        self.gateways.get(name).cloned()
    }

    fn namespaces_of_pods(&self, labels: &Selector) -> Option<Vec<Box<str>>> {
        let matching = self.pods.iter().filter(|(pod, _)| labels.matches(pod));
        let namespaces: BTreeSet<_> = matching.map(|(_, namespace)| namespace.clone()).collect();
        Some(namespaces.into_iter().collect())
    }
}

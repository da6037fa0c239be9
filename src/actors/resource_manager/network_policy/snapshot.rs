//! A cluster built from files or lists, for the command `policies` and for tests. The controller uses caches instead.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use cluster::object::{self, NamespacedName};
use serde_json::Value;

use super::{
    clients,
    exposure::{self, Backends, Gateway, VirtualService},
    plan::{Namespace, Surroundings},
    policy::Found,
    port::Backend,
    rules::Rules,
    service::Service,
};
use crate::api::meta::selector::{Labels, Selector, labels_in};

/// The objects that policies depend on.
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

/// The kinds with a pod template.
pub fn templates() -> impl Iterator<Item = cluster::Resource> {
    clients::TEMPLATES.into_iter().map(|(resource, _)| resource)
}

impl Snapshot {
    /// Adds an object. Returns false if policies do not depend on its kind.
    pub fn add(&mut self, object: &Value) -> bool {
        let name = NamespacedName::of(object);
        let group = object["apiVersion"].as_str().unwrap_or_default();
        let group = group.split_once('/').map_or("", |(group, _)| group);
        match (group, object["kind"].as_str().unwrap_or_default()) {
            ("", "Namespace") => drop(self.namespaces.insert(name.name, namespace(object))),
            ("", "Service") => drop(self.services.insert(name, Service::of(object))),
            ("networking.k8s.io", "NetworkPolicy") => drop(self.policies.insert(name, Found::of(object))),
            ("networking.k8s.io", "Ingress") => self.ingresses.push((name.namespace, exposure::backends(object))),
            ("networking.istio.io", "VirtualService") => {
                drop(self.virtual_services.insert(name, VirtualService::of(object)));
            }
            ("networking.istio.io", "Gateway") => drop(self.gateways.insert(name, Gateway::of(object))),
            ("", "Pod") => self.add_pods(&name.namespace, object),
            (group, kind) if templates().any(|known| (&*known.group, &*known.kind) == (group, kind)) => {
                self.add_pods(&name.namespace, object);
            }
            _ => return false,
        }
        true
    }

    fn add_pods(&mut self, namespace: &str, object: &Value) {
        self.clients.extend(clients::labels_of(object).into_iter().map(|key| (namespace.into(), key)));
        let labels = clients::place_of(object).and_then(|place| object.pointer(place));
        self.pods.insert((labels.map(labels_in).unwrap_or_default(), namespace.into()));
    }

    /// Adds a Namespace for every namespace that is referred to but absent. Returns the added names.
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

    /// Lists all Services.
    pub fn services(&self) -> impl Iterator<Item = &NamespacedName> {
        self.services.keys()
    }

    /// Returns the Gateways that route to a Service.
    pub fn gateways_of(&self, service: &NamespacedName) -> BTreeSet<NamespacedName> {
        let routes = self.routes_to(service).into_iter().filter(|name| name.namespace == service.namespace);
        routes.filter_map(|name| self.virtual_services.get(&name)).flat_map(|it| it.gateways.clone()).collect()
    }

    /// Returns the pod selectors of all Gateways.
    pub fn gateway_selectors(&self) -> BTreeSet<&Selector> {
        self.gateways.values().filter_map(Gateway::selector).collect()
    }

    /// Returns the policy's cached fields, if it has the labels of a Service.
    pub fn found(&self, policy: &NamespacedName) -> Option<&Found> {
        self.policies.get(policy)?.as_ref()
    }

    /// Returns true if a namespace exists and is not terminating.
    pub fn is_open(&self, namespace: &str) -> bool {
        self.namespaces.get(namespace).is_some_and(|namespace| !namespace.is_terminating)
    }

    /// Returns true if a policy of this name exists.
    pub fn has_policy(&self, name: &NamespacedName) -> bool {
        self.policies.contains_key(name)
    }

    /// Returns the policies whose labels name the Service.
    pub fn policies_of(&self, service: &NamespacedName) -> Vec<NamespacedName> {
        let is_its = |found: &Option<Found>| found.as_ref().is_some_and(|found| found.owner == *service);
        self.policies.iter().filter(|(_, found)| is_its(found)).map(|(name, _)| name.clone()).collect()
    }
}

/// Adds the label that the API server adds; files may lack it.
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

    fn namespaces_after(&self, name: &str, most: usize, look: &mut dyn FnMut(&str, &Namespace)) {
        let later = self.namespaces.range::<str, _>((Bound::Excluded(name), Bound::Unbounded));
        later.take(most).for_each(|(name, namespace)| look(name, namespace));
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

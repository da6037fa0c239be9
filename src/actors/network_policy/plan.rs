//! What a Service should have, given what is around it (spec 40 §6 steps 2 to 6): the same for the controller, which knows a
//! cluster by its watches, and for the command `policies`, which knows objects it was given.

use std::collections::BTreeSet;

use cluster::object::{self, NamespacedName};
use serde_json::Value;

use super::{
    desired::{self, Backend, Desired, IngressController, Route, View},
    exposure::VirtualService,
    failing::Failing,
    rules::Rules,
    service::Service,
};
use crate::api::selector::{Labels, Selector};

/// What is kept of a Namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// Its labels.
    pub labels: Labels,
    /// It is being deleted: nothing can be created in it.
    pub is_terminating: bool,
}

/// What is known of a cluster.
pub trait Surroundings {
    /// A Service.
    fn service(&self, name: &NamespacedName) -> Option<Service>;
    /// A namespace.
    fn namespace(&self, name: &str) -> Option<Namespace>;
    /// Tells of each namespace.
    fn each_namespace(&self, tell: &mut dyn FnMut(&str, &Namespace));
    /// Whether there is, or is about to be, a pod with this client label; asked with `onlyForMatchingPods` only.
    fn has_client(&self, namespace: &str, key: &str) -> bool;
    /// Ports of a Service that Ingresses name; asked with an ingress controller only.
    fn backends(&self, service: &NamespacedName) -> Vec<Backend>;
    /// VirtualServices that route to a Service.
    fn virtual_services(&self, service: &NamespacedName) -> Vec<(NamespacedName, VirtualService)>;
    /// The labels of a Gateway's pods; `Some(None)` if it has none, `None` if there is no such Gateway.
    fn gateway(&self, name: &NamespacedName) -> Option<Option<Selector>>;
    /// Namespaces in which pods have these labels; `None` while that is not known.
    fn namespaces_of_pods(&self, labels: &Selector) -> Option<Vec<Box<str>>>;
}

/// What a Service should have, and what of it is not known.
#[derive(Debug, Default)]
pub struct Plan {
    /// Its policies.
    pub desired: Desired,
    /// What cannot be read.
    pub failing: Failing,
    /// Something is not known yet, but will be soon.
    pub is_incomplete: bool,
    /// Why it should have none at all.
    pub none_because: Option<&'static str>,
}

/// A Service whose namespace is not known.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed fetching service namespace {0}: it is not there")]
pub struct NoNamespace(String);

/// What a Service should have.
///
/// # Errors
/// If its namespace is not known: whether it is handled is not known then.
pub fn plan(name: &NamespacedName, rules: &Rules, around: &dyn Surroundings) -> Result<Plan, NoNamespace> {
    let none = |none_because| Ok(Plan { none_because: Some(none_because), ..Plan::default() });
    let Some(service) = around.service(name) else { return none("it does not exist") };
    if service.is_terminating {
        return none("it is being deleted");
    }
    if service.selector.is_empty() {
        return none("it has no selector: it stands for no pods");
    }
    let home = around.namespace(&name.namespace);
    let labels = home.as_ref().map(|home| home.labels.clone()).unwrap_or_default();
    if !rules.handles(&labels) {
        return none("none of controllers.networkPolicy.namespaceSelectors selects its namespace");
    }
    match home {
        None => return Err(NoNamespace(name.namespace.clone())),
        Some(home) if home.is_terminating => return none("its namespace is being deleted"),
        Some(_) => {}
    }
    let mut plan = Plan { failing: Failing::of(&service), ..Plan::default() };
    let has_client = |namespace: &str, key: &str| !rules.only_for_matching_pods || around.has_client(namespace, key);
    let controller = rules.ingress_controller.as_ref();
    let view = View {
        name,
        service: &service,
        clients: clients(name, &service, around),
        has_client: &has_client,
        backends: controller.map(|_| around.backends(name)).unwrap_or_default(),
        ingress_controller: controller.map(|(namespace, pods)| IngressController {
            namespace,
            pods,
            is_there: is_open(around, namespace),
        }),
        routes: routes(name, around, &mut plan),
        explicit_world: rules.explicit_world,
    };
    plan.desired = desired::desired(&view);
    Ok(plan)
}

fn is_open(around: &dyn Surroundings, namespace: &str) -> bool {
    around.namespace(namespace).is_some_and(|namespace| !namespace.is_terminating)
}

fn clients(name: &NamespacedName, service: &Service, around: &dyn Surroundings) -> Vec<String> {
    let mut clients = Vec::new();
    if service.selects_namespaces() {
        around.each_namespace(&mut |client, namespace| {
            if client != name.namespace && !namespace.is_terminating && service.selects(&namespace.labels) {
                clients.push(client.to_owned());
            }
        });
    }
    clients
}

/// Routes of VirtualServices in the Service's own namespace (spec 40 §7.10).
fn routes(name: &NamespacedName, around: &dyn Surroundings, plan: &mut Plan) -> Vec<Route> {
    let mut routes = BTreeSet::new();
    for (by, virtual_service) in around.virtual_services(name) {
        let to_it = virtual_service.destinations.iter().filter(|(to, _)| to == name);
        let ports: Vec<u16> = to_it.filter_map(|(_, port)| *port).collect();
        if by.namespace != name.namespace || ports.is_empty() {
            continue;
        }
        for gateway in &virtual_service.gateways {
            let selector = match around.gateway(gateway) {
                Some(Some(selector)) => selector,
                Some(None) => {
                    plan.failing.gateway(gateway, &by.name, "has no selector");
                    continue;
                }
                None => {
                    plan.failing.gateway(gateway, &by.name, "does not exist");
                    continue;
                }
            };
            let Some(namespaces) = around.namespaces_of_pods(&selector) else {
                plan.failing.gateways_unknown();
                plan.is_incomplete = true;
                continue;
            };
            let open = namespaces.iter().filter(|namespace| is_open(around, namespace));
            let namespaces: Vec<String> = open.map(ToString::to_string).collect();
            let route = |port: &u16| Route { port: *port, gateway: selector.clone(), namespaces: namespaces.clone() };
            routes.extend(ports.iter().map(route));
        }
    }
    routes.into_iter().collect()
}

// === impl Namespace ===

impl Namespace {
    /// What is kept of a Namespace.
    pub fn of(namespace: &Value) -> Self {
        let labels = namespace.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
        Self {
            labels: labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect(),
            is_terminating: object::deletion_timestamp(namespace).is_some(),
        }
    }
}

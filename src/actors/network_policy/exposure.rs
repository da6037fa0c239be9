//! What exposes Services: Ingresses, and VirtualServices with their Gateways (spec 40 §5.4, §7.9, §7.10).

use cluster::{CachedFields, Index, Resource, Watch, WatchOptions, Watches, object::NamespacedName};
use serde_json::Value;

use super::desired::Backend;
use crate::api::{
    istio,
    quote::{cut, shown},
    selector::{Labels, Selector},
};

/// The backends of an Ingress, each once: name of a Service of its namespace, and port.
pub type Backends = Vec<(Box<str>, Option<Backend>)>;

/// What is kept of a VirtualService.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualService {
    /// Its gateways, each once.
    pub gateways: Vec<NamespacedName>,
    /// Services it routes to, and their ports, each once.
    pub destinations: Vec<(NamespacedName, Option<u16>)>,
}

/// What is kept of a Gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gateway {
    /// Its pods; or why they cannot be told.
    pub pods: Result<Selector, Box<str>>,
}

/// A reserved name: the sidecars, not a gateway.
const MESH: &str = "mesh";

/// The watch of Ingresses.
pub(super) type Ingresses = Watch<CachedFields<Backends>>;
/// The watch of VirtualServices.
pub(super) type VirtualServices = Watch<CachedFields<VirtualService>>;
/// The watch of Gateways.
pub(super) type Gateways = Watch<CachedFields<Gateway>>;

/// Opens the watch of Ingresses.
pub(super) fn ingresses(watches: &Watches) -> Ingresses {
    let ingress = Resource::new("networking.k8s.io", "v1", "Ingress", "ingresses", true);
    watches.open(WatchOptions::new(ingress, |ingress| CachedFields::of(ingress, backends(ingress))))
}

/// Opens the watch of VirtualServices; they may be served, or be served later.
pub(super) fn virtual_services(watches: &Watches) -> VirtualServices {
    let resource = Resource::new("networking.istio.io", "v1beta1", "VirtualService", "virtualservices", true);
    watches.open(WatchOptions::new(resource, |object| CachedFields::of(object, VirtualService::of(object))).optional())
}

/// Opens the watch of Gateways; they may be served, or be served later.
pub(super) fn gateways(watches: &Watches) -> Gateways {
    let resource = Resource::new("networking.istio.io", "v1beta1", "Gateway", "gateways", true);
    watches.open(WatchOptions::new(resource, |gateway| CachedFields::of(gateway, Gateway::of(gateway))).optional())
}

/// Ingresses by the Services they name.
pub(super) fn by_backend(ingresses: &Ingresses) -> Index<NamespacedName> {
    ingresses.index(|name, ingress| backend_services(&name.namespace, &ingress.fields))
}

/// VirtualServices by the Services they route to.
pub(super) fn by_destination(services: &VirtualServices) -> Index<NamespacedName> {
    services.index(|_, service| service.fields.services())
}

/// VirtualServices by their Gateways.
pub(super) fn by_gateway(services: &VirtualServices) -> Index<NamespacedName> {
    services.index(|_, service| service.fields.gateways.clone())
}

/// The Services that an Ingress names.
pub fn backend_services(namespace: &str, backends: &Backends) -> Vec<NamespacedName> {
    let mut services: Vec<_> = backends.iter().map(|(name, _)| NamespacedName::new(namespace, &**name)).collect();
    services.dedup();
    services
}

/// The ports of a Service that an Ingress of its namespace names.
pub fn ports_of(backends: &Backends, service: &NamespacedName) -> Vec<Backend> {
    let of_service = backends.iter().filter(|(name, _)| **name == *service.name);
    of_service.filter_map(|(_, port)| port.clone()).collect()
}

/// The backends of an Ingress. Its default backend is none of them (spec 40 §5).
pub fn backends(ingress: &Value) -> Backends {
    let rules = ingress["spec"]["rules"].as_array().into_iter().flatten();
    let paths = rules.flat_map(|rule| rule["http"]["paths"].as_array().into_iter().flatten());
    let backend = |path: &Value| {
        let service = &path["backend"]["service"];
        Some((service["name"].as_str()?.into(), Backend::of(&service["port"])))
    };
    let mut backends: Backends = paths.filter_map(backend).collect();
    backends.sort();
    backends.dedup();
    backends
}

impl Gateway {
    /// What is kept of a Gateway. The API server does not know that its selector is one of labels: what no label can be would
    /// mean something else in a request for the pods.
    pub fn of(gateway: &Value) -> Self {
        Self { pods: gateway_pods(&gateway["spec"]["selector"]).map_err(|problem| cut(&problem).into()) }
    }

    /// Its pods, if they can be told.
    pub fn selector(&self) -> Option<&Selector> {
        self.pods.as_ref().ok()
    }
}

fn gateway_pods(selector: &Value) -> Result<Selector, String> {
    let Some(pairs) = selector.as_object().filter(|pairs| !pairs.is_empty()) else {
        return Err("has no selector".to_owned());
    };
    let pair = |(key, value): (&String, &Value)| match value.as_str() {
        Some(value) => Ok((key.clone(), value.to_owned())),
        None => Err(format!("has a selector that cannot be used: the value of {} is no text", shown(key))),
    };
    let labels: Labels = pairs.iter().map(pair).collect::<Result<_, _>>()?;
    Selector::checked(labels).map_err(|error| format!("has a selector that cannot be used: {error}"))
}

impl VirtualService {
    /// What is kept of a VirtualService.
    pub fn of(object: &Value) -> Self {
        let (namespace, spec) = (cluster::object::namespace(object), &object["spec"]);
        let gateways = spec["gateways"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut gateways: Vec<_> = gateways
            .filter(|gateway| *gateway != MESH)
            .map(|gateway| match gateway.split_once('/') {
                Some((namespace, name)) => NamespacedName::new(namespace, name),
                None => NamespacedName::new(namespace, gateway),
            })
            .collect();
        gateways.sort();
        gateways.dedup();
        let routes = ["http", "tls", "tcp"].into_iter().flat_map(|kind| spec[kind].as_array().into_iter().flatten());
        let routes = routes.flat_map(|route| route["route"].as_array().into_iter().flatten());
        let destination = |route: &Value| {
            let destination = &route["destination"];
            let port = destination["port"]["number"].as_u64().and_then(|number| u16::try_from(number).ok());
            Some((istio::service_of(destination["host"].as_str()?)?, port))
        };
        let mut destinations: Vec<_> = routes.filter_map(destination).collect();
        destinations.sort();
        destinations.dedup();
        Self { gateways, destinations }
    }

    /// The Services it routes to.
    pub fn services(&self) -> Vec<NamespacedName> {
        let mut services: Vec<_> = self.destinations.iter().map(|(service, _)| service.clone()).collect();
        services.dedup();
        services
    }
}

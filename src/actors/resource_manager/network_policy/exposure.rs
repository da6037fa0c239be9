//! Reads Ingresses, and VirtualServices with their Gateways, which expose Services (spec 40 §5.4, §7.9, §7.10).

use std::collections::BTreeSet;

use cluster::object::NamespacedName;
use kit::quote::{cut, shown};
use serde_json::Value;

use super::port::Backend;
use crate::api::{
    meta::selector::{Labels, Selector},
    resources::istio,
};

/// The distinct backends of an Ingress: the name of a Service in its namespace, and the port.
pub type Backends = Vec<(Box<str>, Option<Backend>)>;

/// The cached fields of a VirtualService.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualService {
    /// Its distinct gateways.
    pub gateways: Vec<NamespacedName>,
    /// The distinct Services and ports to which it routes.
    pub destinations: Vec<(NamespacedName, Option<u16>)>,
}

/// The cached fields of a Gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gateway {
    /// The selector of its pods, or why it is unusable.
    pub pods: Result<Selector, Box<str>>,
}

/// Reserved gateway name that stands for the sidecars.
const MESH: &str = "mesh";

/// Returns the Services that an Ingress names.
pub fn backend_services(namespace: &str, backends: &Backends) -> Vec<NamespacedName> {
    let mut services: Vec<_> = backends.iter().map(|(name, _)| NamespacedName::new(namespace, &**name)).collect();
    services.dedup();
    services
}

/// Returns the ports of a Service that an Ingress of its namespace names.
pub fn ports_of(backends: &Backends, service: &NamespacedName) -> Vec<Backend> {
    let of_service = backends.iter().filter(|(name, _)| **name == *service.name);
    of_service.filter_map(|(_, port)| port.clone()).collect()
}

/// Reads the backends of an Ingress, without its default backend (spec 40 §5).
pub fn backends(ingress: &Value) -> Backends {
    let rules = ingress["spec"]["rules"].as_array().into_iter().flatten();
    let paths = rules.flat_map(|rule| rule["http"]["paths"].as_array().into_iter().flatten());
    let backend = |path: &Value| {
        let service = &path["backend"]["service"];
        Some((service["name"].as_str()?.into(), Backend::of(&service["port"])))
    };
    paths.filter_map(backend).collect::<BTreeSet<_>>().into_iter().collect()
}

impl Gateway {
    /// Reads a Gateway. The API server does not validate selectors, and an invalid one would change a list request.
    pub fn of(gateway: &Value) -> Self {
        Self { pods: gateway_pods(&gateway["spec"]["selector"]).map_err(|problem| cut(&problem).into()) }
    }

    /// Returns the selector of its pods, if it is usable.
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
    /// Reads a VirtualService.
    pub fn of(object: &Value) -> Self {
        let (namespace, spec) = (cluster::object::namespace(object), &object["spec"]);
        let gateways = spec["gateways"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let gateways: BTreeSet<_> = gateways
            .filter(|gateway| *gateway != MESH)
            .map(|gateway| match gateway.split_once('/') {
                Some((namespace, name)) => NamespacedName::new(namespace, name),
                None => NamespacedName::new(namespace, gateway),
            })
            .collect();
        let routes = ["http", "tls", "tcp"].into_iter().flat_map(|kind| spec[kind].as_array().into_iter().flatten());
        let routes = routes.flat_map(|route| route["route"].as_array().into_iter().flatten());
        let destination = |route: &Value| {
            let destination = &route["destination"];
            let port = destination["port"]["number"].as_u64().and_then(|number| u16::try_from(number).ok());
            Some((istio::service_of(destination["host"].as_str()?)?, port))
        };
        let destinations: BTreeSet<_> = routes.filter_map(destination).collect();
        Self { gateways: gateways.into_iter().collect(), destinations: destinations.into_iter().collect() }
    }

    /// Returns the Services to which it routes.
    pub fn services(&self) -> Vec<NamespacedName> {
        let mut services: Vec<_> = self.destinations.iter().map(|(service, _)| service.clone()).collect();
        services.dedup();
        services
    }
}

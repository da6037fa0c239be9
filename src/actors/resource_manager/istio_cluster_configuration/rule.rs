//! The cached fields of DestinationRules and Services (spec 42 §3, §5).

use std::collections::BTreeSet;

use cluster::object::{self, NamespacedName};
use serde_json::Value;

use crate::api::resources::istio;

const EXPORT_TO: &str = "networking.istio.io/exportTo";

/// The cached fields of a DestinationRule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The Service named by its host, or `None`.
    pub service: Option<NamespacedName>,
    /// The namespaces to which it is exported.
    pub exports: Exports,
    /// It has subsets or a workload selector, so it is ignored.
    pub is_partial: bool,
    ports: Vec<(u16, Mode)>,
    others: Option<Mode>,
}

/// The cached fields of a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Its ports in order: the number, and the mode that its protocol implies.
    pub ports: Vec<(u16, Mode)>,
    /// The namespaces to which it is exported.
    pub exports: Exports,
}

/// The HTTP version that a gateway uses for a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// The default of the gateway.
    Default,
    /// HTTP/2.
    Http2,
    /// The version that the client uses.
    Client,
}

/// A list of namespaces; `*` means all, `.` the own namespace and `~` none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exports(pub Vec<Box<str>>);

impl Rule {
    /// Reads a DestinationRule.
    pub fn of(rule: &Value) -> Self {
        let spec = &rule["spec"];
        let policy = &spec["trafficPolicy"];
        let settings = policy["portLevelSettings"].as_array().into_iter().flatten();
        let port = |setting: &Value| {
            let number = setting["port"]["number"].as_u64().and_then(|number| u16::try_from(number).ok())?;
            Some((number, Mode::of_pool(setting)?))
        };
        let entries = spec["exportTo"].as_array().into_iter().flatten().filter_map(Value::as_str);
        Self {
            service: service_of(spec["host"].as_str().unwrap_or_default(), object::namespace(rule)),
            exports: Exports(entries.map(Into::into).collect()),
            is_partial: spec["subsets"].as_array().is_some_and(|subsets| !subsets.is_empty())
                || !spec["workloadSelector"].is_null(),
            ports: settings.filter_map(port).collect(),
            others: Mode::of_pool(policy),
        }
    }

    /// Returns the mode of a port (spec 42 §5.4).
    pub fn mode(&self, port: u16, by_protocol: Mode) -> Mode {
        let of_port = self.ports.iter().find(|(number, _)| *number == port).map(|(_, mode)| *mode);
        of_port.or(self.others).unwrap_or(by_protocol)
    }
}

/// Returns the Service that a host names (spec 42 §5.3).
fn service_of(host: &str, namespace: &str) -> Option<NamespacedName> {
    if !host.contains('.') {
        return (!host.is_empty()).then(|| NamespacedName::new(namespace, host));
    }
    istio::service_of(host)
}

impl Service {
    /// Reads a Service.
    pub fn of(service: &Value) -> Self {
        let ports = service["spec"]["ports"].as_array().into_iter().flatten();
        let port = |port: &Value| Some((u16::try_from(port["port"].as_u64()?).ok()?, Mode::of_port(port)));
        let entries = object::annotation(service, EXPORT_TO).unwrap_or_default();
        let entries = entries.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        Self { ports: ports.filter_map(port).collect(), exports: Exports(entries.map(Into::into).collect()) }
    }
}

impl Mode {
    fn of_pool(policy: &Value) -> Option<Self> {
        let http = &policy["connectionPool"]["http"];
        if http["useClientProtocol"] == true {
            return Some(Self::Client);
        }
        (http["h2UpgradePolicy"] == "UPGRADE").then_some(Self::Http2)
    }

    /// Derives the mode from `appProtocol`, or if it is missing, from the port's name.
    fn of_port(port: &Value) -> Self {
        let protocol = match port["appProtocol"].as_str() {
            Some(protocol) => protocol.to_ascii_lowercase(),
            None => {
                let name = port["name"].as_str().unwrap_or_default().to_ascii_lowercase();
                let first =
                    if name.starts_with("grpc-web") { "grpc-web" } else { name.split('-').next().unwrap_or_default() };
                first.to_owned()
            }
        };
        match protocol.as_str() {
            "http2" | "kubernetes.io/h2c" | "grpc" | "grpc-web" => Self::Http2,
            _ => Self::Default,
        }
    }
}

impl Exports {
    /// Returns the `allowed` namespaces that an object in the namespace `own` is exported to (spec 42 §5.1).
    pub fn resolve<'a>(&self, own: &str, allowed: &BTreeSet<&'a str>) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::new();
        for entry in &self.0 {
            match &**entry {
                "~" => return BTreeSet::new(),
                "*" => return allowed.clone(),
                "." => found.extend(allowed.get(own)),
                name => found.extend(allowed.get(name)),
            }
        }
        found
    }
}

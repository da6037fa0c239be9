//! Services: what is kept of one (spec 40 §2.3, §5.1, §11).

use cluster::object;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;

use super::{
    label::{to_own, to_shared},
    port::{self, Port, PortRef, Protocol},
};
use crate::api::selector::{Labels, Selector};

const NAMESPACE_SELECTORS: &str = "networking.resources.gardener.cloud/namespace-selectors";
const NAMESPACE_ALIAS: &str = "networking.resources.gardener.cloud/pod-label-selector-namespace-alias";
const FROM_WORLD: &str = "networking.resources.gardener.cloud/from-world-to-ports";
const FROM: &str = "networking.resources.gardener.cloud/from-";
const ALLOWED_PORTS: &str = "-allowed-ports";

/// What is kept of a Service: what its policies depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// For Events.
    pub uid: Box<str>,
    /// Labels of its pods; empty: it has none.
    pub selector: Labels,
    /// Its ports.
    pub ports: Vec<ServicePort>,
    /// Namespaces beside its own whose pods may be clients; empty if there is no such annotation.
    pub clients: Result<Vec<Selector>, Fault>,
    /// What stands for its namespace in labels of foreign clients.
    pub alias: Option<Box<str>>,
    /// Ports that are open to pods with the label of an alias, sorted by alias.
    pub aliases: Vec<Alias>,
    /// Ports that are open to everyone; an empty list: all.
    pub world: Option<Result<Vec<Port>, Fault>>,
    /// It is being deleted.
    pub is_terminating: bool,
}

/// An alias and the ports that are open to it.
pub type Alias = (Box<str>, Result<Vec<Port>, Fault>);

/// A port of a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicePort {
    /// Empty if it has none.
    pub name: Box<str>,
    /// The Service's own.
    pub number: u16,
    /// TCP if nothing is said.
    pub protocol: Protocol,
    /// The one in the pods.
    pub target: PortRef,
}

/// An annotation that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("annotation {annotation}: failed unmarshalling {value}: {text}")]
pub struct Fault {
    /// Its key.
    pub annotation: Box<str>,
    value: Box<str>,
    text: Box<str>,
}

// === impl Service ===

impl Service {
    /// What is kept of a Service.
    pub fn of(service: &Value) -> Self {
        let spec = &service["spec"];
        let annotation = |key: &str| object::annotation(service, key);
        let fault = |key: &str, text: String| Fault {
            annotation: key.into(),
            value: object::annotation(service, key).unwrap_or_default().chars().take(200).collect::<String>().into(),
            text: text.into(),
        };
        let read = |key: &str, text: &str| port::ports(text).map_err(|error| fault(key, error));
        let selector = spec["selector"].as_object().into_iter().flatten();
        let mut aliases: Vec<_> = annotations(service)
            .filter_map(|(key, text)| Some((alias_of(key)?, key, text)))
            .map(|(alias, key, text)| (alias.into(), read(key, text).and_then(|ports| named(key, text, ports))))
            .collect();
        aliases.sort_by(|(one, _): &Alias, (other, _)| one.cmp(other));
        Self {
            uid: object::uid(service).into(),
            selector: selector.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect(),
            ports: spec["ports"].as_array().into_iter().flatten().filter_map(ServicePort::of).collect(),
            clients: match annotation(NAMESPACE_SELECTORS) {
                None => Ok(Vec::new()),
                Some(text) => selectors(text).map_err(|error| fault(NAMESPACE_SELECTORS, error)),
            },
            alias: annotation(NAMESPACE_ALIAS).map(Into::into),
            aliases,
            world: annotation(FROM_WORLD).map(|text| read(FROM_WORLD, text)),
            is_terminating: object::deletion_timestamp(service).is_some(),
        }
    }

    /// Whether pods of other namespaces may be its clients: whether changes of any namespace may concern it.
    pub fn selects_namespaces(&self) -> bool {
        self.clients.as_ref().is_ok_and(|selectors| !selectors.is_empty())
    }

    /// Whether pods of a namespace with these labels, another than its own, may be its clients.
    pub fn selects(&self, labels: &Labels) -> bool {
        self.clients.iter().flatten().any(|selector| selector.matches(labels))
    }

    /// Ports that its clients may have, with the alias where one opens them, each once (spec 40 §7.2, §7.11).
    pub fn port_groups(&self) -> Vec<(Option<&str>, Port)> {
        let own = self.ports.iter().map(|port| {
            let target = Port { protocol: Some(port.protocol), port: Some(port.target.clone()), end: None };
            (None, target)
        });
        let of_aliases = self.aliases.iter().filter_map(|(alias, ports)| Some((alias, ports.as_ref().ok()?)));
        let of_aliases = of_aliases.flat_map(|(alias, ports)| {
            // P2: an empty alias is none.
            let alias = Some(&**alias).filter(|alias| !alias.is_empty());
            ports.iter().map(move |port| (alias, port.clone()))
        });
        let mut groups: Vec<(Option<&str>, Port)> = Vec::new();
        for (alias, port) in own.chain(of_aliases) {
            let is_same = |known: &&mut (Option<&str>, Port)| {
                known.0 == alias && known.1.protocol == port.protocol && known.1.port == port.port
            };
            match groups.iter_mut().find(is_same) {
                // T-16: the name says nothing of the end of a range.
                Some((_, known)) => known.end = known.end.max(port.end),
                None => groups.push((alias, port)),
            }
        }
        groups
    }

    /// All label keys of clients, as they stand on pods: those of its own namespace and those of others.
    pub fn client_keys(&self, namespace: &str, name: &str) -> Vec<Box<str>> {
        let groups = self.port_groups();
        let base = groups.iter().map(|(alias, port)| super::label::base(name, *alias, port));
        let mut keys: Vec<Box<str>> = base
            .flat_map(|base| [to_own(&base), to_shared(&base, namespace, self.alias.as_deref())])
            .map(|key| key.effective().into())
            .collect();
        keys.sort();
        keys.dedup();
        keys
    }

    /// What of its annotations cannot be used.
    pub fn faults(&self) -> impl Iterator<Item = &Fault> {
        let world = self.world.as_ref().and_then(|ports| ports.as_ref().err());
        let aliases = self.aliases.iter().filter_map(|(_, ports)| ports.as_ref().err());
        self.clients.as_ref().err().into_iter().chain(aliases).chain(world)
    }
}

fn annotations(service: &Value) -> impl Iterator<Item = (&str, &str)> {
    let all = service.pointer("/metadata/annotations").and_then(Value::as_object);
    all.into_iter().flatten().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}

/// The alias of an annotation `from-<alias>-allowed-ports` (P1).
fn alias_of(key: &str) -> Option<&str> {
    key.strip_prefix(FROM)?.strip_suffix(ALLOWED_PORTS)
}

/// Ports for an alias have a number or a name, and a protocol (P6, P7).
fn named(key: &str, value: &str, mut ports: Vec<Port>) -> Result<Vec<Port>, Fault> {
    for (index, port) in ports.iter_mut().enumerate() {
        if port.port.is_none() {
            let text = format!("port [{index}]: it has no port").into();
            return Err(Fault {
                annotation: key.into(),
                value: value.chars().take(200).collect::<String>().into(),
                text,
            });
        }
        port.protocol.get_or_insert(Protocol::Tcp);
    }
    Ok(ports)
}

fn selectors(text: &str) -> Result<Vec<Selector>, String> {
    let selectors: Option<Vec<LabelSelector>> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let read = |(index, selector)| {
        let read = Selector::new(selector);
        read.map_err(|error| format!("selector [{index}]: failed parsing to labels.Selector: {error}"))
    };
    selectors.iter().flatten().enumerate().map(read).collect()
}

// === impl ServicePort ===

impl ServicePort {
    fn of(port: &Value) -> Option<Self> {
        let number = u16::try_from(port["port"].as_u64()?).ok()?;
        Some(Self {
            name: port["name"].as_str().unwrap_or_default().into(),
            number,
            protocol: port["protocol"].as_str().map_or(Some(Protocol::Tcp), Protocol::of)?,
            target: PortRef::stored(port.get("targetPort")).unwrap_or(PortRef::Number(number)),
        })
    }
}

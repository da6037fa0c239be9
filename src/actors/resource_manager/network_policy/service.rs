//! The cached fields of Services (spec 40 §2.3, §5.1, §11).

use std::collections::{BTreeMap, BTreeSet};

use cluster::object::{self, NamespacedName};
use kit::quote::cut_after;
use serde_json::Value;

use super::{
    label::{self, to_own, to_shared},
    port::{self, Backend, Port, PortRef, Protocol},
};
use crate::api::meta::{
    record::Record,
    selector::{Labels, Selector, labels_in},
};

const NAMESPACE_SELECTORS: &str = "networking.resources.gardener.cloud/namespace-selectors";
const NAMESPACE_ALIAS: &str = "networking.resources.gardener.cloud/pod-label-selector-namespace-alias";
const FROM_WORLD: &str = "networking.resources.gardener.cloud/from-world-to-ports";
const FROM: &str = "networking.resources.gardener.cloud/from-";
const ALLOWED_PORTS: &str = "-allowed-ports";
const SHOWN: usize = 200;
/// Largest number of namespace selectors per annotation: each is matched against each namespace.
const MOST_SELECTORS: usize = 100;
/// Largest total number of their labels, expressions and values, for the same reason.
const MOST_CONDITIONS: usize = 1_000;

/// The fields of a Service that its policies depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// For Events.
    pub uid: Box<str>,
    /// The pod selector; empty means none.
    pub selector: Labels,
    /// Its ports.
    pub ports: Vec<ServicePort>,
    /// Selectors of other namespaces with client pods; empty without the annotation.
    pub clients: Result<Vec<Selector>, Fault>,
    /// Replaces its namespace in labels of foreign clients.
    pub alias: Option<Box<str>>,
    /// Ports open to pods with the label of an alias, sorted by alias.
    pub aliases: Vec<Alias>,
    /// Ports open to everyone; an empty list means all.
    pub world: Option<Result<Vec<Port>, Fault>>,
    /// It has a deletion timestamp.
    pub is_terminating: bool,
}

/// An alias and the ports open to it.
pub type Alias = (Box<str>, Result<Vec<Port>, Fault>);

/// A port of a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicePort {
    /// Its name; may be empty.
    pub name: Box<str>,
    /// The port number of the Service.
    pub number: u16,
    /// TCP by default.
    pub protocol: Protocol,
    /// The port of the pods.
    pub target: PortRef,
}

/// The ports of a Service by number and name; the first of equal ones wins.
#[derive(Debug, Default)]
pub struct Targets<'a> {
    by_number: BTreeMap<u16, &'a ServicePort>,
    by_name: BTreeMap<&'a str, &'a ServicePort>,
}

/// An unusable annotation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("annotation {annotation}: failed unmarshalling {value}: {text}")]
pub struct Fault {
    /// Its key.
    pub annotation: Box<str>,
    value: Box<str>,
    text: Box<str>,
}

impl Service {
    /// Reads a Service.
    pub fn of(service: &Value) -> Self {
        let spec = &service["spec"];
        let annotation = |key: &str| object::annotation(service, key);
        let fault = |key: &str, text: String| Fault {
            annotation: key.into(),
            value: cut_after(SHOWN, object::annotation(service, key).unwrap_or_default()).into(),
            text: cut_after(SHOWN, &text).into(),
        };
        let read = |key: &str, text: &str| port::ports(text).map_err(|error| fault(key, error));
        let mut aliases: Vec<_> = annotations(service)
            .filter_map(|(key, text)| Some((alias_of(key)?, key, text)))
            .map(|(alias, key, text)| (alias.into(), read(key, text).and_then(|ports| named(key, text, ports))))
            .collect();
        aliases.sort_by(|(one, _): &Alias, (other, _)| one.cmp(other));
        Self {
            uid: object::uid(service).into(),
            selector: labels_in(&spec["selector"]),
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

    /// Returns true if pods of other namespaces may be clients.
    pub fn selects_namespaces(&self) -> bool {
        self.clients.as_ref().is_ok_and(|selectors| !selectors.is_empty())
    }

    /// Returns true if pods of a foreign namespace with these labels may be clients.
    pub fn selects(&self, labels: &Labels) -> bool {
        self.clients.iter().flatten().any(|selector| selector.matches(labels))
    }

    /// Returns the distinct ports for clients, with the alias that opens each (spec 40 §7.2, §7.11).
    pub fn port_groups(&self) -> Vec<(Option<&str>, Port)> {
        let own = self.ports.iter().map(|port| {
            let target = Port { protocol: Some(port.protocol), port: Some(port.target.clone()), end: None };
            (None, target)
        });
        let of_aliases = self.aliases.iter().filter_map(|(alias, ports)| Some((alias, ports.as_ref().ok()?)));
        let of_aliases = of_aliases.flat_map(|(alias, ports)| {
            // P2: an empty alias counts as none.
            let alias = Some(&**alias).filter(|alias| !alias.is_empty());
            ports.iter().map(move |port| (alias, port.clone()))
        });
        // T-16: policy names do not contain the end of a range.
        let mut ends: BTreeMap<(Option<&str>, Port), Option<u16>> = BTreeMap::new();
        for (alias, port) in own.chain(of_aliases) {
            let end = ends.entry((alias, Port { end: None, ..port })).or_default();
            *end = (*end).max(port.end);
        }
        ends.into_iter().map(|((alias, port), end)| (alias, Port { end, ..port })).collect()
    }

    /// Indexes its ports.
    pub fn targets(&self) -> Targets<'_> {
        let mut targets = Targets::default();
        for port in self.ports.iter().rev() {
            targets.by_number.insert(port.number, port);
            targets.by_name.insert(&port.name, port);
        }
        targets
    }

    /// Returns the label keys of clients in its namespace, as used on pods.
    pub fn own_client_keys(&self, name: &str) -> Vec<Box<str>> {
        self.keys_of_clients(name, to_own)
    }

    /// Returns the label keys of clients in selected namespaces, as used on pods.
    pub fn shared_client_keys(&self, name: &NamespacedName) -> Vec<Box<str>> {
        if !self.selects_namespaces() {
            return Vec::new();
        }
        self.keys_of_clients(&name.name, |base| to_shared(base, &name.namespace, self.alias.as_deref()))
    }

    fn keys_of_clients(&self, name: &str, key: impl Fn(&str) -> label::Key) -> Vec<Box<str>> {
        let groups = self.port_groups().into_iter();
        let keys = groups.map(|(alias, port)| key(&label::base(name, alias, &port)).effective().into());
        keys.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Returns the unusable annotations.
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

/// Returns the alias of an annotation `from-<alias>-allowed-ports` (P1).
fn alias_of(key: &str) -> Option<&str> {
    key.strip_prefix(FROM)?.strip_suffix(ALLOWED_PORTS)
}

/// Checks that the ports of an alias have a number or name, and defaults the protocol (P6, P7).
fn named(key: &str, value: &str, mut ports: Vec<Port>) -> Result<Vec<Port>, Fault> {
    for (index, port) in ports.iter_mut().enumerate() {
        if port.port.is_none() {
            let text = format!("port [{index}]: it has no port").into();
            return Err(Fault { annotation: key.into(), value: cut_after(SHOWN, value).into(), text });
        }
        port.protocol.get_or_insert(Protocol::Tcp);
    }
    Ok(ports)
}

fn selectors(text: &str) -> Result<Vec<Selector>, String> {
    let selectors: Option<Vec<Record<'_>>> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let read = |(index, selector)| {
        let read = Selector::of_record(selector);
        read.map_err(|error| format!("selector [{index}]: failed parsing to labels.Selector: {error}"))
    };
    let selectors = selectors.unwrap_or_default();
    if selectors.len() > MOST_SELECTORS {
        return Err(format!("{} selectors are more than {MOST_SELECTORS}", selectors.len()));
    }
    let selectors: Vec<Selector> = selectors.into_iter().enumerate().map(read).collect::<Result<_, _>>()?;
    let of_expressions =
        |selector: &Selector| -> usize { selector.expressions.iter().map(|it| 1 + it.values.len()).sum() };
    let conditions: usize = selectors.iter().map(|selector| selector.labels.len() + of_expressions(selector)).sum();
    if conditions > MOST_CONDITIONS {
        return Err(format!("{conditions} labels, expressions and values are more than {MOST_CONDITIONS}"));
    }
    Ok(selectors)
}

impl Targets<'_> {
    /// Returns the pod port of a backend (spec 40 §7.9).
    pub fn of(&self, backend: &Backend) -> Option<Port> {
        let port = match backend {
            Backend::Number(number) => self.by_number.get(number),
            Backend::Name(name) => self.by_name.get(&**name),
        }?;
        Some(Port { protocol: Some(port.protocol), port: Some(port.target.clone()), end: None })
    }
}

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// spec 40 §11 P12
    #[test]
    fn namespace_selectors_with_too_many_conditions_are_unusable() {
        let of = |values: usize| {
            let values: Vec<String> = (0..values).map(|number| format!("v{number}")).collect();
            let expression = json!({ "key": "team", "operator": "NotIn", "values": values });
            let selectors = json!([{ "matchLabels": { "a": "b" }, "matchExpressions": [expression] }, {}]).to_string();
            let annotations = json!({ NAMESPACE_SELECTORS: selectors });
            Service::of(&json!({ "metadata": { "annotations": annotations } })).clients
        };
        assert_eq!(of(998).map(|selectors| selectors.len()), Ok(2));
        let error = of(999).expect_err("too many values").to_string();
        assert!(error.ends_with("1001 labels, expressions and values are more than 1000"), "{error}");
        assert!(error.starts_with(&format!("annotation {NAMESPACE_SELECTORS}: ")), "{error}");
    }
}

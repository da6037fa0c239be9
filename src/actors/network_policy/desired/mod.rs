//! The policies of a Service: a pure function of it and of what is around it (spec 40 §7).
//!
//! A file per kind of client: [`clients`], [`world`], [`ingress`], [`gateways`]. Each says which policies it wants; here
//! those of one name become one, and what cannot become one gets another name (§7.11).

mod clients;
mod gateways;
mod ingress;
mod world;

pub use world::name as world_name;

use cluster::object::NamespacedName;

use super::{
    label::{self, Key},
    policy::{Direction, Opening, Policy},
    port::Port,
    service::{Service, ServicePort},
};
use crate::api::selector::Selector;

/// What the policies of a Service depend on.
pub struct View<'a> {
    /// The Service.
    pub name: &'a NamespacedName,
    /// What is kept of it.
    pub service: &'a Service,
    /// Namespaces beside its own whose pods may be clients, without those that are being deleted; in order.
    pub clients: Vec<String>,
    /// Whether there is (or is about to be) a pod with this client label in this namespace.
    pub has_client: &'a dyn Fn(&str, &str) -> bool,
    /// Ports of the Service that Ingresses name.
    pub backends: Vec<Backend>,
    /// Where the ingress controller is, if there is one.
    pub ingress_controller: Option<IngressController<'a>>,
    /// Ports of the Service that VirtualServices route to, and by which gateways.
    pub routes: Vec<Route>,
    /// Everyone is listed (decision 3).
    pub explicit_world: bool,
}

/// A port of a Service as an Ingress names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Backend {
    /// By its number.
    Number(u16),
    /// By its name.
    Name(Box<str>),
}

/// Where the ingress controller is.
#[derive(Debug, Clone, Copy)]
pub struct IngressController<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its pods.
    pub pods: &'a Selector,
    /// The namespace is there, and not being deleted.
    pub is_there: bool,
}

/// A port that a gateway routes to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    /// The Service's port.
    pub port: u16,
    /// The gateway's pods.
    pub gateway: Selector,
    /// Where they are, without namespaces that are being deleted; in order.
    pub namespaces: Vec<String>,
}

/// The policies of a Service.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Desired {
    /// Sorted by name; none twice.
    pub policies: Vec<Policy>,
    /// Client labels that were too long, each once.
    pub shortened: Vec<Key>,
}

/// The policies a Service should have.
pub fn desired(view: &View<'_>) -> Desired {
    let mut wanted = Desired::default();
    if view.service.is_terminating || view.service.selector.is_empty() {
        return wanted;
    }
    clients::add(view, &mut wanted);
    world::add(view, &mut wanted);
    ingress::add(view, &mut wanted);
    gateways::add(view, &mut wanted);
    wanted.policies = united(wanted.policies);
    wanted.shortened.sort();
    wanted.shortened.dedup();
    wanted
}

impl View<'_> {
    /// Where the Service is.
    fn home(&self) -> &str {
        &self.name.namespace
    }

    /// Its pods.
    fn pods(&self) -> Selector {
        Selector::of_labels(self.service.selector.clone())
    }

    fn policy(
        &self,
        direction: Direction,
        namespace: &str,
        name: String,
        subject: Selector,
        opening: Opening,
    ) -> Policy {
        Policy { name: NamespacedName::new(namespace, name), direction, subject, openings: vec![opening] }
    }

    /// The first port of the Service that a backend means (spec 40 §7.9).
    fn port_of(&self, backend: &Backend) -> Option<Port> {
        let is_meant = |port: &&ServicePort| match backend {
            Backend::Number(number) => port.number == *number,
            Backend::Name(name) => port.name == *name,
        };
        let port = self.service.ports.iter().find(is_meant)?;
        Some(Port { protocol: Some(port.protocol), port: Some(port.target.clone()), end: None })
    }
}

impl Backend {
    /// As an Ingress names it.
    pub fn of(port: &serde_json::Value) -> Option<Self> {
        match (port["name"].as_str().filter(|name| !name.is_empty()), port["number"].as_u64()) {
            (Some(name), _) => Some(Self::Name(name.into())),
            (None, Some(number)) => u16::try_from(number).ok().map(Self::Number),
            (None, None) => None,
        }
    }
}

/// One policy per name: openings are put together. What selects other pods cannot be: the first keeps the name, others get a
/// suffix (spec 40 §7.11).
fn united(mut wanted: Vec<Policy>) -> Vec<Policy> {
    wanted.sort_by_cached_key(|policy| (policy.name.clone(), policy.direction, subject_text(policy)));
    let mut united: Vec<Policy> = Vec::with_capacity(wanted.len());
    for mut policy in wanted {
        if let Some(last) =
            united.last_mut().filter(|last| last.name == policy.name && last.direction == policy.direction)
            && last.subject == policy.subject
        {
            last.openings.append(&mut policy.openings);
            continue;
        }
        united.push(policy);
    }
    for policy in &mut united {
        policy.openings.sort();
        policy.openings.dedup();
    }
    // All of one name follow each other.
    let mut plain: Option<NamespacedName> = None;
    for policy in &mut united {
        if plain.as_ref() == Some(&policy.name) {
            policy.name.name = format!("{}-{}", policy.name.name, label::short_hash(&subject_text(policy)));
        } else {
            plain = Some(policy.name.clone());
        }
    }
    united.sort_by(|one, other| one.name.cmp(&other.name));
    united
}

/// `key=value`, sorted, joined with commas.
fn subject_text(policy: &Policy) -> String {
    let pairs: Vec<String> = policy.subject.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}

//! The policies of a Service: a pure function of it and of what is around it (spec 40 §7).
//!
//! A file per kind of client: [`clients`], [`world`], [`ingress`], [`gateways`]. Each says which policies it wants, in pieces that
//! are computed one by one; here those of one name become one, and what cannot become one gets another name (§7.11).

mod clients;
mod gateways;
mod ingress;
mod world;

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    future::Future,
    rc::Rc,
};

use cluster::object::NamespacedName;
use futures::FutureExt as _;

use super::{
    label::Key,
    name::{self, Name, Peers},
    policy::{Direction, Opening, Policy},
    service::Service,
    turns::Turns,
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

/// Ports that a gateway routes to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    /// The Service's ports.
    pub ports: Rc<[u16]>,
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

/// A policy that a kind of client wants.
#[derive(Debug)]
pub struct Wanted {
    policy: Policy,
    /// Its client label, if that was too long.
    shortened: Option<Key>,
}

/// One policy per name: openings are put together. What selects other pods cannot be: the first keeps the name, others get a
/// suffix (spec 40 §7.11).
#[derive(Debug, Default)]
pub struct Union {
    policies: BTreeMap<(NamespacedName, Direction, String, Selector), Policy>,
    shortened: BTreeSet<Key>,
}

/// The policies of one port and one namespace.
pub type Piece = Vec<Wanted>;

/// The policies a Service should have.
pub fn desired(view: &View<'_>) -> Desired {
    let mut union = Union::default();
    pieces(view).for_each(|piece| union.add(piece));
    let at_once = union.end(&mut Turns::new(|| std::future::ready(()))).now_or_never();
    at_once.expect("it awaits only its pauses, which return at once")
}

/// What its policies are made from. Each piece is computed when it is asked for: there may be very many.
pub fn pieces<'v>(view: &'v View<'_>) -> impl Iterator<Item = Piece> + 'v {
    let has_none = view.service.is_terminating || view.service.selector.is_empty();
    let view = Some(view).filter(|_| !has_none);
    view.into_iter().flat_map(|view| {
        let simple = world::pieces(view).into_iter().chain(clients::pieces(view));
        simple.chain(ingress::pieces(view)).chain(gateways::pieces(view))
    })
}

impl Union {
    /// Adds what a kind of client wants.
    pub fn add(&mut self, piece: Piece) {
        for Wanted { mut policy, shortened } in piece {
            self.shortened.extend(shortened);
            let key = (policy.name.clone(), policy.direction, subject_text(&policy), policy.subject.clone());
            match self.policies.entry(key) {
                Entry::Occupied(mut known) => known.get_mut().openings.append(&mut policy.openings),
                Entry::Vacant(place) => {
                    place.insert(policy);
                }
            }
        }
    }

    /// All that was added.
    pub async fn end<F: Future<Output = ()>, P: Fn() -> F>(self, turns: &mut Turns<P>) -> Desired {
        let mut policies: Vec<Policy> = Vec::with_capacity(self.policies.len());
        // All of one name follow each other.
        let mut plain: Option<NamespacedName> = None;
        for ((name, _, text, _), mut policy) in self.policies {
            policy.openings.sort();
            policy.openings.dedup();
            if plain.as_ref() == Some(&name) {
                policy.name.name = name::beside(&name.name, &text);
            } else {
                plain = Some(name);
            }
            policies.push(policy);
            turns.piece().await;
        }
        // Nearly all are in order already.
        policies.sort_by(|one, other| one.name.cmp(&other.name));
        Desired { policies, shortened: self.shortened.into_iter().collect() }
    }
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

    fn policy_name<'n>(&'n self, direction: Direction, peers: Peers<'n>, namespace: &'n str) -> Name<'n> {
        Name { service: self.name, direction, peers, namespace }
    }

    fn policy(&self, name: NamespacedName, direction: Direction, subject: Selector, opening: Opening) -> Policy {
        Policy { name, direction, subject, openings: vec![opening] }
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

/// `key=value`, sorted, joined with commas.
fn subject_text(policy: &Policy) -> String {
    let pairs: Vec<String> = policy.subject.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}

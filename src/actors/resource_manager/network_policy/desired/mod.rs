//! Computes the policies of a Service from its surroundings (spec 40 §7). Pure. [`clients`] lists the policies of each
//! kind of client in pieces. [`Union`] merges policies of the same name; if they cannot be merged, one gets another
//! name (§7.11).

mod clients;

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    rc::Rc,
};

use cluster::object::NamespacedName;
use futures::FutureExt as _;

use super::{
    direction::Direction,
    label::Key,
    name::{self, Name, Peers},
    policy::{Opening, Policy},
    port::{Backend, Port},
    service::Service,
    turns::Turns,
};
use crate::api::meta::selector::Selector;

/// The inputs of the policies of a Service.
pub struct View<'a> {
    /// The Service.
    pub name: &'a NamespacedName,
    /// Its cached fields.
    pub service: &'a Service,
    /// Other namespaces with possible clients, sorted, without terminating ones.
    pub clients: Vec<String>,
    /// Returns true if the namespace has, or is about to have, a pod with the client label.
    pub has_client: &'a dyn Fn(&str, &str) -> bool,
    /// Ports of the Service that Ingresses name.
    pub backends: Vec<Backend>,
    /// The ingress controller, if one is configured.
    pub ingress_controller: Option<IngressController<'a>>,
    /// Ports of the Service to which VirtualServices route, with the gateways.
    pub routes: Vec<Route>,
    /// Lists "everyone" explicitly (decision 3).
    pub explicit_world: bool,
}

/// The location of the ingress controller.
#[derive(Debug, Clone, Copy)]
pub struct IngressController<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// The selector of its pods.
    pub pods: &'a Selector,
    /// The namespace exists and is not terminating.
    pub is_there: bool,
}

/// Ports to which a gateway routes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    /// Ports of the Service.
    pub ports: Rc<[u16]>,
    /// The selector of the gateway's pods.
    pub gateway: Selector,
    /// Their namespaces, sorted, without terminating ones.
    pub namespaces: Vec<String>,
}

/// The policies that a Service should have.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Desired {
    /// Sorted by name, without duplicates.
    pub policies: Vec<Policy>,
    /// The distinct client labels that were too long.
    pub shortened: Vec<Key>,
}

/// The policies for one port and one namespace.
#[derive(Debug, Default)]
pub struct Piece {
    policies: Vec<Policy>,
    /// Its client label, if that was too long.
    shortened: Option<Key>,
}

/// Merges policies of the same name. Policies with different pod selectors cannot be merged: the first keeps the name,
/// the others get a suffix (spec 40 §7.11).
#[derive(Debug, Default)]
pub struct Union {
    policies: BTreeMap<(NamespacedName, Direction, String, Selector), Policy>,
    shortened: BTreeSet<Key>,
}

/// Computes the policies of a Service without pauses.
pub fn desired(view: &View<'_>) -> Desired {
    let mut union = Union::default();
    pieces(view).for_each(|piece| union.add(piece));
    let at_once = union.end(&mut Turns::at_once()).now_or_never();
    at_once.expect("it awaits only pauses, and there are none")
}

/// Returns the pieces of the policies. They are computed lazily, because there may be very many.
pub fn pieces<'v>(view: &'v View<'_>) -> impl Iterator<Item = Piece> + 'v {
    let has_none = view.service.is_terminating || view.service.selector.is_empty();
    let view = Some(view).filter(|_| !has_none);
    view.into_iter().flat_map(|view| {
        let simple = clients::world(view).into_iter().chain(clients::labelled(view));
        simple.chain(clients::ingress_controller(view)).chain(clients::gateways(view))
    })
}

impl Union {
    /// Adds a piece.
    pub fn add(&mut self, piece: Piece) {
        self.shortened.extend(piece.shortened);
        for mut policy in piece.policies {
            let key = (policy.name.clone(), policy.direction, subject_text(&policy), policy.subject.clone());
            match self.policies.entry(key) {
                Entry::Occupied(mut known) => known.get_mut().openings.append(&mut policy.openings),
                Entry::Vacant(place) => {
                    place.insert(policy);
                }
            }
        }
    }

    /// Returns the merged policies.
    pub async fn end(self, turns: &mut Turns) -> Desired {
        let mut policies: Vec<Policy> = Vec::with_capacity(self.policies.len());
        // Policies of the same name are adjacent.
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
        policies.sort_by(|one, other| one.name.cmp(&other.name));
        Desired { policies, shortened: self.shortened.into_iter().collect() }
    }
}

impl View<'_> {
    fn home(&self) -> &str {
        &self.name.namespace
    }

    fn pods(&self) -> Selector {
        Selector::of_labels(self.service.selector.clone())
    }

    /// Returns the policies that let clients use a port: for the pods of the Service, and for the clients.
    fn pair(&self, peers: Peers<'_>, namespace: &str, clients: &Selector, port: &Port) -> [Policy; 2] {
        let ways = [
            (Direction::Ingress, (self.home(), self.pods()), (namespace, clients.clone())),
            (Direction::Egress, (namespace, clients.clone()), (self.home(), self.pods())),
        ];
        ways.map(|(direction, (place, subject), (of_others, others))| {
            let name = Name { service: self.name, direction, peers, namespace }.of(port);
            let is_for_ingress_controller = peers == Peers::IngressController;
            let opening = Opening::pods(others, of_others, place, port.clone(), is_for_ingress_controller);
            self.policy(name, direction, subject, opening)
        })
    }

    fn policy(&self, name: NamespacedName, direction: Direction, subject: Selector, opening: Opening) -> Policy {
        Policy { name, service: self.name.clone(), direction, subject, openings: vec![opening] }
    }
}

impl Piece {
    fn of(policies: impl IntoIterator<Item = Policy>) -> Self {
        Self { policies: policies.into_iter().collect(), shortened: None }
    }
}

impl Backend {
    /// Reads the port of an Ingress backend; `None` without name and number.
    pub fn of(port: &serde_json::Value) -> Option<Self> {
        match (port["name"].as_str().filter(|name| !name.is_empty()), port["number"].as_u64()) {
            (Some(name), _) => Some(Self::Name(name.into())),
            (None, Some(number)) => u16::try_from(number).ok().map(Self::Number),
            (None, None) => None,
        }
    }
}

fn subject_text(policy: &Policy) -> String {
    let pairs: Vec<String> = policy.subject.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}

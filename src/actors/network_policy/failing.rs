//! Sources of policies that cannot be read at present: an annotation that is broken, a Gateway that cannot be used. What they
//! stood for stays ("Better than upstream" 5): the policies that the Service would have if the source said something else,
//! whatever that is.
//!
//! A policy tells its source by two things: its name, of which the code says that builds names which port it is for, and the
//! client labels of its peers, of which the code says that builds labels whose they are.

use std::collections::{BTreeMap, BTreeSet};

use cluster::object::NamespacedName;
use serde_json::Value;

use super::{
    label::{self, to_own, to_shared},
    name::{self, Name, Peers},
    policy::{Digest128, Direction, Found, digest_of_text, is_client_peer},
    port::Port,
    service::Service,
};

/// Texts of what is wrong that are kept at most; of more the number is.
const REPORTED: usize = 10;

/// What of a Service cannot be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failing {
    service: NamespacedName,
    /// Aliases whose ports cannot be read; the empty one stands for ports of the Service (P2).
    aliases: BTreeSet<Box<str>>,
    /// Ports that can be read, with their aliases, if the selectors of namespaces cannot be.
    groups: Option<BTreeSet<(Option<Box<str>>, Port)>>,
    /// Client labels of both: whose they are.
    keys: BTreeMap<Digest128, Vec<Option<Box<str>>>>,
    /// What stands for the Service's namespace in labels of foreign clients.
    shared_as: Option<Box<str>>,
    /// Namespaces of clients, if the selectors can be read.
    clients: BTreeSet<String>,
    world: bool,
    /// Ports behind Gateways that cannot be used.
    gateways: BTreeSet<Port>,
    /// What is wrong, for people.
    pub texts: Vec<String>,
    untold: usize,
}

/// A way on which a policy of this name can lie: its direction, and the namespace of the other side.
type Way<'a> = (Direction, &'a str);

impl Failing {
    /// By the annotations of a Service; `clients` are the namespaces that it selects.
    pub fn of(name: &NamespacedName, service: &Service, clients: &[String]) -> Self {
        let mut failing = Self {
            service: name.clone(),
            world: matches!(service.world, Some(Err(_))),
            shared_as: service.alias.clone(),
            ..Self::default()
        };
        let broken = service.aliases.iter().filter(|(_, ports)| ports.is_err());
        failing.aliases = broken.map(|(alias, _)| alias.clone()).collect();
        if service.clients.is_err() {
            let owned = |(alias, port): (Option<&str>, Port)| (alias.map(Into::into), Port { end: None, ..port });
            failing.groups = Some(service.port_groups().into_iter().map(owned).collect());
        } else if !failing.aliases.is_empty() {
            failing.clients = clients.iter().cloned().collect();
        }
        failing.add_keys();
        service.faults().for_each(|fault| failing.report(fault));
        failing
    }

    /// The client labels that do not depend on ports that cannot be read.
    fn add_keys(&mut self) {
        let mut keys: Vec<(label::Key, Option<Box<str>>)> = Vec::new();
        for alias in self.aliases.iter().filter(|alias| !alias.is_empty()) {
            keys.push((to_own(alias), Some(alias.clone())));
            keys.push((self.shared(alias), Some(alias.clone())));
        }
        for (alias, port) in self.groups.iter().flatten() {
            let base = label::base(&self.service.name, alias.as_deref(), port);
            keys.push((self.shared(&base), alias.clone()));
        }
        for (key, alias) in keys {
            let known = self.keys.entry(digest_of_text(&key.effective())).or_default();
            if !known.contains(&alias) {
                known.push(alias);
            }
        }
    }

    fn shared(&self, base: &str) -> label::Key {
        to_shared(base, &self.service.namespace, self.shared_as.as_deref())
    }

    /// A Gateway of a VirtualService cannot be used.
    pub fn gateway(&mut self, gateway: &NamespacedName, virtual_service: &str, what: &str) {
        self.report(format_args!("gateway {gateway} of VirtualService {virtual_service} {what}"));
    }

    /// It is not known where the pods are that Gateways send to these ports from.
    pub fn behind_gateways(&mut self, ports: impl Iterator<Item = Port>) {
        self.gateways.extend(ports);
    }

    fn report(&mut self, text: impl ToString) {
        match self.texts.len() {
            reported if reported < REPORTED => self.texts.push(text.to_string()),
            _ => self.untold += 1,
        }
    }

    /// Says how much more is wrong than is told.
    pub fn round_off(&mut self) {
        if self.untold > 0 {
            self.texts.push(format!("and {} more", std::mem::take(&mut self.untold)));
        }
    }

    /// Whether a policy of the Service would be wanted if what cannot be read said something else. `is_open` says of a
    /// namespace whether it is there and not being deleted.
    pub fn keeps(&self, policy: &NamespacedName, found: &Found, is_open: &dyn Fn(&str) -> bool) -> bool {
        let is_any = self.world || !self.gateways.is_empty() || self.groups.is_some() || !self.aliases.is_empty();
        is_any
            && name::plain_forms(&policy.name, &self.service).into_iter().any(|plain| {
                let is_of_world = || {
                    let world = name::world(&self.service);
                    self.world && policy.namespace == world.namespace && plain == world.name
                };
                let mut ways = self.ways(&policy.namespace, plain).into_iter();
                is_of_world()
                    || ways.any(|way| self.is_of_clients(way, plain, found, is_open))
                    || self.is_of_gateway(&policy.namespace, plain, found, is_open)
            })
    }

    fn ways<'n>(&'n self, namespace: &'n str, name: &'n str) -> Vec<Way<'n>> {
        let home = &*self.service.namespace;
        if namespace != home {
            return vec![(Direction::Egress, namespace)];
        }
        let others = name::namespaces_in(name).map(|namespace| (Direction::Ingress, namespace));
        [(Direction::Egress, home), (Direction::Ingress, home)].into_iter().chain(others).collect()
    }

    fn is_of_clients(&self, way: Way<'_>, plain: &str, found: &Found, is_open: &dyn Fn(&str) -> bool) -> bool {
        let (direction, namespace) = way;
        let is_home = namespace == self.service.namespace;
        let may_be_client = match self.groups {
            _ if is_home => true,
            Some(_) => is_open(namespace),
            None => self.clients.contains(namespace),
        };
        if !may_be_client {
            return false;
        }
        let port_for = |alias: Option<&str>| {
            let name = Name { service: &self.service, direction, peers: Peers::Clients(alias), namespace };
            name.port_of(plain)
        };
        let is_alias = |alias: &Option<Box<str>>| {
            let Some(port) = port_for(alias.as_deref()) else { return false };
            let is_broken = alias.as_ref().is_some_and(|alias| self.aliases.contains(alias));
            let groups = self.groups.as_ref().filter(|_| !is_home);
            is_broken || groups.is_some_and(|groups| groups.contains(&(alias.clone(), port)))
        };
        let is_empty_alias = || {
            let Some(port) = port_for(None).filter(|_| self.aliases.contains("")) else { return false };
            let base = label::base(&self.service.name, None, &port);
            let key = if is_home { to_own(&base) } else { self.shared(&base) };
            found.clients.contains(&digest_of_text(&key.effective()))
        };
        let mut whose = found.clients.iter().filter_map(|key| self.keys.get(key)).flatten();
        whose.any(is_alias) || is_empty_alias()
    }

    fn is_of_gateway(&self, place: &str, plain: &str, found: &Found, is_open: &dyn Fn(&str) -> bool) -> bool {
        if self.gateways.is_empty() || !found.has_others {
            return false;
        }
        self.ways(place, plain).into_iter().any(|(direction, namespace)| {
            let name = Name { service: &self.service, direction, peers: Peers::Gateway, namespace };
            is_open(namespace) && name.port_of(plain).is_some_and(|port| self.gateways.contains(&port))
        })
    }

    /// Brings peers that may be Gateways which cannot be used from a policy that is there into what it is to be.
    pub fn keep_peers(&self, live: &Value, after: &mut Value) {
        if self.gateways.is_empty() {
            return;
        }
        let Some(Value::Array(wanted)) = after.pointer_mut("/spec/ingress/0/from") else { return };
        let peers = live.pointer("/spec/ingress/0/from").and_then(Value::as_array).into_iter().flatten();
        let may_be_gateway = |peer: &Value| peer["podSelector"].is_object() && !is_client_peer(peer);
        let mut kept: Vec<Value> =
            peers.filter(|peer| may_be_gateway(peer) || wanted.contains(peer)).cloned().collect();
        // In the order in which they are there: another order would be a change.
        let new: Vec<Value> = wanted.iter().filter(|peer| !kept.contains(peer)).cloned().collect();
        kept.extend(new);
        *wanted = kept;
    }
}

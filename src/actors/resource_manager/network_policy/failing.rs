//! Sources of policies that are unreadable at present: a broken annotation, an unusable Gateway. Their policies stay
//! ("Better than upstream" 5): every policy that the Service would have if the source had any other content. A policy
//! reveals its source by its name, which contains the port, and by the client labels of its peers.

use std::collections::{BTreeMap, BTreeSet};

use cluster::object::NamespacedName;
use serde_json::Value;

use super::{
    direction::Direction,
    label::{self, to_own, to_shared},
    name::{self, Name, Peers},
    policy::{Digest128, Found, digest_of_text, is_client_peer},
    port::Port,
    service::Service,
};

/// Largest number of problems reported as text; further ones are counted.
const REPORTED: usize = 10;

/// The unreadable sources of a Service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failing {
    service: NamespacedName,
    /// Aliases whose ports are unreadable. The empty alias stands for the ports without an alias (P2).
    aliases: BTreeSet<Box<str>>,
    /// Readable ports with their aliases, if the namespace selectors are unreadable.
    groups: Option<BTreeSet<(Option<Box<str>>, Port)>>,
    /// Client labels that come from unreadable sources, with their aliases.
    keys: BTreeMap<Digest128, BTreeSet<Option<Box<str>>>>,
    /// Replaces the namespace of the Service in labels of foreign clients.
    shared_as: Option<Box<str>>,
    clients: BTreeSet<String>,
    world: bool,
    gateways: BTreeSet<Port>,
    /// The problems as texts.
    pub texts: Vec<String>,
    untold: usize,
}

/// A direction, and the namespace of the other side.
type Way<'a> = (Direction, &'a str);

impl Failing {
    /// Finds the unreadable annotations of a Service; `clients` are the namespaces that it selects.
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
        failing.keys = failing.client_keys();
        service.faults().for_each(|fault| failing.report(fault));
        failing
    }

    fn client_keys(&self) -> BTreeMap<Digest128, BTreeSet<Option<Box<str>>>> {
        let aliases = self.aliases.iter().filter(|alias| !alias.is_empty());
        let of_aliases =
            aliases.flat_map(|alias| [to_own(alias), self.shared(alias)].map(|key| (key, Some(alias.clone()))));
        let of_groups = self.groups.iter().flatten().map(|(alias, port)| {
            let base = label::base(&self.service.name, alias.as_deref(), port);
            (self.shared(&base), alias.clone())
        });
        let mut keys: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for (key, alias) in of_aliases.chain(of_groups) {
            keys.entry(digest_of_text(&key.effective())).or_default().insert(alias);
        }
        keys
    }

    fn shared(&self, base: &str) -> label::Key {
        to_shared(base, &self.service.namespace, self.shared_as.as_deref())
    }

    /// Adds an unusable Gateway of a VirtualService.
    pub fn gateway(&mut self, gateway: &NamespacedName, virtual_service: &str, what: &str) {
        self.report(format_args!("gateway {gateway} of VirtualService {virtual_service} {what}"));
    }

    /// Adds ports behind Gateways whose pods cannot be located.
    pub fn behind_gateways(&mut self, ports: impl Iterator<Item = Port>) {
        self.gateways.extend(ports);
    }

    fn report(&mut self, text: impl ToString) {
        match self.texts.len() {
            reported if reported < REPORTED => self.texts.push(text.to_string()),
            _ => self.untold += 1,
        }
    }

    /// Adds the number of the problems without text.
    pub fn round_off(&mut self) {
        if self.untold > 0 {
            self.texts.push(format!("and {} more", std::mem::take(&mut self.untold)));
        }
    }

    /// Returns true if the policy may be from an unreadable source. `is_open`: a namespace exists, not terminating.
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

    /// Copies peers that may belong to unusable Gateways from a live policy into the wanted one.
    pub fn keep_peers(&self, live: &Value, after: &mut Value) {
        if self.gateways.is_empty() {
            return;
        }
        let Some(Value::Array(wanted)) = after.pointer_mut("/spec/ingress/0/from") else { return };
        let peers = live.pointer("/spec/ingress/0/from").and_then(Value::as_array).into_iter().flatten();
        let may_be_gateway = |peer: &Value| peer["podSelector"].is_object() && !is_client_peer(peer);
        let mut kept: Vec<Value> =
            peers.filter(|peer| may_be_gateway(peer) || wanted.contains(peer)).cloned().collect();
        // Keep the live order: another order would be a change.
        let new: Vec<Value> = wanted.iter().filter(|peer| !kept.contains(peer)).cloned().collect();
        kept.extend(new);
        *wanted = kept;
    }
}

//! Builds the names of policies (spec 40 §7.5) and recognises them, including their port.

use cluster::object::NamespacedName;
use sha2::{Digest as _, Sha256};

use super::{
    direction::Direction,
    port::{Port, PortRef, Protocol},
};

/// The parts of a policy's name except the port.
#[derive(Debug, Clone, Copy)]
pub struct Name<'a> {
    /// The Service.
    pub service: &'a NamespacedName,
    /// The direction of the traffic.
    pub direction: Direction,
    /// The other side.
    pub peers: Peers<'a>,
    /// The namespace of the other side.
    pub namespace: &'a str,
}

/// The other side of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peers<'a> {
    /// Pods with a client label, and the alias (`from-<alias>-allowed-ports`) that opens the port, if any.
    Clients(Option<&'a str>),
    /// The ingress controller.
    IngressController,
    /// The pods of an Istio gateway.
    Gateway,
}

const FROM: &str = "-from-";
/// Hex digits of the hash in shortened keys and names.
pub(super) const DIGITS: usize = 5;

/// Returns the first hex digits of the SHA-256 hash.
pub fn short_hash(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    let mut digits: String = hash.iter().take(DIGITS.div_ceil(2)).map(|byte| format!("{byte:02x}")).collect();
    digits.truncate(DIGITS);
    digits
}

/// Returns the name of the policy that allows traffic from everywhere.
pub fn world(service: &NamespacedName) -> NamespacedName {
    NamespacedName::new(&*service.namespace, format!("ingress-to-{}-from-world", service.name))
}

/// Returns an alternative name for a policy whose name another Service needs (spec 40 §7.11).
pub fn evading(name: &str, service: &NamespacedName) -> String {
    beside(name, &service.to_string())
}

/// Returns another name for a policy if the Service has one of that name with another pod selector (spec 40 §7.11).
pub fn beside(name: &str, subject: &str) -> String {
    format!("{name}-{}", short_hash(subject))
}

/// Returns the name with and without the suffixes of [`evading`] and [`beside`].
pub fn plain_forms<'a>(name: &'a str, service: &NamespacedName) -> Vec<&'a str> {
    let evading = format!("-{}", short_hash(&service.to_string()));
    let mut forms: Vec<&str> = std::iter::once(name).chain(name.strip_suffix(&*evading)).collect();
    forms.extend(forms.clone().into_iter().filter_map(without_hash));
    forms
}

fn without_hash(name: &str) -> Option<&str> {
    let (plain, hash) = name.rsplit_once('-')?;
    let is_hash = hash.len() == DIGITS && hash.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'));
    is_hash.then_some(plain)
}

pub(super) fn of_port(port: &Port) -> String {
    let protocol = port.protocol.map_or("tcp", Protocol::in_names);
    let number = port.port.as_ref().map(ToString::to_string).unwrap_or_default();
    format!("{protocol}-{number}")
}

/// Returns the namespaces that may end the name of an ingress policy.
pub fn namespaces_in(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices(FROM).filter_map(|(at, from)| name.get(at + from.len()..)).filter(|rest| !rest.is_empty())
}

impl Name<'_> {
    /// Returns the name of the policy for a port.
    pub fn of(&self, port: &Port) -> NamespacedName {
        let (before, after) = self.around_port();
        NamespacedName::new(self.policy_namespace(), format!("{before}{}{after}", of_port(port)))
    }

    /// Returns the port for which [`Self::of`] builds this name, or `None`. Names omit the end of a range.
    pub fn port_of(&self, name: &str) -> Option<Port> {
        let (before, after) = self.around_port();
        let (protocol, port) = name.strip_prefix(&*before)?.strip_suffix(&*after)?.split_once('-')?;
        let protocol = Protocol::ALL.into_iter().find(|known| known.in_names() == protocol)?;
        Some(Port { protocol: Some(protocol), port: Some(PortRef::read(port).ok()?), end: None })
    }

    /// Returns the namespace of the policy.
    pub fn policy_namespace(&self) -> &str {
        match self.direction {
            Direction::Ingress => &self.service.namespace,
            Direction::Egress => self.namespace,
        }
    }

    fn around_port(&self) -> (String, String) {
        let NamespacedName { namespace: home, name } = self.service;
        let is_home = self.namespace == home;
        let before = match self.direction {
            Direction::Ingress => format!("ingress-to-{name}-"),
            Direction::Egress if is_home => format!("egress-to-{name}-"),
            Direction::Egress => format!("egress-to-{home}-{name}-"),
        };
        let via = match self.peers {
            Peers::Clients(Some(alias)) => format!("-via-{alias}"),
            _ => String::new(),
        };
        let from = match (self.peers, self.direction) {
            (Peers::IngressController, _) => Some("ingress-controller"),
            (Peers::Gateway, Direction::Egress) => Some("istio"),
            (Peers::Gateway, Direction::Ingress) if is_home => Some("istio"),
            (Peers::Gateway | Peers::Clients(_), Direction::Ingress) if !is_home => Some(self.namespace),
            (Peers::Gateway | Peers::Clients(_), _) => None,
        };
        let from = from.map(|from| format!("{FROM}{from}")).unwrap_or_default();
        (before, format!("{via}{from}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> NamespacedName {
        NamespacedName::new("shop", "cart")
    }

    /// spec 40 §7.5
    #[test]
    fn name_of_a_policy_says_for_which_port_it_was_built() {
        let service = service();
        let named = |text: &str| Port { protocol: Some(Protocol::Udp), port: PortRef::read(text).ok(), end: None };
        let ways = [
            (Direction::Ingress, "shop", Peers::Clients(None), "shop/ingress-to-cart-udp-", ""),
            (Direction::Egress, "shop", Peers::Clients(None), "shop/egress-to-cart-udp-", ""),
            (Direction::Ingress, "web", Peers::Clients(Some("p")), "shop/ingress-to-cart-udp-", "-via-p-from-web"),
            (Direction::Egress, "web", Peers::Clients(Some("p")), "web/egress-to-shop-cart-udp-", "-via-p"),
            (
                Direction::Ingress,
                "e",
                Peers::IngressController,
                "shop/ingress-to-cart-udp-",
                "-from-ingress-controller",
            ),
            (
                Direction::Egress,
                "e",
                Peers::IngressController,
                "e/egress-to-shop-cart-udp-",
                "-from-ingress-controller",
            ),
            (
                Direction::Egress,
                "shop",
                Peers::IngressController,
                "shop/egress-to-cart-udp-",
                "-from-ingress-controller",
            ),
            (Direction::Ingress, "g", Peers::Gateway, "shop/ingress-to-cart-udp-", "-from-g"),
            (Direction::Egress, "g", Peers::Gateway, "g/egress-to-shop-cart-udp-", "-from-istio"),
            (Direction::Ingress, "shop", Peers::Gateway, "shop/ingress-to-cart-udp-", "-from-istio"),
            (Direction::Egress, "shop", Peers::Gateway, "shop/egress-to-cart-udp-", "-from-istio"),
        ];
        for (direction, namespace, peers, before, after) in ways {
            let name = Name { service: &service, direction, peers, namespace };
            for port in ["8443", "quic", "a-via-b"] {
                let built = name.of(&named(port));
                assert_eq!(built.to_string(), format!("{before}{port}{after}"));
                assert_eq!(name.port_of(&built.name), Some(named(port)));
            }
            for other in ["x-8443", "udp-0", "udp-65536", "udp-", "udp-Q", "udp-a--b", "udp-longer-than-a-name-may-be"]
            {
                let (before, _) = before.rsplit_once("udp-").expect("part of the name");
                let (_, before) = before.split_once('/').expect("part of the name");
                assert_eq!(name.port_of(&format!("{before}{other}{after}")), None, "{other}");
            }
        }
    }

    /// spec 40 §7.11
    #[test]
    fn name_with_a_suffix_has_the_forms_without_it() {
        let service = service();
        let plain = "egress-to-shop-cart-tcp-8443-from-istio";
        let beside = beside(plain, "app=gw");
        let evading = evading(&beside, &service);
        assert_eq!(plain_forms(plain, &service), [plain]);
        assert_eq!(plain_forms(&beside, &service), [&*beside, plain]);
        assert!(plain_forms(&evading, &service).contains(&plain));
    }

    #[test]
    fn name_of_an_ingress_policy_ends_with_its_namespace() {
        let found: Vec<&str> = namespaces_in("ingress-to-a-from-b-tcp-1-from-web").collect();
        assert_eq!(found, ["b-tcp-1-from-web", "web"]);
    }
}

//! `NO_PROXY`: servers that are reached without a proxy of the environment (spec 70 §8.1), by the rules of Go.

use std::net::IpAddr;

use super::digits;

/// Servers that are reached directly; `localhost` and loopback addresses always are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NoProxy(Vec<NoProxyEntry>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct NoProxyEntry {
    servers: NoProxyServers,
    /// The only port that is meant; `None`: all.
    port: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum NoProxyServers {
    /// `*`.
    All,
    /// `10.0.0.0/8`, `10.0.0.1`, `[fd00::1]:443`: servers given by an address in it.
    Network { address: IpAddr, prefix: u8 },
    /// `.example.org` and `*.example.org`; the suffix has its dot.
    Subdomains { suffix: String },
    /// `example.org`: itself and its subdomains.
    Domain { name: String },
}

impl NoProxy {
    pub(super) fn of(list: &str) -> Self {
        let entries = list.split(',').map(|entry| entry.trim().to_lowercase());
        Self(entries.filter_map(|entry| NoProxyEntry::of(&entry)).collect())
    }

    /// `host` may be an IPv6 address in brackets. Names are compared literally: with a trailing dot it is another name.
    pub(super) fn contains(&self, host: &str, port: u16) -> bool {
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        let address = host.parse().ok().map(|address: IpAddr| address.to_canonical());
        if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
            return true;
        }
        let port = port.to_string();
        self.0.iter().any(|entry| entry.contains(&host, address, &port))
    }
}

impl NoProxyEntry {
    /// `text` is in lower case and trimmed.
    fn of(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self { servers: NoProxyServers::All, port: None });
        }
        if let Some(servers) = network(text) {
            return Some(Self { servers, port: None });
        }
        let (host, port) = split_port(text).unwrap_or((text, ""));
        let port = Some(port.to_owned()).filter(|port| !port.is_empty());
        let servers = match host.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(host) {
            "" => return None,
            suffix if suffix.starts_with('.') => NoProxyServers::Subdomains { suffix: suffix.to_owned() },
            name => match name.parse().map(|address: IpAddr| address.to_canonical()) {
                Ok(address) => NoProxyServers::Network { address, prefix: bits(address) },
                Err(_) => NoProxyServers::Domain { name: name.to_owned() },
            },
        };
        Some(Self { servers, port })
    }

    /// `address` is that of a server that is given by its address.
    fn contains(&self, server: &str, address: Option<IpAddr>, server_port: &str) -> bool {
        let is_meant = match (&self.servers, address) {
            (NoProxyServers::All, _) => true,
            (NoProxyServers::Network { address: network, prefix }, Some(address)) => {
                common_bits(*network, address).is_some_and(|bits| bits >= *prefix)
            }
            (NoProxyServers::Subdomains { suffix }, None) => server.ends_with(&**suffix),
            (NoProxyServers::Domain { name }, None) => {
                let above = server.strip_suffix(&**name);
                above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
            }
            (NoProxyServers::Network { .. }, None) => false,
            (NoProxyServers::Subdomains { .. } | NoProxyServers::Domain { .. }, Some(_)) => false,
        };
        is_meant && self.port.as_ref().is_none_or(|port| port == server_port)
    }
}

fn network(text: &str) -> Option<NoProxyServers> {
    let (address, prefix) = text.split_once('/')?;
    let (given, prefix): (IpAddr, u8) = (address.parse().ok()?, digits(prefix)?);
    let address = given.to_canonical();
    // an IPv4 network that is written as an IPv6 network
    let prefix = if given.is_ipv6() && address.is_ipv4() { prefix.checked_sub(96)? } else { prefix };
    (prefix <= bits(address)).then_some(NoProxyServers::Network { address, prefix })
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Returns the number of equal bits from the left; `None` if one is IPv4, the other IPv6.
fn common_bits(a: IpAddr, b: IpAddr) -> Option<u8> {
    let bits = match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return None,
    };
    u8::try_from(bits).ok()
}

/// Splits `host:port` and `[host]:port`; an IPv6 address without brackets has no port.
fn split_port(text: &str) -> Option<(&str, &str)> {
    if let Some(rest) = text.strip_prefix('[') {
        return rest.split_once("]:");
    }
    text.split_once(':').filter(|(_, port)| !port.contains(':'))
}

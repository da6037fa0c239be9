//! `NO_PROXY`: servers that are reached without a proxy of the environment (spec 70 §8.1), by the rules of Go.

use std::net::IpAddr;

use super::digits;

/// Servers that are reached directly; `localhost` and loopback addresses always are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NoProxy(Vec<NoProxyEntry>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum NoProxyEntry {
    /// `*`.
    Everything,
    /// `10.0.0.0/8`: servers given by an address in it.
    Network { address: IpAddr, prefix: u8 },
    /// `10.0.0.1`, `[fd00::1]:443`: the server given by that address.
    Address { address: IpAddr, port: Option<String> },
    /// `.example.org` and `*.example.org`; the suffix has its dot.
    Subdomains { suffix: String, port: Option<String> },
    /// `example.org`: itself and its subdomains.
    Domain { name: String, port: Option<String> },
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
        self.0.iter().any(|entry| match address {
            Some(address) => entry.contains_address(address, &port),
            None => entry.contains_name(&host, &port),
        })
    }
}

impl NoProxyEntry {
    /// `text` is in lower case and trimmed.
    fn of(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::Everything);
        }
        if let Some(network) = network(text) {
            return Some(network);
        }
        let (host, port) = split_port(text).unwrap_or((text, ""));
        let port = Some(port.to_owned()).filter(|port| !port.is_empty());
        if let Ok(address) = host.parse::<IpAddr>() {
            return Some(Self::Address { address: address.to_canonical(), port });
        }
        match host.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(host) {
            "" => None,
            suffix if suffix.starts_with('.') => Some(Self::Subdomains { suffix: suffix.to_owned(), port }),
            name => Some(Self::Domain { name: name.to_owned(), port }),
        }
    }

    fn contains_address(&self, server: IpAddr, server_port: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Network { address, prefix } => common_bits(*address, server).is_some_and(|bits| bits >= *prefix),
            Self::Address { address, port } => *address == server && fits(port.as_deref(), server_port),
            Self::Subdomains { .. } | Self::Domain { .. } => false,
        }
    }

    fn contains_name(&self, server: &str, server_port: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Network { .. } | Self::Address { .. } => false,
            Self::Subdomains { suffix, port } => server.ends_with(&**suffix) && fits(port.as_deref(), server_port),
            Self::Domain { name, port } => {
                let above = server.strip_suffix(&**name);
                above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
                    && fits(port.as_deref(), server_port)
            }
        }
    }
}

fn fits(wanted: Option<&str>, port: &str) -> bool {
    wanted.is_none_or(|wanted| wanted == port)
}

fn network(text: &str) -> Option<NoProxyEntry> {
    let (address, prefix) = text.split_once('/')?;
    let (given, prefix): (IpAddr, u8) = (address.parse().ok()?, digits(prefix)?);
    let address = given.to_canonical();
    // an IPv4 network that is written as an IPv6 network
    let prefix = if given.is_ipv6() && address.is_ipv4() { prefix.checked_sub(96)? } else { prefix };
    (prefix <= if address.is_ipv4() { 32 } else { 128 }).then_some(NoProxyEntry::Network { address, prefix })
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

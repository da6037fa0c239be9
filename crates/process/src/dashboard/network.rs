//! Which clients share: those of one network.

use std::net::{IpAddr, Ipv6Addr};

use actix_web::HttpRequest;

/// The bits of an IPv6 address that a host chooses.
const HOST: u128 = u64::MAX as u128;

/// The network of a client: its IPv4 address, or the first 64 bits of its IPv6 address. Whoever has an IPv6 network has
/// all its addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Network(IpAddr);

impl Network {
    /// Returns the network of the client that sent a request; `None` in tests without a connection.
    pub(super) fn of(request: &HttpRequest) -> Option<Self> {
        request.peer_addr().map(|peer| peer.ip().into())
    }
}

impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !HOST).into(),
            v4 @ IpAddr::V4(_) => v4,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_addresses_of_ipv4_and_prefixes_of_ipv6() {
        let network = |address: &str| Network::from(address.parse::<IpAddr>().unwrap());

        assert_eq!(network("2001:db8:0:1::1"), network("2001:db8:0:1:ffff:ffff:ffff:ffff"));
        assert_ne!(network("2001:db8:0:1::1"), network("2001:db8:0:2::1"));
        assert_eq!(network("10.0.0.1"), network("::ffff:10.0.0.1"));
        assert_ne!(network("::ffff:10.0.0.1"), network("::ffff:10.0.0.2"));
        assert_ne!(network("10.0.0.1"), network("10.0.0.2"));
    }
}

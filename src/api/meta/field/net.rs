//! Addresses and networks, as Go's `net` package reads them (spec 62 §5, §6, §8).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The error for a field that must be an address.
pub const NO_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

/// A network. IPv4 addresses in IPv6 form are an IPv4 network if the prefix covers their whole marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Network address and length of the prefix.
    V4(Ipv4Addr, u32),
    /// Network address and length of the prefix.
    V6(Ipv6Addr, u32),
}

/// Parses an address without leading zeros, zone or prefix.
pub fn address(text: &str) -> Option<IpAddr> {
    text.parse().ok()
}

/// Parses an address whose numbers may have leading zeros.
pub fn lenient_address(text: &str) -> Option<IpAddr> {
    if let Some((groups, last)) = text.rsplit_once(':') {
        let last = if last.contains('.') { lenient_v4(last)?.to_string() } else { without_zeros(last, 4)?.to_owned() };
        let groups: Option<Vec<_>> = groups.split(':').map(|group| without_zeros(group, 4)).collect();
        return format!("{}:{last}", groups?.join(":")).parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    lenient_v4(text).map(IpAddr::V4)
}

fn lenient_v4(text: &str) -> Option<Ipv4Addr> {
    let octets: Option<Vec<u8>> = text
        .split('.')
        .map(|octet| {
            let digits = !octet.is_empty() && octet.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| without_zeros(octet, 3)?.parse().ok())?
        })
        .collect();
    Some(Ipv4Addr::from(<[u8; 4]>::try_from(octets?).ok()?))
}

fn without_zeros(text: &str, longest: usize) -> Option<&str> {
    let short = text.trim_start_matches('0');
    let short = if short.is_empty() { &text[..text.len().min(1)] } else { short };
    (short.len() <= longest).then_some(short)
}

impl Network {
    /// Parses `<address>/<length>`. Bits after the prefix may be set, and are dropped.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        if length.is_empty() || !length.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let length: u32 = length.parse().ok()?;
        match address.parse().ok()? {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32_u32.checked_sub(length)?).unwrap_or(0);
                Some(Self::V4(Ipv4Addr::from(u32::from(address) & mask), length))
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128_u32.checked_sub(length)?).unwrap_or(0);
                let network = Ipv6Addr::from(u128::from(address) & mask);
                Some(match (network.to_ipv4_mapped(), length.checked_sub(96)) {
                    (Some(network), Some(length)) => Self::V4(network, length),
                    _ => Self::V6(network, length),
                })
            }
        }
    }

    /// The network address.
    pub fn address(self) -> IpAddr {
        match self {
            Self::V4(address, _) => address.into(),
            Self::V6(address, _) => address.into(),
        }
    }

    /// Returns true if one network contains the other's network address.
    pub fn overlaps(self, other: Self) -> bool {
        self.contains(other) || other.contains(self)
    }

    fn contains(self, other: Self) -> bool {
        match (self, other) {
            (Self::V4(mine, length), Self::V4(theirs, _)) => {
                (u32::from(mine) ^ u32::from(theirs)).checked_shr(32 - length).unwrap_or(0) == 0
            }
            (Self::V6(mine, length), Self::V6(theirs, _)) => {
                (u128::from(mine) ^ u128::from(theirs)).checked_shr(128 - length).unwrap_or(0) == 0
            }
            (Self::V4(..), Self::V6(..)) | (Self::V6(..), Self::V4(..)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec 62 §5: "IP parsing in rule 9 is strict"
    #[test]
    fn an_address_is_read_strictly_or_leniently() {
        let table = [
            ("10.0.0.1", true, true),
            ("2001:db8::1", true, true),
            ("::ffff:10.0.0.1", true, true),
            ("010.0.0.1", false, true),
            ("::ffff:010.0.0.1", false, true),
            ("2001:0db8::00001", false, true),
            ("fe80::1%eth0", false, false),
            ("10.0.0.1/32", false, false),
            ("256.0.0.1", false, false),
            ("1.2.3", false, false),
            ("+1.2.3.4", false, false),
            ("", false, false),
            (":", false, false),
            ("::", true, true),
            ("n.example.org", false, false),
        ];
        for (text, strict, lenient) in table {
            assert_eq!(address(text).is_some(), strict, "{text}");
            assert_eq!(lenient_address(text).is_some(), lenient, "{text}");
        }
    }

    /// spec 62 §6, details of rules 7 to 9
    #[test]
    fn a_network_is_its_address_without_host_bits() {
        let network = |text| Network::parse(text).map(|network| network.address().to_string());
        assert_eq!(network("10.1.2.3/8").as_deref(), Some("10.0.0.0"));
        assert_eq!(network("0.0.0.0/0").as_deref(), Some("0.0.0.0"));
        assert_eq!(network("2001:db8::1/32").as_deref(), Some("2001:db8::"));
        assert_eq!(network("::ffff:10.1.2.3/104").as_deref(), Some("10.0.0.0"));
        for text in ["", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/+8", "010.0.0.0/8", "::/129", "10.0.0.0/8/8", "a/8"] {
            assert_eq!(Network::parse(text), None, "{text}");
        }
    }

    /// spec 62 §6, details of rule 9
    #[test]
    fn networks_overlap_if_one_has_the_address_of_the_other() {
        let overlap = |one, other| Network::parse(one).unwrap().overlaps(Network::parse(other).unwrap());
        assert!(overlap("100.64.0.0/16", "100.64.1.0/24") && overlap("100.64.1.0/24", "100.64.0.0/16"));
        assert!(overlap("0.0.0.0/0", "10.0.0.0/32") && overlap("::/0", "2001:db8::/128"));
        assert!(!overlap("10.0.0.0/16", "10.1.0.0/16") && !overlap("0.0.0.0/0", "::/0"));
    }
}

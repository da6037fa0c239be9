//! Cluster IPs and node ports in use, and their Services.

use std::{collections::BTreeMap, net::Ipv4Addr};

use serde_json::Value;

const FIRST_ADDRESS: u32 = 0x0a00_0100; // addresses of Services are in 10.0.0.0/16; the first 256 stay free
const LAST_ADDRESS: u32 = 0x0a00_fffe;
const NETWORK: u32 = 0x0a00_0000;
pub(super) const PORTS: std::ops::RangeInclusive<u16> = 30_000..=32_767;

#[derive(Debug, Default, Clone)]
pub(crate) struct Allocations {
    addresses: BTreeMap<u32, Owner>,
    ports: BTreeMap<u16, Owner>,
    /// Start of the search for the next free number, so that numbers are not reused at once.
    next_address: u32,
    next_port: u16,
}

/// The Service that holds an address or port. A fixture may have no uid yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    uid: String,
    name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    Taken,
    OutOfRange,
    NoneLeft,
}

impl Owner {
    pub(super) fn of(new: &Value, old: Option<&Value>) -> Self {
        let text = |value: &Value, field: &str| value["metadata"][field].as_str().unwrap_or_default().to_owned();
        let uid = text(old.unwrap_or(new), "uid");
        Self { uid, name: format!("{}/{}", text(new, "namespace"), text(new, "name")) }
    }

    fn is(&self, other: &Self) -> bool {
        if self.uid.is_empty() || other.uid.is_empty() { self.name == other.name } else { self.uid == other.uid }
    }
}

impl Allocations {
    pub(crate) fn release(&mut self, plural: &str, value: &Value) {
        if plural == "services" {
            self.release_all(&Owner::of(value, None));
        }
    }

    pub(super) fn release_all(&mut self, owner: &Owner) {
        self.addresses.retain(|_, other| !other.is(owner));
        self.ports.retain(|_, other| !other.is(owner));
    }

    pub(super) fn take_address(&mut self, address: Ipv4Addr, owner: &Owner) -> Result<(), Refused> {
        let bits = address.to_bits();
        if bits & 0xffff_0000 != NETWORK || bits == NETWORK || bits > LAST_ADDRESS {
            return Err(Refused::OutOfRange);
        }
        match self.addresses.get(&bits) {
            Some(other) if !other.is(owner) => Err(Refused::Taken),
            _ => {
                self.addresses.insert(bits, owner.clone());
                Ok(())
            }
        }
    }

    pub(super) fn next_address(&mut self, owner: &Owner) -> Result<Ipv4Addr, Refused> {
        let start = self.next_address.clamp(FIRST_ADDRESS, LAST_ADDRESS);
        let free = (start..=LAST_ADDRESS)
            .chain(FIRST_ADDRESS..start)
            .find(|bits| !self.addresses.contains_key(bits))
            .ok_or(Refused::NoneLeft)?;
        self.next_address = if free == LAST_ADDRESS { FIRST_ADDRESS } else { free + 1 };
        self.addresses.insert(free, owner.clone());
        Ok(Ipv4Addr::from_bits(free))
    }

    /// Takes this node port. One Service may use one port for two protocols.
    pub(super) fn take_port(&mut self, port: u16, owner: &Owner) -> Result<(), Refused> {
        if !PORTS.contains(&port) {
            return Err(Refused::OutOfRange);
        }
        match self.ports.get(&port) {
            Some(other) if !other.is(owner) => Err(Refused::Taken),
            _ => {
                self.ports.insert(port, owner.clone());
                Ok(())
            }
        }
    }

    pub(super) fn next_port(&mut self, owner: &Owner) -> Result<u16, Refused> {
        let start = self.next_port.clamp(*PORTS.start(), *PORTS.end());
        let free = (start..=*PORTS.end())
            .chain(*PORTS.start()..start)
            .find(|port| !self.ports.contains_key(port))
            .ok_or(Refused::NoneLeft)?;
        self.next_port = if free == *PORTS.end() { *PORTS.start() } else { free + 1 };
        self.ports.insert(free, owner.clone());
        Ok(free)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn service(uid: &str) -> Value {
        json!({"metadata": {"name": uid, "namespace": "n", "uid": uid}})
    }

    #[test]
    fn service_allocations_are_free_again_after_their_release() {
        let mut allocations = Allocations::default();
        let (a, b) = (Owner::of(&service("a"), None), Owner::of(&service("b"), None));
        let address = Ipv4Addr::new(10, 0, 7, 7);

        assert_eq!(allocations.take_address(address, &a), Ok(()));
        assert_eq!(allocations.take_address(address, &b), Err(Refused::Taken));
        assert_eq!(allocations.take_address(Ipv4Addr::new(10, 1, 0, 1), &b), Err(Refused::OutOfRange));
        assert_eq!(allocations.take_port(80, &b), Err(Refused::OutOfRange));
        assert_ne!(allocations.next_port(&a), allocations.next_port(&a));
        allocations.release("services", &service("a"));

        assert_eq!(allocations.take_address(address, &b), Ok(()));
    }
}

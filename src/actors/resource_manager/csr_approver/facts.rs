//! The facts about Nodes and Machines that a judgement needs.

use std::{
    fmt::Display,
    net::{AddrParseError, IpAddr},
};

use cluster::{
    evidence::{Evidence, EvidenceSource},
    object,
};
use kit::quote::quoted;
use serde_json::Value;

/// Facts about Nodes and Machines. Each method fails with the [`Lookup`] to make first if the fact is unknown or stale.
pub trait Facts {
    /// Returns the addresses of a Node of the target, or `None` if there is no such Node.
    fn node(&self, name: &str) -> Result<Option<NodeAddresses>, Lookup>;

    /// Returns a Machine of the configured namespace, or `None` if there is no such Machine.
    fn machine(&self, name: &str) -> Result<Option<Machine>, Lookup>;

    /// Counts the Machines of the configured namespace with this value of the label `node`.
    fn machines_of(&self, node: &str) -> Result<usize, Lookup>;
}

/// A read of a cluster. The names are valid in the path or the selector of a request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lookup {
    /// Get the Node of this name from the target.
    Node(String),
    /// Get the Machine of this name, in the configured namespace, from the source.
    Machine(String),
    /// List the Machines with this value of the label `node`, in the configured namespace, from the source.
    MachinesOf(String),
}

/// The answer to a [`Lookup`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// The addresses of the Node, or `None` if there is no such Node.
    Node(Option<NodeAddresses>),
    /// The Machine, or `None` if there is no such Machine.
    Machine(Option<Machine>),
    /// The number of Machines.
    MachinesOf(usize),
}

/// The addresses of a Node that can appear in a certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeAddresses {
    /// Of type `Hostname`, `InternalDNS` or `ExternalDNS`.
    pub dns_names: Vec<String>,
    /// Of type `InternalIP` or `ExternalIP`, unparsed.
    pub ip_addresses: Vec<String>,
}

/// The cached fields of a Machine; its metadata suffice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Machine {
    /// Value of the label `node`, the index key; empty if the label is missing.
    pub node: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeIp {
    pub(super) address: IpAddr,
    /// A certificate cannot contain an address with a zone (`fe80::1%eth0`).
    pub(super) has_zone: bool,
}

impl Lookup {
    /// Returns the error of a failed lookup (spec 32 §5.2, §6, §7.1). A failed lookup is never a denial.
    pub fn failed(&self, cause: &dyn Display) -> String {
        let cause = match self {
            Self::Node(name) => format!("error getting node object with name {}: {cause}", quoted(name)),
            Self::Machine(name) => format!("error getting machine object with name {}: {cause}", quoted(name)),
            Self::MachinesOf(_) => format!("failed to list machine objects: {cause}"),
        };
        format!("failed when checking for approval conditions: {cause}")
    }
}

/// An answer of another kind than the lookup counts as unknown.
impl<S: EvidenceSource<Question = Lookup, Answer = Fact>> Facts for Evidence<'_, S> {
    fn node(&self, name: &str) -> Result<Option<NodeAddresses>, Lookup> {
        let lookup = Lookup::Node(name.to_owned());
        if let Fact::Node(node) = self.ask(&lookup)? { Ok(node) } else { Err(lookup) }
    }

    fn machine(&self, name: &str) -> Result<Option<Machine>, Lookup> {
        let lookup = Lookup::Machine(name.to_owned());
        if let Fact::Machine(machine) = self.ask(&lookup)? { Ok(machine) } else { Err(lookup) }
    }

    fn machines_of(&self, node: &str) -> Result<usize, Lookup> {
        let lookup = Lookup::MachinesOf(node.to_owned());
        if let Fact::MachinesOf(count) = self.ask(&lookup)? { Ok(count) } else { Err(lookup) }
    }
}

impl NodeAddresses {
    /// Reads the addresses of a Node.
    pub fn of(node: &Value) -> Self {
        let mut addresses = Self::default();
        for entry in node.pointer("/status/addresses").and_then(Value::as_array).into_iter().flatten() {
            let text = |field| entry.get(field).and_then(Value::as_str).unwrap_or_default();
            match text("type") {
                "Hostname" | "InternalDNS" | "ExternalDNS" => addresses.dns_names.push(text("address").to_owned()),
                "InternalIP" | "ExternalIP" => addresses.ip_addresses.push(text("address").to_owned()),
                _ => {}
            }
        }
        addresses
    }
}

impl Machine {
    /// The label that holds the name of its Node (spec 32 §3).
    pub const NODE: &str = "node";

    /// Reads a Machine, or its metadata alone.
    pub fn of(machine: &Value) -> Self {
        Self { node: object::label(machine, Self::NODE).unwrap_or_default().to_owned() }
    }
}

impl NodeIp {
    pub(super) fn parse(text: &str) -> Result<Self, AddrParseError> {
        match text.split_once('%') {
            // Only IPv6 has zones.
            Some((address, zone)) if !zone.is_empty() && address.contains(':') => {
                Ok(Self { address: address.parse()?, has_zone: true })
            }
            _ => Ok(Self { address: text.parse()?, has_zone: false }),
        }
    }
}

/// Returns true for a valid object name, which is safe in a path. Other names count as not found (spec 32 T4).
pub(super) fn can_be_a_name(text: &str) -> bool {
    let is_outer = |octet: &u8| octet.is_ascii_lowercase() || octet.is_ascii_digit();
    let bytes = text.as_bytes();
    text.len() <= 253
        && bytes.first().is_some_and(is_outer)
        && bytes.last().is_some_and(is_outer)
        && bytes.iter().all(|octet| is_outer(octet) || matches!(octet, b'-' | b'.'))
}

pub(super) fn can_be_a_label(node: &str) -> bool {
    node.len() <= 63 && can_be_a_name(node)
}

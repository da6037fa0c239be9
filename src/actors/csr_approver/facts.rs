//! What a judgement has to know of Nodes and Machines: records for stores, and answers that were read live.

use std::{
    collections::BTreeMap,
    fmt::Display,
    net::{AddrParseError, IpAddr},
};

use serde_json::Value;

use crate::api::{object, quote::quoted};

/// Whether and how Nodes and Machines are there. A store answers at once; where it cannot vouch for what it says, and
/// where only live answers count, the answer may be the [`Lookup`] that has to be made first.
pub trait Facts {
    /// The addresses of a Node of the target; `None` if there is no such Node.
    ///
    /// # Errors
    /// What must be looked up first.
    fn node(&self, name: &str) -> Result<Option<NodeAddresses>, Lookup>;

    /// A Machine of the configured namespace; `None` if there is no such Machine.
    ///
    /// # Errors
    /// What must be looked up first.
    fn machine(&self, name: &str) -> Result<Option<Machine>, Lookup>;

    /// How many Machines of the configured namespace have this value of the label `node`.
    ///
    /// # Errors
    /// What must be looked up first.
    fn machines_of(&self, node: &str) -> Result<usize, Lookup>;
}

/// A read of a cluster. Names are fit for the path or the selector of a request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lookup {
    /// Get the Node of this name from the target.
    Node(String),
    /// Get the Machine of this name, in the configured namespace, from the source.
    Machine(String),
    /// List the Machines with this value of the label `node`, in the configured namespace, from the source.
    MachinesOf(String),
}

/// Answers that were read live, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Live {
    nodes: BTreeMap<String, Option<NodeAddresses>>,
    machines: BTreeMap<String, Option<Machine>>,
    machines_of: BTreeMap<String, usize>,
}

/// What is kept of a Node: the addresses that can stand in a certificate, with the others left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeAddresses {
    /// Of type `Hostname`, `InternalDNS` or `ExternalDNS`.
    pub dns_names: Vec<String>,
    /// Of type `InternalIP` or `ExternalIP`, as they are written there.
    pub ip_addresses: Vec<String>,
}

/// What is kept of a Machine; its metadata are enough.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Machine {
    /// Value of the label `node`; empty if it is missing. Machines are indexed by it.
    pub node: String,
}

/// An IP address of a Node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeIp {
    pub(super) address: IpAddr,
    /// An address with a zone (`fe80::1%eth0`) equals none in a certificate.
    pub(super) has_zone: bool,
}

impl Lookup {
    /// The error of a judgement that could not be made, because this could not be read (spec 32 §5.2, §6, §7.1). Never a
    /// denial.
    pub fn failed(&self, cause: &dyn Display) -> String {
        let cause = match self {
            Self::Node(name) => format!("error getting node object with name {}: {cause}", quoted(name)),
            Self::Machine(name) => format!("error getting machine object with name {}: {cause}", quoted(name)),
            Self::MachinesOf(_) => format!("failed to list machine objects: {cause}"),
        };
        format!("failed when checking for approval conditions: {cause}")
    }
}

impl Live {
    /// Keeps the answer to [`Lookup::Node`].
    pub fn learn_node(&mut self, name: String, node: Option<NodeAddresses>) {
        self.nodes.insert(name, node);
    }

    /// Keeps the answer to [`Lookup::Machine`].
    pub fn learn_machine(&mut self, name: String, machine: Option<Machine>) {
        self.machines.insert(name, machine);
    }

    /// Keeps the answer to [`Lookup::MachinesOf`].
    pub fn learn_machines_of(&mut self, node: String, count: usize) {
        self.machines_of.insert(node, count);
    }
}

impl Facts for Live {
    fn node(&self, name: &str) -> Result<Option<NodeAddresses>, Lookup> {
        self.nodes.get(name).cloned().ok_or_else(|| Lookup::Node(name.to_owned()))
    }

    fn machine(&self, name: &str) -> Result<Option<Machine>, Lookup> {
        self.machines.get(name).cloned().ok_or_else(|| Lookup::Machine(name.to_owned()))
    }

    fn machines_of(&self, node: &str) -> Result<usize, Lookup> {
        self.machines_of.get(node).copied().ok_or_else(|| Lookup::MachinesOf(node.to_owned()))
    }
}

impl NodeAddresses {
    /// Of a Node.
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

    /// Of a Machine, or of its metadata alone.
    pub fn of(machine: &Value) -> Self {
        Self { node: object::label(machine, Self::NODE).unwrap_or_default().to_owned() }
    }
}

impl NodeIp {
    /// Reads an address of a Node.
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

/// Whether an object can have this name: nothing that would mean something else in the path of a request. What cannot be a
/// name is not looked up, it is not found (spec 32 T4).
pub(super) fn can_be_a_name(text: &str) -> bool {
    let is_outer = |octet: &u8| octet.is_ascii_lowercase() || octet.is_ascii_digit();
    let bytes = text.as_bytes();
    text.len() <= 253
        && bytes.first().is_some_and(is_outer)
        && bytes.last().is_some_and(is_outer)
        && bytes.iter().all(|octet| is_outer(octet) || matches!(octet, b'-' | b'.'))
}

/// Whether the name of a Node fits into a label.
pub(super) fn can_be_a_label(node: &str) -> bool {
    node.len() <= 63 && can_be_a_name(node)
}

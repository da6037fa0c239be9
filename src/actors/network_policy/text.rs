//! What policies say of themselves (spec 40 §7.8).

use std::fmt::Write as _;

use cluster::object::NamespacedName;

use super::{policy::Direction, port::Port};
use crate::api::selector::Selector;

/// A sentence about one opening.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sentence {
    /// Pods of a namespace may use one port.
    Pods {
        /// Which way.
        direction: Direction,
        /// The Service.
        service: NamespacedName,
        /// The port; it has protocol and number or name.
        port: Port,
        /// The namespace of the clients.
        namespace: String,
        /// The clients' labels.
        clients: Selector,
        /// The clients are the ingress controller.
        is_ingress_controller: bool,
    },
    /// Everyone may use some ports.
    World {
        /// The Service.
        service: NamespacedName,
        /// Empty: all.
        ports: Vec<Port>,
    },
}

/// Ways in which a sentence was written at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wording {
    /// As it is written now.
    Present,
    /// Selectors as Go prints the structure.
    Structure,
    /// Of the ingress controller as of all others.
    Ordinary,
    /// Both.
    OrdinaryStructure,
}

impl Wording {
    /// All that are left as they are, the present one first.
    pub const ALL: [Self; 4] = [Self::Present, Self::Structure, Self::Ordinary, Self::OrdinaryStructure];
}

impl Sentence {
    /// As it is written.
    pub fn text(&self, wording: Wording) -> String {
        match self {
            Self::World { service, ports } => {
                let ports: Vec<String> = ports.iter().map(port_of_list).collect();
                let ports = ports.join(" ");
                format!(
                    "Allows ingress traffic from everywhere to ports [{ports}] for pods selected by the {service} service \
                     selector."
                )
            }
            Self::Pods { direction, service, port, namespace, clients, is_ingress_controller } => {
                let is_structure = matches!(wording, Wording::Structure | Wording::OrdinaryStructure);
                let is_special = *is_ingress_controller && matches!(wording, Wording::Present | Wording::Structure);
                let clients = rendered(clients, is_structure);
                let protocol = port.protocol.map_or("TCP", super::port::Protocol::as_str);
                let number = port.port.as_ref().map(ToString::to_string).unwrap_or_default();
                let place = match is_special {
                    true => format!("the {namespace} namespace"),
                    false => format!("namespace {namespace}"),
                };
                match direction {
                    Direction::Ingress => {
                        let who = if is_special { "ingress controller pods" } else { "pods" };
                        format!(
                            "Allows ingress {protocol} traffic to port {number} for pods selected by the {service} service \
                             selector from {who} running in {place} labeled with {clients}."
                        )
                    }
                    Direction::Egress => format!(
                        "Allows egress {protocol} traffic to port {number} from pods running in {place} labeled with \
                         {clients} to pods selected by the {service} service selector."
                    ),
                }
            }
        }
    }
}

fn port_of_list(port: &Port) -> String {
    let number = port.port.as_ref().map_or_else(|| "<nil>".to_owned(), ToString::to_string);
    match port.protocol {
        Some(protocol) => format!("{}/{number}", protocol.as_str()),
        None => number,
    }
}

/// `map[k:v]`, as Go prints a map; with expressions, or as a structure, as Go prints the selector.
fn rendered(selector: &Selector, is_structure: bool) -> String {
    let pairs: Vec<String> = selector.labels.iter().map(|(key, value)| format!("{key}:{value}")).collect();
    let map = format!("map[{}]", pairs.join(" "));
    if selector.expressions.is_empty() && !is_structure {
        return map;
    }
    let mut expressions = String::new();
    for (index, expression) in selector.expressions.iter().enumerate() {
        let space = if index == 0 { "" } else { " " };
        let (key, operator) = (&expression.key, expression.operator.as_str());
        // Writing to a String cannot fail.
        let _ = write!(expressions, "{space}{{{key} {operator} [{}]}}", expression.values.join(" "));
    }
    format!("{{{map} [{expressions}]}}")
}

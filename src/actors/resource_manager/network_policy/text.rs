//! The descriptions of policies (spec 40 §7.8).

use std::fmt::Write as _;

use cluster::object::NamespacedName;

use super::{policy::Direction, port::Port};
use crate::api::meta::selector::Selector;

/// A sentence about one opening.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sentence {
    /// Pods of a namespace may use one port.
    Pods {
        /// The direction of the traffic.
        direction: Direction,
        /// The Service.
        service: NamespacedName,
        /// The port, with protocol and number or name.
        port: Port,
        /// The namespace of the clients.
        namespace: String,
        /// The clients' labels.
        clients: Selector,
        /// True if the clients are the ingress controller.
        is_ingress_controller: bool,
    },
    /// Everyone may use some ports.
    World {
        /// The Service.
        service: NamespacedName,
        /// The allowed ports; empty means all.
        ports: Vec<Port>,
    },
}

/// Present and former wordings of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wording {
    /// The wording of new policies.
    Present,
    /// Selectors look like a printed Go struct.
    Structure,
    /// The ingress controller is worded like other clients.
    Ordinary,
    /// Both [`Self::Structure`] and [`Self::Ordinary`].
    OrdinaryStructure,
}

impl Wording {
    /// All accepted wordings, the present one first.
    pub const ALL: [Self; 4] = [Self::Present, Self::Structure, Self::Ordinary, Self::OrdinaryStructure];
}

impl Sentence {
    /// Returns the sentence.
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

/// Returns the selector as Go prints it: `map[k:v]`, or the struct if there are expressions or `is_structure` is set.
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

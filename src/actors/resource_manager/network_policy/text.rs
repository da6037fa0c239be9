//! The descriptions of policies (spec 40 §7.8).

use std::fmt::Write as _;

use super::{
    direction::Direction,
    policy::{Opening, Peers, Policy, Wording},
    port::{Port, Protocol},
};
use crate::api::meta::selector::Selector;

impl Opening {
    /// Returns the sentence about this opening of a policy.
    pub fn sentence(&self, policy: &Policy, wording: Wording) -> String {
        let service = &policy.service;
        let Peers::Pods { namespace, pods } = &self.peers else {
            let ports: Vec<String> = self.ports.iter().map(port_of_list).collect();
            let ports = ports.join(" ");
            return format!(
                "Allows ingress traffic from everywhere to ports [{ports}] for pods selected by the {service} service \
                 selector."
            );
        };
        let home = &policy.name.namespace;
        let (namespace, clients) = match policy.direction {
            Direction::Ingress => (namespace.as_ref().unwrap_or(home), pods),
            Direction::Egress => (home, &policy.subject),
        };
        let is_structure = matches!(wording, Wording::Structure | Wording::OrdinaryStructure);
        let is_special = self.is_for_ingress_controller && matches!(wording, Wording::Present | Wording::Structure);
        let clients = rendered(clients, is_structure);
        let port = self.ports.first();
        let protocol = port.and_then(|port| port.protocol).map_or("TCP", Protocol::as_str);
        let number = port.and_then(|port| port.port.as_ref()).map(ToString::to_string).unwrap_or_default();
        let place = match is_special {
            true => format!("the {namespace} namespace"),
            false => format!("namespace {namespace}"),
        };
        match policy.direction {
            Direction::Ingress => {
                let who = if is_special { "ingress controller pods" } else { "pods" };
                format!(
                    "Allows ingress {protocol} traffic to port {number} for pods selected by the {service} service \
                     selector from {who} running in {place} labeled with {clients}."
                )
            }
            Direction::Egress => format!(
                "Allows egress {protocol} traffic to port {number} from pods running in {place} labeled with {clients} \
                 to pods selected by the {service} service selector."
            ),
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

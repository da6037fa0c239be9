//! Gateways of Istio (type V of spec 40 §7.5): ports that VirtualServices route to.

use super::{
    super::{
        label,
        policy::{Direction, Opening},
        text::Sentence,
    },
    Backend, Desired, View,
};

/// A pair of policies for each port and each namespace in which the gateway has pods.
pub(super) fn add(view: &View<'_>, wanted: &mut Desired) {
    let home = view.home();
    for route in &view.routes {
        let Some(port) = view.port_of(&Backend::Number(route.port)) else { continue };
        let id = label::id(&view.name.name, None, &port);
        for namespace in &route.namespaces {
            let sentence = |direction| Sentence::Pods {
                direction,
                service: view.name.clone(),
                port: port.clone(),
                namespace: namespace.clone(),
                clients: route.gateway.clone(),
                is_ingress_controller: false,
            };
            let (ingress, egress) = match namespace == home {
                true => (format!("ingress-to-{id}-from-istio"), format!("egress-to-{id}-from-istio")),
                false => (format!("ingress-to-{id}-from-{namespace}"), format!("egress-to-{home}-{id}-from-istio")),
            };
            let from = Opening::pods(&route.gateway, namespace, home, port.clone(), sentence(Direction::Ingress));
            wanted.policies.push(view.policy(Direction::Ingress, home, ingress, view.pods(), from));
            let to = Opening::pods(&view.pods(), home, namespace, port.clone(), sentence(Direction::Egress));
            wanted.policies.push(view.policy(Direction::Egress, namespace, egress, route.gateway.clone(), to));
        }
    }
}

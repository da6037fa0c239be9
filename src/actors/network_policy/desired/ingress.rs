//! The ingress controller (type I of spec 40 §7.5): ports that Ingresses name.

use std::collections::BTreeSet;

use super::{
    super::{
        label,
        policy::{Direction, Opening},
        text::Sentence,
    },
    Desired, View,
};

/// A pair of policies for each port; only the way in while the ingress controller's namespace is not there.
pub(super) fn add(view: &View<'_>, wanted: &mut Desired) {
    let Some(controller) = &view.ingress_controller else { return };
    let ports: BTreeSet<_> = view.backends.iter().filter_map(|backend| view.port_of(backend)).collect();
    let (home, edge) = (view.home(), controller.namespace);
    for port in ports {
        let id = label::id(&view.name.name, None, &port);
        let sentence = |direction| Sentence::Pods {
            direction,
            service: view.name.clone(),
            port: port.clone(),
            namespace: edge.to_owned(),
            clients: controller.pods.clone(),
            is_ingress_controller: true,
        };
        let from = Opening::pods(controller.pods, edge, home, port.clone(), sentence(Direction::Ingress));
        let name = format!("ingress-to-{id}-from-ingress-controller");
        wanted.policies.push(view.policy(Direction::Ingress, home, name, view.pods(), from));
        if !controller.is_there {
            continue;
        }
        let name = match edge == home {
            true => format!("egress-to-{id}-from-ingress-controller"),
            false => format!("egress-to-{home}-{id}-from-ingress-controller"),
        };
        let to = Opening::pods(&view.pods(), home, edge, port.clone(), sentence(Direction::Egress));
        wanted.policies.push(view.policy(Direction::Egress, edge, name, controller.pods.clone(), to));
    }
}

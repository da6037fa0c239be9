//! The ingress controller (type I of spec 40 §7.5): ports that Ingresses name.

use std::collections::BTreeSet;

use super::{
    super::{
        name::Peers,
        policy::{Direction, Opening},
        port::Port,
        text::Sentence,
    },
    IngressController, Piece, View, Wanted,
};

/// Returns a pair of policies for each port; without the controller's namespace only the ingress policy.
pub(super) fn pieces<'v>(view: &'v View<'_>) -> impl Iterator<Item = Piece> + 'v {
    view.ingress_controller.iter().flat_map(move |controller| {
        let known = view.service.targets();
        let ports: BTreeSet<Port> = view.backends.iter().filter_map(|backend| known.of(backend)).collect();
        ports.into_iter().map(move |port| pair(view, controller, &port))
    })
}

fn pair(view: &View<'_>, controller: &IngressController<'_>, port: &Port) -> Piece {
    let (home, edge) = (view.home(), controller.namespace);
    let sentence = |direction| Sentence::Pods {
        direction,
        service: view.name.clone(),
        port: port.clone(),
        namespace: edge.to_owned(),
        clients: controller.pods.clone(),
        is_ingress_controller: true,
    };
    let name = |direction| view.policy_name(direction, Peers::IngressController, edge).of(port);
    let from = Opening::pods(controller.pods, edge, home, port.clone(), sentence(Direction::Ingress));
    let ingress = view.policy(name(Direction::Ingress), Direction::Ingress, view.pods(), from);
    let mut pair = vec![Wanted { policy: ingress, shortened: None }];
    if controller.is_there {
        let to = Opening::pods(&view.pods(), home, edge, port.clone(), sentence(Direction::Egress));
        let egress = view.policy(name(Direction::Egress), Direction::Egress, controller.pods.clone(), to);
        pair.push(Wanted { policy: egress, shortened: None });
    }
    pair
}

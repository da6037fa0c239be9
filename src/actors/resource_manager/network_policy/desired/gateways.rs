//! Istio gateways (type V of spec 40 §7.5): ports to which VirtualServices route.

use super::{
    super::{
        name::Peers,
        policy::{Direction, Opening},
        port::Port,
        text::Sentence,
    },
    Backend, Piece, Route, View, Wanted,
};

pub(super) fn pieces<'v>(view: &'v View<'_>) -> impl Iterator<Item = Piece> + 'v {
    let known = view.service.targets();
    view.routes.iter().flat_map(move |route| {
        let numbers = route.ports.iter().map(|number| Backend::Number(*number));
        let ports: Vec<Port> = numbers.filter_map(|number| known.of(&number)).collect();
        ports
            .into_iter()
            .flat_map(move |port| route.namespaces.iter().map(move |namespace| pair(view, route, namespace, &port)))
    })
}

fn pair(view: &View<'_>, route: &Route, namespace: &str, port: &Port) -> Piece {
    let home = view.home();
    let sentence = |direction| Sentence::Pods {
        direction,
        service: view.name.clone(),
        port: port.clone(),
        namespace: namespace.to_owned(),
        clients: route.gateway.clone(),
        is_ingress_controller: false,
    };
    let name = |direction| view.policy_name(direction, Peers::Gateway, namespace).of(port);
    let from = Opening::pods(&route.gateway, namespace, home, port.clone(), sentence(Direction::Ingress));
    let ingress = view.policy(name(Direction::Ingress), Direction::Ingress, view.pods(), from);
    let to = Opening::pods(&view.pods(), home, namespace, port.clone(), sentence(Direction::Egress));
    let egress = view.policy(name(Direction::Egress), Direction::Egress, route.gateway.clone(), to);
    [ingress, egress].map(|policy| Wanted { policy, shortened: None }).into()
}

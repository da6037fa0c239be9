//! Pods with a client label (types A, B and C of spec 40 §7.5), in the Service's namespace and in the selected ones.

use super::{
    super::{
        label::{self, ALLOWED, Key},
        name::Peers,
        policy::{Direction, Opening},
        port::Port,
        text::Sentence,
    },
    Piece, View, Wanted,
};
use crate::api::meta::selector::{Labels, Selector};

pub(super) fn pieces<'v>(view: &'v View<'_>) -> impl Iterator<Item = Piece> + 'v {
    view.service.port_groups().into_iter().flat_map(move |(alias, port)| {
        let base = label::base(&view.name.name, alias, &port);
        let own = (view.home(), label::to_own(&base));
        let shared = label::to_shared(&base, view.home(), view.service.alias.as_deref());
        let others = view.clients.iter().map(move |namespace| (namespace.as_str(), shared.clone()));
        let all = std::iter::once(own).chain(others);
        all.map(move |(namespace, key)| pair(view, namespace, &key, alias, &port))
    })
}

fn pair(view: &View<'_>, namespace: &str, key: &Key, alias: Option<&str>, port: &Port) -> Piece {
    let effective = key.effective();
    if !(view.has_client)(namespace, &effective) {
        return Piece::new();
    }
    let home = view.home();
    let clients = Selector::of_labels(Labels::from([(effective, ALLOWED.to_owned())]));
    let sentence = |direction| Sentence::Pods {
        direction,
        service: view.name.clone(),
        port: port.clone(),
        namespace: namespace.to_owned(),
        clients: clients.clone(),
        is_ingress_controller: false,
    };
    let name = |direction| view.policy_name(direction, Peers::Clients(alias), namespace).of(port);
    let from = Opening::pods(&clients, namespace, home, port.clone(), sentence(Direction::Ingress));
    let ingress = view.policy(name(Direction::Ingress), Direction::Ingress, view.pods(), from);
    let to = Opening::pods(&view.pods(), home, namespace, port.clone(), sentence(Direction::Egress));
    let egress = view.policy(name(Direction::Egress), Direction::Egress, clients, to);
    let shortened = key.is_shortened().then(|| key.clone());
    vec![Wanted { policy: ingress, shortened }, Wanted { policy: egress, shortened: None }]
}

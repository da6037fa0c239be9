//! The kinds of clients of a Service (spec 40 §7.5), each with its policies in pieces.

use std::collections::BTreeSet;

use super::{
    super::{
        direction::Direction,
        label::{self, ALLOWED, Key},
        name::{self, Peers},
        policy::{self, Opening},
        port::{Backend, Port},
    },
    Piece, View,
};
use crate::api::meta::selector::{Labels, Selector};

/// Everyone (type W): ports that an annotation opens.
pub(super) fn world(view: &View<'_>) -> Option<Piece> {
    let Some(Ok(ports)) = &view.service.world else { return None };
    let opening = Opening {
        order: String::new(),
        peers: policy::Peers::Everyone { explicit: view.explicit_world },
        ports: ports.clone(),
        is_for_ingress_controller: false,
    };
    Some(Piece::of([view.policy(name::world(view.name), Direction::Ingress, view.pods(), opening)]))
}

/// Pods with a client label (types A, B and C), in the Service's namespace and in the selected ones.
pub(super) fn labelled<'v>(view: &'v View<'_>) -> impl Iterator<Item = Piece> + 'v {
    view.service.port_groups().into_iter().flat_map(move |(alias, port)| {
        let base = label::base(&view.name.name, alias, &port);
        let own = (view.home(), label::to_own(&base));
        let shared = label::to_shared(&base, view.home(), view.service.alias.as_deref());
        let others = view.clients.iter().map(move |namespace| (namespace.as_str(), shared.clone()));
        std::iter::once(own).chain(others).map(move |(namespace, key)| {
            let effective = key.effective();
            if !(view.has_client)(namespace, &effective) {
                return Piece::default();
            }
            let clients = Selector::of_labels(Labels::from([(effective, ALLOWED.to_owned())]));
            let pair = view.pair(Peers::Clients(alias), namespace, &clients, &port);
            Piece { shortened: Some(key).filter(Key::is_shortened), ..Piece::of(pair) }
        })
    })
}

/// The ingress controller (type I): ports that Ingresses name. Without its namespace there is only the ingress policy.
pub(super) fn ingress_controller<'v>(view: &'v View<'_>) -> impl Iterator<Item = Piece> + 'v {
    view.ingress_controller.iter().flat_map(move |controller| {
        let known = view.service.targets();
        let ports: BTreeSet<Port> = view.backends.iter().filter_map(|backend| known.of(backend)).collect();
        ports.into_iter().map(move |port| {
            let pair = view.pair(Peers::IngressController, controller.namespace, controller.pods, &port);
            Piece::of(pair.into_iter().take(if controller.is_there { 2 } else { 1 }))
        })
    })
}

/// Istio gateways (type V): ports to which VirtualServices route.
pub(super) fn gateways<'v>(view: &'v View<'_>) -> impl Iterator<Item = Piece> + 'v {
    let known = view.service.targets();
    view.routes.iter().flat_map(move |route| {
        let ports: Vec<Port> = route.ports.iter().filter_map(|number| known.of(&Backend::Number(*number))).collect();
        ports.into_iter().flat_map(move |port| {
            let pair = move |namespace: &String| view.pair(Peers::Gateway, namespace, &route.gateway, &port);
            route.namespaces.iter().map(move |namespace| Piece::of(pair(namespace)))
        })
    })
}

//! Pods with a label that says so (types A, B and C of spec 40 §7.5): of the Service's namespace, and of those it selects.

use super::{
    super::{
        label::{self, ALLOWED, Key},
        policy::{Direction, Opening},
        port::Port,
        text::Sentence,
    },
    Desired, View,
};
use crate::api::selector::{Labels, Selector};

/// A pair of policies for each port and each namespace.
pub(super) fn add(view: &View<'_>, wanted: &mut Desired) {
    for (alias, port) in view.service.port_groups() {
        let base = label::base(&view.name.name, alias, &port);
        let id = label::id(&view.name.name, alias, &port);
        let own = label::to_own(&base);
        add_pair(view, wanted, view.home(), &own, &id, &port);
        if view.clients.is_empty() {
            continue;
        }
        let shared = label::to_shared(&base, view.home(), view.service.alias.as_deref());
        for namespace in &view.clients {
            add_pair(view, wanted, namespace, &shared, &id, &port);
        }
    }
}

fn add_pair(view: &View<'_>, wanted: &mut Desired, namespace: &str, key: &Key, id: &str, port: &Port) {
    let effective = key.effective();
    if !(view.has_client)(namespace, &effective) {
        return;
    }
    if key.is_shortened() {
        wanted.shortened.push(key.clone());
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
    let (ingress, egress) = match namespace == home {
        true => (format!("ingress-to-{id}"), format!("egress-to-{id}")),
        false => (format!("ingress-to-{id}-from-{namespace}"), format!("egress-to-{home}-{id}")),
    };
    let from = Opening::pods(&clients, namespace, home, port.clone(), sentence(Direction::Ingress));
    wanted.policies.push(view.policy(Direction::Ingress, home, ingress, view.pods(), from));
    let to = Opening::pods(&view.pods(), home, namespace, port.clone(), sentence(Direction::Egress));
    wanted.policies.push(view.policy(Direction::Egress, namespace, egress, clients.clone(), to));
}

//! Everyone (type W of spec 40 §7.5): ports that an annotation opens.

use super::{
    super::{
        policy::{Direction, Opening, Peers},
        text::Sentence,
    },
    Desired, View,
};

/// One policy with all ports, if the annotation is there and can be read.
pub(super) fn add(view: &View<'_>, wanted: &mut Desired) {
    let Some(Ok(ports)) = &view.service.world else { return };
    let opening = Opening {
        order: String::new(),
        peers: Peers::Everyone { explicit: view.explicit_world },
        ports: ports.clone(),
        sentence: Sentence::World { service: view.name.clone(), ports: ports.clone() },
    };
    let name = name(&view.name.name);
    wanted.policies.push(view.policy(Direction::Ingress, view.home(), name, view.pods(), opening));
}

/// Its name.
pub fn name(service: &str) -> String {
    format!("ingress-to-{service}-from-world")
}

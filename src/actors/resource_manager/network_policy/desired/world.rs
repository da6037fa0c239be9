//! Everyone (type W of spec 40 §7.5): ports that an annotation opens.

use super::{
    super::{
        name,
        policy::{Direction, Opening, Peers},
        text::Sentence,
    },
    Piece, View, Wanted,
};

pub(super) fn pieces(view: &View<'_>) -> Option<Piece> {
    let Some(Ok(ports)) = &view.service.world else { return None };
    let opening = Opening {
        order: String::new(),
        peers: Peers::Everyone { explicit: view.explicit_world },
        ports: ports.clone(),
        sentence: Sentence::World { service: view.name.clone(), ports: ports.clone() },
    };
    let policy = view.policy(name::world(view.name), Direction::Ingress, view.pods(), opening);
    Some(vec![Wanted { policy, shortened: None }])
}

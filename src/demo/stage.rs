use super::{scene::Scene, screen::Screen};

/// What a step of the story plays on.
pub(super) struct Stage {
    pub(super) scene: Scene,
    pub(super) screen: Screen,
}

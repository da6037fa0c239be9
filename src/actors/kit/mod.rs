//! The runtime of the actors.

mod census;
mod clock;
mod lane;

pub use census::{Activity, ActorState, Cell, Census, Role};
pub use clock::{Clock, Deadline, Random};
pub use lane::Lane;

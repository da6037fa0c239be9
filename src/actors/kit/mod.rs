//! The runtime of the actors.

mod board;
mod census;
mod clock;
mod controller;
mod env;
mod governor;
mod lane;
mod mailbox;
mod object;
mod signal;
mod slot;
mod supervisor;
mod wake;

#[cfg(any(test, feature = "sim"))]
pub mod testing;
#[cfg(test)]
mod tests;

pub use census::{Activity, ActorState, Cell, Census, Role};
pub use clock::{Clock, Deadline, Random};
pub use controller::{Controller, Duty, Failure, Key, Need, Outcome, Pass, TIME_SLICE};
pub use env::{Cpu, DutyObserver, Env, JobPanicked, Observers, PassResult, Unobserved};
pub use lane::Lane;
pub use mailbox::post;
pub use signal::{Listening, Moment, Signal};
pub use supervisor::Supervised;
pub use wake::{Causes, MAX_REFS, Refs, Wake};

//! Leader election on a Lease (spec 70 §12): one replica works, and knows for how long it may. Start at [`Election`].
//! * `election`: the rules, a pure state machine: events go in, the next request or wait comes out.
//! * `lease`: the Lease as JSON.
//! * `actor`: carries out its decisions: sends the requests, watches the Lease while another replica holds it, opens
//!   the fence with each renewal, reports whether we lead.

mod actor;
mod election;
mod lease;

pub use actor::{Abandon, LeaderActor, LeaderSetup, Leadership, Release};
pub use election::{Action, Answer, Election, ElectionError, Timing, check_lock_type};

//! The process: from options to a tree of actors, and back to an exit code (spec 70 §1, §7, §13).
//! ```text
//! run.rs ── load, log, connect.rs ─► servers (dashboard) ─► Process::start ─► signal ─► Process::stop
//!                                                        ▲ vitals.rs ◄──────────┘ life.rs               shutdown.rs
//! ```
//! * `run.rs`: the production process in the order of spec 70 §7; start reading there.
//! * `life.rs`: [`Process`]: watches, leader election and controllers on given clients; demonstration and simulation
//!   use it on an in-memory API.

mod announce;
mod connect;
mod life;
pub mod limits;
mod observe;
mod run;
mod shutdown;
mod signals;
mod vitals;
mod watchdog;

#[cfg(feature = "sim")]
#[cfg(test)]
mod tests;

pub use connect::{ConnectError, Connections, connections};
pub use life::{Link, Process, ProcessError, ProcessParts, identity};
pub use observe::Observing;
#[cfg(feature = "sim")]
pub(crate) use run::serve_http;
pub use run::{print_config, print_or_fail, refuse, run};
pub use shutdown::{GRACE_PERIOD, Stopped};
pub use vitals::Vitals;

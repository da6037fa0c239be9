//! The process: from options to a tree of actors, and back to an exit code (spec 70 §1, §7, §13).
//!
//! ```text
//! run.rs ── load, log, connect.rs ─► servers (dashboard) ─► Process::start ─► signal ─► Process::stop
//!                                                        ▲ vitals.rs ◄──────────┘ life.rs               shutdown.rs
//! ```
//!
//! * `run.rs`: the wiring of production, in the order of spec 70 §7; start reading there.
//! * `life.rs`: [`Process`]: watches, leader election, controllers on given clients; demonstration and simulation start
//!   the same one on an in-memory API.
//! * `shutdown.rs`: the order and the times of the end; `signals.rs`: who asks for it.
//! * `connect.rs`: which clusters, and whether both are one.
//! * `vitals.rs`: what probes and the dashboard see of the process, from any thread.
//! * `observe.rs`: from the kit's and the clusters' observers to metrics; `watchdog.rs`: an arbiter that stands still.
//! * `announce.rs`: what is logged at the start; [`limits`]: what the system allows the process.

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

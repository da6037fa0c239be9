//! What every program of this family is, whatever it controls: command line and configuration, log, connections, leader
//! election, probes, metrics, dashboard, signals, shutdown and exit codes (spec 70, 80). It knows no controller, no
//! webhook and no kind of Gardener: a program tells it about them with a [`Program`].
//! ```text
//! main ─► run ─ log, connect ─► servers (dashboard) ─► Process::start ─► signal ─► Process::stop
//!                                                    ▲ vitals ◄────────┘ controllers               shutdown
//! ```
//! * `program`: what a program tells (**start here**); `settings`: its configuration, as far as the process needs it
//! * [`config`]: how a configuration is read; [`command_line`]: flags of all programs, and the way from them to a configuration
//! * `run`: the production process in the order of spec 70 §7
//! * `life`: [`Process`]: watches, leader election and controllers on given clients; demonstration and simulation use it
//!   on an in-memory API
//! * `clusters`: opens clusters with their watches and Events; `root`: starts and stops controllers in the leader
//! * `controller_registration`: a controller as the process sees it
//! * [`leader`], [`logging`], [`metrics`], [`http`], [`dashboard`], [`figures`], [`traces`], `profiling`: parts that the process
//!   puts together

#[cfg(feature = "profiling")]
mod allocator;
mod clusters;
pub mod command_line;
pub mod config;
mod connect;
pub mod controller_registration;
pub mod dashboard;
pub mod figures;
pub mod http;
pub mod leader;
mod life;
mod limits;
pub mod logging;
mod main_thread;
pub mod metrics;
pub(crate) mod profiling;
mod program;
mod root;
mod run;
pub mod settings;
mod shutdown;
mod signals;
pub mod traces;
mod version;
mod vitals;
mod watchdog;

pub use clusters::{ClusterHandle, ClusterParts, Clusters, EventApi};
pub use connect::{ConnectError, UserAgents, connection, show_connection, warn_of_ignored_proxies};
pub use life::{Process, ProcessError, ProcessParts};
pub use main_thread::main_thread;
pub use program::{NoServices, Probes, Program, ServiceParts, Services, StartError};
pub use root::{PATIENCE, Root};
pub use run::{AnnounceFn, ConnectFn, Start, print_or_fail, refuse, run, serve_http};
pub use shutdown::{GRACE_PERIOD, Stopped};
pub use version::BuildInfo;
pub use vitals::Vitals;

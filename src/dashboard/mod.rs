//! What people and machines see of the process: metrics, probes and the dashboard.
//!
//! * [`metrics`]: one registry; controllers, stores, gates and servers hold typed handles of it;
//! * [`probes`]: `/healthz` and `/readyz` as plain functions of named checks;
//! * [`server`]: the two plain HTTP servers (probes; metrics and dashboard) with threads of their own;
//! * `feed.rs`: the census as JSON and as server-sent events;
//! * `page/`: the dashboard's page: HTML, CSS and JavaScript, embedded, no build step.
//!
//! Everything here reads: shared cells (the census), counters, check functions. Nothing asks an actor, so a busy or
//! broken actor cannot make a scrape or a probe hang.
//!
//! Start reading in [`server::serve`].

mod feed;
pub mod metrics;
pub mod probes;
pub mod server;

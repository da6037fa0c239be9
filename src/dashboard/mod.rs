//! What people and machines see of the process: the dashboard, and how metrics and probes are served.
//!
//! * [`server`]: the two plain HTTP servers (probes; metrics and dashboard) with threads of their own;
//! * `feed.rs`: the census as JSON and as server-sent events; `streams.rs`: how many of these;
//! * `host.rs`: which names the dashboard answers to;
//! * `page/`: the dashboard's page: HTML, CSS and JavaScript, embedded, no build step.
//!
//! Everything here reads: shared cells (the census), counters ([`metrics`](crate::metrics)), check functions
//! ([`probes`](crate::http::probes)). Nothing asks an actor, so a busy or broken actor cannot make a scrape or a probe hang.
//!
//! Start reading in [`server::serve`].

mod feed;
pub(crate) mod host;
pub mod server;
mod streams;

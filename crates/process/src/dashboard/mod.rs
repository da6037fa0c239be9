//! The dashboard, and the servers of metrics and probes. Start reading at [`server::serve`]. Everything here only
//! reads: shared cells (the status registry), counters ([`metrics`](crate::metrics)) and check functions
//! ([`probes`](crate::http::probes)). No code here asks an actor, so a busy or broken actor cannot block a scrape or a
//! probe. `page/` is the dashboard's page: HTML, CSS and JavaScript, embedded, no build step.

mod feed;
pub(crate) mod host;
pub mod server;
mod streams;

//! The dashboard, and the servers of metrics and probes. Start reading at [`server::serve`]. Everything here only
//! reads: shared cells (the status registry), counters ([`metrics`](crate::metrics)) and check functions
//! ([`probes`](crate::http::probes)). Only `details` asks the controllers' thread, within a time limit. So a busy or
//! broken actor cannot block a scrape, a probe or a stream. `page/` is the dashboard's page: HTML, CSS and JavaScript, embedded, no build step.

mod details;
mod document;
mod feed;
pub(crate) mod host;
mod hub;
mod network;
mod row;
pub mod server;
mod shown;
mod streams;
mod turns;

//! What the HTTP servers of the process share: those of probes, metrics and dashboard, and that of the webhooks.

mod accept;
pub mod answer;
pub mod connections;
pub mod descriptors;
pub mod listen;
pub mod probes;
pub(crate) mod route;
pub mod server;
pub(crate) mod socket;
pub(crate) mod stream;

pub use stream::MOST_HEAD;

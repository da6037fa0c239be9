//! What the HTTP servers of the process share: those of probes, metrics and dashboard, and that of the webhooks.
//! `server.rs` is a server from its listeners to its end, `accept.rs` leads from a TCP connection to its requests,
//! `stream.rs` decides what the HTTP library reads, `connections.rs` closes silent connections.

mod accept;
pub(crate) mod answer;
pub(crate) mod connections;
pub mod descriptors;
pub mod listen;
pub mod probes;
pub(crate) mod server;
pub(crate) mod socket;
pub(crate) mod stream;

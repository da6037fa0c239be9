//! What the HTTP servers of the process share: the plain ones of probes, metrics and dashboard, and the one of the webhooks.
//!
//! * `server.rs`: a server from its listeners to its end; `accept.rs`: from a TCP connection to its requests;
//! * `socket.rs`: a connection under one file descriptor; `stream.rs`: what of it the HTTP library reads, and when;
//! * `answer.rs`: a request that is being answered;
//! * `connections.rs`: silent connections make room, `connections/unread.rs`: so do those that do not read;
//! * [`descriptors`]: how many connections the limit of file descriptors allows;
//! * [`listen`]: the addresses that servers are bound to;
//! * [`probes`]: `/healthz` and `/readyz` as plain functions of named checks, which the parts of the process add.

mod accept;
pub(crate) mod answer;
pub(crate) mod connections;
pub mod descriptors;
pub mod listen;
pub mod probes;
pub(crate) mod server;
pub(crate) mod socket;
pub(crate) mod stream;

//! What the HTTP servers of the process share: the plain ones of the dashboard and the one of the webhooks.
//!
//! * [`listen`]: the addresses that servers are bound to;
//! * [`probes`]: `/healthz` and `/readyz` as plain functions of named checks, which the parts of the process add;
//! * `connections.rs`: silent connections make room, `connections/unread.rs`: so do those that do not read.

pub(crate) mod connections;
pub mod listen;
pub mod probes;

//! The webhooks: what API servers ask this program about objects before they store them, and about users before they let
//! them.
//!
//! ```text
//! HTTPS ─► server/ ─► actor of the webhook and worker ─► Endpoint: answer(received, view) ─► response
//!                                                            │ review/ for mutating/, or authorizing/
//!                       watches ─► stores ─► knowledge/ ─────┘ view; on a miss one live read, then again
//! ```
//!
//! * `endpoint/`: what every webhook is to the server. There is one [`endpoint::Endpoint`] for each family.
//! * `exchange.rs`: what comes over HTTP and goes back, before and after any JSON.
//! * `mutating/`: the mutating webhooks, one file each, as pure functions (spec 50, spec 51). Start with
//!   [`mutating::Mutator`].
//! * `validating/`: the validating webhooks: deletion protection (spec 60), and the rules of extension objects (spec 62).
//! * `authorizing/`: the authorization webhook for node agents (spec 61).
//! * `registry.rs`: which webhooks there are; a new one is one file in its family, its key in `KEYS` there, and a line for a
//!   mutating webhook, a function of its own for an authorizer.
//! * `registration/`: which requests API servers send (spec 50 §3).
//! * `view.rs`: what a webhook may know of the clusters; `projection.rs`: what it reads, one const each;
//!   `knowledge/`: where that comes from.
//! * `panics.rs`: what a panic costs: one answer.
//! * `review/`: AdmissionReviews, from bytes to bytes, without I/O.
//! * `server/`: TLS, limits, actors, the end.
//! * `testing.rs`: for tests, a view that answers what the test says.

pub mod authorizing;
pub mod cached_kind;
pub mod endpoint;
pub mod exchange;
pub mod knowledge;
pub mod mutating;
mod panics;
pub mod registration;
pub mod registry;
pub mod review;
pub mod server;
#[cfg(any(test, feature = "sim"))]
pub mod testing;
pub mod validating;
pub mod view;

pub use crate::api::fields;

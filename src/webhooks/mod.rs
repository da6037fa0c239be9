//! The webhooks. API servers ask them about objects before storing them, and about users before letting them act.
//! ```text
//! HTTPS ─► server/ ─► actor of the webhook and worker ─► Endpoint: answer(received, view) ─► response
//!                                       │ review/ for mutating/, or authorizing/
//!                     watches ─► stores ─► knowledge/ ─────┘ view; on a miss one live read, then again
//! ```
//! * `mutating/` (spec 50, spec 51), `validating/` (spec 60, spec 62) and `authorizing/` (spec 61): the webhooks, as
//!   pure functions. Start with [`mutating::Mutator`].
//! * `registry.rs`: all webhooks. To add a webhook, add a file to its family, its key to `KEYS`, and a line (mutating
//!   webhook) or a function (authorizer) here.
//! * `endpoint/`: the trait that the server calls, implemented once for each family. `server/`: TLS, limits, actors,
//!   shutdown. `exchange.rs`: HTTP bodies. `review/`: AdmissionReviews. `panics.rs`: a panic is one answer.
//! * `view.rs`: what a webhook may know of the clusters; `cached_kind.rs`: which fields it reads; `knowledge/`: where
//!   the view gets them; `testing.rs`: a view with scripted answers.
//! * `registration/`: which requests API servers send (spec 50 §3).

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

pub use crate::api::meta::fields;

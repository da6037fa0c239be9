//! The mutating webhooks (spec 50, spec 51).
//!
//! Each is a [`Mutator`]: a pure function on the raw JSON object, so that fields it does not know survive. Patch,
//! transport and what is known of the cluster are the business of those who call it.
//!
//! A webhook's file holds its path (`PATH`), the fields whose types it relies on (`FIELDS`), and its rules.

pub mod endpoint_slice_hints;
pub mod high_availability;
pub mod load_balancing;
pub mod scheduler_name;
pub mod seccomp;
pub mod service_host;
pub mod system_components;
pub mod token_invalidator;
pub mod token_mount;
pub mod topology_spread;
pub mod vpa_in_place;

use serde_json::Value;

use super::view::{Failure, View};
use crate::api::object::GroupVersionKind;

/// What a mutating webhook does with an object.
pub trait Mutator: Send + Sync {
    /// Changes the object into what it shall be. Idempotent: its own output is left as it is, unless the webhook's
    /// documentation says otherwise. On an error the object may be half changed and is dropped.
    ///
    /// # Errors
    /// Why there is no result; [`Failure::Look`] asks for a live read, and to be called again.
    fn mutate(&self, object: &mut Value, request: &Request<'_>, view: &dyn View) -> Result<Mutation, Failure>;

    /// The group and kind of objects it takes, for an object that says it is something else (spec 50 §2.2 row 7);
    /// `None`: it looks itself.
    fn takes(&self) -> Option<(&'static str, &'static str)>;

    /// Whether it looks at every review itself: at those without an object, which it gets as `null`, at objects that are
    /// no maps, and at each DELETE, which the others allow unseen (spec 50 §2.4, "Skipped"). Only the high-availability
    /// webhook does (spec 51 §3).
    fn sees_everything(&self) -> bool {
        false
    }
}

/// What a review says of the object, beside the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request<'a> {
    /// `request.kind`: after the conversion of `matchPolicy: Equivalent`.
    pub kind: GroupVersionKind,
    /// `request.namespace`: the one to use for look-ups.
    pub namespace: &'a str,
    /// `request.name`; empty for `generateName`.
    pub name: &'a str,
    /// `request.operation`, e.g. `CREATE`.
    pub operation: &'a str,
}

/// How a webhook ended that came to a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mutation {
    /// The object is what it shall be.
    Done,
    /// The webhook is not concerned with such objects; allowed with this message.
    Unexpected(String),
}

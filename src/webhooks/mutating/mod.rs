//! The mutating webhooks (spec 50, spec 51). Each is a [`Mutator`]: a pure function on the raw JSON object, so unknown
//! fields survive. Its file has its `PATH`, the `FIELDS` whose types it checks, its rules. Callers patch and read.

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

use cluster::object::GroupVersionKind;
use serde_json::Value;

use super::view::{Failure, View};

/// A mutating webhook.
pub trait Mutator: Send + Sync {
    /// Changes the object. Idempotent: it leaves its own output unchanged, unless the webhook's documentation says
    /// otherwise. After an error the object may be half changed and is dropped. Fails with [`Failure::Look`] if
    /// something must be read live before the next call, or with the reason why there is no result.
    fn mutate(&self, object: &mut Value, request: &Request<'_>, view: &dyn View) -> Result<Mutation, Failure>;

    /// Returns the group and kind that it takes, by default Pods; others are refused (spec 50 §2.2 row 7). `None`: it
    /// checks the kind.
    fn takes(&self) -> Option<(&'static str, &'static str)> {
        Some(("", "Pod"))
    }

    /// Whether it also gets reviews without an object (as `null`), objects that are not maps, and each DELETE, which
    /// the other webhooks allow unseen (spec 50 §2.4, "Skipped"). Only the high-availability webhook does (spec 51 §3).
    fn sees_everything(&self) -> bool {
        false
    }
}

/// The fields of a review besides the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request<'a> {
    /// `request.kind`: after the conversion of `matchPolicy: Equivalent`.
    pub kind: GroupVersionKind,
    /// `request.namespace`: use it for reads.
    pub namespace: &'a str,
    /// `request.name`; empty for `generateName`.
    pub name: &'a str,
    /// `request.operation`, e.g. `CREATE`.
    pub operation: &'a str,
}

/// The result of a webhook that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mutation {
    /// The object is as the webhook wants it.
    Done,
    /// The webhook does not handle such objects; allowed with this message.
    Unexpected(String),
}

/// Returns a string of a list element, whose type was checked before; absent is `""`, as for the API server.
fn text<'a>(element: &'a Value, field: &str) -> &'a str {
    element.get(field).and_then(Value::as_str).unwrap_or_default()
}

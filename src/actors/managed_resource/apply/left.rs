//! What is known of the last attempts for an object, and what that says of fields that only the live object has (spec 10
//! §11.3, decision 40).

use serde_json::Value;

use super::{super::known::Content, OWN_MANAGER};
use crate::{api::object::ObjectKey, bundle::up_to_date};

/// What this process knows of the last attempts for an object.
pub(super) enum Left {
    /// The last one was this manifest, and left the object so.
    By(Content),
    /// It was as this manifest describes it, and no other one was attempted since; but this one was, without success.
    ByFailures,
    /// The last one was another manifest.
    ByOther,
    /// Nothing: the status may know.
    Unknown,
}

impl Left {
    /// Whether the further fields of our own manager are defaults: the last attempt for the object was this manifest, with
    /// success, and nobody has written under our name since. `trusted` is what the status says of the set.
    pub(super) fn knows_defaults_of(&self, live: &Value, trusted: bool) -> bool {
        match self {
            Self::By(content) => content.has_body_of(live) || !up_to_date::was_last_changed_by(live, OWN_MANAGER),
            Self::ByFailures | Self::ByOther => false,
            Self::Unknown => trusted,
        }
    }

    /// Whether further fields that the server does not let go are taken for defaults: nothing says that another manifest
    /// had them, or no update of the kind succeeds (spec 10 §12.9), so that the refusal says nothing of this one.
    pub(super) fn may_be_defaults(&self, key: &ObjectKey) -> bool {
        matches!(self, Self::By(_)) || self.is_unconfirmed(key)
    }

    /// Whether that has to be found out from the live object.
    pub(super) fn is_unconfirmed(&self, key: &ObjectKey) -> bool {
        match self {
            Self::By(_) | Self::ByOther => false,
            Self::ByFailures => true,
            Self::Unknown => key.group.is_empty() && matches!(key.kind.as_str(), "Pod" | "PersistentVolumeClaim"),
        }
    }
}

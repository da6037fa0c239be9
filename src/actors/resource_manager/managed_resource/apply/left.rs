//! What the last attempts for an object say of fields that only the live object has (spec 10 §11.3, decision 40).

use cluster::object::ObjectKey;
use serde_json::Value;

use super::{super::known::Content, OWN_MANAGER};
use crate::actors::resource_manager::bundle::up_to_date;

pub(super) enum Left {
    /// The last attempt was this manifest, and left the object like this.
    By(Content),
    /// The object was as this manifest describes it. Since then only this manifest was attempted, without success.
    ByFailures,
    ByOther,
    /// Nothing: the status may know.
    Unknown,
}

impl Left {
    /// Returns true if the additional fields of our own manager are defaults: the last attempt was this manifest and
    /// succeeded, without a write under our name since. `trusted`: what the status says of the set.
    pub(super) fn knows_defaults_of(&self, live: &Value, trusted: bool) -> bool {
        match self {
            Self::By(content) => content.has_body_of(live) || !up_to_date::was_last_changed_by(live, OWN_MANAGER),
            Self::ByFailures | Self::ByOther => false,
            Self::Unknown => trusted,
        }
    }

    /// Returns true if additional fields that the server refuses to remove count as defaults: no other manifest is
    /// known to have had them, or no update of the kind succeeds (spec 10 §12.9), so that the refusal says nothing.
    pub(super) fn may_be_defaults(&self, key: &ObjectKey) -> bool {
        matches!(self, Self::By(_)) || self.is_unconfirmed(key)
    }

    pub(super) fn is_unconfirmed(&self, key: &ObjectKey) -> bool {
        match self {
            Self::By(_) | Self::ByOther => false,
            Self::ByFailures => true,
            Self::Unknown => key.group.is_empty() && matches!(key.kind.as_str(), "Pod" | "PersistentVolumeClaim"),
        }
    }
}

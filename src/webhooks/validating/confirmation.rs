//! The annotation that confirms a deletion, and the fields of an object that this check reads (spec 60 §2.3).

use crate::api::meta::field::Keep;

pub(super) const CONFIRMATION: &str = "confirmation.gardener.cloud/deletion";
/// When a collection of definitions is deleted, only those with this label count.
pub(super) const PROTECTION: &str = "gardener.cloud/deletion-protected";

/// The fields to read: a confirmed object may be deleted, whatever else it contains.
pub(super) const CONFIRMED: Keep = Keep::Only(&[(
    "metadata",
    Keep::Only(&[
        ("name", Keep::Only(&[])),
        ("labels", Keep::Only(&[(PROTECTION, Keep::Only(&[]))])),
        ("annotations", Keep::Only(&[(CONFIRMATION, Keep::Only(&[]))])),
    ]),
)]);

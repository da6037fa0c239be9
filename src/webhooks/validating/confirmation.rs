//! What says that an object may be deleted, and what of it counts for that (spec 60 §2.3).

use crate::api::field::Keep;

/// The annotation.
pub(super) const CONFIRMATION: &str = "confirmation.gardener.cloud/deletion";
/// Only definitions with this label count when a collection of them is deleted.
pub(super) const PROTECTION: &str = "gardener.cloud/deletion-protected";

/// What is read of an object: a confirmed one goes, whatever else it consists of.
pub(super) const CONFIRMED: Keep = Keep::Only(&[(
    "metadata",
    Keep::Only(&[
        ("name", Keep::Only(&[])),
        ("labels", Keep::Only(&[(PROTECTION, Keep::Only(&[]))])),
        ("annotations", Keep::Only(&[(CONFIRMATION, Keep::Only(&[]))])),
    ]),
)]);

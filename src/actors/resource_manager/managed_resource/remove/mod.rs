//! Removing objects: pruning, deletion, release.
//! * [`clean`]: what happens to an object that is no longer wanted. Pure; with `volume_claims` (of a StatefulSet),
//!   `itself` (what the ManagedResource may need itself) and `invalid_update` (an update is refused)
//! * `deletion`: deletes one object, unless it is not ours
//! * `prune`: prunes objects and waits until they are gone (spec 10 §13, §15)
//! * `release`: objects in Ignore mode stay, without our marks (spec 10 §14)
//! * `own_refs`: refs of a ManagedResource to itself; `own_namespace`: the Namespace that it is in

pub(crate) mod clean;
mod deletion;
mod own_namespace;
mod own_refs;
mod prune;
mod release;

pub(super) use prune::{delete_bundle, left_unconfirmed, prune, report_pending};
pub(super) use release::release;

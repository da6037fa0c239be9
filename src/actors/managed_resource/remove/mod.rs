//! What left a bundle, and what becomes of it.
//!
//! * [`clean`]: what happens to an object that is no longer wanted. Pure; with `volume_claims` (which PersistentVolumeClaims go with it) and
//!   `invalid_update` (what is done when an update is refused)
//! * `clean_up`: removes objects and waits until they are gone (spec 10 §13, §15)
//! * `release`: objects in Ignore mode stay, without our marks (spec 10 §14)
//! * `own_refs`: what a bundle holds of itself

pub mod clean;
pub(super) mod clean_up;
pub(super) mod own_refs;
pub(super) mod release;

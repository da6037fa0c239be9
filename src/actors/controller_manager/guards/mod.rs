//! Guards: an object keeps a finalizer while others refer to it (spec 81 §3.1). One engine for all guarded kinds.
//! ```text
//! guarded objects, metadata ─┐                               ┌─ in use: log record, Event, look again later
//! referrers ─ targets ───────┴─ guard.rs ─► GuardVerdict ────┤
//! live lists, before a release ─┘                            └─ accepted: the finalizer goes
//! ```
//! * `definition`: what guards differ in; each controller's file has its table entry
//! * `note`: the texts about referrers; `waiting`: when they are told. Pure
//! * `guard`: caches, live check and writes. A controller with more to do calls it in its reconcile
//! * `guard_controller`: a controller that only guards

mod definition;
mod guard;
mod guard_controller;
pub mod note;
#[cfg(test)]
mod tests;
pub mod waiting;

use cluster::object::NamespacedName;

pub use self::{
    definition::{GuardDefinition, GuardEvent, ReferrerScope, ReferringKind},
    guard::{Guard, GuardVerdict},
    guard_controller::setup,
    note::{NoteText, ReferrerNames},
    waiting::Told,
};

/// The finalizer of Gardener kinds (spec 80 §16.1).
pub const GARDENER: &str = "gardener";

/// Returns the target of a reference; none if the name is empty.
pub fn named(namespace: &str, name: &str) -> Vec<NamespacedName> {
    if name.is_empty() { Vec::new() } else { vec![NamespacedName::new(namespace, name)] }
}

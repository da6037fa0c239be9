//! Which ManagedResources are woken, and why.
//! * [`trigger`]: which events start a reconcile (spec 10 §5), and what a reconcile does first. Pure. **Start here**
//! * `wakes`: event handlers of watches, and listeners of other sources
//! * `drift`: an owned object is no longer as it was
//! * `admission`: mutating admission may answer differently than before

mod admission;
mod drift;
pub(super) mod trigger;
mod wakes;

pub(super) use admission::AdmissionChanges;
pub(super) use drift::wake_on_drift;
pub(super) use wakes::{
    subscribe_bundles, subscribe_secrets, wake_on_health, wake_on_new_kinds, wake_on_pods, wake_on_scaling,
    watch_defined_kinds,
};

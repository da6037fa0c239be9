//! Which ManagedResources are woken, and why.
//!
//! * [`trigger`]: which events start a reconcile (spec 10 §5), and what a reconcile does first. Pure. **Start reading
//!   at [`trigger::entry`]**
//! * `wakes`: event handlers of watches, and listeners of other sources
//! * `drift`: an owned object is no longer as it was
//! * `admission`: mutating admission may answer differently than before

mod admission;
mod drift;
pub(super) mod trigger;
mod wakes;

pub(super) use admission::AdmissionChanges;
pub(super) use drift::report_drift;
pub(super) use wakes::{
    report_health, report_kinds, report_pods, report_scaling, subscribe_bundles, subscribe_secrets,
};

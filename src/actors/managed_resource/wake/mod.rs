//! Who is woken, and why.
//!
//! * [`trigger`]: which events start a pass (spec 10 §5), and what a pass does first. Pure. **Start reading at
//!   [`trigger::entry`]**
//! * `wakes`: filters on stores, and listeners of what tells by itself
//! * `drift`: an object is no longer as it was
//! * `admission`: mutating admission may answer otherwise than before

mod admission;
mod drift;
pub(super) mod trigger;
mod wakes;

pub(super) use admission::AdmissionChanges;
pub(super) use drift::report_drift;
pub(super) use wakes::{
    report_health, report_kinds, report_pods, report_scaling, subscribe_bundles, subscribe_secrets,
};

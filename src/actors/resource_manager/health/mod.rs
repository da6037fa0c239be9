//! Health and roll-out of single objects, and the conditions of a ManagedResource (spec 20): pure functions on plain
//! values; `managed_resource/health` watches, waits and writes.
//! * [`judge`]: one object → is it healthy (spec 20 §11). **Start reading here**
//! * [`progressing`]: one object → is it being rolled out (§14); [`pods`]: how a Deployment's Pods are counted (§15)
//! * [`judgement`]: both verdicts of an object in a few bytes: all that is cached of it
//! * [`report`]: findings → the two conditions (§10.2, §13)
//! * [`eligibility`]: whether a ManagedResource is judged at all, and which changes ask for that (§4.1, §5.1, §10.1)
//! * [`warnings`]: the quoted Events about a Service (§11.3)
//! * [`fields`]: reads fields whose types are not guaranteed

pub(crate) mod eligibility;
pub(crate) mod fields;
pub(crate) mod judge;
pub(crate) mod judgement;
pub(crate) mod pods;
pub(crate) mod progressing;
pub(crate) mod report;
pub(crate) mod warnings;

pub(crate) use judgement::{HealthVerdict, Judgement};

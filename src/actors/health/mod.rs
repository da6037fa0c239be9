//! Health and roll-out of single objects, and what is said of a bundle (spec 20): pure functions on plain values.
//!
//! * [`judge`]: one object → is it healthy (spec 20 §11); one file per kind or family. **Start reading here**
//! * [`progressing`]: one object → is it still being rolled out (§14); with [`pods`], what is counted for Deployments (§15)
//! * [`judgement`]: both verdicts of an object in a few bytes: all that is kept of it
//! * [`report`]: what is bad about a bundle → the two conditions (§10.2, §13)
//! * [`eligibility`]: whether a bundle is judged at all, and which changes ask for that (§4.1, §5.1, §10.1)
//! * [`warnings`]: the Events about a Service that are quoted (§11.3)
//! * [`fields`]: reading fields of which nobody guarantees the type
//!
//! The shell, which watches, waits and writes, is `managed_resource/health`.

pub(crate) mod eligibility;
pub(crate) mod fields;
pub(crate) mod judge;
pub(crate) mod judgement;
pub(crate) mod pods;
pub(crate) mod progressing;
pub(crate) mod report;
pub(crate) mod warnings;

pub(crate) use judgement::{HealthVerdict, Judgement};

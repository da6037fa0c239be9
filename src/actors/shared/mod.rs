//! What controllers of both programs use:
//! * [`certificate_request`]: reads PKCS#10 requests
//! * `drift_backoff`: how often what drifts again and again is repaired
//! * `texts`: bounded lists in messages and notes
//! * `live_lists`: lists that several decisions share
//! * `state_counts`: metrics

pub mod certificate_request;
pub(in crate::actors) mod drift_backoff;
pub(in crate::actors) mod live_lists;
pub(in crate::actors) mod state_counts;
pub(in crate::actors) mod texts;

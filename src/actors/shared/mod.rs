//! What controllers of both programs use:
//! * [`certificate_request`]: reads PKCS#10 requests
//! * `texts`: bounded lists in messages and notes
//! * `live_lists`: lists that several decisions share
//! * `state_counts`: metrics

pub mod certificate_request;
pub(in crate::actors) mod live_lists;
pub(in crate::actors) mod state_counts;
pub(in crate::actors) mod texts;

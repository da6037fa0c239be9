//! What controllers of both programs use: `texts`, bounded lists in messages and notes; `live_lists`, lists that several
//! decisions share.

pub(in crate::actors) mod live_lists;
pub(in crate::actors) mod texts;

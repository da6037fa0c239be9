//! What controllers of both programs use: `texts`, bounded lists in messages and notes; `live_lists`, lists that several
//! decisions share; `state_counts`, metrics.

pub(in crate::actors) mod live_lists;
pub(in crate::actors) mod state_counts;
pub(in crate::actors) mod texts;

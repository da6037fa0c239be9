//! Who is woken, and why.
//!
//! * [`trigger`]: which events start a pass (spec 10 §5), and what a pass does first. Pure. **Start reading at
//!   [`trigger::entry`]**
//! * `wakes`: filters on stores, and listeners of what tells by itself
//! * `drift`: an object is no longer as it was

pub(super) mod drift;
pub mod trigger;
pub(super) mod wakes;

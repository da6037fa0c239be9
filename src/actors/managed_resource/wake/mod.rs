//! Who is woken, and why.
//!
//! * [`trigger`]: which events start a pass (spec 10 §5), and what a pass does first. Pure. **Start reading at
//!   [`trigger::entry`]**
//! * `wakes`: filters on stores, and listeners of what tells by itself
//! * `moment`: what happens to an object within a moment belongs together

pub(super) mod moment;
pub mod trigger;
pub(super) mod wakes;

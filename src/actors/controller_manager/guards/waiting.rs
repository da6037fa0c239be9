//! When a waiting guard tells why it waits. Pure.

use std::{rc::Rc, time::Duration};

use tokio::time::Instant;

use super::note::ReferrerNames;

/// A guard looks again, and repeats its Event, after this time at the latest (spec 81 §3.1 G-5).
pub(super) const PERIOD: Duration = Duration::from_secs(600);

/// What was told about one object.
#[derive(Debug, Default)]
pub struct Told {
    last: Option<(Vec<Rc<ReferrerNames>>, Instant)>,
}

/// What to tell now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tell {
    /// The referrers differ from those that were told: a log record and an Event.
    Change,
    /// They were told at least [`PERIOD`] ago: an Event.
    Repetition,
    /// Nothing.
    Nothing,
}

impl Told {
    /// Returns what to tell about these referrers, and remembers it as told.
    pub fn tell(&mut self, referrers: &[Rc<ReferrerNames>], now: Instant) -> Tell {
        let tell = match &self.last {
            Some((told, _)) if told != referrers => Tell::Change,
            Some((_, since)) if now.duration_since(*since) >= PERIOD => Tell::Repetition,
            Some(_) => return Tell::Nothing,
            None => Tell::Change,
        };
        self.last = Some((referrers.to_vec(), now));
        tell
    }
}

//! Pauses between the watches of a kind.

use std::time::Duration;

use kit::Random;

/// Back-off after a failed list or watch: 0.8 s · 2ⁿ, at most this, stretched by up to 100 %.
const MAX_BACK_OFF: Duration = Duration::from_secs(30);

const FIRST_BACK_OFF: Duration = Duration::from_millis(800);

/// A shorter watch counts as failed: a server or proxy that answers and hangs up must not be called at its own pace.
const SHORTEST_WATCH: Duration = Duration::from_secs(1);

const HEALTHY_WATCH: Duration = Duration::from_secs(60); // a watch that was open for this long resets the back-off

/// A list, if one was necessary, and the watch after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// How long the watch was open; zero if it was not.
    pub open: Duration,
    /// Whether there was a list before it.
    pub listed: bool,
    /// Whether it reported an object at another version than the one it was opened from.
    pub moved: bool,
    /// How it ended.
    pub end: End,
}

/// How a round ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Without an error: the server's time was over, or the watch was silent for too long.
    Closed,
    /// The server does not know its position any more: the next round begins with a list.
    Expired,
    /// With any other error.
    Failed,
}

/// The pauses between the rounds of one watch.
#[derive(Debug, Default)]
pub struct Pace {
    failures: u32,
}

impl Pace {
    /// Returns the pause after a round; `None` if the next one begins at once.
    pub fn after(&mut self, round: Round, random: &Random) -> Option<Duration> {
        let was_healthy = round.open >= HEALTHY_WATCH;
        // A list follows an expiry, so an event before it is no progress.
        if was_healthy || round.moved && round.end != End::Expired {
            self.failures = 0;
        }
        match round.end {
            End::Closed if round.open >= SHORTEST_WATCH => {
                self.failures = 0;
                return None;
            }
            // A list follows at once, unless the list before did not help.
            End::Expired if self.failures == 0 && (was_healthy || !round.listed) => {
                self.failures = 1;
                return None;
            }
            End::Closed | End::Expired | End::Failed => {}
        }
        let back_off = FIRST_BACK_OFF.saturating_mul(1 << self.failures.min(10)).min(MAX_BACK_OFF);
        self.failures = self.failures.saturating_add(1);
        Some(random.jitter(back_off, 1.0))
    }
}

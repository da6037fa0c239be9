//! The time of a token's renewal (spec 30 §2.2, §5.1, §5.5).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// Longest lifetime that counts.
const LONGEST: SignedDuration = SignedDuration::from_hours(24);
/// Percentage of its lifetime that a token is used.
const USED: i128 = 80;
/// Largest random extension of that time, so that renewals are spread.
const JITTER: f64 = 0.05;
/// Shortest period: clocks that differ by more than a lifetime must not cause a loop (spec 30 T10).
const SHORTEST: SignedDuration = SignedDuration::from_mins(1);
/// Interval of checks if a clock may be wrong.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_mins(10);

/// Returns how long a token that expires at `expires` is used. `random` is in `[0, 1)`.
pub fn period(now: Timestamp, expires: Timestamp, random: f64) -> SignedDuration {
    let remaining = expires.duration_since(now).min(LONGEST).as_nanos();
    let base = remaining * USED / 100;
    let base = SignedDuration::from_nanos(i64::try_from(base).unwrap_or_default());
    (base + base.mul_f64(JITTER * random.clamp(0.0, 1.0))).max(SHORTEST)
}

/// Returns when a token with this life is due, given its written renewal time. A time after the expiry was written with
/// a wrong clock or comes from a backup; then the life counts.
pub fn within_life(renewal: Timestamp, life: Option<(Timestamp, Timestamp)>) -> Timestamp {
    match life {
        Some((issued, expires)) if expires < renewal => {
            issued.saturating_add(period(issued, expires, 0.0)).map_or(expires, |due| due.min(expires))
        }
        Some(_) | None => renewal,
    }
}

/// Returns how long after `now` a token is due at the latest, whatever happens to the wall clock: at its renewal, and
/// no later than its life by the API server's clock allows (fault 17).
pub fn at_most(now: Timestamp, renewal: Timestamp, life: Option<(Timestamp, Timestamp)>) -> Duration {
    let left = renewal.duration_since(now);
    let used = life.map_or(left, |(issued, expires)| period(issued, expires, 1.0));
    Duration::try_from(left.min(used)).unwrap_or_default()
}

/// Formats a time: UTC, truncated to whole seconds.
pub fn text(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Returns when to check a good token next: at its renewal, or at its expiry if that is earlier. The writer of the
/// renewal time may have had another clock.
pub fn next_idle_check(now: Timestamp, renewal: Timestamp, expires: Option<Timestamp>) -> Timestamp {
    match expires {
        Some(expires) if expires < renewal => {
            expires.max(now.saturating_add(LOOK_AGAIN).unwrap_or(renewal)).min(renewal)
        }
        Some(_) | None => renewal,
    }
}

/// Returns the pause after rejections: 1 min, 2 min, 4 min, … up to an hour (spec 30 T9, "Better than upstream" 4).
pub fn pause(tries: u32) -> Duration {
    Duration::from_secs(60 << tries.min(6)).min(Duration::from_secs(3600))
}

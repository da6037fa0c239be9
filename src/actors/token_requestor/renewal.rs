//! When a token is renewed (spec 30 §2.2, §5.1, §5.5).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// Lifetime that counts at most.
const LONGEST: SignedDuration = SignedDuration::from_hours(24);
/// A token is used for this many hundredths of its lifetime, …
const USED: i128 = 80;
/// … and up to this part longer, so that not all are renewed at once.
const JITTER: f64 = 0.05;
/// Clocks that differ by more than a lifetime must not make a loop (spec 30 T10).
const SHORTEST: SignedDuration = SignedDuration::from_mins(1);
/// Where a clock may be wrong, a token is looked at this often.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_mins(10);

/// How long a token that expires at `expires` is used. `random` is in `[0, 1)`.
pub fn period(now: Timestamp, expires: Timestamp, random: f64) -> SignedDuration {
    let remaining = expires.duration_since(now).min(LONGEST).as_nanos();
    let base = remaining * USED / 100;
    let base = SignedDuration::from_nanos(i64::try_from(base).unwrap_or_default());
    (base + base.mul_f64(JITTER * random.clamp(0.0, 1.0))).max(SHORTEST)
}

/// When a token that lives `life` is due, if `renewal` is written for it. A time after its expiry was written by somebody whose
/// clock was ahead, or comes from a backup: then what counts is the token's own life.
pub fn within_life(renewal: Timestamp, life: Option<(Timestamp, Timestamp)>) -> Timestamp {
    match life {
        Some((issued, expires)) if expires < renewal => {
            issued.saturating_add(period(issued, expires, 0.0)).map_or(expires, |due| due.min(expires))
        }
        Some(_) | None => renewal,
    }
}

/// How long after its issue at `now` a token is due at the latest, whatever the wall clock does: when it is to be renewed, and
/// no later than its life by the clock of the API server allows (fault 17).
pub fn at_most(now: Timestamp, renewal: Timestamp, life: Option<(Timestamp, Timestamp)>) -> Duration {
    let left = renewal.duration_since(now);
    let used = life.map_or(left, |(issued, expires)| period(issued, expires, 1.0));
    Duration::try_from(left.min(used)).unwrap_or_default()
}

/// As it is written: UTC, whole seconds, cut.
pub fn text(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// When to look at a token that is good now and to be renewed at `renewal`: not after it expires, if that is known and the
/// clocks agree. Whoever wrote the time may have had another clock.
pub fn next_idle_check(now: Timestamp, renewal: Timestamp, expires: Option<Timestamp>) -> Timestamp {
    match expires {
        Some(expires) if expires < renewal => {
            expires.max(now.saturating_add(LOOK_AGAIN).unwrap_or(renewal)).min(renewal)
        }
        Some(_) | None => renewal,
    }
}

/// The next time to issue a token after `tries` that the server itself did not accept: 1 min, 2 min, 4 min, … up to an hour
/// (spec 30 T9, "Better than upstream" 4).
pub fn pause(tries: u32) -> Duration {
    Duration::from_secs(60 << tries.min(6)).min(Duration::from_secs(3600))
}

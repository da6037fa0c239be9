//! Time, randomness and CPU work as values of the environment, so that tests control them.

use std::{cell::RefCell, fmt, rc::Rc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Wall clock and monotonic clock of one process. Both follow tokio's clock, so a test with paused time moves them
/// together. In production each call reads the system's wall clock, because it may jump. In tests it is a start time,
/// plus the virtual time, plus the test's jumps.
#[derive(Clone)]
pub struct Clock {
    source: Rc<Source>,
}

enum Source {
    System,
    Virtual { start: Timestamp, zero: Instant, jump: RefCell<SignedDuration> },
}

/// Seeded pseudo-random numbers: jitter, generated names, identities. Never use it for secrets.
#[derive(Clone)]
pub struct Random {
    generator: Rc<RefCell<fastrand::Rng>>,
}

/// The monotonic time at which a reconcile, and each of its requests, must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(pub Instant);

impl Clock {
    /// Returns the system's clock.
    pub fn system() -> Self {
        Self { source: Rc::new(Source::System) }
    }

    /// Returns the system's wall time, for threads without a [`Clock`]: the log, the dashboard.
    #[allow(clippy::disallowed_methods, reason = "this is the one place that reads the system's wall clock")]
    pub fn system_wall() -> Timestamp {
        Timestamp::now()
    }

    /// Returns a clock that shows `start` now and moves with tokio's (paused) time.
    pub fn starting_at(start: Timestamp) -> Self {
        let source = Source::Virtual { start, zero: Instant::now(), jump: RefCell::new(SignedDuration::ZERO) };
        Self { source: Rc::new(source) }
    }

    /// Returns the wall time. Use it for what others read or write (timestamps, expiry), never to measure a duration.
    pub fn wall(&self) -> Timestamp {
        match &*self.source {
            Source::System => Self::system_wall(),
            Source::Virtual { start, zero, jump } => {
                let passed = SignedDuration::try_from(zero.elapsed()).unwrap_or(SignedDuration::MAX);
                *start + passed + *jump.borrow()
            }
        }
    }

    /// Returns the monotonic time, for durations and timers.
    pub fn monotonic(&self) -> Instant {
        Instant::now()
    }

    /// Makes a virtual wall clock jump, but not the monotonic clock. No effect on the system's clock.
    pub fn jump(&self, by: SignedDuration) {
        match &*self.source {
            Source::System => {}
            Source::Virtual { jump, .. } => *jump.borrow_mut() += by,
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.wall()).finish()
    }
}

impl Random {
    /// Returns a generator whose sequence depends on `seed` alone.
    pub fn seeded(seed: u64) -> Self {
        Self { generator: Rc::new(RefCell::new(fastrand::Rng::with_seed(seed))) }
    }

    /// Returns a generator seeded by the operating system.
    pub fn from_entropy() -> Self {
        Self { generator: Rc::new(RefCell::new(fastrand::Rng::new())) }
    }

    /// Returns a number in `[0, 1)`.
    pub fn unit(&self) -> f64 {
        self.generator.borrow_mut().f64()
    }

    /// Returns 128 random bits, e.g. for a UUID.
    pub fn bits(&self) -> u128 {
        self.generator.borrow_mut().u128(..)
    }

    /// Returns a random UUID (RFC 9562, version 4).
    pub fn uuid(&self) -> String {
        const VERSION_AND_VARIANT: u128 = 0xf000_c000_0000_0000_0000;
        const RANDOM: u128 = 0x4000_8000_0000_0000_0000;
        let hex = format!("{:032x}", self.bits() & !VERSION_AND_VARIANT | RANDOM);
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    /// Returns `base` times a random factor in `[1, 1 + spread)`; `base` itself if the result is not a valid duration.
    pub fn jitter(&self, base: Duration, spread: f64) -> Duration {
        let stretched = base.as_secs_f64() * (1.0 + spread * self.unit());
        Duration::try_from_secs_f64(stretched).unwrap_or(base)
    }
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Random")
    }
}

impl Deadline {
    /// Returns the deadline `after` from now.
    pub fn after(after: Duration) -> Self {
        Self(Instant::now() + after)
    }

    /// Returns the time left; zero after the deadline.
    pub fn left(&self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Returns true after the deadline.
    pub fn is_over(&self) -> bool {
        self.left().is_zero()
    }
}

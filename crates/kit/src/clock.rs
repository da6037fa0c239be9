//! Time, randomness and CPU work as values of the environment, so that tests decide about them.

use std::{cell::RefCell, fmt, rc::Rc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Wall clock and monotonic clock of one process.
///
/// Both follow tokio's clock, so a test with paused time moves them together. In production the wall clock is read from
/// the system each time, because it may jump; in tests it is a start time plus the virtual time that has passed, plus
/// the jumps the test makes.
#[derive(Clone)]
pub struct Clock {
    source: Rc<Source>,
}

enum Source {
    System,
    Virtual { start: Timestamp, zero: Instant, jump: RefCell<SignedDuration> },
}

/// Seeded pseudo-random numbers: jitter, generated names, identities. Never used for secrets.
#[derive(Clone)]
pub struct Random {
    generator: Rc<RefCell<fastrand::Rng>>,
}

/// The moment at which a pass, and with it each request it makes, must end. Monotonic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(pub Instant);

impl Clock {
    /// The system's clock.
    pub fn system() -> Self {
        Self { source: Rc::new(Source::System) }
    }

    /// Wall time of the system, for threads without a clock of their own: the log, the dashboard.
    #[allow(clippy::disallowed_methods, reason = "this is the one place that reads the system's wall clock")]
    pub fn system_wall() -> Timestamp {
        Timestamp::now()
    }

    /// A clock that shows `start` now and moves with tokio's (paused) time.
    pub fn starting_at(start: Timestamp) -> Self {
        let source = Source::Virtual { start, zero: Instant::now(), jump: RefCell::new(SignedDuration::ZERO) };
        Self { source: Rc::new(source) }
    }

    /// Wall time. Use it for what others read or write (timestamps, expiry), never to measure a duration.
    pub fn wall(&self) -> Timestamp {
        match &*self.source {
            Source::System => Self::system_wall(),
            Source::Virtual { start, zero, jump } => {
                let passed = SignedDuration::try_from(zero.elapsed()).unwrap_or(SignedDuration::MAX);
                *start + passed + *jump.borrow()
            }
        }
    }

    /// Monotonic time, for durations and timers.
    pub fn monotonic(&self) -> Instant {
        Instant::now()
    }

    /// Makes a virtual wall clock jump; the monotonic clock does not. No effect on the system's clock.
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
    /// A generator whose sequence depends on `seed` alone.
    pub fn seeded(seed: u64) -> Self {
        Self { generator: Rc::new(RefCell::new(fastrand::Rng::with_seed(seed))) }
    }

    /// A generator seeded by the operating system.
    pub fn from_entropy() -> Self {
        Self { generator: Rc::new(RefCell::new(fastrand::Rng::new())) }
    }

    /// A number in `[0, 1)`.
    pub fn unit(&self) -> f64 {
        self.generator.borrow_mut().f64()
    }

    /// 128 random bits, e.g. for a UUID.
    pub fn bits(&self) -> u128 {
        self.generator.borrow_mut().u128(..)
    }

    /// A random UUID (RFC 9562, version 4).
    pub fn uuid(&self) -> String {
        const VERSION_AND_VARIANT: u128 = 0xf000_c000_0000_0000_0000;
        const RANDOM: u128 = 0x4000_8000_0000_0000_0000;
        let hex = format!("{:032x}", self.bits() & !VERSION_AND_VARIANT | RANDOM);
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    /// `base` stretched by a random factor in `[1, 1 + spread)`; as it is if the result is no duration.
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
    /// The moment `after` from now.
    pub fn after(after: Duration) -> Self {
        Self(Instant::now() + after)
    }

    /// What is left; zero when it is over.
    pub fn left(&self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        self.left().is_zero()
    }
}

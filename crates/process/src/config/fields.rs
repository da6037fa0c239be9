//! Types of fields. Each keeps what was written, for errors and warnings, and knows what that counts as. Printed and hashed
//! is what counts.

use std::time::Duration;

use kit::duration::GoDuration;
use serde::{Deserialize, Serialize, Serializer};

/// Seconds of a minute.
pub const MINUTES: i64 = 60;
/// Seconds of an hour.
pub const HOURS: i64 = 60 * MINUTES;

/// Number of concurrent reconciles; 5 by default. A number below 1 counts as 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Workers(i64);

/// A duration that is `SECONDS` by default. A negative one counts as zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Period<const SECONDS: i64>(GoDuration);

/// A duration that is `SECONDS` by default. Zero and negative ones count as the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Positive<const SECONDS: i64>(GoDuration);

impl Workers {
    /// From the number in the file.
    pub const fn new(written: i64) -> Self {
        Self(written)
    }

    /// The number in the file.
    pub fn written(self) -> i64 {
        self.0
    }

    /// The effective number. At least 1.
    pub fn count(self) -> usize {
        usize::try_from(self.0).unwrap_or_default().max(1)
    }
}

impl Default for Workers {
    fn default() -> Self {
        Self(5)
    }
}

impl Serialize for Workers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.count().serialize(serializer)
    }
}

impl<const SECONDS: i64> Period<SECONDS> {
    /// The duration in the file.
    pub fn written(self) -> GoDuration {
        self.0
    }

    /// The effective duration.
    pub fn get(self) -> Duration {
        self.0.to_std_or_zero()
    }
}

impl<const SECONDS: i64> Positive<SECONDS> {
    /// The duration in the file.
    pub fn written(self) -> GoDuration {
        self.0
    }

    /// The effective duration. Never zero.
    pub fn get(self) -> Duration {
        if self.is_replaced() { Self::default().0.to_std_or_zero() } else { self.0.to_std_or_zero() }
    }

    /// Returns true if the default counts instead of what was written.
    pub fn is_replaced(self) -> bool {
        self.0 <= GoDuration::ZERO
    }
}

macro_rules! durations {
    ($($name:ident)*) => {$(
        impl<const SECONDS: i64> Default for $name<SECONDS> {
            fn default() -> Self {
                Self(GoDuration::from_secs(SECONDS))
            }
        }

        impl<const SECONDS: i64> From<GoDuration> for $name<SECONDS> {
            fn from(written: GoDuration) -> Self {
                Self(written)
            }
        }

        impl<const SECONDS: i64> From<Duration> for $name<SECONDS> {
            fn from(duration: Duration) -> Self {
                Self(duration.into())
            }
        }

        impl<const SECONDS: i64> Serialize for $name<SECONDS> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                GoDuration::from(self.get()).serialize(serializer)
            }
        }
    )*};
}

durations!(Period Positive);

/// Replaces a field that equals `zero` by a default: deployers render unset fields as zeros (spec 70 §2 rule 5).
pub fn fill<T: PartialEq>(field: &mut T, zero: T, default: T) {
    if *field == zero {
        *field = default;
    }
}

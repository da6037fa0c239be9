//! Durations in the notation of Go's `time` package (`1h30m`, `-5ms`), as in files and annotations of Kubernetes.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A duration in nanoseconds, as in Go: about ±292 years. It stays signed until validation, whose errors show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GoDuration(i64);

/// Why a text is no duration, with the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Empty, without digits, with a stray character, or out of range.
    #[error("invalid duration {0:?}")]
    Invalid(String),
    /// A number without a unit.
    #[error("missing unit in duration {0:?}")]
    MissingUnit(String),
    /// A unit other than `ns us µs ms s m h`.
    #[error("unknown unit {unit:?} in duration {text:?}")]
    UnknownUnit {
        /// The unknown unit.
        unit: String,
        /// The whole text.
        text: String,
    },
}

const MICROSECOND: i64 = 1_000;
const MILLISECOND: i64 = 1_000 * MICROSECOND;
const SECOND: i64 = 1_000 * MILLISECOND;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

/// Digits of a fraction that count; 18 fit into 64 bits, and no unit has more than 13 digits of nanoseconds.
const FRACTION_DIGITS: usize = 18;

impl GoDuration {
    /// Zero, written `0s`.
    pub const ZERO: Self = Self(0);

    /// From nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// From seconds; stops at the largest value.
    pub const fn from_secs(seconds: i64) -> Self {
        Self(seconds.saturating_mul(SECOND))
    }

    /// Nanoseconds.
    pub const fn nanos(self) -> i64 {
        self.0
    }

    /// Returns the unsigned form, or `None` for negative values.
    pub fn to_std(self) -> Option<Duration> {
        u64::try_from(self.0).ok().map(Duration::from_nanos)
    }

    /// Returns the unsigned form; negative values become zero.
    pub fn to_std_or_zero(self) -> Duration {
        self.to_std().unwrap_or_default()
    }
}

impl From<Duration> for GoDuration {
    /// Durations above 292 years become the largest value.
    fn from(duration: Duration) -> Self {
        Self(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl FromStr for GoDuration {
    type Err = DurationError;

    /// A sign, then numbers (with an optional fraction), each followed by a unit; or `0` alone.
    fn from_str(text: &str) -> Result<Self, DurationError> {
        let invalid = || DurationError::Invalid(text.to_owned());
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        if unsigned == "0" {
            return Ok(Self::ZERO);
        }
        if unsigned.is_empty() {
            return Err(invalid());
        }

        let mut total: i128 = 0;
        let mut rest = unsigned;
        while !rest.is_empty() {
            let (nanos, after) = element(rest, text)?;
            total = total.checked_add(nanos).filter(|total| *total <= -i128::from(i64::MIN)).ok_or_else(invalid)?;
            rest = after;
        }

        let signed = if text.starts_with('-') { -total } else { total };
        i64::try_from(signed).map(Self).map_err(|_| invalid())
    }
}

impl fmt::Display for GoDuration {
    /// `1h0m0s`, `1.5s`, `100ms`, `1µs`, `0s`: the largest unit that applies comes first; fractions end without zeros.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0 {
            f.write_str("-")?;
        }
        let nanos = self.0.unsigned_abs();
        let fraction = |value: u64, unit: i64| decimal(value, unit.unsigned_abs());
        match i64::try_from(nanos).unwrap_or(i64::MAX) {
            0 => f.write_str("0s"),
            1..MICROSECOND => write!(f, "{nanos}ns"),
            MICROSECOND..MILLISECOND => write!(f, "{}µs", fraction(nanos, MICROSECOND)),
            MILLISECOND..SECOND => write!(f, "{}ms", fraction(nanos, MILLISECOND)),
            _ => {
                let (hours, below_hour) = (nanos / HOUR.unsigned_abs(), nanos % HOUR.unsigned_abs());
                let (minutes, below_minute) = (below_hour / MINUTE.unsigned_abs(), below_hour % MINUTE.unsigned_abs());
                if hours > 0 {
                    write!(f, "{hours}h")?;
                }
                if hours > 0 || minutes > 0 {
                    write!(f, "{minutes}m")?;
                }
                write!(f, "{}s", fraction(below_minute, SECOND))
            }
        }
    }
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = GoDuration;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration such as \"1m30s\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<GoDuration, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

fn element<'a>(rest: &'a str, text: &str) -> Result<(i128, &'a str), DurationError> {
    let invalid = || DurationError::Invalid(text.to_owned());
    let (whole, after) = split_digits(rest);
    let (fraction, after) = match after.strip_prefix('.') {
        Some(after) => split_digits(after),
        None => ("", after),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(invalid());
    }

    let unit_end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
    let (unit, after) = after.split_at(unit_end);
    let nanos_per_unit = match unit {
        "" => return Err(DurationError::MissingUnit(text.to_owned())),
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => MICROSECOND,
        "ms" => MILLISECOND,
        "s" => SECOND,
        "m" => MINUTE,
        "h" => HOUR,
        unknown => return Err(DurationError::UnknownUnit { unit: unknown.to_owned(), text: text.to_owned() }),
    };

    let nanos_per_unit = i128::from(nanos_per_unit);
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
    if whole > i64::MIN.unsigned_abs() {
        return Err(invalid());
    }
    let digits = &fraction[..fraction.len().min(FRACTION_DIGITS)];
    let scale = (0..digits.len()).fold(1_i128, |scale, _| scale * 10);
    let fraction: i128 = if digits.is_empty() { 0 } else { digits.parse().map_err(|_| invalid())? };
    Ok((i128::from(whole) * nanos_per_unit + fraction * nanos_per_unit / scale, after))
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// `value / unit` as a decimal fraction without trailing zeros.
fn decimal(value: u64, unit: u64) -> String {
    let (whole, mut remainder) = (value / unit, value % unit);
    let mut text = whole.to_string();
    if remainder > 0 {
        text.push('.');
    }
    while remainder > 0 {
        remainder *= 10;
        text.push(char::from(b'0' + u8::try_from(remainder / unit).unwrap_or_default()));
        remainder %= unit;
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        let table = [
            ("0", 0),
            ("-0", 0),
            ("0s", 0),
            ("300ms", 300 * MILLISECOND),
            ("1.5h", 90 * MINUTE),
            ("1h30m", 90 * MINUTE),
            ("-5s", -5 * SECOND),
            ("+5s", 5 * SECOND),
            (".5s", 500 * MILLISECOND),
            ("5.s", 5 * SECOND),
            ("1us2µs3μs", 6 * MICROSECOND),
            ("30m1h", 90 * MINUTE),
            ("0.000000000000000000001h", 0),
            ("0.333333333333333333333h", 1_199_999_999_999),
            ("-9223372036854775808ns", i64::MIN),
            ("9223372036854775807ns", i64::MAX),
        ];

        for (text, nanos) in table {
            assert_eq!(text.parse(), Ok(GoDuration(nanos)), "{text}");
        }
    }

    #[test]
    fn duration_errors_name_the_text() {
        let invalid = ["", "-", "s", ".s", "-.s", "+-5s", "9223372036854775808ns", "3000000h", "99999999999999999999s"];
        for text in invalid {
            assert_eq!(text.parse::<GoDuration>(), Err(DurationError::Invalid(text.to_owned())));
        }

        assert_eq!("3".parse::<GoDuration>(), Err(DurationError::MissingUnit("3".to_owned())));
        assert_eq!("1m3".parse::<GoDuration>(), Err(DurationError::MissingUnit("1m3".to_owned())));
        let error = "1d".parse::<GoDuration>().map_err(|error| error.to_string());
        assert_eq!(error, Err("unknown unit \"d\" in duration \"1d\"".to_owned()));
    }

    #[test]
    fn durations_are_written_as_go_writes_them() {
        let table = [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1µs"),
            (2_200_000, "2.2ms"),
            (10 * SECOND, "10s"),
            (3 * SECOND + 300 * MILLISECOND, "3.3s"),
            (MINUTE, "1m0s"),
            (HOUR, "1h0m0s"),
            (4 * MINUTE + 5 * SECOND + MILLISECOND, "4m5.001s"),
            (-HOUR, "-1h0m0s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
        ];

        for (nanos, text) in table {
            assert_eq!(GoDuration(nanos).to_string(), text);
        }
    }

    #[test]
    fn negative_durations_have_no_unsigned_form() {
        assert_eq!(GoDuration::from_secs(-1).to_std(), None);
        assert_eq!(GoDuration::from_secs(-1).to_std_or_zero(), Duration::ZERO);
        assert_eq!(GoDuration::from_secs(2).to_std(), Some(Duration::from_secs(2)));
        assert_eq!(GoDuration::from(Duration::MAX), GoDuration(i64::MAX));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn duration_written_reads_back_the_same(nanos in any::<i64>()) {
            let duration = GoDuration(nanos);

            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        }

        #[test]
        fn duration_of_any_text_is_read_or_refused(text in "[-+0-9.nuµmsh ]{0,24}|.{0,24}") {
            let _ = text.parse::<GoDuration>();
        }
    }
}

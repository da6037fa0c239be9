//! Amounts of resources that are equal in different notations: `1000m` and `1`, `1024Mi` and `1Gi`. The API server
//! shortens quantities, so a manifest and its live object differ in their text. The comparison is exact.

use serde_json::Value;

const MAX_DIGITS: usize = 30; // longest mantissa that is read; an amount beyond it equals only its own text
const MAX_EXPONENT: u32 = 60; // largest exponent that is read; `E` (exa) is 18

const SUFFIXES: [(&str, i32, i32); 16] = [
    // suffix, power of 2, power of 10
    ("", 0, 0),
    ("n", 0, -9),
    ("u", 0, -6),
    ("m", 0, -3),
    ("k", 0, 3),
    ("M", 0, 6),
    ("G", 0, 9),
    ("T", 0, 12),
    ("P", 0, 15),
    ("E", 0, 18),
    ("Ki", 10, 0),
    ("Mi", 20, 0),
    ("Gi", 30, 0),
    ("Ti", 40, 0),
    ("Pi", 50, 0),
    ("Ei", 60, 0),
];

/// `digits · 2^twos · 5^fives`. Neither 2 nor 5 divides `digits`, so that equal amounts have equal fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount {
    negative: bool,
    digits: u128,
    twos: i32,
    fives: i32,
}

/// Returns true if two values are the same amount. Numbers count as their text; other values equal nothing.
pub fn same_amount(a: &Value, b: &Value) -> bool {
    match (parse_value(a), parse_value(b)) {
        (Some(a), Some(b)) => a == b,
        _ => false,
    }
}

fn parse_value(value: &Value) -> Option<Amount> {
    match value {
        Value::String(text) => Amount::parse(text),
        Value::Number(number) => Amount::parse(&number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn powers(suffix: &str) -> Option<(i32, i32)> {
    if let Some((_, twos, tens)) = SUFFIXES.iter().find(|(known, ..)| *known == suffix) {
        return Some((*twos, *tens));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    (exponent.unsigned_abs() <= MAX_EXPONENT).then_some((0, exponent))
}

impl Amount {
    /// Zero.
    pub const ZERO: Self = Self { negative: false, digits: 0, twos: 0, fives: 0 };

    /// Parses `<sign><digits>[.<digits>]<suffix or exponent>`.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, suffix) = text.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let all = format!("{whole}{fraction}");
        if all.is_empty() || all.len() > MAX_DIGITS || fraction.contains('.') {
            return None;
        }

        let (twos, tens) = powers(suffix)?;
        let tens = tens - i32::try_from(fraction.len()).ok()?;
        Some(Self::normalised(negative, all.parse().ok()?, twos, tens))
    }

    /// Returns true below zero.
    pub fn is_negative(self) -> bool {
        self.negative
    }

    /// Returns true for a whole number. Rounds up to thousandths first.
    pub fn is_whole(self) -> bool {
        if self.twos >= 0 && self.fives >= 0 {
            return true;
        }
        let (twos, fives) = (self.twos + 3, self.fives + 3);
        if twos >= 0 && fives >= 0 {
            return false;
        }
        let power = |base: u128, exponent: i32| base.checked_pow(exponent.max(0).unsigned_abs());
        let thousandths = || {
            let above = self.digits.checked_mul(power(2, twos)?)?.checked_mul(power(5, fives)?)?;
            let below = power(2, -twos)?.checked_mul(power(5, -fives)?)?;
            Some(above.div_ceil(below))
        };
        thousandths().is_some_and(|thousandths| thousandths % 1000 == 0)
    }

    /// Returns the nearest whole number that is not closer to zero, or the nearest number that is possible, as
    /// `Quantity.Value` of Kubernetes does.
    pub fn rounded_up(self) -> i64 {
        let power = |base: u128, exponent: i32| base.checked_pow(exponent.max(0).unsigned_abs());
        let product = |of: u128, twos, fives| of.checked_mul(power(2, twos)?)?.checked_mul(power(5, fives)?);
        let whole = match (product(self.digits, self.twos, self.fives), product(1, -self.twos, -self.fives)) {
            (Some(above), Some(below)) => above.div_ceil(below),
            (Some(above), None) => above.min(1), // a tiny part of one
            (None, _) => u128::MAX,
        };
        match (i64::try_from(whole), self.negative) {
            (Ok(whole), false) => whole,
            (Ok(whole), true) => -whole,
            (Err(_), false) => i64::MAX,
            (Err(_), true) => i64::MIN,
        }
    }

    /// As the API server writes it: the largest suffix of `text`'s family without a fraction. `text` on overflow.
    pub fn canonical(self, text: &str) -> String {
        let suffix = text.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-'));
        let written = if suffix.ends_with('i') && self.is_beyond_1024() { self.binary() } else { None };
        let written = written.or_else(|| self.decimal(suffix.starts_with(['e', 'E']) && suffix.len() > 1));
        written.unwrap_or_else(|| text.to_owned())
    }

    fn is_beyond_1024(self) -> bool {
        self.times(0, 0).is_none_or(|whole| whole >= 1024)
    }

    /// How many `2^twos * 5^fives` it is, if that is a whole number.
    fn times(self, twos: i32, fives: i32) -> Option<u128> {
        let power = |base: u128, exponent: i32| base.checked_pow(u32::try_from(exponent).ok()?);
        self.digits.checked_mul(power(2, self.twos - twos)?)?.checked_mul(power(5, self.fives - fives)?)
    }

    fn binary(self) -> Option<String> {
        let family = SUFFIXES.iter().rev().filter(|(suffix, ..)| suffix.ends_with('i') || suffix.is_empty());
        let mut found = family.filter_map(|(suffix, twos, _)| Some((self.times(*twos, 0)?, suffix)));
        let (count, suffix) = found.next()?;
        Some(format!("{}{count}{suffix}", if self.negative { "-" } else { "" }))
    }

    fn decimal(self, exponent: bool) -> Option<String> {
        let family = SUFFIXES.iter().filter(|(suffix, ..)| !suffix.ends_with('i'));
        let found = family.filter_map(|(suffix, _, tens)| Some((self.times(*tens, *tens)?, suffix, tens)));
        let (count, suffix, tens) = found.max_by_key(|(.., tens)| **tens)?;
        let sign = if self.negative { "-" } else { "" };
        Some(match tens {
            _ if count == 0 => "0".to_owned(),
            tens if exponent && *tens != 0 => format!("{sign}{count}e{tens}"),
            _ => format!("{sign}{count}{suffix}"),
        })
    }

    fn normalised(negative: bool, mut digits: u128, twos: i32, tens: i32) -> Self {
        if digits == 0 {
            return Self { negative: false, digits: 0, twos: 0, fives: 0 };
        }
        let (mut twos, mut fives) = (twos + tens, tens);
        while digits.is_multiple_of(2) {
            digits /= 2;
            twos += 1;
        }
        while digits.is_multiple_of(5) {
            digits /= 5;
            fives += 1;
        }
        Self { negative, digits, twos, fives }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_amounts_are_recognised_whatever_their_form() {
        let table = [
            (json!("1000m"), json!("1"), true),
            (json!("1024Mi"), json!("1Gi"), true),
            (json!("0.5"), json!("500m"), true),
            (json!(1), json!("1"), true),
            (json!(0.1), json!("100m"), true),
            (json!("1e3"), json!("1k"), true),
            (json!("1E"), json!("1000P"), true),
            (json!("1E3"), json!("1000"), true),
            (json!("100000u"), json!("100m"), true),
            (json!("0"), json!("0Gi"), true),
            (json!("-0"), json!("0"), true),
            (json!("+1"), json!("1"), true),
            (json!("1G"), json!("1Gi"), false),
            (json!("-1"), json!("1"), false),
            (json!("1"), json!("1.0000000001"), false),
            (json!("9007199254740993"), json!("9007199254740992"), false),
            (json!("a"), json!("a"), false),
            (json!(""), json!("0"), false),
            (json!("."), json!("0"), false),
            (json!("1.2.3"), json!("1.2.3"), false),
            (json!("1 Gi"), json!("1Gi"), false),
            (json!("1e999999999999"), json!("1e999999999999"), false),
            (json!(null), json!(null), false),
            (json!(true), json!("1"), false),
        ];

        for (a, b, same) in table {
            assert_eq!(same_amount(&a, &b), same, "{a} {b}");
            assert_eq!(same_amount(&b, &a), same, "{b} {a}");
        }
    }

    /// spec 82 B.3
    #[test]
    fn amounts_are_rounded_up_to_whole_numbers() {
        for (text, rounded) in [
            ("0", 0),
            ("7", 7),
            ("1500m", 2),
            ("2.0", 2),
            ("1n", 1),
            ("1k", 1000),
            ("1.0001k", 1001),
            ("1Ki", 1024),
            ("0.3Ki", 308),
            ("-1500m", -2),
            ("9223372036854775807", i64::MAX),
            ("8Ei", i64::MAX),
            ("1e60", i64::MAX),
            ("-1e60", i64::MIN),
            ("1e-60", 1),
        ] {
            assert_eq!(Amount::parse(text).map(Amount::rounded_up), Some(rounded), "{text}");
        }
    }

    /// The bounds prevent arithmetic overflows.
    #[test]
    fn amounts_beyond_the_bounds_equal_nothing() {
        let power = |zeros: usize| format!("1{}", "0".repeat(zeros));
        let half = format!("0.{}5", "0".repeat(28));
        for (a, b, same) in [
            (power(29), "1e29".to_owned(), true),
            (power(30), "1e30".to_owned(), false),
            (half.clone(), "5e-29".to_owned(), true),
            (format!("0{half}"), "5e-29".to_owned(), false),
            ("1e60".to_owned(), "10e59".to_owned(), true),
            ("1e61".to_owned(), "10e60".to_owned(), false),
            ("1e-60".to_owned(), "0.1e-59".to_owned(), true),
            ("10e-61".to_owned(), "1e-60".to_owned(), false),
        ] {
            assert_eq!(same_amount(&json!(a), &json!(b)), same, "{a} {b}");
        }
    }

    /// spec 62 §9 rule 10
    #[test]
    fn the_smallest_exponent_of_all_is_beyond_the_bounds() {
        for text in ["0.1e-2147483648", "1E-2147483648", "1e2147483647", "1e-2147483649"] {
            assert_eq!(Amount::parse(text), None, "{text}");
        }
    }

    /// spec 62 §9 rules 9 and 10
    #[test]
    fn an_amount_is_written_as_the_api_server_writes_it() {
        for (text, canonical, whole, negative) in [
            ("1500m", "1500m", false, false),
            ("1.5", "1500m", false, false),
            ("2000m", "2", true, false),
            ("-1", "-1", true, true),
            ("1000", "1k", true, false),
            ("1.5Gi", "1536Mi", true, false),
            ("0.5Ki", "512", true, false),
            ("1e3", "1e3", true, false),
            ("0", "0", true, false),
            ("0Gi", "0", true, false),
            ("0.9999999", "999999900n", true, false),
            ("0.0001", "100u", false, false),
        ] {
            let amount = Amount::parse(text).unwrap();
            assert_eq!(
                (&*amount.canonical(text), amount.is_whole(), amount.is_negative()),
                (canonical, whole, negative),
                "{text}"
            );
        }
    }

    #[test]
    fn each_suffix_is_a_thousand_or_1024_of_the_one_before() {
        for (suffixes, factor) in [
            (&["n", "u", "m", "", "k", "M", "G", "T", "P", "E"][..], 1000),
            (&["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][..], 1024),
        ] {
            for pair in suffixes.windows(2) {
                let (small, large) = (json!(format!("{factor}{}", pair[0])), json!(format!("1{}", pair[1])));

                assert!(same_amount(&small, &large), "{small} {large}");
            }
        }
    }
}

//! The meaning of a plain scalar (spec 10 §9.2, table "YAML dialect"). YAML 1.1 as Go's `sigs.k8s.io/yaml` reads it:
//! `yes` and `on` are booleans, `0777` is octal, `1_000` is a number, timestamps are strings. One difference: integers
//! of 64 bits stay exact.

use serde_json::{Number, Value};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Integer(Number),
    /// Also the infinities and NaN, which have no JSON form.
    Float(f64),
    Text,
}

/// Resolves the text of a plain scalar. Quoted and block scalars are always text.
pub(super) fn resolve(text: &str) -> Scalar {
    let Some(&first) = text.as_bytes().first() else { return Scalar::Null };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => word(text),
        b'0'..=b'9' => number(text),
        b'+' | b'-' => infinity(text).unwrap_or_else(|| number(text)),
        b'.' => infinity(text).unwrap_or_else(|| decimal(text)),
        _ => Scalar::Text,
    }
}

/// Returns a float as a JSON number, or `None` for the infinities and NaN. A whole number becomes an integer, as
/// upstream writes it: the API server refuses `1.0` where it wants an integer.
pub(super) fn float(value: f64) -> Option<Value> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;

    if value.fract() == 0.0 && (-LIMIT..LIMIT).contains(&value) {
        return Some(Value::from(value as i64));
    }
    Number::from_f64(value).map(Value::Number)
}

/// A float as a map key: the shortest text that gives the same 32-bit float, with an exponent below 1e-4 and from 1e6.
pub(super) fn float_key(value: f64) -> String {
    let value = value as f32;
    if value.is_nan() {
        return ".nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }

    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{mantissa}e{sign}{:02}", exponent.abs())
    } else {
        format!("{value}")
    }
}

fn word(text: &str) -> Scalar {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Scalar::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Scalar::Bool(false),
        "~" | "null" | "Null" | "NULL" => Scalar::Null,
        _ => Scalar::Text,
    }
}

fn infinity(text: &str) -> Option<Scalar> {
    match text {
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(Scalar::Float(f64::INFINITY)),
        "-.inf" | "-.Inf" | "-.INF" => Some(Scalar::Float(f64::NEG_INFINITY)),
        ".nan" | ".NaN" | ".NAN" => Some(Scalar::Float(f64::NAN)),
        _ => None,
    }
}

/// Text that starts with a digit or a sign: an integer of any base, a float, or text.
fn number(text: &str) -> Scalar {
    if !text.bytes().skip(1).all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'+' | b'-')) {
        return Scalar::Text;
    }
    let without_separators;
    let plain = if text.contains('_') {
        without_separators = text.replace('_', "");
        without_separators.as_str()
    } else {
        text
    };
    integer(plain).unwrap_or_else(|| decimal(plain))
}

fn integer(plain: &str) -> Option<Scalar> {
    let (sign, digits) = match plain.as_bytes() {
        [b'+', ..] => ("", &plain[1..]),
        [b'-', ..] => ("-", &plain[1..]),
        _ => ("", plain),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', _, ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', _, ..] => (2, &digits[2..]),
        [b'0'] => (10, digits),
        [b'0', ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    // Rust's parsers accept another sign, which is no digit here.
    if !digits.bytes().all(|digit| (digit as char).is_digit(radix)) {
        return signed_binary(plain);
    }

    if sign.is_empty() {
        return u64::from_str_radix(digits, radix).ok().map(|value| Scalar::Integer(value.into()));
    }
    i64::from_str_radix(&format!("{sign}{digits}"), radix).ok().map(|value| Scalar::Integer(value.into()))
}

/// `0b-1`: Go's parser also accepts a sign after the prefix.
fn signed_binary(plain: &str) -> Option<Scalar> {
    let digits = plain.strip_prefix("0b")?;
    i64::from_str_radix(digits, 2).ok().map(|value| Scalar::Integer(value.into()))
}

/// `[-+]? ( .digits | digits [ . [digits] ] ) [ e [-+]? digits ]`, or text. Out of range is text as well.
fn decimal(plain: &str) -> Scalar {
    // Rust's parser also accepts `inf` and `nan`, which are not finite.
    match plain.parse::<f64>() {
        Ok(value) if value.is_finite() => Scalar::Float(value),
        _ => Scalar::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integer_of(value: impl Into<Number>) -> Scalar {
        Scalar::Integer(value.into())
    }

    #[test]
    fn booleans_are_the_words_of_yaml_1_1_and_no_others() {
        for text in "y Y yes Yes YES true True TRUE on On ON".split(' ') {
            assert_eq!(resolve(text), Scalar::Bool(true), "{text}");
        }
        for text in "n N no No NO false False FALSE off Off OFF".split(' ') {
            assert_eq!(resolve(text), Scalar::Bool(false), "{text}");
        }
        for text in "tRue yES oN oFF tr fals yeS nO trueish a".split(' ') {
            assert_eq!(resolve(text), Scalar::Text, "{text}");
        }
    }

    #[test]
    fn null_has_five_forms() {
        for text in ["", "~", "null", "Null", "NULL"] {
            assert_eq!(resolve(text), Scalar::Null, "{text}");
        }
        assert_eq!(resolve("nULL"), Scalar::Text);
        assert_eq!(resolve("~~"), Scalar::Text);
    }

    #[test]
    fn integers_have_four_bases_and_separators() {
        for (text, expected) in [
            ("0", 0),
            ("-0", 0),
            ("00", 0),
            ("7", 7),
            ("+7", 7),
            ("-7", -7),
            ("0777", 511),
            ("-0777", -511),
            ("0o17", 15),
            ("0O17", 15),
            ("0x1F", 31),
            ("0X1f", 31),
            ("-0x1f", -31),
            ("0b101", 5),
            ("-0b101", -5),
            ("1_000", 1000),
            ("1__0_", 10),
            ("0x_ff", 255),
            ("0b-11", -3),
        ] {
            assert_eq!(resolve(text), integer_of(expected), "{text}");
        }
    }

    #[test]
    fn integers_of_64_bits_are_exact_and_larger_ones_are_floats() {
        assert_eq!(resolve("9223372036854775807"), integer_of(i64::MAX));
        assert_eq!(resolve("-9223372036854775808"), integer_of(i64::MIN));
        assert_eq!(resolve("18446744073709551615"), integer_of(u64::MAX));
        assert_eq!(resolve("18446744073709551616"), Scalar::Float(18_446_744_073_709_551_616.0));
        assert_eq!(resolve("-9223372036854775809"), Scalar::Float(-9_223_372_036_854_775_809.0));
    }

    #[test]
    fn floats_are_decimal() {
        for (text, expected) in [
            ("1.5", 1.5),
            ("1.", 1.0),
            (".5", 0.5),
            ("-.5", -0.5),
            ("1e3", 1000.0),
            ("1.5E-3", 0.0015),
            ("+1e+3", 1000.0),
            ("1_0.2_5", 10.25),
            ("09", 9.0),
            ("08.5", 8.5),
            (".inf", f64::INFINITY),
            ("-.INF", f64::NEG_INFINITY),
        ] {
            assert_eq!(resolve(text), Scalar::Float(expected), "{text}");
        }
        assert!(matches!(resolve(".nan"), Scalar::Float(value) if value.is_nan()));
    }

    #[test]
    fn scalars_that_only_look_like_numbers_are_text() {
        for text in [
            "2001-12-14",
            "2001-12-14T21:59:43Z",
            "1:20",
            "1.2.3",
            "0x",
            "0xg",
            "0b2",
            "0o8",
            "-",
            "+",
            ".",
            "..",
            "1e",
            "1e+",
            "e3",
            "_1",
            "._5",
            ".5_0",
            "1e999",
            "--1",
            "+-1",
            "0x+1",
            "0x1p-2",
            "1 000",
            "10Gi",
            "v1",
            "inf",
            "nan",
            "infinity",
            "+inf",
            "1ü",
        ] {
            assert_eq!(resolve(text), Scalar::Text, "{text}");
        }
    }

    #[test]
    fn whole_floats_become_integers() {
        assert_eq!(float(1.0), Some(Value::from(1)));
        assert_eq!(float(-3e18), Some(Value::from(-3_000_000_000_000_000_000_i64)));
        assert_eq!(float(0.5), Some(Value::from(0.5)));
        assert_eq!(float(1e20), Some(Value::from(1e20)));
        assert_eq!(float(f64::NAN), None);
        assert_eq!(float(f64::INFINITY), None);
    }

    #[test]
    fn float_keys_are_written_as_short_32_bit_floats() {
        for (value, text) in [
            (1.5, "1.5"),
            (1.0, "1"),
            (100_000.0, "100000"),
            (1e6, "1e+06"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.25e-7, "1.25e-07"),
            (0.1, "0.1"),
            (1_234_567.5, "1.2345675e+06"),
            (f64::INFINITY, ".inf"),
            (f64::NEG_INFINITY, "-.inf"),
            (f64::NAN, ".nan"),
        ] {
            assert_eq!(float_key(value), text);
        }
    }
}

//! Integers in annotations, as Go's `strconv` reads them.

use std::num::IntErrorKind;

const SYNTAX: &str = "invalid syntax";
const RANGE: &str = "value out of range";

/// Parses a signed decimal integer of 64 bits. Fails with the cause that `ParseInt` and `Atoi` name: `invalid syntax`
/// or `value out of range`. As in Go, a number beyond 64 bits without sign is out of range whatever follows.
pub fn parse(text: &str) -> Result<i64, &'static str> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return Err(SYNTAX); // a second sign would be taken for one of the number
    }
    let magnitude = digits.parse::<u64>().map_err(|error| match error.kind() {
        IntErrorKind::PosOverflow => RANGE,
        _ => SYNTAX,
    })?;
    let number = if text.starts_with('-') { 0i64.checked_sub_unsigned(magnitude) } else { magnitude.try_into().ok() };
    number.ok_or(RANGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec 50 §5.1 rule 6, spec 51 §3
    #[test]
    fn integers_are_read_as_in_go() {
        for (text, expected) in [
            ("3600", Ok(3600)),
            ("+007", Ok(7)),
            ("-0", Ok(0)),
            ("9223372036854775807", Ok(i64::MAX)),
            ("-9223372036854775808", Ok(i64::MIN)),
            ("9223372036854775808", Err(RANGE)),
            ("-9223372036854775809", Err(RANGE)),
            ("99999999999999999999h", Err(RANGE)),
            ("9999999999999999999h", Err(SYNTAX)),
            ("", Err(SYNTAX)),
            ("-", Err(SYNTAX)),
            ("+-1", Err(SYNTAX)),
            (" 1", Err(SYNTAX)),
            ("1_000", Err(SYNTAX)),
            ("0x10", Err(SYNTAX)),
            ("\u{661}", Err(SYNTAX)),
        ] {
            assert_eq!(parse(text), expected, "{text:?}");
        }
    }
}

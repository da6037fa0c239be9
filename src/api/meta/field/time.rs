//! Times as Go's `time` package reads RFC 3339 (spec 62 §2.3).

use jiff::Timestamp;

/// Parses a time. Checks the form first: jiff also accepts `…t00z`, second 60 and offsets of more than a day.
pub fn moment(text: &str) -> Option<Timestamp> {
    has_form(text.as_bytes()).then(|| text.parse().ok()).flatten()
}

/// Full date and time, an optional fraction, then `Z` or an offset. jiff checks whether the day exists.
fn has_form(text: &[u8]) -> bool {
    let Some((time, rest)) = text.split_at_checked(19) else { return false };
    let zone = match rest {
        [b'.' | b',', fraction @ ..] => {
            let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 {
                return false;
            }
            &fraction[digits..]
        }
        zone => zone,
    };
    let is_offset = (is_like(zone, b"+00:00") || is_like(zone, b"-00:00")) && zone[1..3] <= b"24"[..];
    is_like(time, b"0000-00-00T00:00:00") && time[17..] != *b"60" && (zone == b"Z" || is_offset)
}

fn is_like(text: &[u8], form: &[u8]) -> bool {
    let fits = |(byte, form): (&u8, &u8)| if *form == b'0' { byte.is_ascii_digit() } else { byte == form };
    text.len() == form.len() && text.iter().zip(form).all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec 62 §2.3: "a value of a wrong JSON type … is a decode failure"
    #[test]
    fn time_has_a_form_that_go_accepts() {
        let table = [
            ("2026-01-01T00:00:00Z", true),
            ("2026-01-01T00:00:59.5Z", true),
            ("2026-01-01T00:00:00,123456789Z", true),
            ("2026-01-01T01:00:00+01:00", true),
            ("2025-12-31T18:29:59.000001-05:30", true),
            ("2024-02-29T23:59:59-00:00", true),
            ("2026-01-01T00:00:00+24:00", true),
            ("2026-01-01T00:00:00+25:00", false),
            ("2026-01-01T00:00:00z", false),
            ("2026-01-01t00:00:00Z", false),
            ("2026-01-01 00:00:00Z", false),
            ("2026-01-01T00Z", false),
            ("2026-01-01T00:00Z", false),
            ("2026-01-01T000000Z", false),
            ("20260101T00:00:00Z", false),
            ("+002026-01-01T00:00:00Z", false),
            ("2026-01-01T00:00:60Z", false),
            ("2026-01-01T24:00:00Z", false),
            ("2026-01-01T00:60:00Z", false),
            ("2026-02-29T00:00:00Z", false),
            ("2026-13-01T00:00:00Z", false),
            ("2026-01-01T00:00:00", false),
            ("2026-01-01T00:00:00.Z", false),
            ("2026-01-01T00:00:00.5", false),
            ("2026-01-01T00:00:00+0100", false),
            ("2026-01-01T00:00:00+01", false),
            ("2026-01-01T00:00:00+01:00:00", false),
            ("2026-01-01T00:00:00Z[UTC]", false),
            ("2026-01-01T00:00:00+00:00[UTC]", false),
            ("2026-01-01T00:00:00Z ", false),
            ("2026-01-01T00:00:0€", false),
            ("€€€€€€€€€€", false),
            ("2026-01-01", false),
            ("yesterday", false),
            ("", false),
        ];
        for (text, is_moment) in table {
            assert_eq!(moment(text).is_some(), is_moment, "{text}");
        }
        assert_eq!(moment("2026-01-01T00:00:00Z"), moment("2026-01-01T01:00:00.0+01:00"));
    }
}

//! How old something is, as kubectl writes it.

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// An age in seconds as two units at most: `5s`, `3m20s`, `2d4h`. The older, the coarser. A negative one is that of an
/// object of a server whose clock is ahead.
pub(super) fn age(seconds: i64) -> String {
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => two(seconds, (MINUTE, 'm'), (1, 's')),
        _ if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        _ if seconds < 8 * HOUR => two(seconds, (HOUR, 'h'), (MINUTE, 'm')),
        _ if seconds < 2 * DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 8 * DAY => two(seconds, (DAY, 'd'), (HOUR, 'h')),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => two(seconds, (YEAR, 'y'), (DAY, 'd')),
        _ => format!("{}y", seconds / YEAR),
    }
}

/// The larger unit, and what is left in the smaller one unless that is nothing.
fn two(seconds: i64, large: (i64, char), small: (i64, char)) -> String {
    let (count, rest) = (seconds / large.0, seconds % large.0 / small.0);
    let rest = if rest == 0 { String::new() } else { format!("{rest}{}", small.1) };
    format!("{count}{}{rest}", large.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_written_as_kubectl_does() {
        let table = [
            (-90, "<invalid>"),
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (5, "5s"),
            (119, "119s"),
            (120, "2m"),
            (200, "3m20s"),
            (599, "9m59s"),
            (600, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (7 * HOUR + 59 * MINUTE + 59, "7h59m"),
            (8 * HOUR, "8h"),
            (47 * HOUR + 59 * MINUTE, "47h"),
            (2 * DAY, "2d"),
            (2 * DAY + 4 * HOUR, "2d4h"),
            (8 * DAY, "8d"),
            (2 * YEAR - 1, "729d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + 3 * DAY, "2y3d"),
            (8 * YEAR + 3 * DAY, "8y"),
            (i64::MAX, "292471208677y"),
        ];

        for (seconds, expected) in table {
            assert_eq!(age(seconds), expected, "{seconds}");
        }
    }
}

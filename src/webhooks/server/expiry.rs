//! When the end of the serving certificate is worth a record of the log: pure.

use jiff::{SignedDuration, Timestamp};

/// Time before the end from which on it is logged. The alert on the certificate begins then, too.
pub(crate) const SOON: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Shortest time between two records about a certificate.
const AGAIN: SignedDuration = SignedDuration::from_hours(24);

/// A remark about a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reminder {
    /// It expires in this time.
    Soon(SignedDuration),
    /// It has expired.
    Over,
}

/// Remembers what was said last.
#[derive(Debug, Default)]
pub(super) struct Reminders {
    /// The end of the certificate, the reminder without its time, and when it was said.
    last: Option<(Timestamp, bool, Timestamp)>,
}

impl Reminders {
    /// Returns the remark at `now` about a certificate that expires at `end`: once a day, and at once when the
    /// certificate, or its state, is another.
    pub(super) fn due(&mut self, end: Timestamp, now: Timestamp) -> Option<Reminder> {
        let left = end.duration_since(now);
        if left >= SOON {
            return None;
        }
        let is_over = left <= SignedDuration::ZERO;
        let is_known = self.last.is_some_and(|(last_end, was_over, said)| {
            (last_end, was_over) == (end, is_over) && now.duration_since(said) < AGAIN
        });
        if is_known {
            return None;
        }
        self.last = Some((end, is_over, now));
        Some(if is_over { Reminder::Over } else { Reminder::Soon(left) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours)
    }

    #[test]
    fn expiry_is_said_once_a_day_in_the_last_week() {
        let mut reminders = Reminders::default();
        let end = at(1000);
        let soon = |hours| Some(Reminder::Soon(SignedDuration::from_hours(hours)));

        for (now, expected) in [
            (0, None),
            (1000 - 168, None),
            (1000 - 167, soon(167)),
            (1000 - 166, None),
            (1000 - 143, soon(143)),
            (999, soon(1)),
            (1000, Some(Reminder::Over)),
            (1001, None),
            (1024, Some(Reminder::Over)),
        ] {
            assert_eq!(reminders.due(end, at(now)), expected, "at {now}");
        }
    }

    #[test]
    fn expiry_of_another_certificate_is_said_at_once() {
        let mut reminders = Reminders::default();

        assert!(reminders.due(at(100), at(10)).is_some());
        assert_eq!(reminders.due(at(1000), at(11)), None);
        assert!(reminders.due(at(50), at(12)).is_some());
    }
}

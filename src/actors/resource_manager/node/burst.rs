//! Bursts of changes: one run after the last change of a burst is enough (spec 41, better 8, C-T5).

use std::time::Duration;

use tokio::time::Instant;

/// A burst ends after this time without a change.
const QUIET: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(super) struct Burst {
    first_and_last: Option<(Instant, Instant)>,
}

impl Burst {
    /// Returns how long to wait before the next run, or `None`. `changed`: something changed since the last call.
    pub(super) fn wait(&mut self, changed: bool, now: Instant) -> Option<Duration> {
        if changed {
            let first = self.first_and_last.map_or(now, |(first, _)| first);
            self.first_and_last = Some((first, now));
        }
        let (first, last) = self.first_and_last?;
        let left = (last + QUIET).min(first + LONGEST).saturating_duration_since(now);
        if left.is_zero() {
            self.first_and_last = None;
            return None;
        }
        Some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_ends_a_second_after_the_last_change_or_ten_after_the_first() {
        let start = Instant::now();
        let at = |seconds: f64| start + Duration::from_secs_f64(seconds);
        let waits = |burst: &mut Burst, changed, seconds| burst.wait(changed, at(seconds)).map(|it| it.as_secs_f64());

        let mut burst = Burst::default();
        assert_eq!(waits(&mut burst, false, 0.0), None, "nothing changed");
        assert_eq!(waits(&mut burst, true, 0.0), Some(1.0));
        assert_eq!(waits(&mut burst, true, 0.5), Some(1.0));
        assert_eq!(waits(&mut burst, false, 1.0), Some(0.5));
        assert_eq!(waits(&mut burst, false, 1.5), None);

        for tenth in 20..120 {
            assert!(waits(&mut burst, true, f64::from(tenth) / 10.0).is_some(), "{tenth}");
        }
        assert_eq!(waits(&mut burst, true, 12.0), None, "ten seconds after the first");
    }
}

//! Quantiles of durations over the last ten minutes.

use std::time::Duration;

use super::{Minutes, Now};

/// Two buckets per power of two, from 16 µs to 16 s: a quantile is wrong by a fifth at most.
const BUCKETS: usize = 2 * 20 + 1;

const FIRST_BOUND: f64 = 16e-6;

/// The durations of the last ten minutes.
#[derive(Debug, Default)]
pub struct Latency(Minutes<BUCKETS>);

impl Latency {
    /// Adds a duration.
    pub fn add(&self, now: Now, duration: Duration) {
        let powers = (duration.as_secs_f64() / FIRST_BOUND).log2() * 2.0;
        // Casts saturate, so that nothing is out of bounds.
        self.0.count(now, (powers.ceil().max(0.0) as usize).min(BUCKETS - 1));
    }

    /// Returns upper bounds of the quantiles (from 0 to 1), in seconds; `None` if there were no durations.
    pub fn quantiles<const N: usize>(&self, now: Now, quantiles: [f64; N]) -> Option<[f64; N]> {
        let mut counts = [0u64; BUCKETS];
        for (_, minute) in self.0.last(now) {
            counts.iter_mut().zip(minute).for_each(|(sum, count)| *sum += u64::from(count));
        }
        let all: u64 = counts.iter().sum();
        let bound = |quantile: f64| {
            let wanted = (all as f64 * quantile).ceil().max(1.0);
            let mut sum = 0;
            let bucket = counts.iter().position(|count| {
                sum += count;
                sum as f64 >= wanted
            });
            FIRST_BOUND * 2f64.powf(bucket.unwrap_or(BUCKETS - 1) as f64 / 2.0)
        };
        (all > 0).then(|| quantiles.map(bound))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_bounds_of_the_last_ten_minutes() {
        let (latency, start) = (Latency::default(), Now::of_system());
        let at = |minute: u64| Now { monotonic: start.monotonic + Duration::from_secs(60 * minute), ..start };
        assert_eq!(latency.quantiles(at(0), [0.5]), None);
        for millis in 1..=100 {
            latency.add(at(millis / 50), Duration::from_millis(millis));
        }

        let [p50, p99] = latency.quantiles(at(2), [0.5, 0.99]).unwrap();

        assert!((0.050..0.072).contains(&p50), "{p50}");
        assert!((0.099..0.140).contains(&p99), "{p99}");
        assert_eq!(latency.quantiles(at(12), [0.5]), None, "all are older");
    }

    #[test]
    fn quantiles_of_extreme_durations_are_the_outermost_bounds() {
        let (latency, now) = (Latency::default(), Now::of_system());
        for duration in [Duration::ZERO, Duration::MAX] {
            latency.add(now, duration);
        }

        assert_eq!(latency.quantiles(now, [0.0, 1.0]), Some([16e-6, 16e-6 * f64::from(1 << 20)]));
    }
}

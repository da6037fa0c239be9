//! The delay of each node: an even distribution by name (spec 41 §B.3, §B.4).

use std::{collections::BTreeMap, time::Duration};

use kit::duration::GoDuration;

/// Returns the delays of nodes sorted by name: the first gets `min`, the last less than `max`.
pub fn delays<'a>(
    nodes: impl ExactSizeIterator<Item = &'a str>,
    min: Duration,
    max: Duration,
) -> BTreeMap<&'a str, String> {
    let count = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
    // As in Go: whole seconds and the remainder are converted separately, then added.
    let [min, max] = [min, max].map(|delay| delay.as_secs_f64());
    let range = (max - min) / f64::from(count);
    let delays = (0..count).map(|index| GoDuration::from_nanos(nanos(min + f64::from(index) * range)));
    nodes.zip(delays.map(|delay| delay.to_string())).collect()
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "that is the formula; what is out of range ends at the largest value"
)]
fn nanos(seconds: f64) -> i64 {
    (seconds * 1e9) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(count: usize, min: f64, max: f64) -> Vec<String> {
        let names: Vec<String> = (0..count).map(|number| format!("a{number:02}")).collect();
        let [min, max] = [min, max].map(Duration::from_secs_f64);
        delays(names.iter().map(String::as_str), min, max).into_values().collect()
    }

    /// spec 41 §B.4, scenarios 21, 22, 30
    #[test]
    fn delays_match_the_worked_values() {
        assert_eq!(of(1, 5.0, 30.0), ["5s"]);
        let ten = ["5s", "7.5s", "10s", "12.5s", "15s", "17.5s", "20s", "22.5s", "25s", "27.5s"];
        assert_eq!(of(10, 5.0, 30.0), ten);
        let many = of(31, 5.0, 30.0);
        assert_eq!([&*many[1], &*many[2]], ["5.806451612s", "6.612903225s"]);
        assert_eq!([&*many[7], &*many[14]], ["10.64516129s", "16.29032258s"]);
        assert_eq!(of(4, 0.0, 300.0), ["0s", "1m15s", "2m30s", "3m45s"]);
        assert_eq!(of(7, 0.0, 300.0)[..4], ["0s", "42.857142857s", "1m25.714285714s", "2m8.571428571s"]);
        assert_eq!(of(3, 10.0, 10.0), ["10s"; 3], "B-T5");
        assert_eq!(of(0, 0.0, 300.0), [""; 0]);
        assert_eq!(of(2, 0.0, 0.6), ["0s", "300ms"]);
    }

    #[test]
    fn delays_of_the_longest_durations_do_not_overflow() {
        let longest = Duration::from_nanos(u64::MAX / 2);
        let all = delays(["a", "b"].into_iter(), longest, longest);

        assert_eq!(all["a"], all["b"]);
    }
}

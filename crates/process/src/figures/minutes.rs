//! Counters by minute, for the last ten minutes. The monotonic clock decides which minute it is, so that no jump of the
//! wall clock loses a count. The wall clock names the minutes.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use kit::Clock;
use tokio::time::Instant;

/// How many minutes are kept, the present one included.
const KEPT: i64 = 10;

const SECONDS: i64 = 60;
const NANOSECONDS: i128 = SECONDS as i128 * 1_000_000_000;

/// The present moment on both clocks.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// On the monotonic clock.
    pub monotonic: Instant,
    /// On the wall clock.
    pub wall: Timestamp,
}

/// `N` counters per minute.
#[derive(Debug)]
pub(crate) struct Minutes<const N: usize>(Mutex<Slots<N>>);

#[derive(Debug, Default)]
struct Slots<const N: usize> {
    /// Begin of minute 0: the last full minute of the wall clock before the first count.
    zero: Option<Instant>,
    /// Minutes with counts, the oldest first.
    slots: VecDeque<Slot<N>>,
}

#[derive(Debug)]
struct Slot<const N: usize> {
    minute: i64,
    counts: [u32; N],
}

impl Now {
    /// Reads the system's clocks.
    pub fn of_system() -> Self {
        Self { monotonic: Instant::now(), wall: Clock::system_wall() }
    }

    /// The last full minute of the wall clock, on the monotonic clock.
    fn full_minute(self) -> Instant {
        let past = self.wall.as_nanosecond().rem_euclid(NANOSECONDS);
        let past = Duration::from_nanos(past.try_into().unwrap_or_default());
        self.monotonic.checked_sub(past).unwrap_or(self.monotonic)
    }
}

impl<const N: usize> Minutes<N> {
    /// Counts one in the counter `index`. Who read the clock before another count counts in the minute of that count.
    pub(crate) fn count(&self, now: Now, index: usize) {
        let mut kept = self.kept();
        let minute = minute(*kept.zero.get_or_insert_with(|| now.full_minute()), now);
        let slots = &mut kept.slots;
        if slots.back().is_none_or(|slot| slot.minute < minute) {
            slots.push_back(Slot { minute, counts: [0; N] });
            if slots.len() > KEPT as usize {
                slots.pop_front();
            }
        }
        if let Some(count) = slots.back_mut().and_then(|slot| slot.counts.get_mut(index)) {
            *count = count.saturating_add(1);
        }
    }

    /// Returns the begin and the counters of each of the last ten minutes, the oldest first. The begins are full minutes
    /// of the present wall clock.
    pub(crate) fn last(&self, now: Now) -> Vec<(Timestamp, [u32; N])> {
        let kept = self.kept();
        let zero = kept.zero.unwrap_or_else(|| now.full_minute());
        let minute = minute(zero, now);
        let age = now.monotonic.saturating_duration_since(zero).as_nanos();
        let zero_wall = now.wall.as_nanosecond() - i128::try_from(age).unwrap_or_default();
        // Rounded, so that the names stay the same while the clocks drift apart by some milliseconds.
        let zero_wall = i64::try_from((zero_wall + NANOSECONDS / 2).div_euclid(NANOSECONDS)).unwrap_or_default();
        let begin = |minute: i64| Timestamp::from_second((zero_wall + minute) * SECONDS).unwrap_or_default();
        let counts = |minute| kept.slots.iter().find(|slot| slot.minute == minute).map_or([0; N], |slot| slot.counts);
        (minute - KEPT + 1..=minute).map(|minute| (begin(minute), counts(minute))).collect()
    }

    fn kept(&self) -> MutexGuard<'_, Slots<N>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn minute(zero: Instant, now: Now) -> i64 {
    let minutes = now.monotonic.saturating_duration_since(zero).as_secs() / SECONDS as u64;
    i64::try_from(minutes).unwrap_or_default()
}

impl<const N: usize> Default for Minutes<N> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    const BEGIN: i64 = 1_893_456_000;

    fn wall(second: i64) -> Timestamp {
        Timestamp::from_second(BEGIN + second).unwrap()
    }

    /// Both clocks so many seconds after a full minute.
    fn clocks() -> impl Fn(i64) -> Now {
        let start = Instant::now() + Duration::from_secs(3600);
        move |second| Now { monotonic: start + Duration::from_secs(second as u64), wall: wall(second) }
    }

    #[test]
    fn minutes_keep_the_last_ten_and_forget_the_others() {
        let (minutes, at) = (Minutes::<2>::default(), clocks());
        for minute in 0..20 {
            minutes.count(at(minute * 60), (minute % 2) as usize);
        }
        minutes.count(at(19 * 60 + 59), 1);

        let last = minutes.last(at(19 * 60 + 59));

        assert_eq!(
            last.iter().map(|(begin, _)| *begin).collect::<Vec<_>>(),
            (10..20).map(|it| wall(it * 60)).collect::<Vec<_>>()
        );
        assert_eq!((last[0].1, last[8].1, last[9].1), ([1, 0], [1, 0], [0, 2]));
        assert_eq!(minutes.last(at(25 * 60))[4], (wall(20 * 60), [0, 0]), "nothing happened since");
        assert_eq!(minutes.kept().slots.len(), 10);
    }

    #[test]
    fn minutes_begin_with_full_minutes_of_the_wall_clock() {
        let (minutes, at) = (Minutes::<1>::default(), clocks());
        assert_eq!(minutes.last(at(59))[9], (wall(0), [0]));
        minutes.count(at(59), 0);
        minutes.count(at(60), 0);

        let drifted = Now { wall: wall(61) - SignedDuration::from_millis(1200), ..at(61) };

        for now in [at(61), drifted] {
            assert_eq!(minutes.last(now)[8..], [(wall(0), [1]), (wall(60), [1])]);
        }
    }

    #[test]
    fn minutes_count_on_after_the_wall_clock_jumped() {
        for jump in [-86_400, -3600, -61, 3600, 86_400] {
            let (minutes, at) = (Minutes::<1>::default(), clocks());
            let jumped = |second| Now { wall: wall(second + jump), ..at(second) };
            minutes.count(at(600), 0);

            minutes.count(jumped(660), 0);

            let last = minutes.last(jumped(661));
            assert_eq!((last[8].1, last[9].1), ([1], [1]), "{jump}");
            assert!((last[9].0.duration_since(wall(660 + jump))).abs() <= SignedDuration::from_secs(30), "{jump}");
            assert!(last.windows(2).all(|pair| pair[1].0.duration_since(pair[0].0).as_secs() == 60), "{jump}");
        }
    }
}

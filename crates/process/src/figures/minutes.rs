//! Counters by minute, for the last ten minutes.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;

/// How many minutes are kept, the present one included.
const KEPT: i64 = 10;

const SECONDS: i64 = 60;

/// `N` counters per minute.
#[derive(Debug)]
pub(crate) struct Minutes<const N: usize>(Mutex<VecDeque<Slot<N>>>);

#[derive(Debug)]
struct Slot<const N: usize> {
    /// Since 1970.
    minute: i64,
    counts: [u32; N],
}

impl<const N: usize> Minutes<N> {
    /// Counts one in the counter `index`. After a clock that went back, it counts in the youngest minute.
    pub(crate) fn count(&self, now: Timestamp, index: usize) {
        let minute = now.as_second().div_euclid(SECONDS);
        let mut slots = self.slots();
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

    /// Returns the begin and the counters of each of the last ten minutes, the oldest first.
    pub(crate) fn last(&self, now: Timestamp) -> Vec<(Timestamp, [u32; N])> {
        let slots = self.slots();
        let minute = now.as_second().div_euclid(SECONDS);
        let counts = |minute| slots.iter().find(|slot| slot.minute == minute).map_or([0; N], |slot| slot.counts);
        let begin = |minute: i64| Timestamp::from_second(minute * SECONDS).unwrap_or_default();
        (minute - KEPT + 1..=minute).map(|minute| (begin(minute), counts(minute))).collect()
    }

    fn slots(&self) -> MutexGuard<'_, VecDeque<Slot<N>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<const N: usize> Default for Minutes<N> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_keep_the_last_ten_and_forget_the_others() {
        let minutes = Minutes::<2>::default();
        let at = |second: i64| Timestamp::from_second(1_893_456_000 + second).unwrap();
        for minute in 0..20 {
            minutes.count(at(minute * 60), (minute % 2) as usize);
        }
        minutes.count(at(19 * 60 + 59), 1);

        let last = minutes.last(at(19 * 60 + 59));

        assert_eq!(
            last.iter().map(|(begin, _)| *begin).collect::<Vec<_>>(),
            (10..20).map(|it| at(it * 60)).collect::<Vec<_>>()
        );
        assert_eq!((last[0].1, last[8].1, last[9].1), ([1, 0], [1, 0], [0, 2]));
        assert_eq!(minutes.last(at(25 * 60))[4], (at(20 * 60), [0, 0]), "nothing happened since");
        assert_eq!(minutes.0.lock().unwrap().len(), 10);
    }

    #[test]
    fn minutes_count_on_after_the_clock_went_back() {
        let minutes = Minutes::<1>::default();
        let at = |second: i64| Timestamp::from_second(1_893_456_000 + second).unwrap();
        minutes.count(at(600), 0);

        minutes.count(at(0), 0);

        assert_eq!(minutes.last(at(600))[9].1, [2]);
    }
}

//! The last reconciles of an actor, twelve bytes each. Pure.

use jiff::{SignedDuration, Timestamp};

use super::{Causes, ReconcileResult};

/// How many reconciles an actor remembers.
const REMEMBERED: usize = 10;

/// Durations are cut to this: 4.6 hours.
const LONGEST_MS: u32 = (1 << 24) - 1;

const RESULTS: [ReconcileResult; 5] = [
    ReconcileResult::Success,
    ReconcileResult::Error,
    ReconcileResult::TerminalError,
    ReconcileResult::Requeue,
    ReconcileResult::RequeueAfter,
];

/// The last reconciles of all reconcilers of an actor.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    /// The newest first.
    records: [Record; REMEMBERED],
    filled: u8,
}

#[derive(Debug, Clone, Copy, Default)]
struct Record {
    /// Seconds since 1970.
    ended: u32,
    causes: Causes,
    /// From the highest bit on: milliseconds (24 bits), index of the result (4), index of the reconciler (4).
    rest: u32,
}

/// A reconcile that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Past {
    /// Cut to seconds.
    pub(super) ended: Timestamp,
    pub(super) ms: u32,
    pub(super) result: ReconcileResult,
    pub(super) reconciler: usize,
    pub(super) causes: Causes,
}

impl History {
    pub(super) fn add(&mut self, past: Past) {
        let result = RESULTS.iter().position(|result| *result == past.result).unwrap_or_default();
        let [result, reconciler] =
            [result, past.reconciler].map(|index| u32::try_from(index).unwrap_or_default() & 0xf);
        let record = Record {
            ended: u32::try_from(past.ended.as_second()).unwrap_or_default(),
            causes: past.causes,
            rest: (past.ms.min(LONGEST_MS) << 8) | (result << 4) | reconciler,
        };
        self.records.copy_within(..REMEMBERED - 1, 1);
        self.records[0] = record;
        self.filled = (self.filled + 1).min(REMEMBERED as u8);
    }

    /// The remembered reconciles, the newest first.
    pub(super) fn past(&self) -> impl Iterator<Item = Past> {
        self.records[..usize::from(self.filled)].iter().map(|record| Past {
            ended: Timestamp::UNIX_EPOCH + SignedDuration::from_secs(record.ended.into()),
            ms: record.rest >> 8,
            result: RESULTS.get((record.rest >> 4 & 0xf) as usize).copied().unwrap_or(ReconcileResult::Error),
            reconciler: (record.rest & 0xf) as usize,
            causes: record.causes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(number: u32) -> Past {
        Past {
            ended: Timestamp::from_second(1_893_456_000 + i64::from(number)).unwrap(),
            ms: number * 1000,
            result: RESULTS[number as usize % RESULTS.len()],
            reconciler: number as usize % 8,
            causes: Causes::OBJECT.with(Causes::own(number % 24)),
        }
    }

    #[test]
    fn history_keeps_the_last_ten_reconciles_in_twelve_bytes_each() {
        let mut history = History::default();
        assert_eq!(history.past().count(), 0);

        (0..13).for_each(|number| history.add(past(number)));

        assert_eq!(history.past().collect::<Vec<_>>(), (3..13).rev().map(past).collect::<Vec<_>>());
        assert_eq!(size_of::<Record>(), 12);
    }

    #[test]
    fn history_cuts_what_its_fields_cannot_hold() {
        let mut history = History::default();

        history.add(Past { ended: Timestamp::MIN, ms: u32::MAX, ..past(1) });

        let kept = history.past().next().unwrap();
        assert_eq!((kept.ended, kept.ms), (Timestamp::UNIX_EPOCH, LONGEST_MS));
        assert_eq!((kept.result, kept.reconciler, kept.causes), (past(1).result, 1, past(1).causes));
    }
}

//! Queue entries: what the kit knows of a key. They are outside of actors, to survive panics (contract rule 1). Pure.

use std::{collections::VecDeque, time::Duration};

use jiff::Timestamp;
use tokio::time::Instant;
use tokio_util::time::delay_queue;
use tracing::Span;

use super::{Activity, Cell, IdleCheck, Listening, Priority, ReconcileObserver, Wake, history::History};

const MAX_PANICS: usize = 5; // more panics than this within [`PANIC_WINDOW`] quarantine a reconciler (contract rule 6)

const PANIC_WINDOW: Duration = Duration::from_secs(600);

pub(super) const QUARANTINE: Duration = Duration::from_secs(600); // how often a quarantined reconciler is tried

/// A wall-clock timer reads the clock at least this often, because the clock may jump (contract rule 4).
pub(super) const WALL_CLOCK_CHECK: Duration = Duration::from_secs(600);

/// Longer times are cut to this: the timer wheel's limit is two years, and an early reconcile does no harm.
pub(super) const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

pub(super) struct QueueEntry<A, R> {
    pub(super) actor: Option<A>,
    /// Grows with each actor of this key, so that a late death notice does not hit the next actor.
    pub(super) generation: u64,
    pub(super) nudged: bool,
    pub(super) reconcilers: Vec<ReconcilerEntry<R>>,
    pub(super) cell: Cell,
    pub(super) history: History,
}

pub(super) struct ReconcilerEntry<R> {
    pub(super) phase: Phase,
    pub(super) pending: Wake<R>,
    /// Work that the last reconcile left undone; merged into `pending` when the next one begins.
    pub(super) retained: Wake<R>,
    /// The running reconcile, kept here because its actor may die. It holds a permit.
    pub(super) running: Option<RunningReconcile<R>>,
    pub(super) timer: Option<Timer>,
    /// The timer of the next resync; only the end of the entry stops it.
    pub(super) resync: Option<delay_queue::Key>,
    pub(super) idle_check: Option<IdleCheck>,
    pub(super) listening: Vec<Listening>,
    /// Its last reconcile asked for the end of the actor.
    pub(super) retired: bool,
    pub(super) queued_at: Option<Instant>,
    failures: u32,
    panics: VecDeque<Instant>,
    /// Panicked too often, and no reconcile has ended without a panic since.
    poisoned: bool,
}

pub(super) struct RunningReconcile<R> {
    pub(super) wake: Wake<R>,
    pub(super) started: Instant,
    pub(super) observer: Box<dyn ReconcileObserver>,
    pub(super) span: Span,
}

pub(super) struct Timer {
    pub(super) id: delay_queue::Key,
    pub(super) kind: TimerKind,
    pub(super) due: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Phase {
    /// Nothing to do, or a timer or signal will wake it.
    #[default]
    Idle,
    /// Woken, but a required cache is not synced.
    Unready,
    Queued,
    /// Has a permit; its actor has not begun yet.
    Granted,
    Running,
    Quarantined,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimerKind {
    After,
    Idle,
    /// A wall time; checked again when the timer ends.
    Until(Timestamp),
    BackOff,
    Quarantine,
}

impl<A, R: Ord> QueueEntry<A, R> {
    pub(super) fn new(reconcilers: usize, cell: Cell) -> Self {
        let reconcilers = std::iter::repeat_with(ReconcilerEntry::default).take(reconcilers).collect();
        Self { actor: None, generation: 0, nudged: false, reconcilers, cell, history: History::default() }
    }

    /// Returns true if a reconciler asked for the end of the actor, and none is running or about to run. Timers do not
    /// keep the actor: the reconciler that retires decides for its key.
    pub(super) fn is_retired(&self) -> bool {
        let quiet = self.reconcilers.iter().all(|reconciler| {
            !matches!(reconciler.phase, Phase::Queued | Phase::Granted | Phase::Running | Phase::Unready)
                && reconciler.pending.is_empty()
        });
        quiet && self.reconcilers.iter().any(|reconciler| reconciler.retired)
    }

    /// Returns what the actor does. `is_failing`: its object has a problem.
    pub(super) fn activity(&self, is_failing: bool) -> Activity {
        self.reconcilers
            .iter()
            .map(ReconcilerEntry::activity)
            .chain(is_failing.then_some(Activity::Failing))
            .max_by_key(|activity| rank(*activity))
            .unwrap_or(Activity::Idle)
    }

    pub(super) fn next_timer(&self) -> Option<Instant> {
        self.reconcilers.iter().filter_map(|reconciler| reconciler.timer.as_ref()).map(|timer| timer.due).min()
    }

    pub(super) fn waiting(&self) -> u32 {
        self.reconcilers.iter().filter(|reconciler| !reconciler.pending.is_empty()).count() as u32
    }
}

fn rank(activity: Activity) -> u8 {
    match activity {
        Activity::Idle | Activity::Stopped => 0,
        Activity::Starting => 1,
        Activity::Waiting => 2,
        Activity::Queued => 3,
        Activity::BackingOff => 4,
        Activity::Failing => 5,
        Activity::Running => 6,
        Activity::Quarantined => 7,
    }
}

impl<R> Default for ReconcilerEntry<R> {
    fn default() -> Self {
        Self {
            phase: Phase::default(),
            pending: Wake::default(),
            retained: Wake::default(),
            running: None,
            timer: None,
            resync: None,
            idle_check: None,
            listening: Vec::new(),
            retired: false,
            queued_at: None,
            failures: 0,
            panics: VecDeque::new(),
            poisoned: false,
        }
    }
}

impl<R> ReconcilerEntry<R> {
    /// Returns the length of the next back-off: `first` · 2ⁿ, at most `cap`.
    pub(super) fn back_off(&mut self, first: Duration, cap: Duration) -> Duration {
        let factor = 1u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        self.failures = self.failures.saturating_add(1);
        first.saturating_mul(factor).min(cap)
    }

    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// Records a panic of a reconcile or the death of its actor. Returns true if there were too many.
    pub(super) fn panicked(&mut self, now: Instant) -> bool {
        self.panics.push_back(now);
        while self.panics.front().is_some_and(|first| now.saturating_duration_since(*first) > PANIC_WINDOW) {
            self.panics.pop_front();
        }
        self.poisoned |= self.panics.len() > MAX_PANICS;
        self.poisoned
    }

    pub(super) fn survived(&mut self) {
        if std::mem::take(&mut self.poisoned) {
            self.panics.clear();
        }
    }

    pub(super) fn priority(&self) -> Priority {
        self.pending.priority.max(self.retained.priority)
    }

    fn activity(&self) -> Activity {
        match self.phase {
            Phase::Idle if self.timer.as_ref().is_some_and(|timer| timer.kind == TimerKind::BackOff) => {
                Activity::BackingOff
            }
            Phase::Idle if !self.listening.is_empty() => Activity::Waiting,
            Phase::Idle => Activity::Idle,
            Phase::Unready => Activity::Waiting,
            Phase::Queued | Phase::Granted => Activity::Queued,
            Phase::Running => Activity::Running,
            Phase::Quarantined => Activity::Quarantined,
        }
    }
}

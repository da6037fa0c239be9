//! Slots: what the kit knows of a key, outside of its actor, so that it survives a panic (contract rule 1). Pure.

use std::{collections::VecDeque, time::Duration};

use jiff::Timestamp;
use tokio::time::Instant;
use tokio_util::time::delay_queue;
use tracing::Span;

use super::{Activity, Cell, IdleCheck, Listening, Priority, ReconcileObserver, Wake};

/// More panics than this within [`PANIC_WINDOW`] put a duty into quarantine (contract rule 6).
const MAX_PANICS: usize = 5;

/// See [`MAX_PANICS`].
const PANIC_WINDOW: Duration = Duration::from_secs(600);

/// How often a duty in quarantine is tried.
pub(super) const QUARANTINE: Duration = Duration::from_secs(600);

/// A wall-clock timer looks at the clock at least this often, because the clock may jump (contract rule 4).
pub(super) const WALL_CLOCK_CHECK: Duration = Duration::from_secs(600);

/// A longer time than this is cut: the timer wheel knows none above two years, and a pass that comes early does no harm.
pub(super) const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// What the kit knows of a key.
pub(super) struct QueueEntry<A, R> {
    /// The actor's address while it lives.
    pub(super) actor: Option<A>,
    /// Grows with each actor of this key, so that a late death notice is told from a new one.
    pub(super) generation: u64,
    /// Whether a nudge is on its way.
    pub(super) nudged: bool,
    pub(super) reconcilers: Vec<ReconcilerEntry<R>>,
    pub(super) cell: Cell,
}

/// One duty of a key.
pub(super) struct ReconcilerEntry<R> {
    pub(super) phase: Phase,
    /// Why the next pass is due.
    pub(super) pending: Wake<R>,
    /// What the last pass did not get done; joins `pending` when the next pass begins.
    pub(super) retained: Wake<R>,
    /// The pass under way, here because the actor that runs it may die. It holds a permit.
    pub(super) running: Option<UnderWay<R>>,
    pub(super) timer: Option<Timer>,
    /// The timer of the next look without another reason; nothing but the end of the slot stops it.
    pub(super) resync: Option<delay_queue::Key>,
    /// What is looked at when a timer of the kind [`TimerKind::Rest`] ends.
    pub(super) idle_check: Option<IdleCheck>,
    /// Signals the last pass waits for.
    pub(super) listening: Vec<Listening>,
    /// Its last pass asked for the end of the actor.
    pub(super) retired: bool,
    pub(super) queued_at: Option<Instant>,
    failures: u32,
    panics: VecDeque<Instant>,
    /// Panicked too often, and no pass has ended without a panic since.
    poisoned: bool,
}

/// A pass that runs.
pub(super) struct UnderWay<R> {
    pub(super) wake: Wake<R>,
    pub(super) started: Instant,
    pub(super) observer: Box<dyn ReconcileObserver>,
    pub(super) span: Span,
}

/// The timer of a duty.
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
    /// Woken, but a store it needs is not there.
    Unready,
    /// Waits for a permit.
    Queued,
    /// Has a permit; its actor has yet to notice.
    Granted,
    /// A pass is under way.
    Running,
    /// Panicked too often.
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
        Self { actor: None, generation: 0, nudged: false, reconcilers, cell }
    }

    /// Whether a duty asked for the end of the actor, and none is at work or about to be. Timers do not keep it alive: the
    /// duty that retires speaks for its key.
    pub(super) fn is_retired(&self) -> bool {
        let quiet = self.reconcilers.iter().all(|reconciler| {
            !matches!(reconciler.phase, Phase::Queued | Phase::Granted | Phase::Running | Phase::Unready)
                && reconciler.pending.is_empty()
        });
        quiet && self.reconcilers.iter().any(|reconciler| reconciler.retired)
    }

    /// What the actor does, as one word: the most telling of its duties.
    pub(super) fn activity(&self) -> Activity {
        self.reconcilers
            .iter()
            .map(ReconcilerEntry::activity)
            .max_by_key(|activity| rank(*activity))
            .unwrap_or(Activity::Idle)
    }

    /// When it acts by itself next.
    pub(super) fn next_timer(&self) -> Option<Instant> {
        self.reconcilers.iter().filter_map(|reconciler| reconciler.timer.as_ref()).map(|timer| timer.due).min()
    }

    /// Wakes that wait.
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
    /// A duty that nobody has woken yet.
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
    /// The length of the next back-off: `first` · 2ⁿ, at most `cap`.
    pub(super) fn back_off(&mut self, first: Duration, cap: Duration) -> Duration {
        let factor = 1u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        self.failures = self.failures.saturating_add(1);
        first.saturating_mul(factor).min(cap)
    }

    /// A pass ended without an error.
    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// A pass panicked, or its actor died; true if that was once too often.
    pub(super) fn panicked(&mut self, now: Instant) -> bool {
        self.panics.push_back(now);
        while self.panics.front().is_some_and(|first| now.saturating_duration_since(*first) > PANIC_WINDOW) {
            self.panics.pop_front();
        }
        self.poisoned |= self.panics.len() > MAX_PANICS;
        self.poisoned
    }

    /// A pass came to its end without a panic, which ends a quarantine.
    pub(super) fn survived(&mut self) {
        if std::mem::take(&mut self.poisoned) {
            self.panics.clear();
        }
    }

    /// How urgent the next pass is.
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

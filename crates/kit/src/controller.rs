//! What a controller brings: its key, its duties and their passes.

use std::{fmt, future::Future, rc::Rc, time::Duration};

use jiff::Timestamp;
use tokio::time::Instant;

use super::{Causes, Cell, Deadline, Moment, Priority, Signal, Wake};

/// What one actor looks after. The text form is its place in the census and in logs: `namespace/name`.
pub trait Key: Ord + Clone + Unpin + fmt::Display + fmt::Debug + 'static {}
impl<T: Ord + Clone + Unpin + fmt::Display + fmt::Debug + 'static> Key for T {}

/// A controller: one supervisor, one actor per key.
///
/// To add one: a folder with an `impl Controller` and the filters that wake its keys, and one line in `MODULES`.
pub trait Controller: Sized + 'static {
    /// What one actor looks after.
    type Key: Key;
    /// What a wake may name of a key, so that a pass need not look at all of it; `()` where a pass always does.
    type Ref: Ord + Clone + fmt::Debug + 'static;
    /// What the duties of one actor share as long as the actor lives.
    type Object: 'static;
    /// What one duty of one actor remembers between passes. Dropped after a panic: unknown means *read live*.
    type Memory: Default + Unpin + 'static;

    /// Name in the census and in logs, e.g. `managedresource`.
    fn name(&self) -> &'static str;

    /// Names of its own causes by their index, for logs and traces.
    fn causes(&self) -> &'static [&'static str] {
        &[]
    }

    /// The duties of each actor; their order gives the numbers in [`Pass::duty`]. At most 8.
    fn reconcilers(&self) -> Vec<Reconciler>;

    /// Makes what the duties of a new actor share; called by the actor's first pass. It outlives a panic of a pass, so each
    /// change of it must be whole before the next await.
    fn object(&self, key: &Self::Key) -> Self::Object;

    /// One pass of a duty. It must be safe to drop at any await.
    fn reconcile(
        self: &Rc<Self>,
        object: &Rc<Self::Object>,
        memory: &mut Self::Memory,
        reconcile: &Reconcile<Self::Key, Self::Ref>,
    ) -> impl Future<Output = Result<Outcome, Failure>>;
}

/// A named job of an actor. Made by [`Duty::new`]; the other methods say what differs from the rule.
#[derive(Debug)]
pub struct Reconciler {
    pub(super) name: &'static str,
    pub(super) permits: usize,
    pub(super) causes: Causes,
    pub(super) first_back_off: Duration,
    pub(super) max_back_off: Duration,
    pub(super) deadline: Duration,
    pub(super) requires: Vec<SyncRequirement>,
    pub(super) resync: Option<Duration>,
    pub(super) about: (&'static str, &'static str),
}

/// First back-off of a duty that says nothing else: that of the work queues of Go controllers.
const FIRST_BACK_OFF: Duration = Duration::from_millis(5);

/// Longest back-off of a duty that says nothing else: that of the work queues of Go controllers.
const MAX_BACK_OFF: Duration = Duration::from_secs(1000);

/// Deadline of a duty that says nothing else.
const DEADLINE: Duration = Duration::from_secs(180);

/// A store (or anything else with states) that a duty cannot do without.
#[derive(Clone)]
pub struct SyncRequirement {
    /// For logs and the dashboard, e.g. `source/managedresources`.
    pub name: String,
    /// Whether it is there. It looks and does nothing else: no wake, no signal, no panic.
    pub ready: Rc<dyn Fn() -> bool>,
    /// Raised when that may have changed.
    pub signal: Signal,
    /// Why it is not there, if that is known. It looks and does nothing else.
    why: Rc<dyn Fn() -> Option<String>>,
    /// Whether that it is not there is nobody's fault just now. It looks and does nothing else.
    excused: Rc<dyn Fn() -> bool>,
}

/// The key of a controller that looks after one thing as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Singleton;

/// How a pass ended, and what makes the next one.
#[derive(Debug)]
pub enum Outcome {
    /// The next wake.
    Done,
    /// After this time, or by a wake before it.
    After(Duration),
    /// After this time, or by a wake before it; but if the look then finds nothing to do, it begins anew without a pass.
    Idle(Duration, IdleCheck),
    /// At this wall time, or by a wake before it.
    At(Timestamp),
    /// When one of these has passed, or by a wake before it.
    Wait(Vec<Moment>),
    /// After a back-off, without an error.
    Again,
    /// As soon as there is a permit again: the pass used up its time slice.
    Continue,
    /// Never: the actor ends, unless one of its duties is at work or was woken meanwhile. The timers of its other duties
    /// end with it.
    Retire,
}

/// Looks whether a key that rests has nothing to do still, and how long it may rest then. It looks and does nothing else: no
/// wake, no signal, no panic. In a large installation nearly all timers end with it, so it should be cheap.
pub struct IdleCheck(Box<dyn Fn() -> Option<Duration>>);

/// Why a pass failed. The text goes to the log, to the dashboard and to metrics: never a Secret's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    text: String,
    terminal: bool,
}

/// One pass of one duty of one key. `R` is what wakes name ([`Controller::Ref`]).
pub struct Reconcile<K, R = ()> {
    /// The key.
    pub key: K,
    /// Number of the duty in [`Controller::duties`].
    pub reconciler: usize,
    /// Why it runs.
    pub wake: Wake<R>,
    /// When it must have ended.
    pub deadline: Deadline,
    pub(super) started: Instant,
    pub(super) cell: Cell,
    pub(super) now: Timestamp,
}

/// How long a pass works before it lets others have their turn (contract rule 5).
pub const TIME_SLICE: Duration = Duration::from_secs(2);

impl Reconciler {
    /// A duty with `permits` passes at once over all keys (0 counts as 1). `name` is the controller's in metrics and logs
    /// (spec 70 §9.2).
    ///
    /// All causes concern it, back-offs grow up to 1000 s, a pass may take 3 min; it needs no store and has no resync.
    pub fn new(name: &'static str, permits: usize) -> Self {
        Self {
            name,
            permits,
            causes: Causes::ALL,
            first_back_off: FIRST_BACK_OFF,
            max_back_off: MAX_BACK_OFF,
            deadline: DEADLINE,
            requires: Vec::new(),
            resync: None,
            about: ("", ""),
        }
    }

    /// Group and kind of what its keys name, for logs and traces.
    pub fn about(self, group_and_kind: (&'static str, &'static str)) -> Self {
        Self { about: group_and_kind, ..self }
    }

    /// Only these causes concern it; the kit's own always do.
    pub fn causes(self, causes: Causes) -> Self {
        Self { causes, ..self }
    }

    /// The first back-off instead of 5 ms; each next one is twice as long.
    pub fn first_back_off(self, first_back_off: Duration) -> Self {
        Self { first_back_off, ..self }
    }

    /// The longest back-off; the first is 5 ms, each next one twice as long.
    pub fn max_back_off(self, max_back_off: Duration) -> Self {
        Self { max_back_off, ..self }
    }

    /// How long a pass may take. Requests obey it; ten seconds later the kit drops the pass.
    pub fn deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// It does not run without this; more calls, more needs.
    pub fn requires(mut self, requirement: SyncRequirement) -> Self {
        self.requires.push(requirement);
        self
    }

    /// Each key gets a pass of the background lane, with [`Causes::RESYNC`], once in `period` ± 10 %, whatever other passes
    /// it has (spec 70 §8.4, `cacheResyncPeriod` of the cluster whose objects are the keys). Such a pass looks at what is in
    /// memory first, and asks nobody if there is nothing to do.
    pub fn resync(self, period: Duration) -> Self {
        Self { resync: Some(period), ..self }
    }
}

impl fmt::Display for Singleton {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("all")
    }
}

impl SyncRequirement {
    /// Something of this name that is there when `ready` says so; `signal` is raised when that may have changed.
    pub fn new(name: impl Into<String>, ready: impl Fn() -> bool + 'static, signal: Signal) -> Self {
        let (why, excused) = (Rc::new(|| None), Rc::new(|| false));
        Self { name: name.into(), ready: Rc::new(ready), signal, why, excused }
    }

    /// `why` says why it is not there, e.g. the last error of its watch; for the log.
    pub fn explained(self, why: impl Fn() -> Option<String> + 'static) -> Self {
        Self { why: Rc::new(why), ..self }
    }

    /// The time in which it must be there ([`Env::sync_timeout`](super::Env)) stands still while `excused` says so, e.g.
    /// while its cluster does not answer at all.
    pub fn excused_while(self, excused: impl Fn() -> bool + 'static) -> Self {
        Self { excused: Rc::new(excused), ..self }
    }

    pub(super) fn is_excused(&self) -> bool {
        (self.excused)()
    }

    /// Its name and why it is not there.
    pub(super) fn complaint(&self) -> String {
        match (self.why)() {
            Some(why) => format!("{}: {why}", self.name),
            None => self.name.clone(),
        }
    }

    /// Waits until it is there.
    pub async fn met(&self) {
        loop {
            let moment = self.signal.moment();
            if (self.ready)() {
                return;
            }
            Signal::raised_after(&moment).await;
        }
    }
}

impl IdleCheck {
    /// A look: for how long there is nothing to do, or `None` if there is something.
    pub fn new(idle_check: impl Fn() -> Option<Duration> + 'static) -> Self {
        Self(Box::new(idle_check))
    }

    pub(super) fn idle_check(&self) -> Option<Duration> {
        (self.0)()
    }
}

impl fmt::Debug for IdleCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Look")
    }
}

impl<K, R> Reconcile<K, R> {
    /// Whether the pass has used up its time slice and should end with [`Outcome::Continue`] at the next safe point.
    pub fn should_yield(&self) -> bool {
        self.started.elapsed() >= TIME_SLICE
    }

    /// The lane its requests go in.
    pub fn priority(&self) -> Priority {
        self.wake.priority
    }

    /// Whether it runs because of one of these.
    pub fn because_of(&self, causes: Causes) -> bool {
        self.wake.causes.meets(causes)
    }

    /// Sets the actor's line in the census, e.g. `20 objects, applied`.
    pub fn note(&self, line: impl Into<String>) {
        let line = line.into();
        self.cell.update(self.now, |state| state.line = line);
    }

    /// Sets the actor's further lines in the census, label and text. The caller bounds their number.
    pub fn detail(&self, details: Vec<(String, String)>) {
        self.cell.detail(self.now, details);
    }
}

impl Failure {
    /// A failure with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), terminal: false }
    }

    /// A failure with this text that trying again cannot mend: somebody must change something first, and the next wake
    /// tells of that.
    pub fn terminal(text: impl Into<String>) -> Self {
        Self { text: text.into(), terminal: true }
    }

    /// Whether trying again cannot mend it.
    pub(super) fn is_terminal(&self) -> bool {
        self.terminal
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(error.to_string())
    }
}

impl fmt::Debug for SyncRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Need").field("name", &self.name).finish()
    }
}

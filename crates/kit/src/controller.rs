use std::{fmt, future::Future, rc::Rc, time::Duration};

use jiff::Timestamp;
use tokio::time::Instant;

use super::{Causes, Cell, Deadline, Moment, Priority, Signal, Wake};

/// Names what one actor reconciles. The text form is its path in the status registry and in logs: `namespace/name`.
pub trait Key: Ord + Clone + Unpin + fmt::Display + fmt::Debug + 'static {}
impl<T: Ord + Clone + Unpin + fmt::Display + fmt::Debug + 'static> Key for T {}

/// A controller: one supervisor, one actor per key. To add one, see the crate documentation. Implement
/// [`GeneralController`] instead if wakes name parts of a key, or if the reconcilers of an actor share state.
pub trait Controller: Sized + 'static {
    /// Names what one actor reconciles.
    type Key: Key;
    /// What one reconciler of one actor remembers between reconciles. Dropped after a panic: unknown means *read live*.
    type Memory: Default + Unpin + 'static;

    /// Name in the status registry and in logs, e.g. `managedresource`; by default that of the first reconciler.
    fn name(&self) -> &'static str {
        self.reconcilers().first().map_or("", |reconciler| reconciler.name)
    }

    /// Names of the controller's own causes by their index, for logs and traces.
    fn causes(&self) -> &'static [&'static str] {
        &[]
    }

    /// The reconcilers of each actor, at most 8. Their order gives the numbers in [`Reconcile::reconciler`].
    fn reconcilers(&self) -> Vec<Reconciler>;

    /// Reconciles a key. The future must be safe to drop at any await.
    fn reconcile(
        self: &Rc<Self>,
        memory: &mut Self::Memory,
        reconcile: &Reconcile<Self::Key>,
    ) -> impl Future<Output = Result<Outcome, Failure>>;
}

/// A controller in its general form, which the runtime uses. Each [`Controller`] is one without refs and shared state.
pub trait GeneralController: Sized + 'static {
    /// As [`Controller::Key`].
    type Key: Key;
    /// Names a part of a key in a wake, so that a reconcile can skip the rest.
    type Ref: Ord + Clone + fmt::Debug + 'static;
    /// State that the reconcilers of one actor share, for the life of the actor.
    type Object: 'static;
    /// As [`Controller::Memory`].
    type Memory: Default + Unpin + 'static;

    /// As [`Controller::name`].
    fn name(&self) -> &'static str;

    /// As [`Controller::causes`].
    fn causes(&self) -> &'static [&'static str] {
        &[]
    }

    /// As [`Controller::reconcilers`].
    fn reconcilers(&self) -> Vec<Reconciler>;

    /// Makes the shared state of a new actor; the actor's first reconcile calls it. It survives a panic of a reconcile,
    /// so complete each change of it before the next await.
    fn object(&self, key: &Self::Key) -> Self::Object;

    /// As [`Controller::reconcile`].
    fn reconcile(
        self: &Rc<Self>,
        object: &Rc<Self::Object>,
        memory: &mut Self::Memory,
        reconcile: &Reconcile<Self::Key, Self::Ref>,
    ) -> impl Future<Output = Result<Outcome, Failure>>;

    /// Describes the object of `key` for the dashboard: the name of a field, e.g. `bundle`, and its value; `None` if
    /// there is nothing to add to the actor's row. `object` is the shared state, if the actor has made it. Runs on the
    /// controllers' thread between other work: it must not wake, signal or panic, must take a few milliseconds at most,
    /// and must bound the size of its value. The value must not contain contents of objects.
    fn details(
        self: &Rc<Self>,
        _key: &Self::Key,
        _object: Option<&Rc<Self::Object>>,
    ) -> Option<(&'static str, serde_json::Value)> {
        None
    }
}

impl<C: Controller> GeneralController for C {
    type Key = <C as Controller>::Key;
    type Ref = ();
    type Object = ();
    type Memory = <C as Controller>::Memory;

    fn name(&self) -> &'static str {
        Controller::name(self)
    }

    fn causes(&self) -> &'static [&'static str] {
        Controller::causes(self)
    }

    fn reconcilers(&self) -> Vec<Reconciler> {
        Controller::reconcilers(self)
    }

    fn object(&self, _: &<C as Controller>::Key) {}

    fn reconcile(
        self: &Rc<Self>,
        _: &Rc<()>,
        memory: &mut <C as Controller>::Memory,
        reconcile: &Reconcile<<C as Controller>::Key>,
    ) -> impl Future<Output = Result<Outcome, Failure>> {
        Controller::reconcile(self, memory, reconcile)
    }
}

/// A named job of an actor. [`Reconciler::new`] sets defaults; the other methods override them.
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

const FIRST_BACK_OFF: Duration = Duration::from_millis(5); // default of the work queues of Go controllers

const MAX_BACK_OFF: Duration = Duration::from_secs(1000);

const DEADLINE: Duration = Duration::from_secs(180);

/// A cache (or anything else with states) that a reconciler needs before it runs.
#[derive(Clone)]
pub struct SyncRequirement {
    /// For logs and the dashboard, e.g. `source/managedresources`.
    pub name: String,
    /// Returns true while the cache is synced. Must not have side effects: no wake, no signal, no panic.
    pub ready: Rc<dyn Fn() -> bool>,
    /// Raised when the result of `ready` may have changed.
    pub signal: Signal,
    /// Returns why the cache is not synced, if known. Must not have side effects.
    why: Rc<dyn Fn() -> Option<String>>,
    /// Returns true while being out of sync is expected, e.g. while the cluster is down. Must not have side effects.
    excused: Rc<dyn Fn() -> bool>,
}

/// The key of a controller that reconciles everything at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Singleton;

/// How a reconcile ended, and what starts the next one.
#[derive(Debug)]
pub enum Outcome {
    /// Reconcile at the next wake.
    Done,
    /// Reconcile after this time, or at an earlier wake.
    After(Duration),
    /// As `After`, but if the check then finds nothing to do, the time starts again without a reconcile.
    Idle(Duration, IdleCheck),
    /// Reconcile at this wall time, or at an earlier wake.
    At(Timestamp),
    /// Reconcile when one of these moments has passed, or at an earlier wake.
    Wait(Vec<Moment>),
    /// Reconcile after a back-off; not an error.
    Again,
    /// Reconcile as soon as there is a permit: the time slice is used up.
    Continue,
    /// Stop this actor, with the timers of its other reconcilers, unless one of them is running or was woken meanwhile.
    Retire,
}

/// Whether, and how long, an idle key has nothing to do. Must not wake, signal or panic. Cheap: most timers end here.
pub struct IdleCheck(Box<dyn Fn() -> Option<Duration>>);

/// Why a reconcile failed. The text goes to the log, the dashboard and metrics: never put a Secret's content into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    text: String,
    terminal: bool,
}

/// One reconcile of one reconciler of one key. `R` is what wakes name ([`GeneralController::Ref`]).
pub struct Reconcile<K, R = ()> {
    /// The key.
    pub key: K,
    /// Index of the reconciler in [`Controller::reconcilers`].
    pub reconciler: usize,
    /// Why the reconcile runs.
    pub wake: Wake<R>,
    /// When the reconcile must have ended.
    pub deadline: Deadline,
    pub(super) started: Instant,
    pub(super) cell: Cell,
    pub(super) now: Timestamp,
}

/// How long a reconcile works before it lets others run (contract rule 5).
pub const TIME_SLICE: Duration = Duration::from_secs(2);

impl Reconciler {
    /// Creates a reconciler with `permits` concurrent reconciles over all keys (0 counts as 1). `name` is the
    /// controller's name in metrics and logs (spec 70 §9.2). Defaults: all causes concern it, back-offs up to 1000 s, a
    /// deadline of 3 min, no required cache, no resync.
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

    /// Sets group and kind of the objects its keys name, for logs and traces.
    pub fn about(self, group_and_kind: (&'static str, &'static str)) -> Self {
        Self { about: group_and_kind, ..self }
    }

    /// Restricts the causes that concern it; the kit's own always do.
    pub fn causes(self, causes: Causes) -> Self {
        Self { causes, ..self }
    }

    /// Sets the first back-off (default 5 ms); each further one is twice as long.
    pub fn first_back_off(self, first_back_off: Duration) -> Self {
        Self { first_back_off, ..self }
    }

    /// Sets the longest back-off.
    pub fn max_back_off(self, max_back_off: Duration) -> Self {
        Self { max_back_off, ..self }
    }

    /// Sets how long a reconcile may take. Requests obey it; ten seconds later the kit drops the reconcile.
    pub fn deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// Adds a required cache.
    pub fn requires(mut self, requirement: SyncRequirement) -> Self {
        self.requires.push(requirement);
        self
    }

    /// Each key gets a low-priority reconcile with [`Causes::RESYNC`] once per `period` ± 10 %, whatever other
    /// reconciles it has (spec 70 §8.4, `cacheResyncPeriod` of the cluster whose objects are the keys). Such a
    /// reconcile compares caches first, and sends no request if there is nothing to do.
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
    /// Creates a requirement that is met while `ready` returns true. `signal` is raised when that may have changed.
    pub fn new(name: impl Into<String>, ready: impl Fn() -> bool + 'static, signal: Signal) -> Self {
        let (why, excused) = (Rc::new(|| None), Rc::new(|| false));
        Self { name: name.into(), ready: Rc::new(ready), signal, why, excused }
    }

    /// Sets `why`, which returns why the cache is not synced, e.g. the last error of its watch; for the log.
    pub fn explained(self, why: impl Fn() -> Option<String> + 'static) -> Self {
        Self { why: Rc::new(why), ..self }
    }

    /// The time limit for the first sync ([`Env::sync_timeout`](super::Env)) stands still while `excused` returns true.
    pub fn excused_while(self, excused: impl Fn() -> bool + 'static) -> Self {
        Self { excused: Rc::new(excused), ..self }
    }

    pub(super) fn is_excused(&self) -> bool {
        (self.excused)()
    }

    pub(super) fn complaint(&self) -> String {
        match (self.why)() {
            Some(why) => format!("{}: {why}", self.name),
            None => self.name.clone(),
        }
    }

    /// Waits until it is met.
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
    /// Creates a check. It returns how long the key stays idle, or `None` if there is something to do.
    pub fn new(idle_check: impl Fn() -> Option<Duration> + 'static) -> Self {
        Self(Box::new(idle_check))
    }

    pub(super) fn run(&self) -> Option<Duration> {
        (self.0)()
    }
}

impl fmt::Debug for IdleCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdleCheck")
    }
}

impl<K, R> Reconcile<K, R> {
    /// Returns true when the time slice is used up: end with [`Outcome::Continue`] at the next safe point.
    pub fn should_yield(&self) -> bool {
        self.started.elapsed() >= TIME_SLICE
    }

    /// The priority of its requests.
    pub fn priority(&self) -> Priority {
        self.wake.priority
    }

    /// Returns true if one of these causes started it.
    pub fn because_of(&self, causes: Causes) -> bool {
        self.wake.causes.meets(causes)
    }

    /// Sets the actor's line in the status registry, e.g. `20 objects, applied`.
    pub fn note(&self, line: impl Into<String>) {
        let line = line.into();
        self.cell.update(self.now, |state| state.line = line);
    }

    /// Sets the actor's further lines in the status registry, label and text. The caller bounds their number.
    pub fn detail(&self, details: Vec<(String, String)>) {
        self.cell.detail(self.now, details);
    }
}

impl Failure {
    /// Creates a failure with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), terminal: false }
    }

    /// Creates a failure that a retry cannot mend: somebody must change something first, which causes a wake.
    pub fn terminal(text: impl Into<String>) -> Self {
        Self { text: text.into(), terminal: true }
    }

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
        f.debug_struct("SyncRequirement").field("name", &self.name).finish()
    }
}

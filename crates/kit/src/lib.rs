//! The actor runtime: a supervisor per controller, an actor per object key, a keyed work queue, permits and timers.
//! This page is the contract. Each rule has tests in `tests`, named after its number (`rule_4_…`). Where to start
//! reading: you implement [`Controller`] and get a [`Supervised`]. `WorkQueue` holds everything between a wake and a
//! reconcile; `QueueEntry` and `ConcurrencyLimiter` are its pure parts. `ObjectActor` runs the reconciles.
//! ```text
//!  event handlers, timers, signals ──wake──► WorkQueue: key → QueueEntry { pending, retained, timer, phase }
//!                                       │ permit of the reconciler, from the ConcurrencyLimiter
//!                                       ▼ one empty nudge
//!                                     ObjectActor ──► reconcile(key, wake, memory) ──► outcome
//!                                       └─ outcome: next timer, signal or position in the queue ◄─┘
//! ```
//!
//! # A controller
//!
//! In the program a controller is a folder with an `impl Controller`, the watches that wake its keys, and one line in
//! `CONTROLLERS` (`docs/adding-a-controller.md`). A complete example:
//! ```
//! use std::{cell::RefCell, collections::BTreeMap, rc::Rc, time::Duration};
//! use kit::{testing::{settle, universe_on}, *};
//!
//! /// Keeps copies equal to their originals.
//! #[derive(Default)]
//! struct Copier { originals: RefCell<BTreeMap<String, u32>>, copies: RefCell<BTreeMap<String, u32>> }
//!
//! impl Controller for Copier {
//!     type Key = String;
//!     type Memory = u32; // what a reconciler remembers between reconciles: here, how often it copied
//!
//!     fn name(&self) -> &'static str { "copier" }
//!
//!     fn reconcilers(&self) -> Vec<Reconciler> {
//!         vec![Reconciler::new("copier", 5).deadline(Duration::from_secs(30))]
//!     }
//!
//!     async fn reconcile(self: &Rc<Self>, times: &mut u32, reconcile: &Reconcile<String>) -> Result<Outcome, Failure> {
//!         let Some(original) = self.originals.borrow().get(&reconcile.key).copied() else {
//!             self.copies.borrow_mut().remove(&reconcile.key);
//!             return Ok(Outcome::Retire); // the original is gone: stop this actor
//!         };
//!         *times += 1;
//!         self.copies.borrow_mut().insert(reconcile.key.clone(), original);
//!         reconcile.note(format!("copied {times} times"));
//!         Ok(Outcome::After(Duration::from_secs(3600)))
//!     }
//! }
//!
//! /// An event handler: a pure function of old and new. Returns the key to wake.
//! fn event_handler(key: &str, old: Option<u32>, new: Option<u32>) -> Option<(String, Wake)> {
//!     (old != new).then(|| (key.to_owned(), Wake::high(Causes::OBJECT)))
//! }
//!
//! let paused = || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
//! universe_on(paused, 1, |universe| async move {
//!     let copier = Rc::new(Copier::default());
//!     let supervised = Supervised::start(copier.clone(), &universe.env); // as a registration's `start` does
//!
//!     let old = copier.originals.borrow_mut().insert("a".to_owned(), 7); // a watch changes the store first,
//!     if let Some((key, wake)) = event_handler("a", old, Some(7)) { // then calls the event handler, in the same turn
//!         supervised.wake(&key, wake);
//!     }
//!     settle().await;
//!     assert_eq!(copier.copies.borrow().get("a"), Some(&7));
//!
//!     assert!(supervised.stop(Duration::from_secs(4)).await); // all reconciles ended by themselves
//! });
//! ```
//!
//! # The contract
//!
//! A *reconciler* is a named job of a controller's actors. It has its own reconcile function, permits, back-off, timer
//! and memory. A *priority* says how urgent work is ([`Priority`]).
//!
//! 1. **Wakes are state.** Per key and reconciler, the work queue holds the union of all wakes since the last reconcile
//!    began: causes as bits, up to [`MAX_REFS`] refs by name (more become *all*), and the highest priority. The actor
//!    gets at most one empty nudge. So a wake cannot overflow, block or get lost. It survives a panicking reconcile and
//!    the death of the actor, because the queue entry belongs to neither. A wake without a cause does nothing. Only
//!    what needs an answer is a message; [`post`] is the only way to send one, and returns false when the mailbox is
//!    full. Event handlers and listeners hold a [`WeakSupervised`]: it keeps nothing alive and does nothing once the
//!    controller is gone.
//! 2. **One reconcile at a time** per key and reconciler; wakes during it cause exactly one more. The wake of a
//!    reconcile that left work undone (error, panic, [`Outcome::Again`], [`Outcome::Wait`], [`Outcome::Continue`]) is
//!    *retained* and merged into the next one's wake, unless the error is terminal. Reconcilers of one key run
//!    concurrently, in no order. Whether a reconcile looks at some objects only is up to the controller, which needs a
//!    full success for the present state first.
//! 3. **A wake is never ahead of its store.** A watch changes store and indexes, then calls the event handler, in the
//!    same turn. After a lost watch, the new list becomes its differences to the store; deletions carry the last known
//!    state. Event handlers are pure functions of old object, new object and indexes. Besides them only timers and
//!    signals wake. The watches are in the crate `cluster`; the kit does not depend on them.
//! 4. **The outcome schedules the next reconcile.** `Done`: at the next wake. `After(time)`: after this time.
//!    `Idle(time, check)`: the same, but the check runs first. While it finds nothing to do, the time starts again
//!    without a reconcile. `At(wall time)`: the clock is read every 10 min, because it may jump. `Wait(moments)`: when
//!    a [`Signal`] was raised after its [`Moment`]. None is missed, because the moment is taken before reading. `Again`
//!    and errors: after a back-off of 5 ms · 2ⁿ up to the reconciler's cap, which every other outcome resets. A
//!    [terminal](Failure::terminal) error has no back-off: it is reported and then counts as `Done`. `Continue`: at
//!    once, at the end of the queue. `Retire`: the actor ends when no reconciler of its key is running or woken; timers
//!    of other reconcilers do not keep it. Nothing else ends an actor, and the next wake starts a new actor. A
//!    reconciler has one timer; an earlier wake replaces it. Times are cut to one year. In addition, a reconciler with
//!    a [resync](Reconciler::resync) gets a low-priority wake per key once per period ± 10 %, each key at its own time.
//!    Other reconciles do not postpone it, and retired keys get none.
//! 5. **Permits.** Each reconciler has its own permits (0 counts as 1). High priority goes first, first come first
//!    served within one priority. Each eighth permit goes to low priority if a key waits there. A high-priority wake
//!    moves a key that waits with low priority. A key that waits for a timer, a store or a signal holds no permit.
//!    After [`TIME_SLICE`] a reconcile should end with `Continue` ([`Reconcile::should_yield`]). Its next slice has its
//!    own deadline, so large work makes progress.
//! 6. **A panic** in a reconcile, or while its object or memory is made, counts as an error. The memory is dropped, and
//!    an absent memory means *read live*. The object stays, because other reconcilers use it. A panic elsewhere kills
//!    the actor: its key gets a new actor, its running reconciles end as errors, and each reconciler is woken with
//!    [`Causes::RESTARTED`], which asks for a full reconcile. A panicking listener of a signal does not keep the change
//!    from the listeners after it. More than five panics or deaths within 10 min put a reconciler of a key into
//!    *quarantine*: it runs every 10 min, and when its object changes ([`Causes::OBJECT`]), until a reconcile ends
//!    without a panic. Two panics at once, such as a destructor that panics while a panic unwinds, end the process. So
//!    does the death of a supervisor or of another [`Indispensable`] actor, through [`Env::fatal`] and with a text that
//!    names it.
//! 7. **Deadline.** Requests and CPU jobs obey [`Reconcile::deadline`], so a reconcile ends by itself and keeps its
//!    memory. Ten seconds later the kit drops the reconcile: an error, the memory is gone, the next reconcile has
//!    `RESTARTED`. So a reconcile must be safe to drop at each await, and a write that was cut off is *maybe done*.
//! 8. **Required caches.** A reconciler gets no permit until all caches of [`Reconciler::requires`] are synced. Wakes
//!    gather meanwhile, and a cache that loses sync stops the keys that still queue. For a store that a reconciler can
//!    do without, use `Wait`, a live read or a report. A required cache that is not synced [`Env::sync_timeout`] after
//!    the controller's start ends the process. This time stands still while the requirement is
//!    [excused](SyncRequirement::excused_while). Later the cache may lose sync for any length of time.
//! 9. **Leadership** is outside of the kit. Supervisors start when the process leads; taking over is a first list out
//!    of stores that are already filled. Every request that is not a read passes the fence (crate `cluster`). Losing
//!    the lease ends the process.
//! 10. **Stopping**: [`Supervised::stop`] starts no more reconciles, not even for permits already granted. It waits for
//!     the running ones, then drops them with their actors, timers and listeners. Later wakes do nothing.
//! 11. **Everything can be observed.** Shared cells ([`StatusRegistry`]) hold activity, running reconciles, waiting
//!     wakes and their high-water mark, restarts, last error, next timer and a line written by the reconcile. Readers
//!     of cells ask no actor. Only the last reconciles, the causes of waiting wakes and the controller's description of
//!     an object come from the supervisor ([`StatusRegistry::ask`]), one question at a time and within a time limit. Queue depths, waits, durations and results go to a [`ReconcilerObserver`], which makes one
//!     [`ReconcileObserver`] per reconcile. That observer gets the result or, if the controller ends before, is
//!     dropped.
//! 12. **No globals.** Clock, random numbers, status registry, observers and CPU workers are in [`Env`]. `testing`
//!     makes an `Env` with virtual time and a seed; the same seed gives the same run, byte for byte. [`Cpu::run`] runs
//!     small jobs, and all jobs of tests, in place, and others on the blocking pool, a bounded number at once. A job's
//!     panic is an error of its caller. No order comes from a hash map.
//!
//! Reentrancy: while the work queue is borrowed, only observers, [`SyncRequirement::ready`] and an [`IdleCheck`] run,
//! which only read. Object construction, reconciles, listeners and destructors may wake keys and raise signals.
//!
//! # Facts about actix 0.13
//!
//! Measured in `tests/actix_facts.rs`:
//!
//! | fact | consequence |
//! |---|---|
//! | a panicking handler ends only its actor; its mailbox is lost | wakes are outside actors; never `panic = "abort"` |
//! | `actix::Supervisor` restarts after `stop()`, not after a panic | a guard field reports the death |
//! | a mailbox holds 16; `do_send` ignores that | one nudge at a time; `try_send` only |
//! | stopping drops queued messages and spawned futures | state that matters is in the queue entry |
//! | `ctx.wait` stacks and makes the actor deaf | phases of a queue entry and spawned futures instead |
//! | timers follow tokio's clock; other arbiters have their own | a test universe has one arbiter |

mod actor_details;
mod actor_link;
mod clock;
mod concurrency_limiter;
mod controller;
pub mod credentials;
mod deaths;
pub mod duration;
mod env;
mod fatal;
mod hash;
mod history;
pub mod json;
mod mailbox;
mod object;
mod object_summary;
mod priority;
mod queue_entry;
pub mod quote;
mod signal;
mod span;
mod status_registry;
mod supervisor;
mod sync_requirements;
mod wake;
mod work_queue;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;

pub use actor_details::{ActorDetails, PastReconcile, PendingReconcile, PendingState};
pub use clock::{Clock, Deadline, Random};
pub use controller::{
    Controller, Failure, GeneralController, IdleCheck, Key, Outcome, Reconcile, Reconciler, Singleton, SyncRequirement,
    TIME_SLICE,
};
pub use env::{Cpu, Env, JobPanicked, Observers, ReconcileObserver, ReconcileResult, ReconcilerObserver, Unobserved};
pub use fatal::{Fatal, Indispensable};
pub use hash::hash_of;
pub use mailbox::post;
pub use object_summary::{ConditionSummary, ObjectSummary, Tone};
pub use priority::Priority;
pub use signal::{Listening, Moment, Signal};
pub use status_registry::{Activity, ActorState, Cell, Follower, RegistryChanges, Role, StatusRegistry, Unanswered};
pub use supervisor::{Supervised, WeakSupervised};
pub use wake::{Causes, MAX_REFS, Refs, Wake};

//! The runtime of the actors: a supervisor per controller, an actor per object, wakes, permits, timers.
//!
//! This page is the contract. Each rule has a test of its own in `tests`, named after its number.
//!
//! Where to start reading: [`Controller`] is what a controller brings, [`Supervised`] what it gets. Then `board` (all that
//! happens between a wake and a pass), `slot` and `governor` (its pure parts), `object` (the actor).
//!
//! ```text
//!  filters, timers, signals ──wake──► board: key → slot { pending, retained, timer, phase }   Supervised, board, slot
//!                                       │ permit of the duty                                  governor
//!                                       ▼ one empty nudge
//!                                     object actor ──► pass(key, wake, memory) ──► outcome    object, controller
//!                                       └──────── outcome: next timer, signal, place in the queue ◄─┘
//! ```
//!
//! # A controller
//!
//! In the program a controller is a module: a folder with an `impl Controller` and the watches that wake its keys, and one
//! line in `MODULES` (`docs/adding-a-controller.md`). What the kit asks of one, whole:
//!
//! ```
//! use std::{cell::RefCell, collections::BTreeMap, rc::Rc, time::Duration};
//! use kit::{testing::{settle, universe_on}, *};
//!
//! /// Keeps copies as their originals are.
//! #[derive(Default)]
//! struct Copier { originals: RefCell<BTreeMap<String, u32>>, copies: RefCell<BTreeMap<String, u32>> }
//!
//! impl Controller for Copier {
//!     type Key = String;
//!     type Ref = (); // what a wake could name
//!     type Object = (); // what the duties of a key share
//!     type Memory = u32; // what a duty remembers: here, how often it copied
//!
//!     fn name(&self) -> &'static str { "copier" }
//!
//!     fn duties(&self) -> Vec<Duty> {
//!         vec![Duty::new("copier", 5).deadline(Duration::from_secs(30))]
//!     }
//!
//!     fn object(&self, _: &String) {}
//!
//!     async fn pass(self: &Rc<Self>, _: &Rc<()>, times: &mut u32, pass: &Pass<String>) -> Result<Outcome, Failure> {
//!         let Some(original) = self.originals.borrow().get(&pass.key).copied() else {
//!             self.copies.borrow_mut().remove(&pass.key);
//!             return Ok(Outcome::Retire); // nothing left to look after
//!         };
//!         *times += 1;
//!         self.copies.borrow_mut().insert(pass.key.clone(), original);
//!         pass.note(format!("copied {times} times"));
//!         Ok(Outcome::After(Duration::from_secs(3600)))
//!     }
//! }
//!
//! /// Which change concerns which key: a pure function of old and new.
//! fn filter(key: &str, old: Option<u32>, new: Option<u32>) -> Option<(String, Wake)> {
//!     (old != new).then(|| (key.to_owned(), Wake::live(Causes::OBJECT)))
//! }
//!
//! let paused = || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
//! universe_on(paused, 1, |universe| async move {
//!     let copier = Rc::new(Copier::default());
//!     let supervised = Supervised::start(copier.clone(), &universe.env); // what a module does when it leads
//!
//!     let old = copier.originals.borrow_mut().insert("a".to_owned(), 7); // a watch: first the store,
//!     if let Some((key, wake)) = filter("a", old, Some(7)) { // then the filter, in the same turn
//!         supervised.wake(&key, wake);
//!     }
//!     settle().await;
//!     assert_eq!(copier.copies.borrow().get("a"), Some(&7));
//!
//!     assert!(supervised.stop(Duration::from_secs(4)).await); // all passes ended by themselves
//! });
//! ```
//!
//! # The contract
//!
//! A *duty* is a named job of a controller's actors, with a pass, permits, back-off, timer and memory of its own. A *lane*
//! says how urgent work is ([`Lane`]).
//!
//! 1. **Wakes are state.** Per key and duty a slot holds the union of all wakes since the last pass began: causes as bits,
//!    up to [`MAX_REFS`] things by name and then *all*, the most urgent lane. The actor gets at most one empty nudge. So a
//!    wake cannot overflow, block or get lost, and it survives the panic of a pass and the death of an actor, because the
//!    slot is in neither. A wake without a cause is none. Only what needs an answer is a message; [`post`] is the one way to
//!    send it, and says when a mailbox is full. Filters and listeners hold a [`WeakSupervised`], which keeps nothing alive and
//!    does nothing once the controller is gone. (`wake`, `slot`, `mailbox`, `supervisor`)
//! 2. **One pass at a time** per key and duty; a wake meanwhile makes exactly one more. What a pass did not get done (error,
//!    panic, [`Outcome::Again`], [`Outcome::Wait`], [`Outcome::Continue`]) is *retained* and joins the next one's wake, unless
//!    the error is terminal. Duties of one key run side by side, in no order. A pass over some objects only is the controller's business: it must have had
//!    a full success for the present state before. (`slot`, `board/passes`)
//! 3. **A wake is never ahead of its store.** A watch changes store and indexes, then calls the filter, in one turn; a new
//!    list after a lost watch becomes the differences to the store, deletions with their last known state. Filters are pure
//!    functions of old, new and indexes. Besides them only timers and signals wake. The watches are in
//!    the crate `cluster`; the kit knows nothing of them.
//! 4. **The result makes the next pass.** `Done`: the next wake. `After(time)`. `Rest(time, look)`, the same,
//!    but for a look right before the pass: as long as it finds nothing to do, the time begins anew and there is no pass.
//!    `At(wall time)`, which looks at the clock every 10 min, because it may jump. `Wait(moments)`: when a [`Signal`] was
//!    raised after a [`Moment`]; none is missed, because a moment is taken before looking. `Again` and errors: back-off
//!    5 ms · 2ⁿ up to the duty's cap; every other result begins anew. A [terminal](Failure::terminal) error has none: it is
//!    told, and then it is as `Done`. `Continue`: at once, at the end of the queue.
//!    `Retire`: the actor ends when no duty of its key is at work or woken; timers of other duties do not keep it. Nothing
//!    else ends an actor, and the next wake starts a new one. A duty has one timer; an earlier wake replaces it. Times
//!    beyond a year are cut to a year. Beside all that, a duty with a [resync](Duty::resync) gets a wake in the background
//!    once in its period ± 10 %, each key at a time of its own; other passes do not put it off, and a key that retired gets
//!    none. (`controller`, `board/passes`, `board/timers`)
//! 5. **Permits.** Each duty has its own (0 counts as 1). Live before background, first come first served within a lane, each
//!    eighth permit to the background if somebody waits there; a live wake moves a key that waits in the background. Who
//!    waits for a timer, a store or a signal holds none. After [`TIME_SLICE`] a pass should end with `Continue`
//!    ([`Pass::should_yield`]); its next slice has a deadline of its own, so large work gets on. (`governor`, `board`)
//! 6. **A panic** in a pass, or while its object or memory is made, counts as an error; the memory is dropped, and an absent
//!    memory means *read live*. The object stays, because other duties use it. A panic elsewhere kills the actor: its key gets
//!    a new one, its passes under way end as errors, and each duty is woken with [`Causes::RESTARTED`], which asks for a full
//!    pass. A listener of a signal is guarded by itself: those behind it hear of the change nevertheless. More than five panics
//!    or deaths within 10 min put a duty of a key into *quarantine*: it is tried every 10 min, and when its object changes
//!    ([`Causes::OBJECT`]), until a pass ends without a panic. Two panics at once, as of a destructor while a panic unwinds,
//!    end the process; so does the death of a supervisor, and of whatever else is [`Indispensable`], by [`Env::fatal`] and
//!    with a text that names it. (`object`, `deaths`, `slot`, `signal`, `board/passes`,
//!    `board/timers`, `fatal`)
//! 7. **Deadline.** A value ([`Pass::deadline`]) that requests and CPU jobs obey, so that a pass ends by itself and keeps its
//!    memory. Ten seconds later the kit drops the pass: an error, memory gone, next pass with `RESTARTED`. So a pass must be
//!    safe to drop at each await, and a write that was cut off is *maybe done*. (`object`, `clock`)
//! 8. **Needs.** Without the stores of [`Duty::needs`] a duty gets no permit; wakes gather meanwhile, and a store that goes
//!    away stops those who still queue. What a duty can do without is a `Wait`, a live read or a report. A need that is not
//!    there [`Env::sync_timeout`] after the controller's start ends the process; that time stands still while the need is
//!    [excused](Need::excused_while). Later it may go away for as long as it likes. (`board`, `needs`)
//! 9. **Leadership** is not the kit's. Supervisors are started when the process leads, and taking over is a first list out of
//!    stores that are filled already. Requests that are not reads pass the fence (crate `cluster`). Losing the
//!    lease ends the process.
//! 10. **Stopping**: [`Supervised::stop`] begins no pass any more, not even for permits already given, waits for those under
//!     way, then drops them with their actors, timers and listeners. Wakes after that do nothing. (`supervisor`)
//! 11. **Everything can be seen** without asking an actor: activity, passes under way, waiting wakes and their high-water
//!     mark, restarts, last error, next timer and a line of the pass's own, in shared cells ([`Census`]); queue depths, waits,
//!     durations and results go to a [`DutyObserver`], which makes a [`PassObserver`] of each pass that begins; that one
//!     is told the end or, if the controller ends before, dropped. (`census`,
//!     `env`, `board`)
//! 12. **No globals.** Clock, random numbers, census, observers and CPU workers are in [`Env`]; `testing` makes one with
//!     virtual time and a seed, and the same seed does the same, byte for byte. [`Cpu::run`]: small jobs and tests on the
//!     spot, else on the blocking pool, a bounded number at once; a panic is an error of the caller. No order comes from a
//!     hash map. (`env`, `clock`)
//!
//! Reentrancy: while the board is held, no code of a controller runs but [`Need::ready`] and a [`Look`], which only look.
//! Making an object, a pass, a listener and a destructor may wake keys and raise signals.
//!
//! # What it relies on
//!
//! Measured in `tests/actix_facts.rs`:
//!
//! | actix 0.13 | so |
//! |---|---|
//! | a panicking handler ends only its actor; its mailbox is lost | wakes live outside of actors; never `panic = "abort"` |
//! | `actix::Supervisor` restarts after `stop()`, not after a panic | a guard among the actor's fields tells of its death |
//! | a mailbox holds 16; `do_send` ignores that | one nudge at a time; `try_send` only |
//! | stopping drops what is queued and what was spawned | what matters is in the slot |
//! | `ctx.wait` stacks and makes the actor deaf | phases of a slot and spawned futures instead |
//! | timers follow tokio's clock; other arbiters have their own | a universe has one arbiter |

mod clock;
mod concurrency_limiter;
mod controller;
mod deaths;
mod env;
mod fatal;

pub mod json;
mod mailbox;
mod object;
mod priority;
mod queue_entry;
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

pub use clock::{Clock, Deadline, Random};
pub use controller::{
    Controller, Failure, IdleCheck, Key, Outcome, Reconcile, Reconciler, Singleton, SyncRequirement, TIME_SLICE,
};
pub use env::{Cpu, Env, JobPanicked, Observers, ReconcileObserver, ReconcileResult, ReconcilerObserver, Unobserved};
pub use fatal::{Fatal, Indispensable};
pub use mailbox::post;
pub use priority::Priority;
pub use signal::{Listening, Moment, Signal};
pub use status_registry::{Activity, ActorState, Cell, Role, StatusRegistry};
pub use supervisor::{Supervised, WeakSupervised};
pub use wake::{Causes, MAX_REFS, Refs, Wake};

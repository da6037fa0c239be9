//! Systematic faults: a scenario runs again for each of its requests and events and each kind of fault, in a fresh world.
//!
//! The first run has no fault. It counts the requests and events of the program, and records the end state. Each other run has
//! exactly one fault. It must have the same end state, and the program must not delete what it does not delete without a fault.
//!
//! Start at [`Scenario`]. `driver` runs it, `faults` has the kinds of faults, `observer` injects one and watches the program,
//! `end_state` compares end states. The other modules have the scenarios of gardener-resource-manager, and
//! `controller_manager::systematic` has the scenarios of gardener-controller-manager. The life of a ManagedResource is in
//! [`crate::faults`].
//!
//! | Runs with | How |
//! |---|---|
//! | a sample of the faults, always the same | `cargo test --test simulation systematic` |
//! | all faults | `ALL_FAULTS=1 cargo test --test simulation systematic` |
//! | all faults of one scenario | `SCENARIO=bastions cargo test …` |
//! | all faults of one kind | `FAULT=event-lost cargo test …` |
//! | one fault | `SCENARIO=bastions FAULT=event-lost INDEX=3 cargo test …` |
//!
//! A scenario prints how many runs it had, which `-- --nocapture` shows. A failed run prints how to repeat it.

mod certificates;
mod driver;
mod end_state;
mod faults;
mod garbage;
mod health;
mod invalidation;
mod istio;
mod nodes;
mod observer;
mod policies;
mod start;
mod tokens;

use std::{future::Future, rc::Rc};

use serde_json::Value;
use sim::Sim;

use crate::world::{PROGRAM, World, world};

/// A world with one program, in which scenarios take place.
pub(crate) trait Stage: Sized + 'static {
    /// The user of the program.
    const USER: &'static str;

    /// Runs something in a fresh world, whose program is not yet started.
    fn enter<F: Future>(play: impl FnOnce(Rc<Self>) -> F) -> F::Output;

    /// Returns its API server.
    fn sim(&self) -> &Sim;

    /// Starts the program.
    async fn start_program(&self);
}

/// A short story of one controller: what exists before its life, what happens beside it, and what must hold meanwhile.
/// Faults begin with the life, when the program has started and is at rest.
pub(crate) struct Scenario<S> {
    /// Names it in reports and in `SCENARIO`.
    pub(crate) name: &'static str,
    /// Puts what exists before the program starts, and configures the program.
    pub(crate) prepare: fn(&S),
    /// What other programs do, once in each second.
    pub(crate) others: fn(&S),
    /// Must hold before each request of anybody, from the begin of the life to the end of the run.
    pub(crate) invariant: fn(&Sim) -> Result<(), String>,
    /// Makes equal, in an object of the end state, what the specification lets differ from run to run.
    pub(crate) blur: fn(&mut Value),
    /// The program starts with the life, so that faults hit its start.
    pub(crate) hits_start: bool,
    /// The end state includes Events.
    pub(crate) with_events: bool,
}

impl<S: Stage> Scenario<S> {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            prepare: |_| {},
            others: |_| {},
            invariant: |_| Ok(()),
            blur: |_| {},
            hits_start: false,
            with_events: false,
        }
    }

    /// Runs the scenario with this life: what users and other programs do, step by step.
    ///
    /// The program may miss an event until all is listed after the life. So the end state must not depend on what the program
    /// did between two steps; what a step needs done already belongs to `prepare`.
    pub(crate) fn survives(self, life: impl AsyncFn(&S) + Sync) {
        driver::survive(&self, &life);
    }
}

impl Stage for World {
    const USER: &'static str = PROGRAM;

    fn enter<F: Future>(play: impl FnOnce(Rc<Self>) -> F) -> F::Output {
        world(1, play)
    }

    fn sim(&self) -> &Sim {
        &self.sim
    }

    async fn start_program(&self) {
        self.start().await;
    }
}

/// Returns an error with this text unless something holds.
pub(crate) fn ensure(holds: bool, text: impl Into<String>) -> Result<(), String> {
    if holds { Ok(()) } else { Err(text.into()) }
}

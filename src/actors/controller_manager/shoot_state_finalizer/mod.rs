//! `shootstate-finalizer`: keeps a ShootState while the control plane of its Shoot moves (spec 84 I).
//!
//! `ShootState, last operation of its Shoot ─ rules.rs ─► Need ─► finalizer`
//!
//! [`rules`] is pure. This file has the watches, an actor per ShootState while there is something to do, and its writes. A
//! release rests on a live read of the Shoot. ShootStates that are not served do not exist. Their content is never read.

pub mod rules;

use std::rc::Rc;

use cluster::{
    CachedFields, Context, How, Lock, Predicate, Watch, WatchOptions, Wrote,
    evidence::{Evidence, EvidenceSource, decide},
    object::{self, NamespacedName},
};
use kit::{Causes, Controller, Failure, Outcome, Reconcile, Reconciler, Supervised, Wake};
use serde_json::Value;

use self::rules::Need;
use super::{
    context::{GardenContext, Registration, StartControllers, start},
    shoot_record::{CachedShoot, LastOperation},
};
use crate::api::{config::controller_manager::Config, kinds};

const NAME: &str = "shootstate-finalizer"; // spec 80 §15

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

const FINALIZER: &str = "core.gardener.cloud/shootstate";

struct ShootStates {
    workers: usize,
    shoots: Watch<CachedShoot>,
    states: Watch<CachedFields<ShootState>>,
}

/// What is kept of a ShootState.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ShootState {
    /// It has the finalizer.
    is_held: bool,
    is_deleting: bool,
}

/// What an actor remembers.
#[derive(Debug, Default)]
struct Memory {
    /// It was told that the finalizer cannot be added.
    is_told: bool,
}

/// The Shoot of a ShootState.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SeenShoot {
    /// It does not exist.
    Gone,
    /// It has no last operation.
    Untouched,
    /// It has this last operation.
    Operated(LastOperation),
}

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    let options = WatchOptions::fields(kinds::SHOOT_STATE, ShootState::of).metadata().optional();
    let controller = ShootStates {
        workers: config.controllers.shoot_state.concurrent_syncs.count(),
        shoots: ctx.shoots.clone(),
        states: ctx.garden.watches.open(options),
    };
    Some(start(controller, |controller, supervised| controller.subscribe(supervised)))
}

impl ShootState {
    fn of(state: &Value) -> Self {
        Self {
            is_held: object::finalizers(state).any(|finalizer| finalizer == FINALIZER),
            is_deleting: object::deletion_timestamp(state).is_some(),
        }
    }
}

impl SeenShoot {
    fn of(shoot: Option<&CachedShoot>) -> Self {
        match shoot.map(|shoot| shoot.fields.operation) {
            None => Self::Gone,
            Some(None) => Self::Untouched,
            Some(Some(operation)) => Self::Operated(operation),
        }
    }

    /// Returns true if the finalizer is not needed any more.
    fn is_release(self) -> bool {
        match self {
            Self::Gone => true,
            Self::Untouched => false,
            Self::Operated(operation) => Need::of(operation) == Need::Release,
        }
    }
}

impl ShootStates {
    /// A change of the last operation wakes the ShootState, as does the end of the Shoot (spec 84 I.1).
    fn subscribe(&self, supervised: &Supervised<Self>) {
        self.states.on_change(supervised, Predicate::fields_changed(), |name, _| [name.clone()]);
        let (waker, states) = (supervised.weak(), self.states.store().clone());
        self.shoots.subscribe(move |change| {
            let is_changed = SeenShoot::of(change.old) != SeenShoot::of(change.new) && change.how != How::First;
            if is_changed && states.with(change.name, |_| ()).is_some() {
                waker.wake(change.name, Wake::high(Causes::OBJECT));
            }
        });
    }

    /// Returns the Shoot of a ShootState that has the finalizer or not. A release, and the absence of the Shoot, are
    /// confirmed by a live read (spec 80 §16 S-13).
    async fn shoot_of(&self, context: &Context, key: &NamespacedName, is_held: bool) -> Result<SeenShoot, Failure> {
        let ask = |evidence: &Evidence<'_, Self>| evidence.ask(key);
        decide(self, context, ask, |shoot| is_held && shoot.is_release()).await
    }

    async fn set(
        &self,
        context: &Context,
        key: &NamespacedName,
        held: bool,
        operation: Option<LastOperation>,
    ) -> Result<Outcome, Failure> {
        let text = if held { "Adding finalizer" } else { "Removing finalizer" };
        tracing::info!(
            finalizer = FINALIZER,
            shootLastOperationType = operation.map(|operation| operation.kind.as_str()),
            shootLastOperationState = operation.map(|operation| operation.state.as_str()),
            "{text}"
        );
        let patch = |live: &Value| {
            let may_be_written = !held || object::deletion_timestamp(live).is_none();
            may_be_written.then(|| object::finalizer_patch(live, FINALIZER, held)).flatten()
        };
        let wrote = self.states.patch(context, key, Lock::Version, patch).await;
        let doing = if held { "adding finalizer to" } else { "removing finalizer from" };
        let wrote = wrote.map_err(|error| Failure::new(format!("error {doing} ShootState: {error}")))?;
        Ok(if let Wrote::Altered(_) = wrote { Outcome::Again } else { Outcome::Retire })
    }
}

impl EvidenceSource for ShootStates {
    type Question = NamespacedName;
    type Answer = SeenShoot;

    fn cached(&self, shoot: &NamespacedName) -> Option<SeenShoot> {
        Some(SeenShoot::of(self.shoots.known(shoot)?.as_ref()))
    }

    async fn read(&self, context: &Context, shoot: &NamespacedName) -> Result<SeenShoot, Failure> {
        let live = self.shoots.read_live(context, shoot).await;
        let live = live.map_err(|error| Failure::new(format!("error retrieving Shoot from store: {error}")))?;
        Ok(SeenShoot::of(live.as_ref()))
    }
}

impl Controller for ShootStates {
    type Key = NamespacedName;
    type Memory = Memory;

    fn reconcilers(&self) -> Vec<Reconciler> {
        vec![
            Reconciler::new(NAME, self.workers)
                .about(("core.gardener.cloud", "ShootState"))
                .requires(self.shoots.sync_requirement())
                .requires(self.states.sync_requirement()),
        ]
    }

    async fn reconcile(
        self: &Rc<Self>,
        memory: &mut Memory,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let key = &reconcile.key;
        let Some(state) = self.states.store().with(key, |state| state.fields) else {
            tracing::debug!("Object is gone, stop reconciling");
            return Ok(Outcome::Retire);
        };
        let context = Context::new(reconcile.priority(), reconcile.deadline, key.to_string());
        let operation = match self.shoot_of(&context, key, state.is_held).await? {
            SeenShoot::Operated(operation) => operation,
            SeenShoot::Untouched => return Err(Failure::new(format!("last operation of Shoot '{key}' is not set"))),
            SeenShoot::Gone if state.is_held => return self.set(&context, key, false, None).await, // nothing is left to restore
            SeenShoot::Gone => return Ok(Outcome::Retire),
        };
        match Need::of(operation) {
            Need::Keep if !state.is_held && state.is_deleting => {
                if !std::mem::replace(&mut memory.is_told, true) {
                    tracing::warn!(
                        finalizer = FINALIZER,
                        "Cannot add finalizer to ShootState because it is being deleted"
                    );
                }
                reconcile.note("is being deleted without the finalizer");
                Ok(Outcome::Done) // it is told once
            }
            Need::Keep if !state.is_held => self.set(&context, key, true, Some(operation)).await,
            Need::Release if state.is_held => self.set(&context, key, false, Some(operation)).await,
            Need::Keep | Need::Release | Need::Nothing => Ok(Outcome::Retire),
        }
    }
}

//! The next step of a ManagedSeedSet (spec 86 §6). Pure.

use std::cmp::{Ordering, Reverse};

use jiff::Timestamp;

use super::{
    replica::{Replica, ReplicaStatus, ordinal_of},
    status::{PendingReason, PendingReplica, SetStatus},
};
use crate::actors::controller_manager::shoot_status_label::rules::ShootStatus;

/// The highest ordinal that a name of a replica may have.
const MOST: i64 = i32::MAX as i64;

/// What a step depends on.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// The name of the ManagedSeedSet.
    pub set: &'a str,
    /// How many replicas it must have.
    pub target: i64,
    /// Its replicas, in the order of [`in_order`].
    pub replicas: &'a [Replica],
    /// Its status as last written.
    pub status: &'a SetStatus,
    /// How often a failed operation on a Shoot is retried.
    pub max_retries: i64,
}

/// A step for one replica, which is waited for from then on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What is done.
    pub act: Act,
    /// The name of the replica.
    pub replica: Box<str>,
    /// Why it is waited for.
    pub reason: PendingReason,
    /// The retries so far, with this one.
    pub retries: Option<i64>,
    /// The replica is ready before the step.
    is_ready: bool,
}

/// What is done for a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Nothing: somebody else has to act.
    Wait,
    /// Nothing: its Shoot was retried often enough.
    GiveUp,
    /// The last operation on its Shoot is retried.
    Retry,
    /// Its Shoot is created.
    CreateShoot,
    /// Its ManagedSeed is created.
    CreateManagedSeed,
    /// Its ManagedSeed is deleted.
    DeleteManagedSeed,
    /// Its Shoot is deleted.
    DeleteShoot,
}

/// Why there is no step although something must be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoStep {
    /// There are too many replicas, and all of them must stay.
    #[error("no deletable replicas found")]
    NoVictim,
    /// The next ordinal does not fit 32 bits.
    #[error("no ordinal is left for another replica: the highest one is {MOST}")]
    NoOrdinal,
}

/// Whether replicas are missing or surplus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scaling {
    Out,
    In,
    None,
}

/// Sorts replicas by ordinal, then by name (§5.1 rule 6).
pub fn in_order(replicas: &mut [Replica]) {
    replicas.sort_unstable_by(|one, other| (one.ordinal(), &one.name).cmp(&(other.ordinal(), &other.name)));
}

impl Situation<'_> {
    /// Returns the next step; `None` if there is nothing to do (§6 steps 6 to 11).
    pub fn step(&self) -> Result<Option<Step>, NoStep> {
        let pending = self.pending();
        if self.scaling() == Scaling::In
            && let Some(going) = self.going(pending)
        {
            return self.step_for(going);
        }
        if let Some(pending) = pending
            && let Some(step) = self.step_for(pending)?
        {
            return Ok(Some(step));
        }
        match self.scaling() {
            Scaling::Out => self.create().map(Some),
            Scaling::In => self.delete().map(Some),
            Scaling::None => {
                let is_pending = |replica: &Replica| pending.is_some_and(|pending| pending.name == replica.name);
                let mut postponed = self.replicas.iter().filter(|replica| !replica.is_ready() && !is_pending(replica));
                postponed.find_map(|replica| self.step_for(replica).transpose()).transpose()
            }
        }
    }

    fn scaling(&self) -> Scaling {
        let number = count(self.replicas.len());
        match number.cmp(&self.target) {
            Ordering::Less => Scaling::Out,
            Ordering::Greater => Scaling::In,
            Ordering::Equal => Scaling::None,
        }
    }

    /// Returns the replica that was waited for, if it still exists.
    fn pending(&self) -> Option<&Replica> {
        let pending = self.status.pending.as_ref()?;
        self.replicas.iter().find(|replica| replica.name == pending.name)
    }

    /// Returns a replica that is being deleted, whoever deletes it. No other one goes beside it (DEV-18).
    fn going<'r>(&'r self, pending: Option<&'r Replica>) -> Option<&'r Replica> {
        use ReplicaStatus as Status;
        let is_going = |replica: &&Replica| {
            matches!(replica.status, Status::ShootDeleting | Status::ShootDeleteFailed | Status::ManagedSeedDeleting)
        };
        pending.filter(is_going).or_else(|| self.replicas.iter().find(is_going))
    }

    /// Returns the step for one replica (§6.1); `None` if it holds nothing up.
    fn step_for(&self, replica: &Replica) -> Result<Option<Step>, NoStep> {
        use PendingReason as Reason;
        use ReplicaStatus as Status;
        let is_in = self.scaling() == Scaling::In;
        let wait = |reason| Some(Step::new(replica, Act::Wait, reason, None));
        // Retries survive while the retried operation runs (DEV-1).
        let wait_with_retries = |reason| {
            let retries = self.stored_retries(replica, &[reason]);
            Some(Step::new(replica, Act::Wait, reason, retries))
        };
        Ok(match (replica.status, is_in) {
            (Status::ShootReconcileFailed, false) if !replica.is_retry_asked => {
                Some(self.retry(replica, Reason::ShootReconciling, Reason::ShootReconcileFailed))
            }
            (Status::ShootDeleteFailed, _) if !replica.is_retry_asked => {
                Some(self.retry(replica, Reason::ShootDeleting, Reason::ShootDeleteFailed))
            }
            (Status::ShootReconciling | Status::ShootReconcileFailed, false) => {
                wait_with_retries(Reason::ShootReconciling)
            }
            (Status::ShootDeleting | Status::ShootDeleteFailed, _) => wait_with_retries(Reason::ShootDeleting),
            (Status::ShootReconciled, false) => {
                Some(Step::new(replica, Act::CreateManagedSeed, Reason::ManagedSeedPreparing, None))
            }
            (Status::ShootReconciled, true) if replica.is_deletable() => Some(Step::delete(replica)),
            (Status::ShootReconciled, true) => return Err(NoStep::NoVictim), // DEV-14
            (Status::ManagedSeedPreparing, false) => wait(Reason::ManagedSeedPreparing),
            (Status::ManagedSeedDeleting, _) => wait(Reason::ManagedSeedDeleting),
            (Status::ManagedSeedRegistered, false) if !replica.is_seed_ready => wait(Reason::SeedNotReady),
            (Status::ManagedSeedRegistered, false) if replica.health != ShootStatus::Healthy => {
                wait(Reason::ShootNotHealthy)
            }
            (
                Status::ShootReconcileFailed
                | Status::ShootReconciling
                | Status::ManagedSeedPreparing
                | Status::ManagedSeedRegistered,
                _,
            ) => None,
        })
    }

    /// Retries the last operation on a Shoot, or gives up. A replica that was given up stays so (DEV-2).
    fn retry(&self, replica: &Replica, retried: PendingReason, given_up: PendingReason) -> Step {
        let retries = self.stored_retries(replica, &[retried, given_up]).unwrap_or_default();
        if retries < self.max_retries {
            Step::new(replica, Act::Retry, retried, Some(retries.saturating_add(1)))
        } else {
            Step::new(replica, Act::GiveUp, given_up, Some(retries))
        }
    }

    /// Returns the retries that were written of a replica with one of these reasons.
    fn stored_retries(&self, replica: &Replica, reasons: &[PendingReason]) -> Option<i64> {
        let pending = self.status.pending.as_ref().filter(|pending| pending.name == replica.name)?;
        pending.retries.filter(|_| pending.reason.is_some_and(|reason| reasons.contains(&reason)))
    }

    /// Creates the next replica (§6.3). Ordinals are never used again.
    fn create(&self) -> Result<Step, NoStep> {
        let highest = self.replicas.iter().filter_map(Replica::ordinal).max();
        let ordinal = self.status.next_replica_number.max(highest.map_or(0, |highest| highest + 1));
        if ordinal > MOST {
            return Err(NoStep::NoOrdinal);
        }
        let (replica, reason) = (format!("{}-{ordinal}", self.set).into(), PendingReason::ShootReconciling);
        Ok(Step { act: Act::CreateShoot, replica, reason, retries: None, is_ready: false })
    }

    /// Deletes the replica that is worth least (§6.5).
    fn delete(&self) -> Result<Step, NoStep> {
        let worth = |replica: &&Replica| {
            let health = Reverse(replica.health); // the best one is the least
            (replica.status, replica.is_seed_ready, health, replica.ordinal(), replica.name.clone())
        };
        let victim = self.replicas.iter().filter(|replica| replica.is_deletable()).min_by_key(worth);
        victim.map(Step::delete).ok_or(NoStep::NoVictim)
    }
}

impl Step {
    fn new(replica: &Replica, act: Act, reason: PendingReason, retries: Option<i64>) -> Self {
        Self { act, replica: replica.name.clone(), reason, retries, is_ready: replica.is_ready() }
    }

    /// Deletes the ManagedSeed of a replica, or its Shoot if it has none (§6.5 rule 3).
    fn delete(replica: &Replica) -> Self {
        if replica.status >= ReplicaStatus::ManagedSeedPreparing {
            Self::new(replica, Act::DeleteManagedSeed, PendingReason::ManagedSeedDeleting, None)
        } else {
            Self::new(replica, Act::DeleteShoot, PendingReason::ShootDeleting, None)
        }
    }

    /// Returns true if nothing is written for the replica.
    pub fn is_wait(&self) -> bool {
        matches!(self.act, Act::Wait | Act::GiveUp)
    }

    /// Enters in the status what is so after the step.
    pub fn enter(&self, status: &mut SetStatus, now: Timestamp) {
        status.wait_for(PendingReplica::new(&self.replica, self.reason, self.retries, now));
        match self.act {
            Act::Wait | Act::GiveUp | Act::Retry | Act::CreateManagedSeed => {}
            Act::CreateShoot => {
                status.replicas = Some(status.replicas.unwrap_or_default() + 1);
                self.skip_ordinal(status);
            }
            Act::DeleteManagedSeed | Act::DeleteShoot => status.ready_replicas -= i64::from(self.is_ready),
        }
    }

    /// Enters that no other replica gets the ordinal of this one.
    pub fn skip_ordinal(&self, status: &mut SetStatus) {
        let next = ordinal_of(&self.replica).map_or(0, |ordinal| ordinal + 1);
        status.next_replica_number = status.next_replica_number.max(next);
    }
}

/// Returns the status as far as the replicas tell it: the numbers of all and of the ready ones (§6 steps 4 and 5).
pub fn counted(status: &SetStatus, generation: i64, replicas: &[Replica]) -> SetStatus {
    let ready = replicas.iter().filter(|replica| replica.is_ready()).count();
    SetStatus {
        observed_generation: generation,
        replicas: Some(count(replicas.len())),
        ready_replicas: count(ready),
        ..status.clone()
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

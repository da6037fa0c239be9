//! Lives of ManagedSeedSets: gardenlet, users and the controller act in any order. The controller is its pure decision.
//! No replica is created while another one is waited for, none is deleted that must stay, no ordinal is used again, and
//! when all help there are as many replicas as wanted.

use std::collections::{BTreeMap, BTreeSet};

use gardener_resource_manager::actors::controller_manager::{
    managed_seed_set::{
        replica::{Replica, ReplicaStatus as Status},
        rules::{Act, NoStep, Situation, Step, counted, in_order},
        status::SetStatus,
    },
    shoot_status_label::rules::ShootStatus,
};
use jiff::Timestamp;
use proptest::{
    collection::vec,
    prelude::*,
    sample::{Index, select},
};

const RETRIES: i64 = 3;

const HEALTH: [ShootStatus; 4] =
    [ShootStatus::Healthy, ShootStatus::Progressing, ShootStatus::Unknown, ShootStatus::Unhealthy];

/// What somebody does. An index chooses the replica.
#[derive(Debug, Clone)]
enum Event {
    Reconcile,
    /// The controller acts, and its status is lost: it was stopped in between.
    ReconcileInVain,
    Scale(i64),
    /// gardenlet works, with success or without.
    Work(Index, bool),
    /// A user starts an operation on the Shoot.
    Touch(Index),
    /// A user deletes the ManagedSeed, or the Shoot if there is none.
    Delete(Index),
    Protect(Index, bool),
    Schedule(Index, bool),
    Seed(Index, bool),
    Health(Index, ShootStatus),
    /// A Shoot with the labels of the ManagedSeedSet, which nobody controls.
    Foreign(u8),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => Just(Event::Reconcile),
        1 => Just(Event::ReconcileInVain),
        1 => (0..5_i64).prop_map(Event::Scale),
        8 => (any::<Index>(), prop::bool::weighted(0.8)).prop_map(|(replica, is_good)| Event::Work(replica, is_good)),
        1 => any::<Index>().prop_map(Event::Touch),
        1 => any::<Index>().prop_map(Event::Delete),
        1 => (any::<Index>(), any::<bool>()).prop_map(|(replica, is_so)| Event::Protect(replica, is_so)),
        1 => (any::<Index>(), any::<bool>()).prop_map(|(replica, is_so)| Event::Schedule(replica, is_so)),
        2 => (any::<Index>(), any::<bool>()).prop_map(|(replica, is_so)| Event::Seed(replica, is_so)),
        1 => (any::<Index>(), select(&HEALTH[..])).prop_map(|(replica, health)| Event::Health(replica, health)),
        1 => (0..3_u8).prop_map(Event::Foreign),
    ]
}

#[derive(Default)]
struct World {
    target: i64,
    replicas: BTreeMap<String, Replica>,
    status: SetStatus,
    /// The names that the controller has created and entered in the status.
    created: BTreeSet<String>,
}

fn fresh(name: &str) -> Replica {
    Replica {
        name: name.into(),
        status: Status::ShootReconciling,
        health: ShootStatus::Healthy,
        is_seed_ready: false,
        is_scheduled: false,
        is_protected: false,
        is_retry_asked: false,
    }
}

impl World {
    fn at(&mut self, index: Index) -> Option<&mut Replica> {
        let number = self.replicas.len();
        if number == 0 { None } else { self.replicas.values_mut().nth(index.index(number)) }
    }

    fn happen(&mut self, event: Event) -> Result<(), TestCaseError> {
        match event {
            Event::Reconcile => return self.reconcile(true).map(drop),
            Event::ReconcileInVain => return self.reconcile(false).map(drop),
            Event::Scale(target) => self.target = target,
            Event::Work(index, is_good) => self.work(index, is_good),
            Event::Touch(index) => {
                if let Some(replica) = self.at(index) {
                    match replica.status {
                        Status::ShootReconciled | Status::ShootReconcileFailed => {
                            replica.status = Status::ShootReconciling
                        }
                        Status::ShootDeleteFailed => replica.status = Status::ShootDeleting,
                        _ => {}
                    }
                }
            }
            Event::Delete(index) => self.change(index, |replica| {
                replica.status = match replica.status {
                    Status::ShootDeleteFailed => Status::ShootDeleteFailed,
                    status if status >= Status::ManagedSeedPreparing => Status::ManagedSeedDeleting,
                    _ => Status::ShootDeleting,
                }
            }),
            Event::Protect(index, is_so) => self.change(index, |replica| replica.is_protected = is_so),
            Event::Schedule(index, is_so) => self.change(index, |replica| replica.is_scheduled = is_so),
            Event::Seed(index, is_so) => self.change(index, |replica| replica.is_seed_ready = is_so),
            Event::Health(index, health) => self.change(index, |replica| replica.health = health),
            Event::Foreign(number) => {
                let name = format!("foreign-{number}");
                self.replicas.entry(name.clone()).or_insert_with(|| fresh(&name));
            }
        }
        Ok(())
    }

    fn change(&mut self, index: Index, change: impl FnOnce(&mut Replica)) {
        if let Some(replica) = self.at(index) {
            change(replica);
        }
    }

    /// gardenlet brings a replica forward.
    fn work(&mut self, index: Index, is_good: bool) {
        let Some(replica) = self.at(index) else { return };
        let name = replica.name.to_string();
        let next = match (replica.status, is_good) {
            (Status::ShootReconciling, true) => Status::ShootReconciled,
            (Status::ShootReconciling, false) => Status::ShootReconcileFailed,
            (Status::ShootReconcileFailed, _) if replica.is_retry_asked => Status::ShootReconciling,
            (Status::ShootDeleteFailed, _) if replica.is_retry_asked => Status::ShootDeleting,
            (Status::ShootDeleting, false) => Status::ShootDeleteFailed,
            (Status::ManagedSeedPreparing, true) => Status::ManagedSeedRegistered,
            (Status::ManagedSeedDeleting, true) => Status::ShootReconciled,
            (Status::ShootDeleting, true) => {
                self.replicas.remove(&name);
                return;
            }
            (status, _) => status,
        };
        replica.is_retry_asked &= next == replica.status;
        replica.status = next;
    }

    /// The controller acts once. Returns false if it has nothing to do.
    fn reconcile(&mut self, is_written: bool) -> Result<bool, TestCaseError> {
        let mut replicas: Vec<_> = self.replicas.values().cloned().collect();
        in_order(&mut replicas);
        let (target, old) = (self.target, self.status.clone());
        let situation = Situation { set: "m", target, replicas: &replicas, status: &old, max_retries: RETRIES };
        let number = i64::try_from(replicas.len()).expect("there are few");
        let pending = old.pending.as_ref().and_then(|pending| self.replicas.get(&*pending.name)).cloned();
        let mut status = counted(&old, 1, &replicas);
        let has_acted = match situation.step() {
            Ok(Some(step)) => {
                self.check(&step, number, pending.as_ref())?;
                self.act(&step)?;
                // A number that was never written is known from the Shoot, as long as that exists.
                if is_written && step.act == Act::CreateShoot {
                    self.created.insert(step.replica.to_string());
                }
                step.enter(&mut status, Timestamp::UNIX_EPOCH);
                true
            }
            Ok(None) => {
                prop_assert_eq!(number, target);
                prop_assert!(replicas.iter().all(Replica::is_ready));
                status.pending = None;
                false
            }
            Err(NoStep::NoVictim) => {
                prop_assert!(number > target);
                let is_stuck = pending.is_some_and(|it| it.status == Status::ShootReconciled && !it.is_deletable());
                prop_assert!(is_stuck || !replicas.iter().any(Replica::is_deletable));
                false
            }
            Err(NoStep::NoOrdinal) => return Err(TestCaseError::fail("there are few ordinals")),
        };
        prop_assert!(status.ready_replicas >= 0 && status.replicas >= Some(status.ready_replicas));
        prop_assert!(status.next_replica_number >= old.next_replica_number);
        if is_written {
            self.status = status;
        }
        Ok(has_acted)
    }

    /// Checks a step before it is done.
    fn check(&self, step: &Step, number: i64, pending: Option<&Replica>) -> Result<(), TestCaseError> {
        let replica = self.replicas.get(&*step.replica);
        let is_deleted =
            |status| matches!(status, Status::ShootDeleting | Status::ShootDeleteFailed | Status::ManagedSeedDeleting);
        match step.act {
            Act::CreateShoot => {
                prop_assert!(number < self.target);
                prop_assert!(pending.is_none_or(Replica::is_ready), "{:?} is waited for", pending);
                prop_assert!(!self.created.contains(&*step.replica), "{} is used again", step.replica);
            }
            Act::DeleteManagedSeed | Act::DeleteShoot => {
                prop_assert!(number > self.target);
                prop_assert!(replica.is_some_and(Replica::is_deletable), "{:?} must stay", replica);
                let mut others = self.replicas.values().filter(|other| other.name != step.replica);
                prop_assert!(!others.any(|other| is_deleted(other.status)), "two go at a time: {:?}", self.replicas);
                let is_managed = replica.is_some_and(|replica| replica.status >= Status::ManagedSeedPreparing);
                prop_assert_eq!(is_managed, step.act == Act::DeleteManagedSeed);
            }
            Act::CreateManagedSeed => {
                prop_assert!(number <= self.target);
                prop_assert!(replica.is_some_and(|replica| replica.status == Status::ShootReconciled));
            }
            Act::Retry => {
                let is_failed = |status| matches!(status, Status::ShootReconcileFailed | Status::ShootDeleteFailed);
                prop_assert!(replica.is_some_and(|replica| is_failed(replica.status) && !replica.is_retry_asked));
                prop_assert!(step.retries.is_some_and(|retries| (1..=RETRIES).contains(&retries)));
            }
            Act::Wait | Act::GiveUp => {
                prop_assert!(replica.is_some_and(|replica| !replica.is_ready()));
            }
        }
        Ok(())
    }

    fn act(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let name = step.replica.to_string();
        if step.act == Act::CreateShoot {
            self.replicas.insert(name.clone(), fresh(&name));
            return Ok(());
        }
        let replica = self.replicas.get_mut(&name).ok_or_else(|| TestCaseError::fail("a step is about a replica"))?;
        match step.act {
            Act::CreateManagedSeed => replica.status = Status::ManagedSeedPreparing,
            Act::DeleteManagedSeed => replica.status = Status::ManagedSeedDeleting,
            Act::DeleteShoot if replica.status != Status::ShootDeleteFailed => replica.status = Status::ShootDeleting,
            Act::Retry => replica.is_retry_asked = true,
            Act::CreateShoot | Act::DeleteShoot | Act::Wait | Act::GiveUp => {}
        }
        Ok(())
    }

    /// Everybody helps: nothing is kept, and gardenlet brings each replica forward.
    fn help(&mut self) {
        for replica in self.replicas.values_mut() {
            (replica.is_protected, replica.is_scheduled, replica.is_retry_asked) = (false, false, false);
            (replica.is_seed_ready, replica.health) = (true, ShootStatus::Healthy);
        }
        self.replicas.retain(|_, replica| replica.status != Status::ShootDeleting);
        for replica in self.replicas.values_mut() {
            replica.status = match replica.status {
                Status::ShootReconciling | Status::ManagedSeedDeleting => Status::ShootReconciled,
                Status::ShootReconcileFailed => Status::ShootReconciling,
                Status::ShootDeleteFailed => Status::ShootDeleting,
                Status::ManagedSeedPreparing => Status::ManagedSeedRegistered,
                status => status,
            };
        }
    }
}

proptest! {
    /// spec 86 §5.5, §6, §6.1, §6.3, §6.5
    #[test]
    fn managed_seed_set_never_deletes_what_must_stay_and_comes_to_its_number(
        target in 0..5_i64,
        events in vec(event(), 1..120),
    ) {
        let mut world = World { target, ..World::default() };
        for event in events {
            world.happen(event)?;
        }
        for _ in 0..200 {
            world.help();
            world.reconcile(true)?;
        }
        prop_assert_eq!(i64::try_from(world.replicas.len()).expect("there are few"), world.target);
        prop_assert!(world.replicas.values().all(Replica::is_ready));
        prop_assert!(!world.reconcile(true)?, "it rests");
        prop_assert_eq!(world.status.pending, None);
    }
}

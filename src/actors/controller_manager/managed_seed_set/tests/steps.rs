use super::{
    super::{
        replica::{Replica, ReplicaStatus as Status},
        rules::{Act, NoStep, Situation, Step, counted, in_order},
        status::{PendingReason as Reason, SetStatus},
        told::told,
    },
    now, pending, replica,
};
use crate::actors::controller_manager::shoot_status_label::rules::ShootStatus;

const RETRIES: i64 = 3;

/// Act, replica, reason and retries of a step.
type StepParts = (Act, String, Reason, Option<i64>);

/// Returns the parts of the next step; `None` if there is none.
fn step(target: i64, replicas: &[Replica], status: &SetStatus) -> Result<Option<StepParts>, NoStep> {
    let step = Situation { set: "m", target, replicas, status, max_retries: RETRIES }.step()?;
    Ok(step.map(|step| (step.act, step.replica.to_string(), step.reason, step.retries)))
}

fn waiting_for(ordinal: u32, reason: Reason, retries: Option<i64>) -> SetStatus {
    SetStatus { pending: Some(pending(&format!("m-{ordinal}"), reason, retries)), ..SetStatus::default() }
}

/// spec 86 §6.1: the table, for the replica that is waited for, while nothing is scaled and while there are too many.
#[test]
fn step_for_the_pending_replica_is_that_of_the_table() {
    let unready = Replica { is_seed_ready: false, ..replica(0, Status::ManagedSeedRegistered) };
    let unhealthy = Replica { health: ShootStatus::Progressing, ..replica(0, Status::ManagedSeedRegistered) };
    let asked = |status| Replica { is_retry_asked: true, ..replica(0, status) };
    let table = [
        (
            replica(0, Status::ShootReconcileFailed),
            Some((Act::Retry, Reason::ShootReconciling, Some(1))),
            (Act::DeleteShoot, Reason::ShootDeleting, None),
        ),
        (
            replica(0, Status::ShootDeleteFailed),
            Some((Act::Retry, Reason::ShootDeleting, Some(1))),
            (Act::Retry, Reason::ShootDeleting, Some(1)),
        ),
        (
            asked(Status::ShootReconcileFailed),
            Some((Act::Wait, Reason::ShootReconciling, None)),
            (Act::DeleteShoot, Reason::ShootDeleting, None),
        ),
        (
            asked(Status::ShootDeleteFailed),
            Some((Act::Wait, Reason::ShootDeleting, None)),
            (Act::Wait, Reason::ShootDeleting, None),
        ),
        (
            replica(0, Status::ShootReconciling),
            Some((Act::Wait, Reason::ShootReconciling, None)),
            (Act::DeleteShoot, Reason::ShootDeleting, None),
        ),
        (
            replica(0, Status::ShootDeleting),
            Some((Act::Wait, Reason::ShootDeleting, None)),
            (Act::Wait, Reason::ShootDeleting, None),
        ),
        (
            replica(0, Status::ShootReconciled),
            Some((Act::CreateManagedSeed, Reason::ManagedSeedPreparing, None)),
            (Act::DeleteShoot, Reason::ShootDeleting, None),
        ),
        (
            replica(0, Status::ManagedSeedPreparing),
            Some((Act::Wait, Reason::ManagedSeedPreparing, None)),
            (Act::DeleteManagedSeed, Reason::ManagedSeedDeleting, None),
        ),
        (
            replica(0, Status::ManagedSeedDeleting),
            Some((Act::Wait, Reason::ManagedSeedDeleting, None)),
            (Act::Wait, Reason::ManagedSeedDeleting, None),
        ),
        (
            unready,
            Some((Act::Wait, Reason::SeedNotReady, None)),
            (Act::DeleteManagedSeed, Reason::ManagedSeedDeleting, None),
        ),
        (
            unhealthy,
            Some((Act::Wait, Reason::ShootNotHealthy, None)),
            (Act::DeleteManagedSeed, Reason::ManagedSeedDeleting, None),
        ),
        (replica(0, Status::ManagedSeedRegistered), None, (Act::DeleteManagedSeed, Reason::ManagedSeedDeleting, None)),
    ];
    for (replica, at_rest, when_surplus) in table {
        let named = |(act, reason, retries)| (act, "m-0".to_owned(), reason, retries);
        let status = waiting_for(0, Reason::ShootNotHealthy, Some(2));
        assert_eq!(step(1, std::slice::from_ref(&replica), &status), Ok(at_rest.map(named)), "{replica:?}");
        assert_eq!(step(0, std::slice::from_ref(&replica), &status), Ok(Some(named(when_surplus))), "{replica:?}");
    }
}

/// spec 86 §6.1, DEV-1, DEV-2, scenarios 13 to 16
#[test]
fn step_counts_retries_of_the_same_operation() {
    for (failed, running, retried, given_up) in [
        (
            Status::ShootReconcileFailed,
            Status::ShootReconciling,
            Reason::ShootReconciling,
            Reason::ShootReconcileFailed,
        ),
        (Status::ShootDeleteFailed, Status::ShootDeleting, Reason::ShootDeleting, Reason::ShootDeleteFailed),
    ] {
        let retries_of = |status, reason, retries| {
            let found = step(1, &[replica(0, status)], &waiting_for(0, reason, retries)).unwrap().unwrap();
            (found.0, found.2, found.3)
        };
        for (retries, expected) in [(None, 1), (Some(0), 1), (Some(1), 2), (Some(2), 3)] {
            assert_eq!(retries_of(failed, retried, retries), (Act::Retry, retried, Some(expected)));
        }
        for reason in [retried, given_up] {
            assert_eq!(retries_of(failed, reason, Some(3)), (Act::GiveUp, given_up, Some(3)));
        }
        assert_eq!(retries_of(running, retried, Some(2)), (Act::Wait, retried, Some(2)));
        assert_eq!(retries_of(running, given_up, Some(3)), (Act::Wait, retried, None), "the budget starts anew");
        assert_eq!(retries_of(failed, Reason::SeedNotReady, Some(3)), (Act::Retry, retried, Some(1)));
        let other = waiting_for(1, retried, Some(3));
        assert_eq!(step(1, &[replica(0, failed)], &other).unwrap().unwrap().3, Some(1));
    }
    let (failed, status) = ([replica(0, Status::ShootReconcileFailed)], SetStatus::default());
    let never = Situation { set: "m", target: 1, replicas: &failed, status: &status, max_retries: 0 }.step();
    let never = never.unwrap().unwrap();
    assert_eq!((never.act, never.reason, never.retries), (Act::GiveUp, Reason::ShootReconcileFailed, Some(0)));
}

/// spec 86 §6.5, scenarios 19 to 21: each replica is worth less than the next one.
#[test]
fn surplus_replica_that_goes_is_the_one_that_is_worth_least() {
    let registered = |ordinal, is_seed_ready, health| {
        let replica = replica(ordinal, Status::ManagedSeedRegistered);
        Replica { is_seed_ready, health, ..replica }
    };
    let ranked = [
        replica(9, Status::ShootReconcileFailed),
        replica(7, Status::ShootReconciling),
        replica(5, Status::ShootReconciled),
        replica(4, Status::ManagedSeedPreparing),
        registered(20, false, ShootStatus::Healthy),
        registered(19, true, ShootStatus::Unhealthy),
        registered(18, true, ShootStatus::Unknown),
        registered(17, true, ShootStatus::Progressing),
        registered(1, true, ShootStatus::Healthy),
        registered(2, true, ShootStatus::Healthy),
    ];
    for first in 0..ranked.len() {
        let mut replicas = ranked[first..].to_vec();
        in_order(&mut replicas);

        let found = step(0, &replicas, &SetStatus::default()).unwrap().unwrap();

        let is_managed = ranked[first].status >= Status::ManagedSeedPreparing;
        let act = if is_managed { Act::DeleteManagedSeed } else { Act::DeleteShoot };
        assert_eq!((found.0, &*found.1), (act, &*ranked[first].name));
    }
}

/// spec 86 §6.5 DEV-18, trap T-6, scenario 44: whoever deleted it, and whichever one is waited for.
#[test]
fn surplus_replica_waits_for_one_that_is_being_deleted() {
    let unready = Replica { is_seed_ready: false, ..replica(0, Status::ManagedSeedRegistered) };
    for others in [unready, replica(0, Status::ShootReconciled), replica(0, Status::ShootReconciling)] {
        for (going, act, reason) in [
            (Status::ManagedSeedDeleting, Act::Wait, Reason::ManagedSeedDeleting),
            (Status::ShootDeleting, Act::Wait, Reason::ShootDeleting),
            (Status::ShootDeleteFailed, Act::Retry, Reason::ShootDeleting),
        ] {
            let going = Replica { is_scheduled: true, ..replica(1, going) };
            let replicas = [others.clone(), going, replica(2, Status::ManagedSeedRegistered)];
            for status in [SetStatus::default(), waiting_for(0, Reason::SeedNotReady, None)] {
                let found = step(2, &replicas, &status).unwrap().unwrap();
                assert_eq!((found.0, &*found.1, found.2), (act, "m-1", reason), "{replicas:?}");
            }
        }
    }
    let both = [replica(0, Status::ShootDeleting), replica(1, Status::ManagedSeedDeleting)];
    let found = step(0, &both, &waiting_for(1, Reason::ManagedSeedDeleting, None)).unwrap().unwrap();
    assert_eq!((found.0, &*found.1), (Act::Wait, "m-1"), "the pending replica comes first");
}

/// spec 86 §5.1 rule 6, trap T-12: a foreign name comes first.
#[test]
fn replicas_are_in_the_order_of_their_ordinals() {
    let mut replicas: Vec<_> = ["m-10", "x", "m-2", "a-2", "b"]
        .into_iter()
        .map(|name| Replica { name: name.into(), ..replica(0, Status::ManagedSeedRegistered) })
        .collect();

    in_order(&mut replicas);

    let names: Vec<&str> = replicas.iter().map(|replica| &*replica.name).collect();
    assert_eq!(names, ["b", "x", "a-2", "m-2", "m-10"]);
}

/// spec 86 §5.5, §6.5, DEV-14, scenarios 22 and 23
#[test]
fn replica_in_use_or_protected_stays() {
    let kept = [
        Replica { is_scheduled: true, ..replica(0, Status::ManagedSeedRegistered) },
        Replica { is_protected: true, ..replica(1, Status::ShootReconciled) },
    ];

    assert_eq!(step(0, &kept, &SetStatus::default()), Err(NoStep::NoVictim));
    for reason in Reason::ALL {
        assert_eq!(step(0, &kept, &waiting_for(1, reason, None)), Err(NoStep::NoVictim));
    }
    assert_eq!(NoStep::NoVictim.to_string(), "no deletable replicas found");
    let mut replicas = kept.to_vec();
    replicas.push(replica(2, Status::ManagedSeedRegistered));
    assert_eq!(step(2, &replicas, &SetStatus::default()).unwrap().unwrap().1, "m-2");
}

/// spec 86 §6.3, trap T-13, scenario 28
#[test]
fn new_replica_has_an_ordinal_that_none_has_had() {
    let created = |next: i64, names: &[&str]| {
        let replicas: Vec<_> = names
            .iter()
            .map(|name| Replica { name: (*name).into(), ..replica(0, Status::ManagedSeedRegistered) })
            .collect();
        let status = SetStatus { next_replica_number: next, ..SetStatus::default() };
        step(100, &replicas, &status).map(|step| step.unwrap().1)
    };

    assert_eq!(created(0, &[]), Ok("m-0".to_owned()));
    assert_eq!(created(3, &["m-1"]), Ok("m-3".to_owned()));
    assert_eq!(created(0, &["m-1", "other-7", "x"]), Ok("m-8".to_owned()));
    assert_eq!(created(-5, &["x"]), Ok("m-0".to_owned()));
    assert_eq!(created(0, &["m-2147483646"]), Ok("m-2147483647".to_owned()));
    assert_eq!(created(0, &["m-2147483647"]), Err(NoStep::NoOrdinal));
}

/// spec 86 §6, traps T-3 and T-4
#[test]
fn replicas_that_are_not_ready_are_looked_at_in_order_if_nothing_is_scaled() {
    let unready = |ordinal| Replica { is_seed_ready: false, ..replica(ordinal, Status::ManagedSeedRegistered) };
    let replicas = [replica(0, Status::ManagedSeedRegistered), unready(1), replica(2, Status::ShootReconciled)];

    let idle = step(3, &replicas, &SetStatus::default()).unwrap().unwrap();
    assert_eq!((idle.0, &*idle.1, idle.2), (Act::Wait, "m-1", Reason::SeedNotReady));
    let scaled = step(4, &replicas, &SetStatus::default()).unwrap().unwrap();
    assert_eq!((scaled.0, &*scaled.1), (Act::CreateShoot, "m-3"), "only the pending one is waited for");
    let blocked = step(4, &replicas, &waiting_for(1, Reason::SeedNotReady, None)).unwrap().unwrap();
    assert_eq!((blocked.0, &*blocked.1), (Act::Wait, "m-1"));
    let gone = step(3, &replicas[..1], &waiting_for(1, Reason::ShootDeleting, None)).unwrap().unwrap();
    assert_eq!(gone.0, Act::CreateShoot, "a replica that is gone is forgotten");
}

/// spec 86 §6 steps 4 and 5, §6.3, §6.5 rule 4
#[test]
fn step_enters_its_numbers_in_the_status() {
    let replicas = [replica(0, Status::ManagedSeedRegistered), replica(1, Status::ShootReconciled)];
    let status = counted(&SetStatus::default(), 4, &replicas);
    assert_eq!((status.observed_generation, status.replicas, status.ready_replicas), (4, Some(2), 1));
    let after = |target, replicas: &[Replica]| {
        let step = Situation { set: "m", target, replicas, status: &status, max_retries: RETRIES }.step();
        let mut after = status.clone();
        step.unwrap().unwrap().enter(&mut after, now());
        (after.replicas, after.ready_replicas, after.next_replica_number, after.pending.unwrap().name.to_string())
    };

    assert_eq!(after(3, &replicas), (Some(3), 1, 3, "m-2".to_owned()));
    assert_eq!(after(0, &replicas[..1]), (Some(2), 0, 0, "m-0".to_owned()));
    assert_eq!(after(0, &replicas), (Some(2), 1, 0, "m-1".to_owned()));
}

/// spec 86 §9
#[test]
fn step_is_told_in_the_words_of_the_specification() {
    let waiting = |status| step_of(1, replica(0, status), &SetStatus::default());
    let unready = Replica { is_seed_ready: false, ..replica(0, Status::ManagedSeedRegistered) };
    let sick = Replica { health: ShootStatus::Unknown, ..replica(0, Status::ManagedSeedRegistered) };
    let given_up = |status, reason| step_of(1, replica(0, status), &waiting_for(0, reason, Some(RETRIES)));
    let idle = SetStatus::default();
    let table = [
        (step_of(2, replica(0, Status::ManagedSeedRegistered), &idle), "Reconcile CreatingShoot: Creating Shoot n/m-1"),
        (step_of(0, replica(0, Status::ShootReconciling), &idle), "Delete DeletingShoot: Deleting Shoot n/m-0"),
        (waiting(Status::ShootReconciled), "Reconcile CreatingManagedSeed: Creating ManagedSeed n/m-0"),
        (
            step_of(0, replica(0, Status::ManagedSeedPreparing), &idle),
            "Delete DeletingManagedSeed: Deleting ManagedSeed n/m-0",
        ),
        (
            waiting(Status::ShootReconcileFailed),
            "Reconcile RetryingShootReconciliation: Retrying Shoot n/m-0 reconciliation",
        ),
        (waiting(Status::ShootDeleteFailed), "Delete RetryingShootDeletion: Retrying Shoot n/m-0 deletion"),
        (
            given_up(Status::ShootReconcileFailed, Reason::ShootReconciling),
            "Reconcile NotRetryingShootReconciliation: Not retrying Shoot n/m-0 reconciliation since max retries have been \
             reached",
        ),
        (
            given_up(Status::ShootDeleteFailed, Reason::ShootDeleting),
            "Delete NotRetryingShootDeletion: Not retrying Shoot n/m-0 deletion since max retries have been reached",
        ),
        (
            waiting(Status::ShootReconciling),
            "Reconcile WaitingForShootReconciled: Waiting for Shoot n/m-0 to be reconciled",
        ),
        (waiting(Status::ShootDeleting), "Delete WaitingForShootDeleted: Waiting for Shoot n/m-0 to be deleted"),
        (
            waiting(Status::ManagedSeedPreparing),
            "Reconcile WaitingForManagedSeedRegistered: Waiting for ManagedSeed n/m-0 to be registered",
        ),
        (
            waiting(Status::ManagedSeedDeleting),
            "Delete WaitingForManagedSeedDeleted: Waiting for ManagedSeed n/m-0 to be deleted",
        ),
        (step_of(1, unready, &idle), "Reconcile WaitingForSeedReady: Waiting for Seed m-0 to be ready"),
        (step_of(1, sick, &idle), "Reconcile WaitingForShootHealthy: Waiting for Shoot n/m-0 to be healthy"),
    ];
    for (told_of, expected) in table {
        let told = told(&told_of);
        assert_eq!(format!("{} {}: {}", told.action, told.reason, told.note("n", &told_of.replica)), expected);
        let name =
            if told.reason == "WaitingForSeedReady" { " m-0".to_owned() } else { format!(" n/{}", told_of.replica) };
        assert!(expected.replace(&name, "").ends_with(&told.text()), "{}", told.text());
    }
}

fn step_of(target: i64, replica: Replica, status: &SetStatus) -> Step {
    Situation { set: "m", target, replicas: &[replica], status, max_retries: RETRIES }.step().unwrap().unwrap()
}

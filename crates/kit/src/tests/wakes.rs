use std::{collections::BTreeSet, rc::Rc};

use super::support::*;
use crate::{
    testing::{settle, universe},
    *,
};

#[test]
fn rule_1_wakes_before_a_reconcile_make_one_reconcile_with_their_union() {
    run(Scripted::new(|_| done()), |supervised, controller, _| async move {
        for index in 0..1000u32 {
            supervised.wake(&key("a"), Wake::low(EVENT).about(object(&index.to_string())));
        }
        supervised.wake(&key("a"), Wake::high(Causes::OBJECT));
        settle().await;

        let run = controller.last();
        assert_eq!(controller.reconciles(), 1);
        assert_eq!(run.wake, Wake { causes: EVENT.with(Causes::OBJECT), refs: Refs::All, priority: Priority::High });
    });
}

#[test]
fn rule_1_wake_survives_the_panic_of_its_reconcile() {
    run(Scripted::new(steps([|| Step::Panic, done])), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::high(EVENT).about(object("x")));
        reconcile_time(1).await;

        let second = controller.last();
        assert_eq!(controller.reconciles(), 2);
        assert!(second.wake.causes.meets(EVENT));
        assert_eq!((second.wake.refs, second.wake.priority), (Refs::one(object("x")), Priority::High));
    });
}

#[test]
fn rule_1_wake_survives_the_death_of_the_actor_that_reconciles_it() {
    run(Scripted::new(steps([|| Step::HangThenKill, done])), |supervised, controller, universe| async move {
        supervised.wake(&key("a"), Wake::high(EVENT).about(object("x")));
        reconcile_time(60).await;

        let second = controller.last();
        assert_eq!((controller.reconciles(), shown(&universe, "a").restarts), (2, 1));
        assert!(second.wake.causes.meets(EVENT), "{second:?}");
        assert_eq!((second.wake.refs, second.wake.priority), (Refs::one(object("x")), Priority::High));
    });
}

#[test]
fn rule_1_wake_while_the_actor_dies_is_not_lost() {
    run(Scripted::new(steps([|| Step::HangThenKill, one_second])), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(39).await;
        supervised.wake(&key("a"), Wake::high(Causes::OBJECT).about(object("late")));
        reconcile_time(30).await;

        let second = controller.last();
        assert_eq!(controller.reconciles(), 2);
        assert!(second.wake.causes.meets(Causes::OBJECT));
        assert_eq!(second.wake.refs, Refs::one(object("late")));
    });
}

#[test]
fn rule_1_wake_without_a_cause_is_ignored() {
    run(Scripted::new(|_| done()), |supervised, _, _| async move {
        supervised.wake(&key("a"), Wake::high(Causes::NONE).about(object("x")));
        settle().await;

        assert!(supervised.is_empty());
    });
}

#[test]
fn rule_2_wake_during_a_reconcile_leads_to_exactly_one_more() {
    run(Scripted::new(steps([one_second, done])), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        settle().await;
        for _ in 0..10 {
            supervised.wake(&key("a"), Wake::high(EVENT));
        }
        reconcile_time(10).await;

        assert_eq!(controller.reconciles(), 2);
        assert_eq!(controller.most_running.get(), 1);
    });
}

#[test]
fn rule_2_wake_of_a_failed_reconcile_is_merged_with_later_wakes() {
    let slow_failure = || Step::After(seconds(1), Err(Failure::new("no")));
    run(Scripted::new(steps([slow_failure, fail, done])), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::high(EVENT).about(object("x")));
        settle().await;
        supervised.wake(&key("a"), Wake::low(Causes::OBJECT).about(object("y")));
        reconcile_time(10).await;

        let both = Refs::Named([object("x"), object("y")].into());
        let log = controller.log.borrow();
        assert_eq!(log.len(), 3);
        for run in &log[1..] {
            assert!(run.wake.causes.meets(EVENT) && run.wake.causes.meets(Causes::OBJECT));
            assert_eq!((&run.wake.refs, run.wake.priority), (&both, Priority::High));
        }
    });
}

#[test]
fn rule_2_wake_of_a_success_is_not_retained() {
    run(Scripted::new(steps([fail, done])), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::high(EVENT).about(object("x")));
        reconcile_time(1).await;
        supervised.wake(&key("a"), Wake::low(Causes::OBJECT));
        settle().await;

        assert_eq!(controller.reconciles(), 3);
        assert_eq!(controller.last().wake, Wake::low(Causes::OBJECT));
    });
}

#[test]
fn wake_reaches_the_reconcilers_it_concerns_and_kit_causes_reach_all() {
    let other = Causes::own(1);
    let controller = Scripted::new(|_| done()).reconcilers([EVENT, other, EVENT.with(other)]);
    run(controller, |supervised, controller, _| async move {
        let woken_by = async |causes| {
            controller.log.borrow_mut().clear();
            supervised.wake(&key("a"), Wake::high(causes));
            settle().await;
            let reconcilers: BTreeSet<_> = controller.log.borrow().iter().map(|run| run.reconciler).collect();
            Vec::from_iter(reconcilers)
        };

        assert_eq!(woken_by(EVENT).await, [0, 2]);
        assert_eq!(woken_by(other).await, [1, 2]);
        assert_eq!(woken_by(Causes::own(5)).await, [0usize; 0]);
        assert_eq!(woken_by(Causes::LISTED).await, [0, 1, 2]);
    });
}

#[test]
fn reconcilers_of_one_actor_run_concurrently() {
    run(Scripted::new(|_| one_second()).reconcilers([EVENT, EVENT]), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        settle().await;

        assert_eq!(controller.running.get(), 2);
        assert_eq!(supervised.running(), 2);
    });
}

#[test]
fn rule_1_weak_reference_wakes_a_running_controller_and_does_nothing_afterwards() {
    universe(1, |universe| async move {
        let controller = Rc::new(Scripted::new(|_| done()));
        let mut early = None;
        let make = |weak: &WeakSupervised<Scripted>| {
            weak.wake(&key("too early"), Wake::high(EVENT));
            early = Some(weak.clone());
            controller.clone()
        };
        let supervised = Supervised::start_cyclic(make, &universe.env);
        let ways = [early.expect("it was made"), supervised.weak()];
        for weak in &ways {
            weak.wake(&key("a"), Wake::high(EVENT));
            settle().await;
        }
        assert_eq!(controller.keys(), ["a", "a"]);
        supervised.stop(seconds(1)).await;
        ways[0].wake(&key("a"), Wake::high(EVENT));
        drop(supervised);
        settle().await;
        assert_eq!(Rc::strong_count(&controller), 1, "a weak reference keeps nothing alive");
        ways[1].wake(&key("a"), Wake::high(EVENT));
        settle().await;

        assert_eq!(controller.reconciles(), 2);
    });
}

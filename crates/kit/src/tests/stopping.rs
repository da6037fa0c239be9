use std::{rc::Rc, time::Duration};

use super::support::*;
use crate::{
    testing::{settle, universe},
    *,
};

#[test]
fn rule_10_stop_lets_reconciles_end_and_begins_no_new_one() {
    let script = |_: &ScriptedReconcile| Step::After(seconds(2), Ok(Outcome::Done));
    run(Scripted::new(script).permits(1), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        supervised.wake(&key("b"), Wake::high(EVENT));
        settle().await;
        let finished = supervised.stop(seconds(4)).await;

        assert!(finished);
        assert_eq!(controller.elapsed(), seconds(2));
        assert_eq!((controller.reconciles(), controller.running.get()), (1, 0));
    });
}

#[test]
fn rule_10_stop_ignores_permits_that_were_not_used_yet() {
    run(Scripted::new(|_| one_second()), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        settle().await;
        supervised.wake(&key("b"), Wake::high(EVENT));
        let finished = supervised.stop(seconds(4)).await;

        assert!(finished);
        assert_eq!(controller.keys(), ["a"]);
    });
}

#[test]
fn rule_10_stop_drops_a_reconcile_that_does_not_end() {
    run(Scripted::new(|_| Step::Hang), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        settle().await;
        let finished = supervised.stop(seconds(4)).await;
        settle().await;

        assert!(!finished);
        assert_eq!(controller.elapsed(), seconds(4));
        assert_eq!(controller.running.get(), 0, "its future was dropped");
    });
}

#[test]
fn rule_10_stop_ends_when_the_last_running_actor_dies() {
    run(Scripted::new(|_| Step::HangThenKill), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(39).await;
        let finished = supervised.stop(seconds(30)).await;

        assert!(finished);
        assert_eq!((controller.elapsed().as_secs(), controller.reconciles()), (40, 1));
    });
}

#[test]
fn rule_10_stop_disables_timers_signals_and_wakes() {
    let signal = Signal::default();
    let waited = signal.clone();
    let script = move |reconcile: &ScriptedReconcile| match reconcile.key.as_str() {
        "timer" => Step::End(Ok(Outcome::After(seconds(60)))),
        "failing" => fail(),
        _ => Step::End(Ok(Outcome::Wait(vec![waited.moment()]))),
    };
    run(Scripted::new(script), |supervised, controller, universe| async move {
        for name in ["timer", "failing", "waiting"] {
            supervised.wake(&key(name), Wake::high(EVENT));
        }
        settle().await;
        assert!(supervised.stop(seconds(4)).await);
        let reconciles = controller.reconciles();
        signal.raise();
        controller.readiness.raise();
        supervised.wake(&key("late"), Wake::high(EVENT));
        reconcile_time(3600).await;

        assert_eq!(controller.reconciles(), reconciles);
        assert!(supervised.is_empty());
        assert!(universe.env.status_registry.snapshot().is_empty());
        assert!(supervised.stop(seconds(4)).await, "a second stop is harmless");
    });
}

#[test]
fn rule_10_stop_leaves_nothing_in_memory() {
    universe(1, |universe| async move {
        let controller = Rc::new(Scripted::new(|_| Step::End(Ok(Outcome::After(Duration::from_secs(60))))));
        let supervised = Supervised::start(controller.clone(), &universe.env);
        supervised.wake(&key("a"), Wake::high(EVENT));
        settle().await;
        supervised.stop(Duration::ZERO).await;
        drop(supervised);
        settle().await;

        assert_eq!(Rc::strong_count(&controller), 1);
    });
}

use std::{cell::Cell as StdCell, rc::Rc};

use super::support::*;
use crate::{testing::settle, *};

#[test]
fn rule_6_panic_drops_the_memory_of_its_key_only() {
    let script =
        |reconcile: &ScriptedReconcile| if reconcile.because_of(Causes::own(1)) { Step::Panic } else { done() };
    run(Scripted::new(script), |supervised, controller, universe| async move {
        for name in ["bad", "good"] {
            supervised.wake(&key(name), Wake::high(EVENT));
        }
        settle().await;
        supervised.wake(&key("bad"), Wake::high(EVENT.with(Causes::own(1))));
        settle().await;
        supervised.wake(&key("good"), Wake::high(EVENT));
        settle().await;

        assert_eq!((controller.last().key.as_str(), controller.last().memory), ("good", 2));
        let error = shown(&universe, "bad").last_error;
        assert_eq!(error.map(|(_, text)| text).as_deref(), Some("the reconcile panicked"));
        reconcile_time(1).await;
        assert_eq!((controller.last().key.as_str(), controller.last().memory), ("bad", 1));
    });
}

/// fault 19: a key that panics again and again is quarantined.
#[test]
fn rule_6_quarantine_retries_every_ten_minutes_and_when_the_object_changes() {
    run(Scripted::new(|_| Step::Panic), |supervised, controller, universe| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(300).await;
        assert_eq!(controller.reconciles(), 6, "five panics are allowed, the sixth is too many");
        assert_eq!(shown(&universe, "a").activity, Activity::Quarantined);
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(1).await;
        assert_eq!(controller.reconciles(), 6, "other wakes wait");
        supervised.wake(&key("a"), Wake::high(Causes::OBJECT));
        reconcile_time(1).await;
        assert_eq!(controller.reconciles(), 7, "a change of the object causes a try at once");
        reconcile_time(3 * 601).await;

        assert_eq!(controller.reconciles(), 10, "and every ten minutes, once");
    });
}

#[test]
fn rule_6_quarantine_ends_with_a_reconcile_without_a_panic_that_gets_all_wakes() {
    let panicking = Rc::new(StdCell::new(true));
    let bad = panicking.clone();
    let script = move |_: &ScriptedReconcile| if bad.get() { Step::Panic } else { done() };
    run(Scripted::new(script), |supervised, controller, universe| async move {
        supervised.wake(&key("a"), Wake::high(EVENT).about(object("x")));
        reconcile_time(10).await;
        panicking.set(false);
        supervised.wake(&key("a"), Wake::high(EVENT).about(object("y")));
        reconcile_time(600).await;
        assert_eq!(controller.reconciles(), 7);
        assert_eq!(controller.last().wake.refs, Refs::Named([object("x"), object("y")].into()));
        assert_eq!(shown(&universe, "a").activity, Activity::Idle);
        panicking.set(true);
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(10).await;

        assert_eq!(controller.reconciles(), 7 + 6, "five panics are allowed again");
    });
}

#[test]
fn rule_6_dead_actor_is_rebuilt_and_all_its_reconcilers_run_in_full() {
    let script = |reconcile: &ScriptedReconcile| {
        if reconcile.reconciler == 0 && !reconcile.because_of(Causes::RESTARTED) { Step::HangThenKill } else { done() }
    };
    let objects = Rc::new(StdCell::new(0));
    let built = objects.clone();
    let controller = Scripted::new(script).reconcilers([EVENT, EVENT]).on_object(move |_| built.set(built.get() + 1));
    run(controller, |supervised, controller, universe| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(60).await;

        let log = controller.log.borrow();
        let seen: Vec<_> = log.iter().map(|run| (run.reconciler, run.at.as_secs(), run.memory)).collect();
        assert_eq!(seen, [(0, 0, 1), (1, 0, 1), (0, 40, 1), (1, 40, 1)]);
        assert!(log[2..].iter().all(|run| run.wake.causes.meets(Causes::RESTARTED)));
        assert_eq!(objects.get(), 2);
        let shown = shown(&universe, "a");
        assert_eq!((shown.restarts, shown.activity), (1, Activity::Idle));
    });
}

#[test]
fn rule_6_dead_actor_returns_its_permits_and_ends_its_reconciles() {
    let script = |reconcile: &ScriptedReconcile| {
        let kills = reconcile.key == "bad" && !reconcile.because_of(Causes::RESTARTED);
        if kills { Step::HangThenKill } else { one_second() }
    };
    run(Scripted::new(script).permits(1), |supervised, controller, _| async move {
        supervised.wake(&key("bad"), Wake::high(EVENT));
        settle().await;
        for name in ["a", "b"] {
            supervised.wake(&key(name), Wake::high(EVENT));
        }
        reconcile_time(60).await;

        assert_eq!(controller.keys(), ["bad", "a", "b", "bad"]);
        assert_eq!((controller.most_running.get(), controller.running.get()), (1, 0));
    });
}

#[test]
fn rule_6_actor_that_dies_too_often_is_quarantined_and_comes_back() {
    let killing = Rc::new(StdCell::new(true));
    let kills = killing.clone();
    let script = move |_: &ScriptedReconcile| if kills.get() { Step::HangThenKill } else { done() };
    run(Scripted::new(script), |supervised, controller, universe| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(6 * 41).await;
        assert_eq!((controller.reconciles(), shown(&universe, "a").activity), (6, Activity::Quarantined));
        reconcile_time(300).await;
        assert_eq!(controller.reconciles(), 6);
        killing.set(false);
        reconcile_time(301).await;

        assert_eq!((controller.reconciles(), shown(&universe, "a").activity), (7, Activity::Idle));
        assert!(controller.last().wake.causes.meets(EVENT));
    });
}

#[test]
fn rule_6_quarantine_removes_a_reconciler_that_waits_for_a_permit() {
    let other = Causes::own(1);
    let script = |reconcile: &ScriptedReconcile| match (reconcile.key.as_str(), reconcile.reconciler) {
        ("bad", 0) => Step::HangThenKill,
        ("long", _) => Step::Run(Box::pin(async {
            tokio::time::sleep(seconds(29)).await;
            Ok(Outcome::Continue)
        })),
        _ => done(),
    };
    let controller = Scripted::new(script).permits(1).reconcilers([EVENT, other]);
    run(controller, |supervised, controller, _| async move {
        supervised.wake(&key("long"), Wake::high(other));
        settle().await;
        supervised.wake(&key("bad"), Wake::high(EVENT));
        reconcile_time(6 * 41).await;
        supervised.wake(&key("good"), Wake::high(other));
        reconcile_time(100).await;
        let before = controller.reconciles();
        reconcile_time(700).await;

        assert!(controller.keys().contains(&key("good")));
        assert!(controller.reconciles() > before);
        assert_eq!(supervised.running(), 1, "the long reconcile holds the permit of the second reconciler");
    });
}

#[test]
fn rule_6_panic_while_an_object_is_made_counts_as_panic_of_the_reconcile() {
    let left = Rc::new(StdCell::new(3));
    let controller = Scripted::new(|_| done()).on_object(move |_| {
        left.set(left.get() - 1);
        assert!(left.get() < 0, "scripted, while the object is made");
    });
    run(controller, |supervised, controller, universe| async move {
        supervised.wake(&key("a"), Wake::high(EVENT).about(object("x")));
        reconcile_time(1).await;

        assert_eq!(controller.reconciles(), 1, "the fourth attempt got through");
        assert_eq!(controller.last().wake.refs, Refs::one(object("x")));
        assert_eq!(shown(&universe, "a").activity, Activity::Idle);
    });
}

#[test]
fn rule_6_object_that_can_never_be_made_is_quarantined_and_other_keys_run() {
    let controller = Scripted::new(|_| Step::End(Ok(Outcome::After(seconds(60)))))
        .on_object(|key| assert!(key != "bad", "scripted, while the object is made"));
    run(controller, |supervised, controller, universe| async move {
        for name in ["bad", "good"] {
            supervised.wake(&key(name), Wake::high(EVENT));
        }
        reconcile_time(130).await;

        assert_eq!(shown(&universe, "bad").activity, Activity::Quarantined);
        assert_eq!(controller.seconds(), [0, 60, 120], "the timers of others go on");
    });
}

#[test]
fn rule_6_object_that_panics_in_a_rebuilt_actor_does_not_end_the_supervisor() {
    let built = Rc::new(StdCell::new(0));
    let controller = Scripted::new(steps([|| Step::HangThenKill, done])).on_object(move |_| {
        built.set(built.get() + 1);
        assert!(built.get() != 2, "scripted, while the object is made again");
    });
    run(controller, |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(60).await;
        assert_eq!(controller.reconciles(), 2);
        supervised.wake(&key("b"), Wake::high(EVENT));
        settle().await;

        assert_eq!(controller.reconciles(), 3);
    });
}

#[test]
fn rule_6_supervisor_that_panics_ends_the_process_and_is_named() {
    let script =
        |_: &ScriptedReconcile| Step::End(Ok(Outcome::Idle(seconds(60), IdleCheck::new(|| panic!("scripted")))));
    run(Scripted::new(script), |supervised, _, universe| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(59).await;
        assert_eq!(universe.env.fatal.cause(), None);
        reconcile_time(2).await;

        assert_eq!(universe.env.fatal.ended().await, "the supervisor of the controller scripted panicked");
    });
}

#[test]
fn rule_6_supervisor_that_is_stopped_does_not_end_the_process() {
    run(Scripted::new(|_| done()), |supervised, _, universe| async move {
        supervised.stop(seconds(1)).await;
        settle().await;

        assert_eq!(universe.env.fatal.cause(), None);
    });
}

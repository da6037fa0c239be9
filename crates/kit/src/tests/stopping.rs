//! Rule 10: the end of a controller.

use std::{rc::Rc, time::Duration};

use super::support::*;
use crate::{
    testing::{settle, universe},
    *,
};

#[test]
fn rule_10_stopping_lets_passes_end_and_begins_no_new_one() {
    let script = |_: &ScriptedPass| Step::After(seconds(2), Ok(Outcome::Done));
    run(Scripted::new(script).permits(1), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        supervised.wake(&key("b"), Wake::live(EVENT));
        settle().await;
        let finished = supervised.stop(seconds(4)).await;

        assert!(finished);
        assert_eq!(controller.elapsed(), seconds(2));
        assert_eq!((controller.passes(), controller.running.get()), (1, 0));
    });
}

#[test]
fn rule_10_a_permit_that_was_not_used_yet_begins_no_pass_either() {
    run(Scripted::new(|_| one_second()), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        settle().await;
        supervised.wake(&key("b"), Wake::live(EVENT));
        let finished = supervised.stop(seconds(4)).await;

        assert!(finished);
        assert_eq!(controller.keys(), ["a"]);
    });
}

#[test]
fn rule_10_a_pass_that_does_not_end_is_abandoned() {
    run(Scripted::new(|_| Step::Hang), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        settle().await;
        let finished = supervised.stop(seconds(4)).await;
        settle().await;

        assert!(!finished);
        assert_eq!(controller.elapsed(), seconds(4));
        assert_eq!(controller.running.get(), 0, "its future was dropped");
    });
}

#[test]
fn rule_10_the_death_of_the_last_actor_at_work_ends_the_wait() {
    run(Scripted::new(|_| Step::HangThenKill), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        pass_time(39).await;
        let finished = supervised.stop(seconds(30)).await;

        assert!(finished);
        assert_eq!((controller.elapsed().as_secs(), controller.passes()), (40, 1));
    });
}

#[test]
fn rule_10_timers_signals_and_wakes_after_the_end_do_nothing() {
    let signal = Signal::default();
    let waited = signal.clone();
    let script = move |pass: &ScriptedPass| match pass.key.as_str() {
        "timer" => Step::End(Ok(Outcome::After(seconds(60)))),
        "failing" => fail(),
        _ => Step::End(Ok(Outcome::Wait(vec![waited.moment()]))),
    };
    run(Scripted::new(script), |supervised, controller, universe| async move {
        for name in ["timer", "failing", "waiting"] {
            supervised.wake(&key(name), Wake::live(EVENT));
        }
        settle().await;
        assert!(supervised.stop(seconds(4)).await);
        let passes = controller.passes();
        signal.raise();
        controller.readiness.raise();
        supervised.wake(&key("late"), Wake::live(EVENT));
        pass_time(3600).await;

        assert_eq!(controller.passes(), passes);
        assert!(supervised.is_empty());
        assert!(universe.env.census.snapshot().is_empty());
        assert!(supervised.stop(seconds(4)).await, "a second stop is harmless");
    });
}

#[test]
fn rule_10_nothing_keeps_a_stopped_controller_in_memory() {
    universe(1, |universe| async move {
        let controller = Rc::new(Scripted::new(|_| Step::End(Ok(Outcome::After(Duration::from_secs(60))))));
        let supervised = Supervised::start(controller.clone(), &universe.env);
        supervised.wake(&key("a"), Wake::live(EVENT));
        settle().await;
        supervised.stop(Duration::ZERO).await;
        drop(supervised);
        settle().await;

        assert_eq!(Rc::strong_count(&controller), 1);
    });
}

use std::{cell::Cell as StdCell, rc::Rc, time::Duration};

use jiff::{SignedDuration, Timestamp};

use super::support::*;
use crate::{testing::settle, *};

#[test]
fn rule_4_after_runs_again_after_its_time() {
    let script = steps([|| Step::End(Ok(Outcome::After(Duration::from_secs(60)))), done]);
    run(Scripted::new(script), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(300).await;

        assert_eq!(controller.seconds(), [0, 60]);
        assert_eq!(controller.last().wake.causes, Causes::TIMER);
    });
}

#[test]
fn rule_4_earlier_wake_replaces_the_timer() {
    let script = steps([|| Step::End(Ok(Outcome::After(Duration::from_secs(60)))), done]);
    run(Scripted::new(script), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(10).await;
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(300).await;

        assert_eq!(controller.seconds(), [0, 10]);
    });
}

#[test]
fn rule_4_idle_period_starts_again_without_a_reconcile_while_there_is_nothing_to_do() {
    let looks = Rc::new(StdCell::new(0));
    let looked = looks.clone();
    let script = move |reconcile: &ScriptedReconcile| {
        if reconcile.because_of(Causes::TIMER) {
            return done();
        }
        let looked = looked.clone();
        let idle_check = IdleCheck::new(move || {
            looked.set(looked.get() + 1);
            (looked.get() % 4 != 0).then_some(seconds(30))
        });
        Step::End(Ok(Outcome::Idle(seconds(60), idle_check)))
    };
    run(Scripted::new(script), |supervised, controller, universe| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(140).await;
        assert_eq!((controller.seconds(), looks.get()), (vec![0], 3), "at 60, 90 and 120 s");
        let next = shown(&universe, "a").next_timer;
        assert_eq!(
            next,
            Some(universe.env.clock.wall() + SignedDuration::from_secs(10)),
            "the dashboard shows the next idle check"
        );
        reconcile_time(300).await;

        assert_eq!((controller.seconds(), looks.get()), (vec![0, 150], 4));
        assert_eq!(controller.last().wake.causes, Causes::TIMER);
    });
}

#[test]
fn rule_4_idle_period_and_its_check_end_with_a_wake() {
    let looks = Rc::new(StdCell::new(0));
    let looked = looks.clone();
    let script = move |reconcile: &ScriptedReconcile| {
        if reconcile.because_of(Causes::OBJECT) {
            return done();
        }
        let looked = looked.clone();
        let idle_check = IdleCheck::new(move || {
            looked.set(looked.get() + 1);
            Some(seconds(60))
        });
        Step::End(Ok(Outcome::Idle(seconds(60), idle_check)))
    };
    run(Scripted::new(script), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(10).await;
        supervised.wake(&key("a"), Wake::high(Causes::OBJECT));
        reconcile_time(300).await;

        assert_eq!((controller.seconds(), looks.get()), (vec![0, 10], 0));
    });
}

#[test]
fn rule_4_huge_times_are_cut_without_a_panic() {
    let far = || Step::End(Ok(Outcome::After(Duration::MAX)));
    let later = || Step::End(Ok(Outcome::At(Timestamp::MAX)));
    let past = || Step::End(Ok(Outcome::At(Timestamp::MIN)));
    run(Scripted::new(steps([far, later, past, done])), |supervised, controller, universe| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(60).await;
        assert_eq!(controller.reconciles(), 1);
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(60).await;
        assert_eq!(controller.reconciles(), 2);
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(60).await;

        assert_eq!(controller.reconciles(), 4, "a time in the past is now");
        assert_eq!((shown(&universe, "a").last_error, shown(&universe, "a").restarts), (None, 0));
    });
}

#[test]
fn rule_4_errors_back_off_from_5_ms_doubling_up_to_the_cap() {
    run(Scripted::new(|_| fail()), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(400).await;

        let times: Vec<_> = controller.log.borrow().iter().map(|run| run.at.as_millis()).collect();
        assert!(times.len() > 15);
        // Timers have a resolution of 1 ms.
        for (n, pair) in times.windows(2).enumerate() {
            let expected = (5u128 << n).min(60_000);
            assert!((expected..=expected + 2).contains(&(pair[1] - pair[0])), "gap {n} of {times:?}");
        }
    });
}

#[test]
fn rule_4_again_backs_off_like_an_error_and_other_outcomes_reset_the_back_off() {
    let again = || Step::End(Ok(Outcome::Again));
    let script = steps([again, fail, again, done, again, done]);
    run(Scripted::new(script), |supervised, controller, universe| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(1).await;
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(1).await;

        let times: Vec<_> = controller.log.borrow().iter().map(|run| run.at.as_millis()).collect();
        let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(gaps.len(), 5);
        for (gap, expected) in gaps.iter().zip([5, 10, 20, 965, 5]) {
            assert!((expected - 3..=expected + 2).contains(gap), "{gaps:?}");
        }
        assert_eq!(shown(&universe, "a").last_error.map(|(_, text)| text).as_deref(), Some("no"));
    });
}

#[test]
fn rule_4_terminal_error_is_shown_and_waits_for_the_next_wake() {
    let terminal = || Step::End(Err(Failure::terminal("in vain")));
    run(Scripted::new(steps([fail, terminal, fail, done])), |supervised, controller, universe| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(400).await;
        assert_eq!(controller.reconciles(), 2);
        assert_eq!(shown(&universe, "a").last_error.map(|(_, text)| text).as_deref(), Some("in vain"));
        supervised.wake(&key("a"), Wake::high(Causes::OBJECT));
        reconcile_time(1).await;

        let times: Vec<_> = controller.log.borrow().iter().map(|run| run.at.as_millis()).collect();
        assert!((5..=7).contains(&(times[3] - times[2])), "the back-off was reset: {times:?}");
        assert_eq!(
            controller.log.borrow()[2].wake.causes,
            Causes::OBJECT,
            "the wake of a terminal error is not retained"
        );
    });
}

#[test]
fn rule_4_wall_time_timer_follows_jumps_of_the_clock_within_ten_minutes() {
    let begin = Timestamp::from_second(1_893_456_000).unwrap();
    let at = begin + SignedDuration::from_hours(10);
    let script = move |reconcile: &ScriptedReconcile| {
        if reconcile.because_of(Causes::TIMER) { done() } else { Step::End(Ok(Outcome::At(at))) }
    };
    run(Scripted::new(script), |supervised, controller, universe| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(3600).await;
        assert_eq!(controller.reconciles(), 1);
        universe.env.clock.jump(SignedDuration::from_hours(9));
        reconcile_time(601).await;

        assert_eq!(controller.reconciles(), 2, "the second reconcile came soon after the jump");
    });
}

#[test]
fn rule_4_wait_sees_a_signal_that_was_raised_during_the_reconcile() {
    let signal = Signal::default();
    let waited = signal.clone();
    let script = move |reconcile: &ScriptedReconcile| {
        if reconcile.because_of(Causes::STORE) {
            return done();
        }
        let moment = waited.moment();
        if reconcile.key == "late" {
            waited.raise();
        }
        Step::End(Ok(Outcome::Wait(vec![moment])))
    };
    run(Scripted::new(script), |supervised, controller, _| async move {
        supervised.wake(&key("early"), Wake::high(EVENT));
        reconcile_time(100).await;
        assert_eq!(controller.reconciles(), 1);
        signal.raise();
        supervised.wake(&key("late"), Wake::high(EVENT));
        reconcile_time(1).await;

        assert_eq!(controller.reconciles(), 4);
    });
}

#[test]
fn rule_4_wait_keeps_wake_and_priority_and_holds_no_permit() {
    let signal = Signal::default();
    let waited = signal.clone();
    let script = move |reconcile: &ScriptedReconcile| match reconcile.key.as_str() {
        "waiter" if !reconcile.because_of(Causes::STORE) => Step::End(Ok(Outcome::Wait(vec![waited.moment()]))),
        _ => one_second(),
    };
    run(Scripted::new(script).permits(1), |supervised, controller, _| async move {
        supervised.wake(&key("waiter"), Wake::high(EVENT).about(object("x")));
        settle().await;
        for name in ["background-1", "background-2"] {
            supervised.wake(&key(name), Wake::low(EVENT));
        }
        settle().await;
        signal.raise();
        reconcile_time(10).await;

        assert_eq!(controller.keys(), ["waiter", "background-1", "waiter", "background-2"]);
        let second = controller.log.borrow()[2].wake.clone();
        assert!(second.causes.meets(EVENT));
        assert_eq!((second.refs, second.priority), (Refs::one(object("x")), Priority::High));
    });
}

#[test]
fn rule_4_retire_ends_an_actor_and_a_later_wake_starts_a_new_actor() {
    run(Scripted::new(|_| retire()), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        settle().await;
        assert!(supervised.is_empty());
        supervised.wake(&key("a"), Wake::high(EVENT));
        settle().await;

        let memories: Vec<_> = controller.log.borrow().iter().map(|run| run.memory).collect();
        assert_eq!(memories, [1, 1], "the second actor knows nothing of the first");
    });
}

#[test]
fn rule_4_retire_keeps_an_actor_that_was_woken_meanwhile() {
    let slow_retire = || Step::After(Duration::from_secs(1), Ok(Outcome::Retire));
    run(Scripted::new(steps([slow_retire, done])), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        settle().await;
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(5).await;

        assert_eq!(controller.reconciles(), 2);
        assert_eq!(supervised.len(), 1);
    });
}

#[test]
fn rule_4_retire_that_was_prevented_does_not_outlive_a_later_failure() {
    let slow_retire = || Step::After(Duration::from_secs(1), Ok(Outcome::Retire));
    run(Scripted::new(steps([slow_retire, fail, done])), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        settle().await;
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(5).await;

        assert_eq!(controller.reconciles(), 3);
        assert_eq!(supervised.len(), 1, "its last reconcile did not ask for the end");
    });
}

#[test]
fn rule_4_retire_waits_for_a_running_reconciler_and_ends_its_timers() {
    let script = |reconcile: &ScriptedReconcile| match reconcile.reconciler {
        0 => retire(),
        _ => Step::After(Duration::from_secs(5), Ok(Outcome::After(Duration::from_secs(60)))),
    };
    run(Scripted::new(script).reconcilers([EVENT, EVENT]), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(4).await;
        assert_eq!(supervised.len(), 1, "the second reconciler is running");
        reconcile_time(2).await;
        assert!(supervised.is_empty());
        reconcile_time(100).await;

        assert_eq!(controller.reconciles(), 2, "the timer of the second reconciler is gone");
    });
}

#[test]
fn rule_4_retire_waits_for_a_wake_of_another_reconciler() {
    let other = Causes::own(1);
    let script = |reconcile: &ScriptedReconcile| match reconcile.reconciler {
        0 => Step::After(Duration::from_secs(1), Ok(Outcome::Retire)),
        _ => done(),
    };
    let controller = Scripted::new(script).reconcilers([EVENT, other]);
    run(controller, |supervised, controller, _| async move {
        controller.ready.set(true);
        supervised.wake(&key("a"), Wake::high(EVENT));
        settle().await;
        controller.ready.set(false);
        supervised.wake(&key("a"), Wake::high(other));
        reconcile_time(10).await;
        assert_eq!(supervised.len(), 1, "the wake waits for a store");
        controller.ready.set(true);
        controller.readiness.raise();
        reconcile_time(1).await;

        assert!(supervised.is_empty());
        assert_eq!(controller.log.borrow().iter().map(|run| run.reconciler).collect::<Vec<_>>(), [0, 1]);
    });
}

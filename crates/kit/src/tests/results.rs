//! Rule 4: each result makes its own next pass.

use std::{cell::Cell as StdCell, rc::Rc, time::Duration};

use jiff::{SignedDuration, Timestamp};

use super::support::*;
use crate::{testing::settle, *};

#[test]
fn rule_4_after_runs_again_after_its_time() {
    let script = steps([|| Step::End(Ok(Outcome::After(Duration::from_secs(60)))), done]);
    run(Scripted::new(script), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        pass_time(300).await;

        assert_eq!(controller.seconds(), [0, 60]);
        assert_eq!(controller.last().wake.causes, Causes::TIMER);
    });
}

#[test]
fn rule_4_an_earlier_wake_replaces_the_timer() {
    let script = steps([|| Step::End(Ok(Outcome::After(Duration::from_secs(60)))), done]);
    run(Scripted::new(script), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        pass_time(10).await;
        supervised.wake(&key("a"), Wake::live(EVENT));
        pass_time(300).await;

        assert_eq!(controller.seconds(), [0, 10]);
    });
}

#[test]
fn rule_4_a_rest_begins_anew_without_a_pass_as_long_as_there_is_nothing_to_do() {
    let looks = Rc::new(StdCell::new(0));
    let looked = looks.clone();
    let script = move |pass: &ScriptedPass| {
        if pass.because_of(Causes::TIMER) {
            return done();
        }
        let looked = looked.clone();
        let look = Look::new(move || {
            looked.set(looked.get() + 1);
            (looked.get() % 4 != 0).then_some(seconds(30))
        });
        Step::End(Ok(Outcome::Rest(seconds(60), look)))
    };
    run(Scripted::new(script), |supervised, controller, universe| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        pass_time(140).await;
        assert_eq!((controller.seconds(), looks.get()), (vec![0], 3), "at 60, 90 and 120 s");
        let next = shown(&universe, "a").next_timer;
        assert_eq!(
            next,
            Some(universe.env.clock.wall() + SignedDuration::from_secs(10)),
            "the dashboard shows the next look"
        );
        pass_time(300).await;

        assert_eq!((controller.seconds(), looks.get()), (vec![0, 150], 4));
        assert_eq!(controller.last().wake.causes, Causes::TIMER);
    });
}

#[test]
fn rule_4_a_wake_ends_a_rest_and_its_look() {
    let looks = Rc::new(StdCell::new(0));
    let looked = looks.clone();
    let script = move |pass: &ScriptedPass| {
        if pass.because_of(Causes::OBJECT) {
            return done();
        }
        let looked = looked.clone();
        let look = Look::new(move || {
            looked.set(looked.get() + 1);
            Some(seconds(60))
        });
        Step::End(Ok(Outcome::Rest(seconds(60), look)))
    };
    run(Scripted::new(script), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        pass_time(10).await;
        supervised.wake(&key("a"), Wake::live(Causes::OBJECT));
        pass_time(300).await;

        assert_eq!((controller.seconds(), looks.get()), (vec![0, 10], 0));
    });
}

#[test]
fn rule_4_times_beyond_all_reason_are_kept_without_a_panic() {
    let far = || Step::End(Ok(Outcome::After(Duration::MAX)));
    let later = || Step::End(Ok(Outcome::At(Timestamp::MAX)));
    let past = || Step::End(Ok(Outcome::At(Timestamp::MIN)));
    run(Scripted::new(steps([far, later, past, done])), |supervised, controller, universe| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        pass_time(60).await;
        assert_eq!(controller.passes(), 1);
        supervised.wake(&key("a"), Wake::live(EVENT));
        pass_time(60).await;
        assert_eq!(controller.passes(), 2);
        supervised.wake(&key("a"), Wake::live(EVENT));
        pass_time(60).await;

        assert_eq!(controller.passes(), 4, "a time that is over is now");
        assert_eq!((shown(&universe, "a").last_error, shown(&universe, "a").restarts), (None, 0));
    });
}

#[test]
fn rule_4_errors_back_off_from_5_ms_doubling_up_to_the_cap() {
    run(Scripted::new(|_| fail()), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        pass_time(400).await;

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
fn rule_4_again_backs_off_like_an_error_and_other_results_begin_anew() {
    let again = || Step::End(Ok(Outcome::Again));
    let script = steps([again, fail, again, done, again, done]);
    run(Scripted::new(script), |supervised, controller, universe| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        pass_time(1).await;
        supervised.wake(&key("a"), Wake::live(EVENT));
        pass_time(1).await;

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
fn rule_4_a_terminal_error_is_shown_and_waits_for_the_next_wake() {
    let terminal = || Step::End(Err(Failure::terminal("in vain")));
    run(Scripted::new(steps([fail, terminal, fail, done])), |supervised, controller, universe| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        pass_time(400).await;
        assert_eq!(controller.passes(), 2);
        assert_eq!(shown(&universe, "a").last_error.map(|(_, text)| text).as_deref(), Some("in vain"));
        supervised.wake(&key("a"), Wake::live(Causes::OBJECT));
        pass_time(1).await;

        let times: Vec<_> = controller.log.borrow().iter().map(|run| run.at.as_millis()).collect();
        assert!((5..=7).contains(&(times[3] - times[2])), "the back-off began anew: {times:?}");
        assert_eq!(controller.log.borrow()[2].wake.causes, Causes::OBJECT, "what was in vain is not kept");
    });
}

#[test]
fn rule_4_a_wall_time_timer_follows_jumps_of_the_clock_within_ten_minutes() {
    let begin = Timestamp::from_second(1_893_456_000).unwrap();
    let at = begin + SignedDuration::from_hours(10);
    let script = move |pass: &ScriptedPass| {
        if pass.because_of(Causes::TIMER) { done() } else { Step::End(Ok(Outcome::At(at))) }
    };
    run(Scripted::new(script), |supervised, controller, universe| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        pass_time(3600).await;
        assert_eq!(controller.passes(), 1);
        universe.env.clock.jump(SignedDuration::from_hours(9));
        pass_time(601).await;

        assert_eq!(controller.passes(), 2, "the second pass came soon after the jump");
    });
}

#[test]
fn rule_4_a_pass_that_waits_runs_when_the_signal_was_raised_even_in_between() {
    let signal = Signal::default();
    let waited = signal.clone();
    let script = move |pass: &ScriptedPass| {
        if pass.because_of(Causes::STORE) {
            return done();
        }
        let moment = waited.moment();
        if pass.key == "late" {
            waited.raise();
        }
        Step::End(Ok(Outcome::Wait(vec![moment])))
    };
    run(Scripted::new(script), |supervised, controller, _| async move {
        supervised.wake(&key("early"), Wake::live(EVENT));
        pass_time(100).await;
        assert_eq!(controller.passes(), 1);
        signal.raise();
        supervised.wake(&key("late"), Wake::live(EVENT));
        pass_time(1).await;

        assert_eq!(controller.passes(), 4);
    });
}

#[test]
fn rule_4_a_pass_that_waits_keeps_its_wake_its_lane_and_no_permit() {
    let signal = Signal::default();
    let waited = signal.clone();
    let script = move |pass: &ScriptedPass| match pass.key.as_str() {
        "waiter" if !pass.because_of(Causes::STORE) => Step::End(Ok(Outcome::Wait(vec![waited.moment()]))),
        _ => one_second(),
    };
    run(Scripted::new(script).permits(1), |supervised, controller, _| async move {
        supervised.wake(&key("waiter"), Wake::live(EVENT).about(object("x")));
        settle().await;
        for name in ["background-1", "background-2"] {
            supervised.wake(&key(name), Wake::background(EVENT));
        }
        settle().await;
        signal.raise();
        pass_time(10).await;

        assert_eq!(controller.keys(), ["waiter", "background-1", "waiter", "background-2"]);
        let second = controller.log.borrow()[2].wake.clone();
        assert!(second.causes.meets(EVENT));
        assert_eq!((second.refs, second.lane), (Refs::one(object("x")), Lane::Live));
    });
}

#[test]
fn rule_4_only_retire_ends_an_actor_and_a_later_wake_starts_a_new_one() {
    run(Scripted::new(|_| retire()), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        settle().await;
        assert!(supervised.is_empty());
        supervised.wake(&key("a"), Wake::live(EVENT));
        settle().await;

        let memories: Vec<_> = controller.log.borrow().iter().map(|run| run.memory).collect();
        assert_eq!(memories, [1, 1], "the second actor knows nothing of the first");
    });
}

#[test]
fn rule_4_a_wake_during_the_retiring_pass_keeps_the_actor() {
    let slow_retire = || Step::After(Duration::from_secs(1), Ok(Outcome::Retire));
    run(Scripted::new(steps([slow_retire, done])), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        settle().await;
        supervised.wake(&key("a"), Wake::live(EVENT));
        pass_time(5).await;

        assert_eq!(controller.passes(), 2);
        assert_eq!(supervised.len(), 1);
    });
}

#[test]
fn rule_4_a_pass_that_fails_after_a_retirement_that_came_to_nothing_is_tried_again() {
    let slow_retire = || Step::After(Duration::from_secs(1), Ok(Outcome::Retire));
    run(Scripted::new(steps([slow_retire, fail, done])), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        settle().await;
        supervised.wake(&key("a"), Wake::live(EVENT));
        pass_time(5).await;

        assert_eq!(controller.passes(), 3);
        assert_eq!(supervised.len(), 1, "its last pass did not ask for the end");
    });
}

#[test]
fn rule_4_an_actor_retires_when_its_other_duty_is_done_and_its_timers_end_with_it() {
    let script = |pass: &ScriptedPass| match pass.duty {
        0 => retire(),
        _ => Step::After(Duration::from_secs(5), Ok(Outcome::After(Duration::from_secs(60)))),
    };
    run(Scripted::new(script).duties([EVENT, EVENT]), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        pass_time(4).await;
        assert_eq!(supervised.len(), 1, "the second duty is at work");
        pass_time(2).await;
        assert!(supervised.is_empty());
        pass_time(100).await;

        assert_eq!(controller.passes(), 2, "the timer of the second duty is gone");
    });
}

#[test]
fn rule_4_a_wake_of_the_other_duty_keeps_a_retiring_actor_until_it_was_served() {
    let other = Causes::own(1);
    let script = |pass: &ScriptedPass| match pass.duty {
        0 => Step::After(Duration::from_secs(1), Ok(Outcome::Retire)),
        _ => done(),
    };
    let controller = Scripted::new(script).duties([EVENT, other]);
    run(controller, |supervised, controller, _| async move {
        controller.ready.set(true);
        supervised.wake(&key("a"), Wake::live(EVENT));
        settle().await;
        controller.ready.set(false);
        supervised.wake(&key("a"), Wake::live(other));
        pass_time(10).await;
        assert_eq!(supervised.len(), 1, "the wake waits for a store");
        controller.ready.set(true);
        controller.readiness.raise();
        pass_time(1).await;

        assert!(supervised.is_empty());
        assert_eq!(controller.log.borrow().iter().map(|run| run.duty).collect::<Vec<_>>(), [0, 1]);
    });
}

//! Rules 7 and 8: deadlines and needs.

use super::support::*;
use crate::{testing::settle, *};

#[test]
fn rule_7_a_pass_that_ignores_its_deadline_is_dropped_ten_seconds_later() {
    run(Scripted::new(steps([|| Step::Hang, done])), |supervised, controller, universe| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        pass_time(60).await;

        let second = controller.last();
        assert_eq!(controller.seconds(), [0, 40]);
        assert_eq!(second.memory, 1, "what a dropped pass knew is gone");
        assert!(second.wake.causes.meets(Causes::RESTARTED) && second.wake.causes.meets(EVENT));
        assert_eq!(shown(&universe, "a").restarts, 0, "the actor lives on");
    });
}

#[test]
fn rule_7_a_pass_that_obeys_its_deadline_keeps_what_it_knows() {
    let script = steps([|| Step::After(seconds(30), Err(Failure::new("deadline exceeded"))), done]);
    run(Scripted::new(script), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        pass_time(60).await;

        assert_eq!((controller.passes(), controller.last().memory), (2, 2));
        assert!(!controller.last().wake.causes.meets(Causes::RESTARTED));
    });
}

#[test]
fn rule_8_a_duty_does_not_run_before_the_stores_it_needs_are_there() {
    let controller = Scripted::new(|_| done());
    controller.ready.set(false);
    run(controller, |supervised, controller, universe| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        supervised.wake(&key("a"), Wake::background(Causes::OBJECT));
        pass_time(60).await;
        assert_eq!((controller.passes(), shown(&universe, "a").activity), (0, Activity::Waiting));
        controller.readiness.raise();
        settle().await;
        assert_eq!(controller.passes(), 0, "still not there");
        controller.ready.set(true);
        controller.readiness.raise();
        settle().await;

        assert_eq!(controller.passes(), 1);
        assert_eq!(controller.last().wake.causes, EVENT.with(Causes::OBJECT), "wakes gathered meanwhile");
    });
}

#[test]
fn rule_8_a_store_that_goes_away_stops_those_who_wait_for_a_permit() {
    run(Scripted::new(|_| one_second()).permits(1), |supervised, controller, universe| async move {
        for name in ["a", "b", "c"] {
            supervised.wake(&key(name), Wake::live(EVENT));
        }
        settle().await;
        controller.ready.set(false);
        pass_time(10).await;
        assert_eq!(controller.keys(), ["a"]);
        assert_eq!(shown(&universe, "c").activity, Activity::Waiting);
        controller.ready.set(true);
        controller.readiness.raise();
        pass_time(10).await;

        assert_eq!(controller.keys(), ["a", "b", "c"]);
    });
}

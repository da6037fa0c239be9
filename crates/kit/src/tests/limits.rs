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

/// spec 70 §7.1.
#[test]
fn rule_8_a_store_that_is_not_there_in_time_ends_the_process_and_is_named() {
    let controller = Scripted::new(|_| done());
    controller.ready.set(false);
    run(controller, |supervised, controller, universe| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        *controller.error.borrow_mut() = Some("forbidden".to_owned());
        pass_time(119).await;
        assert_eq!(universe.env.fatal.cause(), None);
        pass_time(3).await;

        let text = "failed to wait for first caches to sync store: forbidden";
        assert_eq!((universe.env.fatal.cause().as_deref(), controller.passes()), (Some(text), 0));
    });
}

/// spec 70 §7.1.
#[test]
fn rule_8_a_store_that_was_there_in_time_may_go_away() {
    let controller = Scripted::new(|_| done());
    controller.ready.set(false);
    run(controller, |_, controller, universe| async move {
        pass_time(115).await;
        controller.ready.set(true);
        pass_time(2).await;
        controller.ready.set(false);
        pass_time(1000).await;

        assert_eq!(universe.env.fatal.cause(), None);
    });
}

/// spec 70 §7.1.
#[test]
fn rule_8_the_time_of_a_store_stands_still_while_its_cluster_does_not_answer_at_all() {
    let controller = Scripted::new(|_| done());
    controller.ready.set(false);
    run(controller, |_, controller, universe| async move {
        pass_time(60).await;
        controller.away.set(true);
        pass_time(10_000).await;
        assert_eq!(universe.env.fatal.cause(), None);
        controller.away.set(false);
        pass_time(58).await;
        assert_eq!(universe.env.fatal.cause(), None, "a minute is left");
        pass_time(5).await;

        let text = "failed to wait for first caches to sync store";
        assert_eq!(universe.env.fatal.cause().as_deref(), Some(text));
    });
}

#[test]
fn a_duty_is_as_the_specification_has_it_unless_it_says_otherwise() {
    let duty = Duty::new("some", 5);

    assert_eq!((duty.name, duty.permits, duty.max_back_off, duty.deadline), ("some", 5, seconds(1000), seconds(180)));
    assert!(duty.needs.is_empty() && duty.resync.is_none());
    assert!((0..24).all(|index| duty.causes.meets(Causes::own(index))));
    assert_eq!(Whole.to_string(), "all");
}

use super::support::*;
use crate::{testing::settle, *};

#[test]
fn rule_7_reconcile_that_ignores_its_deadline_is_dropped_ten_seconds_later() {
    run(Scripted::new(steps([|| Step::Hang, done])), |supervised, controller, universe| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(60).await;

        let second = controller.last();
        assert_eq!(controller.seconds(), [0, 40]);
        assert_eq!(second.memory, 1, "the memory of a dropped reconcile is gone");
        assert!(second.wake.causes.meets(Causes::RESTARTED) && second.wake.causes.meets(EVENT));
        assert_eq!(shown(&universe, "a").restarts, 0, "the actor lives on");
    });
}

#[test]
fn rule_7_reconcile_that_obeys_its_deadline_keeps_its_memory() {
    let script = steps([|| Step::After(seconds(30), Err(Failure::new("deadline exceeded"))), done]);
    run(Scripted::new(script), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(60).await;

        assert_eq!((controller.reconciles(), controller.last().memory), (2, 2));
        assert!(!controller.last().wake.causes.meets(Causes::RESTARTED));
    });
}

#[test]
fn rule_8_reconciler_waits_for_its_required_caches() {
    let controller = Scripted::new(|_| done());
    controller.ready.set(false);
    run(controller, |supervised, controller, universe| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        supervised.wake(&key("a"), Wake::low(Causes::OBJECT));
        reconcile_time(60).await;
        assert_eq!((controller.reconciles(), shown(&universe, "a").activity), (0, Activity::Waiting));
        controller.readiness.raise();
        settle().await;
        assert_eq!(controller.reconciles(), 0, "still not synced");
        controller.ready.set(true);
        controller.readiness.raise();
        settle().await;

        assert_eq!(controller.reconciles(), 1);
        assert_eq!(controller.last().wake.causes, EVENT.with(Causes::OBJECT), "wakes gathered meanwhile");
    });
}

#[test]
fn rule_8_cache_that_loses_sync_stops_keys_that_wait_for_a_permit() {
    run(Scripted::new(|_| one_second()).permits(1), |supervised, controller, universe| async move {
        for name in ["a", "b", "c"] {
            supervised.wake(&key(name), Wake::high(EVENT));
        }
        settle().await;
        controller.ready.set(false);
        reconcile_time(10).await;
        assert_eq!(controller.keys(), ["a"]);
        assert_eq!(shown(&universe, "c").activity, Activity::Waiting);
        controller.ready.set(true);
        controller.readiness.raise();
        reconcile_time(10).await;

        assert_eq!(controller.keys(), ["a", "b", "c"]);
    });
}

/// spec 70 §7.1.
#[test]
fn rule_8_cache_not_synced_in_time_ends_the_process_and_is_named() {
    let controller = Scripted::new(|_| done());
    controller.ready.set(false);
    run(controller, |supervised, controller, universe| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        *controller.error.borrow_mut() = Some("forbidden".to_owned());
        reconcile_time(119).await;
        assert_eq!(universe.env.fatal.cause(), None);
        reconcile_time(3).await;

        let text = "failed to wait for first caches to sync store: forbidden";
        assert_eq!((universe.env.fatal.cause().as_deref(), controller.reconciles()), (Some(text), 0));
    });
}

/// spec 70 §7.1.
#[test]
fn rule_8_cache_synced_in_time_may_lose_sync() {
    let controller = Scripted::new(|_| done());
    controller.ready.set(false);
    run(controller, |_, controller, universe| async move {
        reconcile_time(115).await;
        controller.ready.set(true);
        reconcile_time(2).await;
        controller.ready.set(false);
        reconcile_time(1000).await;

        assert_eq!(universe.env.fatal.cause(), None);
    });
}

/// spec 70 §7.1.
#[test]
fn rule_8_sync_timeout_stands_still_while_the_cluster_does_not_answer() {
    let controller = Scripted::new(|_| done());
    controller.ready.set(false);
    run(controller, |_, controller, universe| async move {
        reconcile_time(60).await;
        controller.away.set(true);
        reconcile_time(10_000).await;
        assert_eq!(universe.env.fatal.cause(), None);
        controller.away.set(false);
        reconcile_time(58).await;
        assert_eq!(universe.env.fatal.cause(), None, "a minute is left");
        reconcile_time(5).await;

        let text = "failed to wait for first caches to sync store";
        assert_eq!(universe.env.fatal.cause().as_deref(), Some(text));
    });
}

#[test]
fn reconciler_defaults_follow_the_specification() {
    let reconciler = Reconciler::new("some", 5);

    assert_eq!(
        (reconciler.name, reconciler.permits, reconciler.max_back_off, reconciler.deadline),
        ("some", 5, seconds(1000), seconds(180))
    );
    assert!(reconciler.requires.is_empty() && reconciler.resync.is_none());
    assert!((0..24).all(|index| reconciler.causes.meets(Causes::own(index))));
    assert_eq!(Singleton.to_string(), "all");
}

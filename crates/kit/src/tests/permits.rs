use std::{collections::BTreeMap, time::Duration};

use super::support::*;
use crate::{testing::settle, *};

#[test]
fn rule_5_permits_bound_reconciles_and_go_to_high_priority_except_each_eighth() {
    run(Scripted::new(|_| one_second()).permits(1), |supervised, controller, _| async move {
        supervised.wake(&key("first"), Wake::high(EVENT));
        settle().await;
        for index in 0..20 {
            supervised.wake(&format!("background-{index:02}"), Wake::low(EVENT));
        }
        for index in 0..20 {
            supervised.wake(&format!("live-{index:02}"), Wake::high(EVENT));
        }
        reconcile_time(60).await;

        let order = controller.keys();
        assert_eq!(controller.most_running.get(), 1);
        assert_eq!(order[1], "live-00");
        assert_eq!(order[7], "background-00", "{order:?}");
        assert_eq!(order[8], "live-06");
        assert_eq!(order.len(), 41);
    });
}

#[test]
fn rule_5_high_priority_wake_moves_a_key_that_waits_with_low_priority() {
    run(Scripted::new(|_| one_second()).permits(1), |supervised, controller, _| async move {
        supervised.wake(&key("first"), Wake::high(EVENT));
        settle().await;
        for name in ["a", "b", "c"] {
            supervised.wake(&key(name), Wake::low(EVENT));
        }
        supervised.wake(&key("c"), Wake::high(EVENT));
        reconcile_time(60).await;

        assert_eq!(controller.keys(), ["first", "c", "a", "b"]);
    });
}

#[test]
fn rule_5_zero_permits_count_as_one() {
    run(Scripted::new(|_| one_second()).permits(0), |supervised, controller, _| async move {
        for name in ["a", "b"] {
            supervised.wake(&key(name), Wake::high(EVENT));
        }
        reconcile_time(10).await;

        assert_eq!((controller.reconciles(), controller.most_running.get()), (2, 1));
    });
}

#[test]
fn rule_5_continue_queues_behind_others_and_keeps_the_wake() {
    let script = move |reconcile: &ScriptedReconcile| {
        let first = reconcile.key == "big" && !reconcile.because_of(Causes::AGAIN);
        if first { Step::After(Duration::from_secs(3), Ok(Outcome::Continue)) } else { done() }
    };
    run(Scripted::new(script).permits(1), |supervised, controller, _| async move {
        supervised.wake(&key("big"), Wake::high(EVENT).about(object("x")));
        settle().await;
        supervised.wake(&key("small"), Wake::high(EVENT));
        reconcile_time(10).await;

        assert_eq!(controller.keys(), ["big", "small", "big"]);
        let last = controller.last();
        assert!(last.wake.causes.meets(EVENT));
        assert_eq!(last.wake.refs, Refs::one(object("x")));
        assert_eq!(last.limit, Duration::from_secs(30), "each slice has a deadline of its own");
        assert_eq!(last.memory, 2, "and the memory of the one before");
    });
}

#[test]
fn rule_5_continue_for_ever_does_not_block_the_arbiter() {
    let script = |reconcile: &ScriptedReconcile| {
        if reconcile.key == "busy" { Step::End(Ok(Outcome::Continue)) } else { done() }
    };
    run(Scripted::new(script), |supervised, controller, _| async move {
        supervised.wake(&key("busy"), Wake::high(EVENT));
        settle().await;
        supervised.wake(&key("quiet"), Wake::high(EVENT));
        settle().await;

        assert!(controller.keys().contains(&key("quiet")));
    });
}

#[test]
fn rule_5_time_slice_end_is_visible_to_the_reconcile() {
    run(
        Scripted::new(|reconcile| {
            let slice_ends = reconcile.started + TIME_SLICE;
            let early = reconcile.should_yield();
            Step::Run(Box::pin(async move {
                tokio::time::sleep_until(slice_ends).await;
                Ok(if early { Outcome::Done } else { Outcome::Retire })
            }))
        }),
        |supervised, controller, _| async move {
            supervised.wake(&key("a"), Wake::high(EVENT));
            reconcile_time(10).await;

            assert_eq!(controller.reconciles(), 1);
            assert!(supervised.is_empty());
        },
    );
}

#[test]
fn rule_5_five_permits_serve_a_thousand_keys_that_are_woken_repeatedly() {
    let script = |_: &ScriptedReconcile| Step::After(Duration::from_millis(10), Ok(Outcome::Done));
    run(Scripted::new(script), |supervised, controller, universe| async move {
        let mut woken = BTreeMap::new();
        for round in 0..5 {
            for index in 0..1000 {
                let name = format!("key-{index:03}");
                let live = universe.env.random.unit() < 0.3;
                let wake = if live { Wake::high(EVENT) } else { Wake::low(EVENT) };
                supervised.wake(&name, wake);
                woken.insert(name, controller.elapsed());
            }
            tokio::time::sleep(Duration::from_millis(300 * round)).await;
        }
        reconcile_time(60).await;

        let log = controller.log.borrow();
        let served: BTreeMap<_, _> = log.iter().map(|run| (run.key.clone(), run.at)).collect();
        assert_eq!(controller.most_running.get(), 5);
        assert!(woken.iter().all(|(key, at)| served[key] >= *at), "each key ran after its last wake");
        assert!(log.len() <= 5000);
        assert_eq!(supervised.running(), 0);
        let idle =
            universe.env.status_registry.snapshot().iter().filter(|actor| actor.activity == Activity::Idle).count();
        assert_eq!(idle, 1001);
    });
}

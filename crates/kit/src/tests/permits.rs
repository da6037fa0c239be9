//! Rule 5: permits, lanes, time slices.

use std::{collections::BTreeMap, time::Duration};

use super::support::*;
use crate::{testing::settle, *};

#[test]
fn rule_5_no_more_passes_than_permits_live_first_and_each_eighth_for_the_background() {
    run(Scripted::new(|_| one_second()).permits(1), |supervised, controller, _| async move {
        supervised.wake(&key("first"), Wake::live(EVENT));
        settle().await;
        for index in 0..20 {
            supervised.wake(&format!("background-{index:02}"), Wake::background(EVENT));
        }
        for index in 0..20 {
            supervised.wake(&format!("live-{index:02}"), Wake::live(EVENT));
        }
        pass_time(60).await;

        let order = controller.keys();
        assert_eq!(controller.most_running.get(), 1);
        assert_eq!(order[1], "live-00");
        assert_eq!(order[7], "background-00", "{order:?}");
        assert_eq!(order[8], "live-06");
        assert_eq!(order.len(), 41);
    });
}

#[test]
fn rule_5_a_live_wake_moves_a_key_that_waits_in_the_background() {
    run(Scripted::new(|_| one_second()).permits(1), |supervised, controller, _| async move {
        supervised.wake(&key("first"), Wake::live(EVENT));
        settle().await;
        for name in ["a", "b", "c"] {
            supervised.wake(&key(name), Wake::background(EVENT));
        }
        supervised.wake(&key("c"), Wake::live(EVENT));
        pass_time(60).await;

        assert_eq!(controller.keys(), ["first", "c", "a", "b"]);
    });
}

#[test]
fn rule_5_no_permits_count_as_one() {
    run(Scripted::new(|_| one_second()).permits(0), |supervised, controller, _| async move {
        for name in ["a", "b"] {
            supervised.wake(&key(name), Wake::live(EVENT));
        }
        pass_time(10).await;

        assert_eq!((controller.passes(), controller.most_running.get()), (2, 1));
    });
}

#[test]
fn rule_5_a_pass_that_continues_queues_behind_others_and_keeps_its_wake() {
    let script = move |pass: &ScriptedPass| {
        let first = pass.key == "big" && !pass.because_of(Causes::AGAIN);
        if first { Step::After(Duration::from_secs(3), Ok(Outcome::Continue)) } else { done() }
    };
    run(Scripted::new(script).permits(1), |supervised, controller, _| async move {
        supervised.wake(&key("big"), Wake::live(EVENT).about(object("x")));
        settle().await;
        supervised.wake(&key("small"), Wake::live(EVENT));
        pass_time(10).await;

        assert_eq!(controller.keys(), ["big", "small", "big"]);
        let last = controller.last();
        assert!(last.wake.causes.meets(EVENT));
        assert_eq!(last.wake.refs, Refs::one(object("x")));
        assert_eq!(last.limit, Duration::from_secs(30), "each slice has a deadline of its own");
        assert_eq!(last.memory, 2, "and the memory of the one before");
    });
}

#[test]
fn rule_5_a_pass_that_continues_for_ever_does_not_hold_up_the_arbiter() {
    let script = |pass: &ScriptedPass| {
        if pass.key == "busy" { Step::End(Ok(Outcome::Continue)) } else { done() }
    };
    run(Scripted::new(script), |supervised, controller, _| async move {
        supervised.wake(&key("busy"), Wake::live(EVENT));
        settle().await;
        supervised.wake(&key("quiet"), Wake::live(EVENT));
        settle().await;

        assert!(controller.keys().contains(&key("quiet")));
    });
}

#[test]
fn rule_5_a_pass_knows_when_its_time_slice_is_over() {
    run(
        Scripted::new(|pass| {
            let slice_ends = pass.started + TIME_SLICE;
            let early = pass.should_yield();
            Step::Run(Box::pin(async move {
                tokio::time::sleep_until(slice_ends).await;
                Ok(if early { Outcome::Done } else { Outcome::Retire })
            }))
        }),
        |supervised, controller, _| async move {
            supervised.wake(&key("a"), Wake::live(EVENT));
            pass_time(10).await;

            assert_eq!(controller.passes(), 1);
            assert!(supervised.is_empty());
        },
    );
}

#[test]
fn rule_5_a_thousand_keys_woken_again_and_again_are_all_served_with_five_permits() {
    let script = |_: &ScriptedPass| Step::After(Duration::from_millis(10), Ok(Outcome::Done));
    run(Scripted::new(script), |supervised, controller, universe| async move {
        let mut woken = BTreeMap::new();
        for round in 0..5 {
            for index in 0..1000 {
                let name = format!("key-{index:03}");
                let live = universe.env.random.unit() < 0.3;
                let wake = if live { Wake::live(EVENT) } else { Wake::background(EVENT) };
                supervised.wake(&name, wake);
                woken.insert(name, controller.elapsed());
            }
            tokio::time::sleep(Duration::from_millis(300 * round)).await;
        }
        pass_time(60).await;

        let log = controller.log.borrow();
        let served: BTreeMap<_, _> = log.iter().map(|run| (run.key.clone(), run.at)).collect();
        assert_eq!(controller.most_running.get(), 5);
        assert!(woken.iter().all(|(key, at)| served[key] >= *at), "each key ran after its last wake");
        assert!(log.len() <= 5000);
        assert_eq!(supervised.running(), 0);
        let idle = universe.env.census.snapshot().iter().filter(|actor| actor.activity == Activity::Idle).count();
        assert_eq!(idle, 1001);
    });
}

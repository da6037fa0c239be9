use super::support::*;
use crate::{testing::settle, *};

const PERIOD: u64 = 100_000;

#[test]
fn rule_4_resync_comes_once_per_period_whatever_other_reconciles_run() {
    let script = |_: &ScriptedReconcile| Step::End(Ok(Outcome::After(seconds(PERIOD / 10))));
    run(Scripted::new(script).resync(seconds(PERIOD)), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(10 * PERIOD).await;

        let log = controller.log.borrow();
        let resyncs = log.iter().filter(|run| run.wake.causes == Causes::RESYNC);
        let times: Vec<_> =
            resyncs.inspect(|run| assert_eq!(run.wake.priority, Priority::Low)).map(|run| run.at).collect();
        assert!((9..=11).contains(&times.len()), "{times:?}");
        for times in times.windows(2) {
            let between = (times[1] - times[0]).as_secs();
            assert!((PERIOD * 9 / 10 - 1..=PERIOD * 11 / 10 + 1).contains(&between), "{between}");
        }
    });
}

#[test]
fn rule_4_resyncs_of_keys_that_came_at_once_are_spread() {
    run(Scripted::new(|_| done()).resync(seconds(PERIOD)), |supervised, controller, _| async move {
        for number in 0..1000 {
            supervised.wake(&key(&number.to_string()), Wake::low(Causes::LISTED));
        }
        reconcile_time(PERIOD * 11 / 10 + 1).await;

        assert_eq!(controller.reconciles(), 2000);
        let mut tenths = std::collections::BTreeMap::<u64, usize>::new();
        for at in controller.seconds().split_off(1000) {
            *tenths.entry(at / (PERIOD / 50)).or_default() += 1;
        }
        assert!(tenths.len() >= 10 && tenths.values().all(|keys| *keys < 200), "{tenths:?}");
    });
}

#[test]
fn rule_4_resync_skips_retired_keys_and_reconcilers_without_a_period() {
    let script = |reconcile: &ScriptedReconcile| if reconcile.key == "gone" { retire() } else { done() };
    run(Scripted::new(script).resync(seconds(PERIOD)), |supervised, controller, _| async move {
        supervised.wake(&key("gone"), Wake::high(EVENT));
        reconcile_time(3 * PERIOD).await;
        assert_eq!(controller.reconciles(), 1);
    });
    run(Scripted::new(|_| done()), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(3 * PERIOD).await;
        assert_eq!(controller.reconciles(), 1);
    });
}

#[test]
fn rule_4_resync_ends_with_a_stop() {
    run(Scripted::new(|_| done()).resync(seconds(PERIOD)), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        settle().await;
        supervised.stop(seconds(1)).await;
        reconcile_time(3 * PERIOD).await;

        assert_eq!(controller.reconciles(), 1);
    });
}

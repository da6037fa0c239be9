//! Rule 4: keys that are looked at once in a while without another reason.

use super::support::*;
use crate::{testing::settle, *};

const PERIOD: u64 = 100_000;

#[test]
fn rule_4_a_resync_comes_once_in_a_period_whatever_other_passes_there_are() {
    let script = |_: &ScriptedPass| Step::End(Ok(Outcome::After(seconds(PERIOD / 10))));
    run(Scripted::new(script).resync(seconds(PERIOD)), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        pass_time(10 * PERIOD).await;

        let log = controller.log.borrow();
        let resyncs = log.iter().filter(|run| run.wake.causes == Causes::RESYNC);
        let times: Vec<_> =
            resyncs.inspect(|run| assert_eq!(run.wake.lane, Lane::Background)).map(|run| run.at).collect();
        assert!((9..=11).contains(&times.len()), "{times:?}");
        for times in times.windows(2) {
            let between = (times[1] - times[0]).as_secs();
            assert!((PERIOD * 9 / 10 - 1..=PERIOD * 11 / 10 + 1).contains(&between), "{between}");
        }
    });
}

#[test]
fn rule_4_keys_that_came_at_once_are_not_looked_at_again_at_once() {
    run(Scripted::new(|_| done()).resync(seconds(PERIOD)), |supervised, controller, _| async move {
        for number in 0..1000 {
            supervised.wake(&key(&number.to_string()), Wake::background(Causes::LISTED));
        }
        pass_time(PERIOD * 11 / 10 + 1).await;

        assert_eq!(controller.passes(), 2000);
        let mut tenths = std::collections::BTreeMap::<u64, usize>::new();
        for at in controller.seconds().split_off(1000) {
            *tenths.entry(at / (PERIOD / 50)).or_default() += 1;
        }
        assert!(tenths.len() >= 10 && tenths.values().all(|keys| *keys < 200), "{tenths:?}");
    });
}

#[test]
fn rule_4_a_key_that_retired_or_whose_duty_has_no_resync_is_left_alone() {
    let script = |pass: &ScriptedPass| if pass.key == "gone" { retire() } else { done() };
    run(Scripted::new(script).resync(seconds(PERIOD)), |supervised, controller, _| async move {
        supervised.wake(&key("gone"), Wake::live(EVENT));
        pass_time(3 * PERIOD).await;
        assert_eq!(controller.passes(), 1);
    });
    run(Scripted::new(|_| done()), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        pass_time(3 * PERIOD).await;
        assert_eq!(controller.passes(), 1);
    });
}

#[test]
fn rule_4_after_a_stop_nothing_is_looked_at_any_more() {
    run(Scripted::new(|_| done()).resync(seconds(PERIOD)), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        settle().await;
        supervised.stop(seconds(1)).await;
        pass_time(3 * PERIOD).await;

        assert_eq!(controller.passes(), 1);
    });
}

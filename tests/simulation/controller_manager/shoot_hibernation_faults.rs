//! Hibernation of Shoots amid conflicts, refusals, outages, restarts, other leaders and steps of the clock.

use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::{EventFault, Fault, Seen, Sim};
use tracing::Level;

use super::{
    garden::{Garden, garden, object},
    shoot_hibernation::{HIBERNATED, HOUR, WOKEN_UP, edit, enabled, find, notes, patches, seconds, sleeper, triggered},
};
use crate::log_capture::logged;

const SHOOTS: &str = "shoots.core.gardener.cloud";
const FAILED: &str = "HibernationFailed";

/// Hibernates at one o'clock.
fn at_one() -> Value {
    sleeper(json!([{ "start": "0 1 * * *" }]))
}

/// Fails the program's patches of the spec, or of the status, of Shoots.
fn fail_patches(garden: &Garden, subresource: &'static str, seen: Seen) {
    garden.sim.set_faults(move |info| {
        let is_meant = info.user == "gcm" && info.verb == "patch" && info.resource == "shoots";
        if is_meant && info.subresource == subresource { Fault::FailBefore(seen.clone()) } else { Fault::None }
    });
}

/// Breaks all connections of the program.
fn cut_off(garden: &Garden) {
    garden.sim.set_faults(|info| if info.user == "gcm" { Fault::FailBefore(Seen::Disconnect) } else { Fault::None });
}

/// Runs `change` before the program's first patch of a Shoot.
fn before_patch(garden: &Garden, change: impl Fn(&Sim) + Send + 'static) {
    let (sim, mut is_done) = (garden.sim.clone(), false);
    garden.sim.set_faults(move |info| {
        let is_meant = info.user == "gcm" && info.verb == "patch" && info.resource == "shoots";
        if is_meant && !std::mem::replace(&mut is_done, true) {
            change(&sim);
        }
        Fault::None
    });
}

/// spec 84 scenario 24; spec 84 "better" 5
#[test]
fn hibernation_that_is_refused_is_repeated_and_told_once() {
    garden(|garden| async move {
        garden.put(at_one());
        garden.settled().await;
        fail_patches(&garden, "", Seen::status(422, "Invalid", "HibernationPossible is false"));
        seconds(HOUR + 900).await;

        assert!(patches(&garden).len() > 10, "it is tried again");
        assert_eq!((enabled(&garden), triggered(&garden)), (Value::Null, String::new()));
        assert_eq!(notes(&garden, HIBERNATED), Vec::<String>::new());
        let note = "Could not hibernate cluster due to schedule: HibernationPossible is false";
        let event = ("Warning".to_owned(), "Reconcile".to_owned(), note.to_owned());
        assert_eq!(garden.events(&kinds::SHOOT, "s", FAILED), [event]);

        garden.sim.clear_faults();
        seconds(310).await;
        assert_eq!((enabled(&garden), notes(&garden, HIBERNATED).len()), (json!(true), 1));
    });
}

/// spec 84 §B.4: after the deadline it gives up silently. The next time is told again.
#[test]
fn hibernation_that_is_refused_ends_at_the_deadline() {
    garden(|garden| async move {
        garden.put(at_one());
        garden.settled().await;
        fail_patches(&garden, "", Seen::status(403, "Forbidden", "no"));
        seconds(HOUR * 4).await;
        let tried = patches(&garden).len();
        seconds(HOUR * 20).await;
        assert_eq!(patches(&garden).len(), tried, "nothing is tried until the next time");
        seconds(HOUR * 2).await;

        assert!(patches(&garden).len() > tried);
        assert_eq!(notes(&garden, FAILED).len(), 2);
    });
}

/// spec 84 "better" 5: an outage is no refusal.
#[test]
fn hibernation_tells_refusals_only() {
    for seen in [Seen::Disconnect, Seen::unavailable(), Seen::internal_error("no"), Seen::too_many_requests()] {
        garden(|garden| async move {
            garden.put(at_one());
            garden.settled().await;
            fail_patches(&garden, "", seen);
            seconds(HOUR + 60).await;

            assert_eq!((enabled(&garden), notes(&garden, FAILED)), (Value::Null, vec![]));
        });
    }
}

/// spec 80 §16 S-6: a conflict is no error, and an old decision never meets a newer version.
#[test]
fn hibernation_decides_anew_after_a_conflict() {
    type Change = fn(&mut Value);
    let cases: [(Change, Value); 4] = [
        (|shoot| shoot["metadata"]["labels"] = json!({ "a": "b" }), json!(true)),
        (|shoot| shoot["spec"]["hibernation"]["schedules"] = json!([]), Value::Null),
        (|shoot| shoot["spec"]["hibernation"]["schedules"] = json!([{ "end": "0 1 * * *" }]), json!(false)),
        (|shoot| shoot["status"] = json!({ "lastHibernationTriggerTime": "2030-01-01T01:00:00Z" }), Value::Null),
    ];
    for (change, expected) in &cases {
        let ((), log) = logged(Level::ERROR, || {
            garden(|garden| async move {
                let change = *change;
                garden.put(at_one());
                garden.settled().await;
                before_patch(&garden, move |sim| assert!(sim.edit(SHOOTS, "a", "s", change)));
                seconds(HOUR + 30).await;

                assert_eq!(enabled(&garden), *expected);
            });
        });

        assert_eq!(log, "", "{expected}");
    }
}

/// spec 84 §B.4: a broken answer, or the end of the process, between both patches repeats the operation.
#[test]
fn hibernation_that_was_not_entered_is_entered_later() {
    garden(|garden| async move {
        garden.put(at_one());
        garden.settled().await;
        let mut is_done = false;
        garden.sim.set_faults(move |info| {
            let is_meant = info.user == "gcm" && info.verb == "patch" && info.resource == "shoots" && !is_done;
            is_done |= is_meant;
            if is_meant { Fault::FailAfterCommit(Seen::Disconnect) } else { Fault::None }
        });
        seconds(HOUR + 30).await;

        assert_eq!((enabled(&garden), triggered(&garden)), (json!(true), "01:00:00Z".to_owned()));
    });
    garden(|garden| async move {
        garden.put(at_one());
        garden.settled().await;
        fail_patches(&garden, "status", Seen::internal_error("no"));
        seconds(HOUR + 30).await;
        assert_eq!((enabled(&garden), triggered(&garden)), (json!(true), String::new()));
        garden.stop().await;
        garden.sim.clear_faults();
        garden.settled().await;

        assert!(triggered(&garden).starts_with("01:00:"), "{}", triggered(&garden));
        assert_eq!(notes(&garden, HIBERNATED).len(), 1, "it was so already");
    });
}

/// spec 84 B-12, §B.5: an outage over a time
#[test]
fn hibernation_follows_an_outage_within_the_deadline() {
    for (until, expected) in [(HOUR * 3 - 600, json!(true)), (HOUR * 3 + 600, Value::Null)] {
        garden(|garden| async move {
            garden.put(at_one());
            garden.settled().await;
            seconds(HOUR - 600).await;
            cut_off(&garden);
            seconds(until - (HOUR - 600)).await;
            garden.sim.clear_faults();
            seconds(310).await;

            assert_eq!(enabled(&garden), expected, "{until}");
            assert_eq!(triggered(&garden).is_empty(), expected.is_null());
        });
    }
}

/// spec 84 B-12: also a short deadline leaves time for an attempt after an outage.
#[test]
fn hibernation_tries_several_times_before_a_short_deadline() {
    garden(|garden| async move {
        let hibernation = serde_json::from_value(json!({ "triggerDeadlineDuration": "5m" }));
        garden.config.borrow_mut().controllers.shoot_hibernation = hibernation.expect("it is valid");
        garden.put(at_one());
        garden.settled().await;
        seconds(HOUR - 60).await;
        cut_off(&garden);
        seconds(60 + 180).await;
        garden.sim.clear_faults();
        seconds(120).await;

        assert_eq!(enabled(&garden), json!(true));
    });
}

/// spec 84 B-12, §B.5: the process stands still over a time
#[test]
fn hibernation_follows_a_restart_within_the_deadline() {
    for (later, expected) in [(HOUR, json!(true)), (HOUR * 3, Value::Null)] {
        garden(|garden| async move {
            garden.put(at_one());
            garden.settled().await;
            garden.stop().await;
            seconds(HOUR + later).await;
            garden.settled().await;

            assert_eq!(enabled(&garden), expected, "{later}");
        });
    }
}

/// spec 84 B-13; spec 80 §16 S-14: timers follow the wall clock.
#[test]
fn hibernation_follows_steps_of_the_clock() {
    garden(|garden| async move {
        garden.put(at_one());
        garden.settled().await;
        garden.jump(i64::try_from(HOUR).unwrap());
        seconds(601).await;
        assert_eq!(enabled(&garden), json!(true), "clocks are read every ten minutes");

        garden.patch(&kinds::SHOOT, "a", "s", json!({ "spec": { "hibernation": { "enabled": false } } })).await;
        garden.jump(-i64::try_from(HOUR).unwrap());
        seconds(HOUR * 2).await;
        assert_eq!(enabled(&garden), json!(false), "what was executed is not executed again");
    });
}

/// spec 84 §B.4: two processes lead for a while.
#[test]
fn hibernation_by_two_leaders_happens_once() {
    garden(|garden| async move {
        garden.put(sleeper(json!([{ "start": "0 1 * * *" }, { "end": "0 2 * * *" }])));
        garden.settled().await;
        garden.start_second().await;
        seconds(HOUR).await;
        assert_eq!((enabled(&garden), triggered(&garden)), (json!(true), "01:00:00Z".to_owned()));
        garden.patch(&kinds::SHOOT, "a", "s", json!({ "spec": { "hibernation": { "enabled": false } } })).await;
        seconds(60).await;
        assert_eq!(enabled(&garden), json!(false), "a user's change is not undone");
        garden.patch(&kinds::SHOOT, "a", "s", json!({ "spec": { "hibernation": { "enabled": true } } })).await;
        garden.stop_second().await;
        seconds(HOUR).await;

        assert_eq!(enabled(&garden), json!(false));
        assert_eq!((notes(&garden, HIBERNATED).len(), notes(&garden, WOKEN_UP).len()), (1, 1));
    });
}

/// spec 84 §B.4: the cache says that nothing is to do, but lags behind a user's change.
#[test]
fn hibernation_is_not_lost_by_a_stale_cache() {
    garden(|garden| async move {
        let mut shoot = at_one();
        shoot["spec"]["hibernation"]["enabled"] = json!(true);
        garden.put(shoot);
        garden.settled().await;
        seconds(HOUR - 15).await;
        garden.sim.set_event_faults(|event| match event.resource == "shoots" {
            true => EventFault::Drop,
            false => EventFault::Deliver,
        });
        edit(&garden, |shoot| shoot["spec"]["hibernation"]["enabled"] = json!(false));
        seconds(30).await;

        assert_eq!((enabled(&garden), triggered(&garden)), (json!(true), "01:00:00Z".to_owned()));
    });
}

/// spec 84 §B.4: between both writes, a user wakes the cluster up. The time counts as executed.
#[test]
fn hibernation_leaves_a_change_between_its_writes_alone() {
    garden(|garden| async move {
        garden.put(at_one());
        garden.settled().await;
        let (sim, mut is_done) = (garden.sim.clone(), false);
        garden.sim.set_faults(move |info| {
            let is_meant = info.user == "gcm" && info.resource == "shoots" && info.subresource == "status";
            if is_meant && !std::mem::replace(&mut is_done, true) {
                let wake_up = |shoot: &mut Value| shoot["spec"]["hibernation"]["enabled"] = json!(false);
                assert!(sim.edit(SHOOTS, "a", "s", wake_up));
            }
            Fault::None
        });
        seconds(HOUR + 30).await;

        assert_eq!((enabled(&garden), triggered(&garden)), (json!(false), "01:00:00Z".to_owned()));
        assert_eq!((patches(&garden), notes(&garden, HIBERNATED).len()), (vec!["spec".into(), "status".into()], 1));
    });
}

/// spec 84 §B.4: the status cannot be written, and a user wakes the cluster up meanwhile. The time counts as executed.
#[test]
fn hibernation_that_cannot_be_entered_leaves_a_later_change_alone() {
    garden(|garden| async move {
        garden.put(at_one());
        garden.settled().await;
        fail_patches(&garden, "status", Seen::internal_error("no"));
        seconds(HOUR + 10).await;
        assert_eq!(enabled(&garden), json!(true));
        edit(&garden, |shoot| shoot["spec"]["hibernation"]["enabled"] = json!(false));
        seconds(120).await;
        garden.sim.clear_faults();
        seconds(310).await;

        assert_eq!((enabled(&garden), notes(&garden, HIBERNATED).len()), (json!(false), 1));
        assert!(triggered(&garden).starts_with("01:0"), "{}", triggered(&garden));
    });
}

/// spec 84 §B.4, §B.5: the clock is set back before the status is written. So the time comes again.
#[test]
fn hibernation_is_executed_again_after_the_clock_was_set_back() {
    garden(|garden| async move {
        garden.put(at_one());
        garden.settled().await;
        fail_patches(&garden, "status", Seen::internal_error("no"));
        garden.jump(3600);
        seconds(601).await;
        assert_eq!(enabled(&garden), json!(true));
        garden.jump(-3600);
        seconds(310).await;
        edit(&garden, |shoot| shoot["spec"]["hibernation"]["enabled"] = json!(false));
        garden.sim.clear_faults();
        seconds(HOUR + 30).await;

        assert_eq!((enabled(&garden), triggered(&garden)), (json!(true), "01:00:00Z".to_owned()));
    });
}

/// spec 84 §B.4: a time that comes before the status is written is executed, too.
#[test]
fn hibernation_executes_the_next_time_if_the_last_one_was_not_entered() {
    garden(|garden| async move {
        garden.put(sleeper(json!([{ "start": "0 1 * * *", "end": "1 1 * * *" }])));
        garden.settled().await;
        fail_patches(&garden, "status", Seen::internal_error("no"));
        seconds(HOUR + 120).await;
        garden.sim.clear_faults();
        seconds(310).await;

        assert_eq!(enabled(&garden), json!(false));
        assert!(triggered(&garden).as_str() >= "01:01:00Z", "{}", triggered(&garden));
        assert_eq!((notes(&garden, HIBERNATED).len(), notes(&garden, WOKEN_UP).len()), (1, 1));
    });
}

/// spec 84 §B.3: many Shoots of one minute
#[test]
fn hibernation_of_many_shoots_at_one_time_takes_two_requests_each() {
    const SHOOTS: usize = 500;

    garden(|garden| async move {
        for number in 0..SHOOTS {
            let mut shoot = at_one();
            shoot["metadata"]["name"] = format!("s{number}").into();
            garden.put(shoot);
        }
        garden.settled().await;
        seconds(HOUR).await;

        let asked = garden.asked_for("shoots");
        let patches = patches(&garden);
        assert_eq!((asked.len(), patches.len()), (2 * SHOOTS, 2 * SHOOTS));
        assert!(patches[..SHOOTS].iter().all(|patched| patched == "spec"), "none waits for the status of another");
        for number in 0..SHOOTS {
            let shoot = garden.find(&kinds::SHOOT, "a", &format!("s{number}")).unwrap();
            assert_eq!(shoot["spec"]["hibernation"]["enabled"], json!(true));
        }
    });
}

/// Shoots of any shape do no harm.
#[test]
fn hibernation_survives_shoots_of_any_shape() {
    let odd =
        [json!("x"), json!(7), json!([]), json!([[]]), json!([null]), json!([{ "start": {} }]), json!({ "a": 1 })];
    garden(|garden| async move {
        for (number, schedules) in odd.iter().enumerate() {
            let mut shoot = sleeper(schedules.clone());
            shoot["metadata"]["name"] = format!("odd{number}").into();
            shoot["status"] = json!({ "lastHibernationTriggerTime": schedules, "lastOperation": schedules });
            garden.put(shoot);
        }
        garden.put(object(&kinds::SHOOT, "a", "flat", json!({ "spec": { "hibernation": [] } })));
        garden.put(sleeper(json!([{ "start": "* * * * *" }])));
        garden.settled().await;
        seconds(65).await;

        assert_eq!(find(&garden)["spec"]["hibernation"]["enabled"], json!(true));
        assert_eq!(patches(&garden).len(), 2);
    });
}

//! Events: deleted some time after they were last seen, except for those of Shoots.

use std::time::Duration;

use gardener_resource_manager::api::{config::controller_manager, kinds};
use serde_json::{Value, json};
use sim::Fault;

use super::garden::{Garden, garden, object};

pub(super) const HOUR: i64 = 3600;

pub(super) fn event(name: &str, api_version: &str, kind: &str, fields: Value) -> Value {
    let mut fields = fields;
    fields["regarding"] = json!({ "apiVersion": api_version, "kind": kind, "name": "x", "namespace": "a" });
    object(&kinds::EVENT, "a", name, fields)
}

pub(super) fn seen(garden: &Garden, name: &str, seconds: i64) -> Value {
    event(name, "v1", "Secret", json!({ "eventTime": garden.time(seconds) }))
}

fn exists(garden: &Garden, name: &str) -> bool {
    garden.find(&kinds::EVENT, "a", name).is_some()
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// Turns the controller on, with a time of one hour.
pub(super) fn configure(garden: &Garden) {
    garden.config.borrow_mut().controllers.event = Some(controller_manager::Event::default());
}

fn deletions(garden: &Garden) -> usize {
    garden.requests().iter().filter(|request| request.info.verb == "delete").count()
}

/// spec 81 scenario 70
#[test]
fn old_events_are_deleted_except_for_those_of_shoots() {
    garden(|garden| async move {
        configure(&garden);
        let old = || json!({ "eventTime": garden.time(-2 * HOUR) });
        for (name, api_version, kind) in [
            ("shoot", "core.gardener.cloud/v1beta1", "Shoot"),
            ("shoot-v9", "core.gardener.cloud/v9", "Shoot"),
            ("seed", "core.gardener.cloud/v1beta1", "Seed"),
            ("secret", "v1", "Secret"),
            ("other-shoot", "example.com/v1", "Shoot"),
        ] {
            garden.put(event(name, api_version, kind, old()));
        }
        garden.put(seen(&garden, "young", -60));
        garden.settled().await;

        let names = ["shoot", "shoot-v9", "young", "seed", "secret", "other-shoot"];
        let left: Vec<_> = names.into_iter().filter(|name| exists(&garden, name)).collect();
        assert_eq!(left, ["shoot", "shoot-v9", "young"]);
    });
}

/// spec 81 scenario 71
#[test]
fn event_that_went_on_lately_stays() {
    garden(|garden| async move {
        configure(&garden);
        let (now, old) = (garden.time(0), garden.time(-2 * HOUR));
        let of = |name, last: &str, first: &str| {
            event(
                name,
                "v1",
                "Secret",
                json!({ "series": { "count": 2, "lastObservedTime": last }, "eventTime": first }),
            )
        };
        garden.put(of("lately", &now, &old));
        garden.put(of("formerly", &old, &now));
        garden.settled().await;

        assert!(exists(&garden, "lately") && !exists(&garden, "formerly"));
    });
}

/// spec 81 scenario 72
#[test]
fn event_is_deleted_an_hour_after_it_was_last_seen() {
    garden(|garden| async move {
        configure(&garden);
        for name in ["e", "again"] {
            let last = garden.time(-59 * 60);
            garden.put(event(name, "v1", "Secret", json!({ "deprecatedLastTimestamp": last })));
        }
        garden.settled().await;
        seconds(45).await;
        assert!(exists(&garden, "e"));
        let last = garden.time(0);
        garden.edit(&kinds::EVENT, "a", "again", |event| event["deprecatedLastTimestamp"] = json!(last));

        seconds(15).await;
        assert!(!exists(&garden, "e") && exists(&garden, "again"));
        seconds(3570).await;
        assert!(exists(&garden, "again"));
        seconds(30).await;
        assert!(!exists(&garden, "again"));
    });
}

/// spec 81 scenario 73
#[test]
fn event_without_any_time_lives_from_its_creation() {
    garden(|garden| async move {
        configure(&garden);
        garden.put(event("e", "v1", "Secret", json!({})));
        garden.settled().await;

        seconds(3500).await;
        assert!(exists(&garden, "e"));
        seconds(110).await;
        assert!(!exists(&garden, "e"));
    });
}

/// spec 81 scenario 74; spec 80 D-8
#[test]
fn events_stay_if_nothing_is_configured() {
    garden(|garden| async move {
        garden.put(seen(&garden, "e", -9 * HOUR));
        garden.settled().await;
        seconds(7200).await;

        assert!(exists(&garden, "e"));
    });
}

/// spec 81 J: many old Events are deleted in portions, and do not delay newer ones.
#[test]
fn events_that_were_due_at_the_start_are_deleted_in_portions() {
    garden(|garden| async move {
        configure(&garden);
        for number in 0..300 {
            garden.put(seen(&garden, &format!("old-{number}"), -2 * HOUR));
        }
        garden.put(seen(&garden, "new", -HOUR + 3));
        garden.start().await;
        seconds(5).await;

        let first = deletions(&garden);
        assert!((60..=140).contains(&first), "{first}");
        assert!(!exists(&garden, "new"), "it did not wait for the others");
        seconds(20).await;
        assert_eq!(deletions(&garden), 301);
    });
}

/// spec 81 J: an Event that changes while it is deleted is judged again.
#[test]
fn event_that_goes_on_while_it_is_deleted_stays() {
    garden(|garden| async move {
        configure(&garden);
        garden.put(seen(&garden, "e", -HOUR + 60));
        garden.settled().await;
        garden.sim.set_event_faults(|event| match event.resource == "events" {
            true => sim::EventFault::Drop,
            false => sim::EventFault::Deliver,
        });
        let last = garden.time(0);
        garden.edit(&kinds::EVENT, "a", "e", |event| event["series"] = json!({ "count": 2, "lastObservedTime": last }));

        seconds(120).await;

        assert!(exists(&garden, "e"));
    });
}

/// spec 81 J: the clock steps back while a due Event waits for its turn.
#[test]
fn event_that_is_not_due_any_more_is_deleted_later() {
    garden(|garden| async move {
        let file = b"controllers: {event: {concurrentSyncs: 1}}";
        garden.config.replace(controller_manager::load(file, None).expect("a configuration").config);
        for name in ["one", "two"] {
            garden.put(seen(&garden, name, -HOUR + 60));
        }
        garden.settled().await;
        let mut is_first = true;
        garden.sim.set_faults(move |request| {
            let is_hit = request.verb == "delete" && request.resource == "events" && std::mem::take(&mut is_first);
            if is_hit { Fault::Delay(Duration::from_secs(5)) } else { Fault::None }
        });
        seconds(51).await;
        garden.jump(-600);
        seconds(10).await;
        assert_eq!(["one", "two"].into_iter().filter(|name| exists(&garden, name)).count(), 1);

        seconds(620).await;

        assert!(!exists(&garden, "one") && !exists(&garden, "two"));
    });
}

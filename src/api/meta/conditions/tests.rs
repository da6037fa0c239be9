use super::*;
use crate::api::resources::condition_names::{RESOURCES_APPLIED, RESOURCES_HEALTHY, RESOURCES_PROGRESSING};

fn time(text: &str) -> Timestamp {
    text.parse().expect("a timestamp")
}

fn earlier() -> Timestamp {
    time("2026-01-01T10:00:00Z")
}

fn now() -> Timestamp {
    time("2026-01-01T11:00:00Z")
}

fn applied() -> Condition {
    Condition::new(RESOURCES_APPLIED, earlier()).updated(ConditionStatus::True, "A", "a", earlier())
}

#[test]
fn a_missing_condition_starts_as_unknown() {
    let condition = get_or_init(&[], RESOURCES_HEALTHY, now());

    let expected = serde_json::json!({
        "type": "ResourcesHealthy", "status": "Unknown", "reason": "ConditionInitialized",
        "message": "The condition has been initialized but its semantic check has not been performed yet.",
        "lastTransitionTime": "2026-01-01T11:00:00Z", "lastUpdateTime": "2026-01-01T11:00:00Z"
    });
    assert_eq!(serde_json::to_value(condition).unwrap(), expected);
}

#[test]
fn the_transition_time_follows_the_status_and_the_update_time_the_texts() {
    for (status, reason, message, transition, update) in [
        (ConditionStatus::True, "A", "a", earlier(), earlier()),
        (ConditionStatus::False, "A", "a", now(), earlier()),
        (ConditionStatus::True, "B", "a", earlier(), now()),
        (ConditionStatus::True, "A", "b", earlier(), now()),
        (ConditionStatus::Progressing, "B", "b", now(), now()),
    ] {
        let condition = applied().updated(status, reason, message, now());

        assert_eq!(condition.last_transition_time, Some(transition), "{condition:?}");
        assert_eq!(condition.last_update_time, Some(update), "{condition:?}");
    }
}

#[test]
fn codes_are_replaced_and_count_as_an_update() {
    let with_codes = applied().updated_with_codes(ConditionStatus::True, "A", "a", &["ERR".to_owned()], earlier());

    let condition = with_codes.updated(ConditionStatus::True, "A", "a", now());

    assert!(condition.codes.is_empty());
    assert_eq!(condition.last_update_time, Some(now()));
}

#[test]
fn empty_texts_get_their_stand_ins_and_an_empty_status_keeps_the_old_one() {
    let condition = applied().updated(ConditionStatus::Other(String::new()), "", "", now());

    assert_eq!(condition.status, ConditionStatus::True);
    assert_eq!((condition.reason.as_str(), condition.message.as_str()), (UNSPECIFIED_REASON, NO_MESSAGE));
}

#[test]
fn a_zero_time_is_replaced_at_the_next_update() {
    let raw = serde_json::json!({
        "type": "ResourcesApplied", "status": "True", "reason": "A", "message": "a",
        "lastTransitionTime": "0001-01-01T00:00:00Z", "lastUpdateTime": null
    });
    let condition: Condition = serde_json::from_value(raw).unwrap();

    let condition = condition.updated(ConditionStatus::True, "A", "a", now());

    assert_eq!((condition.last_transition_time, condition.last_update_time), (Some(now()), Some(now())));
}

#[test]
fn conditions_keep_their_order_and_new_types_are_appended() {
    let mut conditions = vec![Condition::new(RESOURCES_PROGRESSING, earlier()), Condition::new("Foreign", earlier())];

    merge(&mut conditions, applied());
    set(&mut conditions, RESOURCES_PROGRESSING, ConditionStatus::True, "R", "m", now());

    let kinds: Vec<_> = conditions.iter().map(|condition| condition.kind.as_str()).collect();
    assert_eq!(kinds, [RESOURCES_PROGRESSING, "Foreign", RESOURCES_APPLIED]);
    assert_eq!(conditions[0].reason, "R");
}

#[test]
fn fractions_of_a_second_are_cut_so_that_a_written_condition_equals_itself_when_read() {
    let condition = Condition::new(RESOURCES_APPLIED, time("2026-01-01T11:00:00.987654321Z"));

    let read: Condition = serde_json::from_str(&serde_json::to_string(&condition).unwrap()).unwrap();

    assert_eq!(read, condition);
    assert_eq!(read.last_update_time, Some(now()));
}

#[test]
fn condition_status_texts_of_others_survive() {
    let status: ConditionStatus = serde_json::from_str("\"Sometimes\"").unwrap();

    assert_eq!(status, ConditionStatus::Other("Sometimes".to_owned()));
    assert_eq!(serde_json::to_string(&status).unwrap(), "\"Sometimes\"");
}

#[test]
fn condition_with_fractions_of_a_second_equals_itself_when_written() {
    let raw = r#"{"type": "T", "status": "True", "reason": "A", "message": "a",
        "lastTransitionTime": "2026-01-01T10:00:00.9Z", "lastUpdateTime": "2026-01-01T10:00:00.9Z"}"#;
    let read: Condition = serde_json::from_str(raw).unwrap();

    assert_eq!(read.updated(ConditionStatus::True, "A", "a", now()), read);
    assert_eq!(read.last_update_time, Some(earlier()));
}

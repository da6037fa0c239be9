use std::sync::Arc;

use super::{super::message::MESSAGE_LIMIT, *};
use crate::api::meta::conditions::Condition;

fn now() -> Timestamp {
    "2026-01-01T11:00:00Z".parse().expect("a timestamp")
}

fn reference(name: &str, label: &str) -> ResourceRef {
    ResourceRef {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        name: name.to_owned(),
        labels: [("l".to_owned(), label.to_owned())].into(),
        ..ResourceRef::default()
    }
}

fn with_reason(reason: &str, message: &str) -> ManagedResourceStatus {
    let applied = Condition::new(RESOURCES_APPLIED, now()).updated(ConditionStatus::False, reason, message, now());
    ManagedResourceStatus { conditions: vec![applied], ..ManagedResourceStatus::default() }
}

fn error(index: usize) -> DecodeError {
    DecodeError {
        secret: Arc::from("ns/s"),
        data_key: Arc::from("k"),
        index,
        text: "bad".to_owned(),
        template_line: None,
    }
}

/// `<type> <status> <reason> <message>` of each condition.
fn shown(status: &ManagedResourceStatus) -> Vec<String> {
    let line = |condition: &Condition| {
        format!("{} {} {} {}", condition.kind, condition.status, condition.reason, condition.message)
    };
    status.conditions.iter().map(line).collect()
}

fn applied_of(status: &ManagedResourceStatus) -> String {
    shown(status).into_iter().find(|line| line.starts_with(RESOURCES_APPLIED)).unwrap_or_default()
}

#[test]
fn change_detected_sets_all_three_conditions_in_order() {
    let status = change_detected(&ManagedResourceStatus::default(), &[], now());

    assert_eq!(
        shown(&status),
        [
            "ResourcesHealthy Unknown ChecksPending The health checks have not yet been executed for the current set of resources.",
            "ResourcesProgressing Unknown ChecksPending Checks have not yet been executed for the current set of resources.",
            "ResourcesApplied Progressing ApplyProgressing The resources are currently being reconciled.",
        ]
    );
}

#[test]
fn change_detected_keeps_the_message_of_a_failure() {
    for (reason, expected) in [
        ("ApplyFailed", "ResourcesApplied Progressing ApplyFailed why"),
        ("DeletionFailed", "ResourcesApplied Progressing DeletionFailed why"),
        ("DeletionPending", "ResourcesApplied Progressing DeletionPending why"),
        (
            "ApplySucceeded",
            "ResourcesApplied Progressing ApplyProgressing The resources are currently being reconciled.",
        ),
        (
            "CannotReadSecret",
            "ResourcesApplied Progressing ApplyProgressing The resources are currently being reconciled.",
        ),
    ] {
        let status = change_detected(&with_reason(reason, "why"), &[], now());

        assert_eq!(applied_of(&status), expected);
    }
}

#[test]
fn change_detected_appends_new_refs_and_keeps_old_ones() {
    let old = ManagedResourceStatus {
        resources: vec![reference("b", "old"), reference("a", "old")],
        ..ManagedResourceStatus::default()
    };

    let status = change_detected(&old, &[reference("a", "new"), reference("c", "new"), reference("c", "new")], now());

    assert_eq!(status.resources, [reference("b", "old"), reference("a", "old"), reference("c", "new")]);
    assert_eq!((status.observed_generation, status.secrets_data_checksum), (0, None));
}

#[test]
fn change_detection_compares_refs_and_checksum() {
    let status = ManagedResourceStatus {
        resources: vec![reference("a", "1"), reference("b", "1")],
        secrets_data_checksum: Some("x".to_owned()),
        ..ManagedResourceStatus::default()
    };
    for (refs, checksum, changed) in [
        (vec![reference("a", "1"), reference("b", "1")], "x", false),
        (vec![reference("b", "1"), reference("a", "1")], "x", true),
        (vec![reference("a", "2"), reference("b", "1")], "x", true),
        (vec![reference("a", "1")], "x", true),
        (vec![reference("a", "1"), reference("b", "1")], "y", true),
    ] {
        assert_eq!(is_changed(&status, &refs, checksum), changed, "{refs:?} {checksum}");
    }
    assert!(is_changed(&ManagedResourceStatus::default(), &[], "x"), "an absent checksum is a change");
}

#[test]
fn failure_status_touches_only_the_applied_condition() {
    let before = ManagedResourceStatus {
        observed_generation: 1,
        ..change_detected(&ManagedResourceStatus::default(), &[reference("a", "1")], now())
    };
    for (after, expected) in [
        (
            secret_unreadable(&before, "Secret \"s\" not found", now()),
            "ResourcesApplied False CannotReadSecret Secret \"s\" not found",
        ),
        (deletion_pending(&before, "x", now()), "ResourcesApplied Progressing DeletionPending x"),
        (release_failed(&before, "x", now()), "ResourcesApplied False ReleaseOfOrphanedResourcesFailed x"),
        (apply_failed(&before, "x", &[], now()), "ResourcesApplied False ApplyFailed x"),
    ] {
        assert_eq!(applied_of(&after), expected);
        assert_eq!(after.conditions[..2], before.conditions[..2]);
        assert_eq!(
            ManagedResourceStatus { conditions: vec![], ..after },
            ManagedResourceStatus { conditions: vec![], ..before.clone() }
        );
    }
}

#[test]
fn apply_failed_keeps_the_refs_of_created_objects() {
    let before = ManagedResourceStatus { resources: vec![reference("a", "1")], ..ManagedResourceStatus::default() };

    let after = apply_failed(&before, "x", &[reference("b", "1")], now());

    assert_eq!(after.resources, [reference("a", "1"), reference("b", "1")]);
}

/// spec 10 scenario 1
#[test]
fn apply_success_sets_the_final_fields() {
    let set = AppliedSet {
        refs: vec![reference("a", "1")],
        checksum: "abc".to_owned(),
        generation: 4,
        errors: &[],
        left: &[],
    };

    let status = finished(&ManagedResourceStatus::default(), set, now());

    assert_eq!(shown(&status), ["ResourcesApplied True ApplySucceeded All resources are applied."]);
    assert_eq!(status.resources, [reference("a", "1")]);
    assert_eq!((status.observed_generation, status.secrets_data_checksum.as_deref()), (4, Some("abc")));
}

/// spec 10 scenario 4
#[test]
fn decoding_errors_are_named_and_the_final_fields_are_set_all_the_same() {
    let set = AppliedSet { generation: 4, errors: &[error(1), error(3)], ..AppliedSet::default() };

    let status = finished(&ManagedResourceStatus::default(), set, now());

    assert_eq!(
        applied_of(&status),
        "ResourcesApplied False DecodingFailed Could not decode all new resources: \
         [Could not decode resource at index 1 in 'k' in secret 'ns/s': bad. \
         Could not decode resource at index 3 in 'k' in secret 'ns/s': bad.]"
    );
    assert_eq!(status.observed_generation, 4);
}

/// spec 10 scenario 32
#[test]
fn ignored_resource_sets_all_three_conditions() {
    let status = ignored(&ManagedResourceStatus::default(), now());

    assert_eq!(
        shown(&status),
        [
            "ResourcesHealthy True ManagedResourceIgnored ManagedResource is marked to be ignored.",
            "ResourcesProgressing False ManagedResourceIgnored ManagedResource is marked to be ignored.",
            "ResourcesApplied True ManagedResourceIgnored ManagedResource is marked to be ignored.",
        ]
    );
    assert_eq!(ignored(&status, "2027-01-01T00:00:00Z".parse().unwrap()), status);
}

/// spec 10 scenario 28
#[test]
fn deletion_status_keeps_a_more_specific_message() {
    for (before, expected) in [
        (
            ManagedResourceStatus::default(),
            "ResourcesApplied Progressing DeletionPending The resources are currently being deleted.",
        ),
        (with_reason("DeletionPending", "why"), "ResourcesApplied Progressing DeletionPending why"),
        (with_reason("DeletionFailed", "why"), "ResourcesApplied Progressing DeletionPending why"),
        (
            with_reason("ApplyFailed", "why"),
            "ResourcesApplied Progressing DeletionPending The resources are currently being deleted.",
        ),
    ] {
        let status = deleting(&before, false, now());

        assert_eq!(applied_of(&status), expected);
        let lines = shown(&status);
        assert!(
            lines.contains(
                &"ResourcesHealthy False DeletionPending The resources are currently being deleted.".to_owned()
            )
        );
        assert!(lines.contains(
            &"ResourcesProgressing True DeletionPending The resources are currently being deleted.".to_owned()
        ));
    }
}

/// spec 10 scenario 29
#[test]
fn deletion_with_keep_objects_leaves_the_applied_condition_alone() {
    let before = with_reason("ApplyFailed", "why");

    let status = deleting(&before, true, now());

    assert_eq!(applied_of(&status), "ResourcesApplied False ApplyFailed why");
    assert_eq!(status.conditions.len(), 3);
}

#[test]
fn aggregated_errors_are_counted_and_keep_their_order() {
    let items = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();

    assert_eq!(aggregate(CLEAN_PREFIX, &items(&["x"])), "Could not clean all old resources: 1 error occurred: x");
    assert_eq!(
        aggregate(RELEASE_PREFIX, &items(&["b", "a"])),
        "Could not release all orphaned resources: 2 errors occurred: [b, a]"
    );
}

#[test]
fn aggregated_errors_beyond_the_limit_are_only_counted() {
    let items: Vec<String> = (0..5000).map(|index| format!("item {index:04} of many")).collect();

    let text = aggregate(CLEAN_PREFIX, &items);

    assert!(text.len() <= MESSAGE_LIMIT, "{}", text.len());
    assert!(text.starts_with("Could not clean all old resources: 5000 errors occurred: [item 0000 of many, item 0001"));
    assert!(text.ends_with(" more]"), "{}", &text[text.len() - 60..]);
}

#[test]
fn message_limit_cuts_between_characters() {
    let long = "ü".repeat(MESSAGE_LIMIT);

    let status = deletion_pending(&ManagedResourceStatus::default(), &long, now());

    let message = &status.conditions[0].message;
    assert!(message.len() <= MESSAGE_LIMIT && message.ends_with('…'));
    let errors: Vec<_> = (0..2).map(|index| DecodeError { text: long.clone(), ..error(index) }).collect();
    let status = finished(&status, AppliedSet { errors: &errors, ..AppliedSet::default() }, now());
    assert!(status.conditions[0].message.len() <= MESSAGE_LIMIT);
}

/// The frame of the message counts too: a list shows exactly the items that fit.
#[test]
fn message_limit_lists_show_as_many_items_as_fit() {
    const ROOM: usize = 30 * 1024 - 256;
    let list = |second: usize| {
        let items = ["a".repeat(1000), "b".repeat(second), "c".to_owned()];
        aggregate("p", &items)
    };
    let fits = list(ROOM - 1000 - ", ".len());
    let is_too_long = list(ROOM - 1000 - ", ".len() + 1);

    assert!(fits.ends_with("b, … and 1 more]"), "{}", &fits[fits.len() - 30..]);
    assert!(is_too_long.ends_with("a, … and 2 more]"), "{}", &is_too_long[is_too_long.len() - 30..]);
}

#[test]
fn message_limit_cuts_an_item_that_is_too_long() {
    let text = aggregate("p", &["a".repeat(100_000), "b".to_owned()]);

    assert_eq!(text, format!("p: 2 errors occurred: [{}…, … and 1 more]", "a".repeat(30 * 1024 - 256 - "…".len())));
}

#[test]
fn message_limit_is_used_to_the_last_byte() {
    let status = deletion_pending(&ManagedResourceStatus::default(), &"a".repeat(MESSAGE_LIMIT + 1), now());
    let fits = deletion_pending(&ManagedResourceStatus::default(), &"a".repeat(MESSAGE_LIMIT), now());

    assert_eq!(status.conditions[0].message.len(), 30 * 1024);
    assert!(fits.conditions[0].message.ends_with('a'));
}

/// spec 10 §9.7
#[test]
fn refs_added_after_the_announcement_change_nothing_else() {
    let before = ManagedResourceStatus { resources: vec![reference("a", "old")], ..with_reason("ApplyFailed", "why") };

    let status = remembered(&before, &[reference("a", "new"), reference("b", "new")]);

    assert_eq!(status.resources, [reference("a", "old"), reference("b", "new")]);
    assert_eq!(status.conditions, before.conditions);
}

/// spec 20 scenario 4: after this write the ManagedResource is not judged any more.
#[test]
fn missing_object_is_reported_if_the_resource_was_healthy() {
    let reference = |name: &str| ResourceRef::new("v1", "ConfigMap", "a", name);
    let gone = BTreeSet::from([reference("x").key(), reference("y").key(), reference("z").key()]);
    let now = "2026-01-01T11:00:00Z".parse().unwrap();
    for (before, expected) in [
        (ConditionStatus::True, r#"Required ConfigMap "y" in namespace "a" is missing"#),
        (ConditionStatus::False, "m"),
        (ConditionStatus::Unknown, "m"),
    ] {
        let mut status = ManagedResourceStatus {
            resources: vec![reference("b"), reference("y"), reference("z")],
            ..ManagedResourceStatus::default()
        };
        conditions::set(&mut status.conditions, RESOURCES_HEALTHY, before, "R", "m", now);

        let reported = found_gone(&status, &gone, now);

        assert_eq!(conditions::find(&reported.conditions, RESOURCES_HEALTHY).unwrap().message, expected);
        assert_eq!(found_gone(&status, &BTreeSet::new(), now), status);
    }
}

#[test]
fn applied_condition_counts_as_success_only_as_a_whole() {
    for (value, reason, message, expected) in [
        (ConditionStatus::True, APPLY_SUCCEEDED, APPLIED_MESSAGE, true),
        (ConditionStatus::Progressing, APPLY_SUCCEEDED, APPLIED_MESSAGE, false),
        (ConditionStatus::True, MANAGED_RESOURCE_IGNORED, APPLIED_MESSAGE, false),
        (ConditionStatus::True, APPLY_SUCCEEDED, IGNORED_MESSAGE, false),
    ] {
        let condition = Condition::new(RESOURCES_APPLIED, now()).updated(value, reason, message, now());
        let status = ManagedResourceStatus { conditions: vec![condition], ..ManagedResourceStatus::default() };

        assert_eq!(is_reported_applied(&status), expected, "{:?}", shown(&status));
    }
    assert!(!is_reported_applied(&ManagedResourceStatus::default()));
}

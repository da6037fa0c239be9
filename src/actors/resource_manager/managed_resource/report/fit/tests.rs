use std::time::Duration;

use jiff::Timestamp;

use super::*;
use crate::api::meta::conditions::ConditionStatus;

const REFUSED: &str = "etcdserver: request is too large";

fn reference(name: &str, label: usize, annotation: usize) -> ResourceRef {
    let map = |size| [("k".to_owned(), "x".repeat(size))].into_iter().filter(|_| size > 0).collect();
    ResourceRef { labels: map(label), annotations: map(annotation), ..ResourceRef::new("v1", "ConfigMap", "ns", name) }
}

fn status(resources: Vec<ResourceRef>, message: &str) -> ManagedResourceStatus {
    let mut status = ManagedResourceStatus { resources, ..ManagedResourceStatus::default() };
    conditions::set(
        &mut status.conditions,
        RESOURCES_APPLIED,
        ConditionStatus::True,
        APPLY_SUCCEEDED,
        message,
        Timestamp::UNIX_EPOCH,
    );
    status
}

fn left(draft: &Draft<'_>) -> Vec<(bool, bool)> {
    let resources = draft.status().resources.iter();
    resources.map(|reference| (!reference.labels.is_empty(), !reference.annotations.is_empty())).collect()
}

fn message(draft: &Draft<'_>) -> (String, String) {
    let applied = conditions::find(&draft.status().conditions, RESOURCES_APPLIED).unwrap();
    (applied.reason.clone(), applied.message.clone())
}

/// spec 10 §9.7
#[test]
fn status_size_large_maps_are_left_out_first_then_small_maps_then_references() {
    let refs =
        vec![reference("a", 2_000, 3_000), reference("b", 10, 10), reference("c", 0, 9_000), reference("d", 0, 1_100)];
    let stored = status(vec![reference("old", 1, 1)], "m");
    let mut draft = Draft::new(status(refs, "All."), &stored);
    let mut stages = Vec::new();
    while draft.shrink(80_000, REFUSED) {
        stages.push((left(&draft), message(&draft)));
        assert!(stages.len() < 20);
    }

    let note = |what: &str| format!("All. The status is too large to be stored ({REFUSED}): it leaves out {what}.");
    let said = |what: &str| (APPLY_SUCCEEDED.to_owned(), note(what));
    assert_eq!(
        stages[..3],
        [
            (vec![(true, false), (true, true), (false, false), (false, true)], said("the annotations of 2 references")),
            (
                vec![(true, false), (true, true), (false, false), (false, false)],
                said("the annotations of 3 references")
            ),
            (
                vec![(false, false), (true, true), (false, false), (false, false)],
                said("the annotations of 3 references and the labels of 1 references")
            ),
        ]
    );
    assert_eq!(
        stages[3],
        (vec![(false, false); 4], said("the annotations of 4 references and the labels of 2 references"))
    );
    assert_eq!(
        stages[4].1,
        (STATUS_TOO_LARGE.to_owned(), note("the references of the present set")),
        "and then nothing more"
    );
    assert_eq!((stages.len(), &draft.status().resources), (5, &stored.resources));
}

#[test]
fn status_size_note_that_is_stored_is_not_written_again() {
    let whole = || status(vec![reference("a", 0, 3_000)], "All.");
    let none = ManagedResourceStatus::default();
    let mut first = Draft::new(whole(), &none);
    assert!(first.shrink(3_200, REFUSED));
    let stored = first.status().clone();

    let mut later = whole();
    later.conditions[0].last_update_time = Some(Timestamp::UNIX_EPOCH + Duration::from_secs(1));
    let mut second = Draft::new(later, &stored);
    assert!(second.shrink(3_200, REFUSED));

    assert_eq!(second.status(), &stored);
    assert!(stands_for(&stored.resources[0], &whole().resources[0]));
    assert!(!stands_for(&stored.resources[0], &reference("b", 0, 3_000)));
    assert!(!stands_for(&reference("a", 0, 3), &reference("a", 0, 4)));
}

#[test]
fn status_size_note_goes_when_the_status_fits_again() {
    let stored = status(vec![reference("a", 0, 0)], &format!("Old.{NOTE}x): it leaves out y."));

    let other = Draft::new(status(vec![reference("b", 0, 0)], &stored.conditions[0].message), &stored);
    let same = Draft::new(stored.clone(), &stored);

    assert_eq!(message(&other).1, "Old.");
    assert_eq!(same.status(), &stored);
}

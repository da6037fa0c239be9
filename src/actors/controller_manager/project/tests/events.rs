use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::project;
use crate::actors::controller_manager::project::{
    cached::Project,
    phase::Phase,
    told::{REPETITION, Reason, Tell, Told, marked, not_empty, not_released, reconciled, with_obstacles},
};

/// spec 82 A.11, "better" 5
#[tokio::test(start_paused = true)]
async fn event_is_recorded_with_news_and_once_an_hour() {
    let (now, mut told) = (Instant::now(), Told::default());
    let mut tell = |note, generation, after| told.tell(Reason::ReconcileFailed, note, generation, now + after);

    assert_eq!(tell("a", 1, Duration::ZERO), Tell::News);
    assert_eq!(tell("a", 1, Duration::from_secs(60)), Tell::Nothing);
    assert_eq!(tell("b", 1, Duration::from_secs(61)), Tell::News);
    assert_eq!(tell("b", 2, Duration::from_secs(62)), Tell::News);
    let later = Duration::from_secs(62) + REPETITION;
    assert_eq!(tell("b", 2, later - Duration::from_millis(1)), Tell::Nothing);
    assert_eq!(tell("b", 2, later), Tell::Repetition);
    assert_eq!(tell("b", 2, later + Duration::from_secs(1)), Tell::Nothing);
    assert_eq!(told.tell(Reason::ReconcileSuccessful, "b", 2, now + later), Tell::News, "each reason for itself");
}

/// spec 82 A.11: what the last process recorded, and what an own write made of the generation, is no news.
#[tokio::test(start_paused = true)]
async fn event_that_was_recorded_before_is_no_news() {
    let (now, mut told) = (Instant::now(), Told::default());
    assert!(told.is_news(Reason::ReconcileSuccessful, "a", 1));

    told.assume(Reason::ReconcileSuccessful, "a", 1, now);
    assert!(!told.is_news(Reason::ReconcileSuccessful, "a", 1));
    told.move_to(2);
    assert!(!told.is_news(Reason::ReconcileSuccessful, "a", 2));
    told.assume(Reason::ReconcileSuccessful, "b", 2, now);
    assert!(told.is_news(Reason::ReconcileSuccessful, "b", 2), "what is known stays");
}

/// spec 82 A.11
#[test]
fn notes_have_the_texts_of_the_specification() {
    assert_eq!(reconciled("garden-dev"), "Successfully reconciled namespace \"garden-dev\" for project");
    let text = "Cannot release namespace \"garden-dev\" because it still contains Shoots";
    assert_eq!(not_empty("garden-dev"), text);
    assert_eq!(not_released("garden-dev", "no %s"), "Failed to release project namespace \"garden-dev\": no %s");
    assert_eq!(marked("garden-dev"), "Successfully marked project namespace \"garden-dev\" for deletion");
}

/// spec 82 "better" 5
#[test]
fn note_about_a_namespace_that_hangs_says_what_is_left() {
    let condition =
        |kind: &str, status: &str, message: &str| json!({"type": kind, "status": status, "message": message});
    let conditions = json!([
        condition("NamespaceDeletionContentFailure", "True", "x"),
        condition("NamespaceContentRemaining", "True", "pods. has 1 resource instances"),
        condition("NamespaceFinalizersRemaining", "False", "y"),
    ]);

    let note = with_obstacles("marked", &json!({"status": {"conditions": conditions}}));

    assert_eq!(note, "marked; pods. has 1 resource instances");
    assert_eq!(with_obstacles("marked", &json!({"status": null})), "marked");
}

/// spec 82 A.9, A-T3
#[test]
fn phase_is_written_with_its_generation_and_alone() {
    let pending = project(json!({}));
    let patch = json!({"status": {"phase": "Ready", "observedGeneration": 3}});
    assert_eq!(Phase::Ready.patch(&pending, "u1", 3), Some(patch));
    assert_eq!(Phase::Ready.patch(&pending, "u2", 3), None, "another instance");

    let ready = Project { phase: "Ready".into(), observed_generation: 3, ..pending };
    assert!(Phase::Ready.is_observed_of(&ready) && !Phase::Failed.is_observed_of(&ready));
    assert_eq!(Phase::Ready.patch(&ready, "u1", 3), None);
    assert!(Phase::Ready.patch(&ready, "u1", 4).is_some());
    assert!(Phase::Failed.patch(&ready, "u1", 3).is_some());
}

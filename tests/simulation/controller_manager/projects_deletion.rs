//! The end of Projects, and what becomes of their Namespaces.

use std::time::Duration;

use cluster::object::{annotation, label, uid};
use gardener_resource_manager::api::kinds;
use serde_json::json;

use super::{
    garden::{garden, object},
    projects::{
        FAILED, KEEP, OWNER, PROJECT, ROLE, becomes, ending_dev, find_namespace, find_project, hand_over,
        hold_namespace, is_ending, is_unmarked, let_end, notes, phase, project, project_gone, put_dev, ready_dev,
        shoot, told,
    },
};

/// spec 82 scenario 5: also while the Namespace has no labels at all.
#[test]
fn project_that_failed_on_an_unlabelled_namespace_can_be_deleted() {
    garden(|garden| async move {
        garden.put(object(&kinds::NAMESPACE, "", "garden-dev", json!({})));
        let before = find_namespace(&garden, "garden-dev");
        garden.settled().await;
        put_dev(&garden, json!({}));
        becomes(&garden, "dev", "Failed").await;

        garden.delete(&kinds::PROJECT, "", "dev").await;

        project_gone(&garden, "dev").await;
        assert_eq!(find_namespace(&garden, "garden-dev"), before);
    });
}

/// spec 82 A.10 step 5: labels alone are no mark of this instance, so nothing is deleted on doubt.
#[test]
fn namespace_that_was_handed_over_and_never_adopted_outlives_the_project() {
    garden(|garden| async move {
        hand_over(&garden, "garden-dev", "dev");
        let before = find_namespace(&garden, "garden-dev");
        garden.settled().await;
        put_dev(&garden, json!({}));
        garden.edit(&kinds::PROJECT, "", "dev", |dev| dev["metadata"]["finalizers"] = json!(["gardener"]));
        garden.sim.set_faults(|info| match info.resource.as_str() {
            "namespaces" if info.verb == "patch" => sim::Fault::FailBefore(sim::Seen::status(
                403,
                "Forbidden",
                "Only one reference can have Controller set",
            )),
            _ => sim::Fault::None,
        });
        becomes(&garden, "dev", "Failed").await;

        garden.delete(&kinds::PROJECT, "", "dev").await;

        project_gone(&garden, "dev").await;
        assert_eq!(find_namespace(&garden, "garden-dev"), before);
    });
}

/// spec 82 A.10, scenario 7
#[test]
fn deleted_project_takes_its_namespace_along() {
    garden(|garden| async move {
        ending_dev(&garden).await;

        assert!(is_ending(&garden, "garden-dev"));
        assert_eq!(garden.finalizers(&kinds::NAMESPACE, "", "garden-dev"), ["foregroundDeletion"]);
        let note = "Successfully marked project namespace \"garden-dev\" for deletion";
        told(&garden, "dev", "NamespaceMarkedForDeletion", note).await;
        assert_eq!(garden.events(&kinds::PROJECT, "dev", "NamespaceMarkedForDeletion")[0].0, "Normal");
        garden.settle().await;
        assert!(garden.find(&kinds::PROJECT, "", "dev").is_some(), "it waits");

        let_end(&garden, "garden-dev");

        project_gone(&garden, "dev").await;
        assert!(garden.find(&kinds::NAMESPACE, "", "garden-dev").is_none());
    });
}

/// spec 82 A.10 step 5, A.10.1, scenario 8
#[test]
fn namespace_may_outlive_its_project() {
    for (keep, is_kept) in [("true", true), ("yes", false)] {
        garden(|garden| async move {
            garden.settled().await;
            put_dev(&garden, json!({}));
            becomes(&garden, "dev", "Ready").await;
            garden.edit(&kinds::NAMESPACE, "", "garden-dev", |live| {
                live["metadata"]["annotations"][KEEP] = json!(keep);
                live["metadata"]["annotations"]["x"] = json!("y");
                live["metadata"]["labels"]["a"] = json!("b");
            });
            hold_namespace(&garden, "garden-dev");
            garden.settle().await;
            garden.delete(&kinds::PROJECT, "", "dev").await;

            if !is_kept {
                garden.soon("the Namespace is being deleted", || is_ending(&garden, "garden-dev")).await;
                return;
            }
            project_gone(&garden, "dev").await;
            garden.settle().await;
            let namespace = find_namespace(&garden, "garden-dev");
            assert!(is_unmarked(&namespace) && !is_ending(&garden, "garden-dev"), "{namespace}");
            assert_eq!((annotation(&namespace, "x"), label(&namespace, "a")), (Some("y"), Some("b")));
        });
    }
}

/// spec 82 N7, A.10.1, scenario 9
#[test]
fn adopted_namespace_outlives_its_project() {
    garden(|garden| async move {
        hand_over(&garden, "garden-dev", "dev");
        ready_dev(&garden).await;

        garden.delete(&kinds::PROJECT, "", "dev").await;

        project_gone(&garden, "dev").await;
        garden.settle().await;
        assert!(is_unmarked(&find_namespace(&garden, "garden-dev")) && !is_ending(&garden, "garden-dev"));
    });
}

/// spec 82 §2.2, A.10: without gardener-apiserver `spec.namespace` may change. The old Namespace still has the Project as
/// its owner, so the garbage collector would take it.
#[test]
fn former_namespace_with_a_shoot_or_adopted_outlives_the_deletion_of_its_project() {
    for spec in [json!({"namespace": "garden-new"}), json!({"namespace": null})] {
        garden(|garden| async move {
            hand_over(&garden, "garden-dev", "dev");
            hand_over(&garden, "garden-new", "dev");
            ready_dev(&garden).await;
            garden.put(shoot("garden-dev", "one"));
            garden.patch(&kinds::PROJECT, "", "dev", json!({"spec": spec})).await;
            garden.delete(&kinds::PROJECT, "", "dev").await;

            becomes(&garden, "dev", "Terminating").await;
            let note = "Cannot release namespace \"garden-dev\" because it still contains Shoots";
            told(&garden, "dev", "NamespaceNotEmpty", note).await;
            garden.sim.remove("shoots.core.gardener.cloud", "garden-dev", "one");

            project_gone(&garden, "dev").await;
            garden.settle().await;
            assert!(is_unmarked(&find_namespace(&garden, "garden-dev")) && !is_ending(&garden, "garden-dev"));
        });
    }
}

/// spec 82 A.10: what the Project created goes with it, but no Shoot does, also if somebody deletes the former
/// Namespace first.
#[test]
fn former_namespace_that_was_created_keeps_its_project_while_it_has_a_shoot() {
    for is_deleted_first in [false, true] {
        garden(|garden| async move {
            ready_dev(&garden).await;
            garden.put(object(
                &kinds::SHOOT,
                "garden-dev",
                "one",
                json!({"metadata": {"finalizers": ["example.com/x"]}}),
            ));
            garden.patch(&kinds::PROJECT, "", "dev", json!({"spec": {"namespace": "garden-new"}})).await;
            becomes(&garden, "dev", "Ready").await;
            if is_deleted_first {
                hold_namespace(&garden, "garden-dev");
                garden.delete(&kinds::NAMESPACE, "", "garden-dev").await;
            }
            garden.delete(&kinds::PROJECT, "", "dev").await;

            becomes(&garden, "dev", "Terminating").await;
            tokio::time::sleep(Duration::from_secs(600)).await;
            assert!(garden.find(&kinds::PROJECT, "", "dev").is_some());
            assert!(garden.find(&kinds::SHOOT, "garden-dev", "one").is_some());
            assert_eq!(is_ending(&garden, "garden-dev"), is_deleted_first);

            garden.sim.remove("shoots.core.gardener.cloud", "garden-dev", "one");
            let_end(&garden, "garden-dev");
            project_gone(&garden, "dev").await;
        });
    }
}

/// spec 82 A.10: a Namespace that lost a label, or got that of another Project, still names the Project as an owner.
/// The garbage collector would take it with all that is in it.
#[test]
fn namespace_that_lost_its_label_outlives_the_deletion_of_its_project() {
    for label in [json!(null), json!("foo")] {
        garden(|garden| async move {
            ready_dev(&garden).await;
            garden.put(shoot("garden-dev", "one"));
            garden.edit(&kinds::NAMESPACE, "", "garden-dev", |live| live["metadata"]["labels"][PROJECT] = label);
            becomes(&garden, "dev", "Failed").await;
            garden.delete(&kinds::PROJECT, "", "dev").await;
            becomes(&garden, "dev", "Terminating").await;
            assert!(garden.find(&kinds::SHOOT, "garden-dev", "one").is_some());

            garden.sim.remove("shoots.core.gardener.cloud", "garden-dev", "one");
            project_gone(&garden, "dev").await;
            garden.settle().await;

            let namespace = find_namespace(&garden, "garden-dev");
            assert_eq!(namespace["metadata"]["ownerReferences"], json!(null), "{namespace}");
            assert!(!is_ending(&garden, "garden-dev"));
        });
    }
}

/// spec 82 A.2.1, A.10 step 3, scenario 10
#[test]
fn deleted_project_waits_for_its_last_shoot() {
    garden(|garden| async move {
        ready_dev(&garden).await;
        for name in ["one", "two"] {
            garden.put(shoot("garden-dev", name));
        }
        garden.delete(&kinds::PROJECT, "", "dev").await;
        becomes(&garden, "dev", "Terminating").await;
        let note = "Cannot release namespace \"garden-dev\" because it still contains Shoots";
        told(&garden, "dev", "NamespaceNotEmpty", note).await;

        garden.delete(&kinds::SHOOT, "garden-dev", "one").await;
        garden.settle().await;
        assert!(!is_ending(&garden, "garden-dev"));
        garden.delete(&kinds::SHOOT, "garden-dev", "two").await;

        garden.soon("the Namespace is being deleted", || is_ending(&garden, "garden-dev")).await;
        project_gone(&garden, "dev").await;
        assert_eq!(notes(&garden, "dev", "NamespaceNotEmpty").len(), 1);
    });
}

/// spec 82 A.10 step 3, scenario 11
#[test]
fn project_that_failed_does_not_wait_for_the_shoots_of_another() {
    garden(|garden| async move {
        hand_over(&garden, "garden-dev", "foo");
        garden.put(project("foo", json!({"namespace": "garden-dev"})));
        garden.put(shoot("garden-dev", "s"));
        put_dev(&garden, json!({}));
        garden.settled().await;
        assert_eq!((phase(&garden, "foo"), phase(&garden, "dev")), ("Ready".to_owned(), "Failed".to_owned()));

        garden.delete(&kinds::PROJECT, "", "dev").await;

        garden.gone(&kinds::PROJECT, "", "dev").await;
        assert_eq!(annotation(&find_namespace(&garden, "garden-dev"), OWNER), Some(uid(&find_project(&garden, "foo"))));
    });
}

/// spec 82 N2: names that no Namespace can have are refused, and keep no Project.
#[test]
fn project_with_an_impossible_namespace_fails_and_can_be_deleted() {
    let long = format!("garden-{}", "x".repeat(100));
    for namespace in ["garden-a/b", "garden-UPPER", "garden-..", "garden-a%2Fb", "garden-", "garden-ä", &long] {
        garden(|garden| async move {
            garden.settled().await;
            garden.put(project("dev", json!({"namespace": namespace})));
            becomes(&garden, "dev", "Failed").await;
            garden
                .soon("the Event names it", || {
                    notes(&garden, "dev", FAILED).iter().any(|note| note.contains(namespace))
                })
                .await;

            garden.delete(&kinds::PROJECT, "", "dev").await;

            project_gone(&garden, "dev").await;
        });
    }
}

/// spec 82 A-T9, decision 24: the Namespace `garden` may have a Project.
#[test]
fn garden_itself_may_have_a_project() {
    garden(|garden| async move {
        garden.edit(&kinds::NAMESPACE, "", "garden", |live| {
            live["metadata"]["labels"] = json!({ROLE: "project", PROJECT: "garden"});
        });
        garden.settled().await;
        garden.put(project("garden", json!({"namespace": "garden"})));
        becomes(&garden, "garden", "Ready").await;
        assert_eq!(annotation(&find_namespace(&garden, "garden"), KEEP), Some("true"));

        garden.delete(&kinds::PROJECT, "", "garden").await;

        project_gone(&garden, "garden").await;
        assert!(is_unmarked(&find_namespace(&garden, "garden")) && !is_ending(&garden, "garden"));
    });
}

/// spec 82 A.2.1, scenario 27: the Namespace has no labels of a Project, and no Project has it.
#[test]
fn deleted_shoot_outside_of_projects_wakes_nobody() {
    garden(|garden| async move {
        put_dev(&garden, json!({}));
        garden.put(shoot("a", "s"));
        garden.put(shoot("garden-dev", "s"));
        garden.put(project("other", json!({"namespace": "garden-other"})));
        hand_over(&garden, "garden-dev", "dev");
        garden.settled().await;
        let before = garden.reconciles("project");

        garden.delete(&kinds::SHOOT, "a", "s").await;
        garden.delete(&kinds::SHOOT, "garden-dev", "s").await;
        garden.settle().await;

        assert_eq!(garden.reconciles("project"), before);
    });
}

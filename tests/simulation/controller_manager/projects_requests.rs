//! What Projects cost: requests at creation, for a change, at rest and after a restart.

use std::time::Duration;

use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::EventFault;

use super::{
    garden::{Garden, garden},
    projects::{becomes, is_ending, phase, project, shoot},
    projects_rbac::{FOO, belongings, bound, member, ready, set_members, user},
};

fn configure(garden: &Garden) {
    let quotas =
        json!([{"config": {"metadata": {"creationTimestamp": null}, "spec": {"hard": {"count/secrets": "400"}}}}]);
    garden.config.borrow_mut().controllers.project.quotas =
        serde_json::from_value(quotas).expect("quotas of a configuration");
}

fn members() -> Value {
    let role = |number: usize| ["admin", "viewer", "uam"][number % 3];
    (0..6).map(|number| member(&format!("user-{number}"), &[role(number)])).collect()
}

fn put_project(garden: &Garden, name: &str, spec: Value) {
    let mut spec = spec;
    spec["owner"] = user("o");
    spec["members"] = members();
    garden.put(project(name, spec));
}

/// Returns the program's requests with Events, without watches and discovery.
fn requests(garden: &Garden) -> Vec<String> {
    let requests = garden.requests().into_iter().map(|request| request.info);
    let counts = requests.filter(|info| info.verb != "watch" && !info.resource.is_empty());
    counts.map(|info| format!("{} {} {}", info.verb, info.resource, info.name)).collect()
}

/// benches gcm_projects: at most 18 requests with the Event and, without `spec.namespace`, one more write. The last is that
/// of `project-resourcequota`.
#[test]
fn new_project_costs_at_most_eighteen_requests() {
    for (spec, most) in [(json!({"namespace": "garden-dev"}), 18), (json!({}), 19)] {
        garden(|garden| async move {
            configure(&garden);
            garden.settled().await;
            put_project(&garden, "dev", spec);
            becomes(&garden, "dev", "Ready").await;
            garden.settle().await;

            let requests = requests(&garden);
            assert!(requests.len() <= most, "{}: {requests:?}", requests.len());
            assert!(requests.iter().all(|request| !request.starts_with("get")), "{requests:?}");
        });
    }
}

/// benches gcm_projects: two bindings, the phase and the Event.
#[test]
fn new_member_costs_at_most_four_requests() {
    garden(|garden| async move {
        configure(&garden);
        put_project(&garden, "dev", json!({"namespace": "garden-dev"}));
        garden.settled().await;

        let mut more = members();
        more.as_array_mut().unwrap().push(member("new", &["admin"]));
        garden.patch(&kinds::PROJECT, "", "dev", json!({"spec": {"members": more}})).await;
        becomes(&garden, "dev", "Ready").await;
        garden.settle().await;

        assert!(bound(&garden, &kinds::ROLE_BINDING, "project-member").contains(&"new".to_owned()));
        let requests = requests(&garden);
        assert!(requests.len() <= 4, "{requests:?}");
    });
}

/// spec 80 §16 S-9, spec 82 scenario 24, A-T5: also over the resync of all Projects, every ten hours.
#[test]
fn projects_request_nothing_at_rest() {
    garden(|garden| async move {
        configure(&garden);
        for number in 0..20 {
            put_project(&garden, &format!("p{number}"), json!({"namespace": format!("garden-p{number}")}));
        }
        put_project(&garden, "dev", json!({}));
        garden.settled().await;
        assert_eq!(phase(&garden, "dev"), "Ready");

        tokio::time::sleep(Duration::from_secs(12 * 3600)).await;

        assert_eq!(requests(&garden), Vec::<String>::new());
    });
}

/// spec 82 scenario 24: a restart writes nothing and records no Event.
#[test]
fn restart_writes_nothing() {
    garden(|garden| async move {
        configure(&garden);
        for number in 0..20 {
            put_project(&garden, &format!("p{number}"), json!({"namespace": format!("garden-p{number}")}));
        }
        garden.settled().await;
        garden.stop().await;
        garden.sim.clear_requests();

        garden.start().await;
        garden.settle().await;

        let others: Vec<_> = requests(&garden).into_iter().filter(|asked| !asked.starts_with("list")).collect();
        assert_eq!(others, Vec::<String>::new());
    });
}

/// spec 82 scenario 24: only the phase follows a spec that changes and changes back.
#[test]
fn spec_that_changes_back_costs_phases_and_events_only() {
    garden(|garden| async move {
        configure(&garden);
        put_project(&garden, "dev", json!({"namespace": "garden-dev"}));
        garden.settled().await;
        let before = belongings(&garden);

        garden.patch(&kinds::PROJECT, "", "dev", json!({"metadata": {"labels": {"a": "b"}}})).await;
        garden.settle().await;
        assert_eq!(requests(&garden), Vec::<String>::new(), "labels wake nobody");
        for description in [json!("x"), Value::Null] {
            garden.patch(&kinds::PROJECT, "", "dev", json!({"spec": {"description": description}})).await;
            becomes(&garden, "dev", "Ready").await;
            garden.settle().await;
        }

        assert_eq!(belongings(&garden), before);
        let requests = requests(&garden);
        assert!(
            requests.iter().all(|asked| asked.contains(" projects dev") || asked.contains(" events ")),
            "{requests:?}"
        );
        assert!(requests.len() <= 4, "{requests:?}");
    });
}

/// What a deletion costs: a live list of Shoots, two writes of the Namespace and the Project, the phase and the Event. The
/// end of the Namespace is seen, and not asked for.
#[test]
fn deleted_project_costs_at_most_five_requests() {
    garden(|garden| async move {
        configure(&garden);
        put_project(&garden, "dev", json!({"namespace": "garden-dev"}));
        garden.settled().await;

        garden.delete(&kinds::PROJECT, "", "dev").await;
        super::projects::project_gone(&garden, "dev").await;
        garden.settle().await;

        let requests = requests(&garden);
        assert!(requests.len() <= 5, "{requests:?}");
    });
}

/// Deletes Projects `p0` to `p39` together.
async fn delete_together(garden: &Garden) {
    for number in 0..40 {
        garden.delete(&kinds::PROJECT, "", &format!("p{number}")).await;
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
}

fn put_many(garden: &Garden) {
    configure(garden);
    for number in 0..40 {
        put_project(garden, &format!("p{number}"), json!({"namespace": format!("garden-p{number}")}));
    }
}

/// Returns those that are left.
fn left(garden: &Garden) -> Vec<usize> {
    (0..40).filter(|number| garden.find(&kinds::PROJECT, "", &format!("p{number}")).is_some()).collect()
}

/// benches gcm_projects: Projects that are deleted together share the live list of Shoots.
#[test]
fn projects_deleted_together_share_the_list_of_shoots() {
    garden(|garden| async move {
        put_many(&garden);
        garden.settled().await;

        delete_together(&garden).await;

        assert_eq!(left(&garden), Vec::<usize>::new());
        let requests = requests(&garden);
        let lists = requests.iter().filter(|asked| asked.starts_with("list")).count();
        assert!(lists <= 16 && requests.len() <= 40 * 4 + lists, "{lists} of {}: {requests:?}", requests.len());
    });
}

/// spec 82 A.10 step 5: a shared list finds the Shoot that the cache misses. With many other Shoots, each Namespace is asked
/// for.
#[test]
fn projects_deleted_together_keep_the_one_with_a_shoot() {
    for others in [0, 600] {
        garden(|garden| async move {
            put_many(&garden);
            for number in 0..others {
                garden.put(shoot("a", &format!("s{number}")));
            }
            garden.settled().await;
            garden.sim.set_event_faults(|event| match event.resource == "shoots" {
                true => EventFault::Drop,
                false => EventFault::Deliver,
            });
            garden.put(shoot("garden-p7", "s"));

            delete_together(&garden).await;

            assert_eq!(left(&garden), [7], "{others}");
            assert!(!is_ending(&garden, "garden-p7"));
        });
    }
}

/// spec 82 A.11: a Project that stays failed costs an Event an hour and no request beside it.
#[test]
fn failed_project_costs_an_event_an_hour() {
    garden(|garden| async move {
        put_project(&garden, "dev", json!({"namespace": "kube-public"}));
        put_project(&garden, "foo", json!({"namespace": "garden-x"}));
        super::projects::hand_over(&garden, "garden-x", "other");
        garden.settled().await;
        assert_eq!(phase(&garden, "foo"), "Failed");

        tokio::time::sleep(Duration::from_secs(4 * 3600)).await;

        let requests = requests(&garden);
        assert!((2..=20).contains(&requests.len()), "{requests:?}");
        assert!(requests.iter().all(|asked| asked.contains(" events")), "{requests:?}");
    });
}

/// spec 82 B2: a policy of the server that labels each RoleBinding does not keep the Project from its other steps, and is
/// not written against without pauses.
#[test]
fn grants_that_a_policy_changes_count_as_written() {
    garden(|garden| async move {
        garden.sim.set_mutation(|reviewed, object| {
            if reviewed.resource == "rolebindings" {
                object["metadata"]["labels"]["policy"] = json!("on");
            }
        });
        ready(&garden, json!({"members": [member("m", &["viewer", "extension:foo"])]})).await;
        set_members(&garden, json!([member("n", &["viewer"])])).await;
        garden.gone(&kinds::ROLE_BINDING, "garden-dev", FOO).await;
        garden.gone(&kinds::CLUSTER_ROLE, "", FOO).await;
        becomes(&garden, "dev", "Ready").await;
        assert_eq!(bound(&garden, &kinds::ROLE_BINDING, "project-viewer"), ["n"]);
        garden.sim.clear_requests();

        tokio::time::sleep(Duration::from_secs(60)).await;

        assert!(garden.asked().len() <= 30, "{:?}", garden.asked());
        assert_eq!(phase(&garden, "dev"), "Ready");
    });
}

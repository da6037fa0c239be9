//! The RBAC objects of Projects.

use std::time::Duration;

use cluster::Resource;
use gardener_resource_manager::api::kinds;
use kit::testing::eventually;
use serde_json::{Value, json};
use sim::{Fault, Seen};
use tracing::Level;

use super::{
    garden::{Garden, garden, object},
    projects::{
        PROJECT, ROLE, becomes, find_project, hand_over, hold_namespace, notes, owner_reference, phase, put_dev,
    },
};
use crate::log_capture::logged;

const RBAC: &str = "rbac.authorization.k8s.io";
pub(super) const FOO: &str = "gardener.cloud:extension:project:dev:foo";
const BAR: &str = "gardener.cloud:extension:project:dev:bar";

pub(super) fn user(name: &str) -> Value {
    json!({"apiGroup": RBAC, "kind": "User", "name": name})
}

pub(super) fn member(name: &str, roles: &[&str]) -> Value {
    json!({"apiGroup": RBAC, "kind": "User", "name": name, "roles": roles})
}

fn many() -> Value {
    json!({"owner": user("o"), "members": [
        {"apiGroup": RBAC, "kind": "User", "name": "m1", "role": "extension:foo", "roles": ["viewer"]},
        member("m2", &["admin", "uam"]),
        member("o", &["owner", "viewer", "admin"]),
        member("m4", &["serviceaccountmanager"]),
    ]})
}

pub(super) fn find(garden: &Garden, kind: &Resource, role: &str) -> Option<Value> {
    let is_extension = role.starts_with("gardener.cloud:extension:");
    match (kind.namespaced, is_extension) {
        (true, true) => garden.find(kind, "garden-dev", role),
        (true, false) => garden.find(kind, "garden-dev", &format!("gardener.cloud:system:{role}")),
        (false, true) => garden.find(kind, "", role),
        (false, false) => garden.find(kind, "", &format!("gardener.cloud:system:{role}:dev")),
    }
}

/// Returns the names of the subjects of a binding.
pub(super) fn bound(garden: &Garden, kind: &Resource, role: &str) -> Vec<String> {
    let binding = find(garden, kind, role).unwrap_or_default();
    let subjects = binding["subjects"].as_array().cloned().unwrap_or_default();
    subjects.iter().map(|subject| subject["name"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Returns the RBAC objects of Project `dev`.
pub(super) fn belongings(garden: &Garden) -> Vec<Value> {
    let of_kind = |kind: &str| garden.sim.objects(&format!("{kind}.{RBAC}"));
    let all = ["clusterroles", "clusterrolebindings", "rolebindings"].into_iter().flat_map(of_kind);
    all.filter(|object| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        object["metadata"]["namespace"] == "garden-dev" || format!("{name}:").contains(":dev:")
    })
    .collect()
}

pub(super) async fn ready(garden: &Garden, spec: Value) {
    garden.settled().await;
    put_dev(garden, spec);
    becomes(garden, "dev", "Ready").await;
}

pub(super) async fn set_members(garden: &Garden, members: Value) {
    garden.patch(&kinds::PROJECT, "", "dev", json!({"spec": {"members": members}})).await;
}

/// spec 82 A.7.1, scenario 14
#[test]
fn members_are_bound_to_the_roles_they_have() {
    garden(|garden| async move {
        ready(&garden, many()).await;

        let in_cluster = |role| bound(&garden, &kinds::CLUSTER_ROLE_BINDING, role);
        let in_namespace = |role| bound(&garden, &kinds::ROLE_BINDING, role);
        assert_eq!(in_cluster("project"), ["o"]);
        assert_eq!(in_cluster("project-uam"), ["m2"]);
        assert_eq!(in_namespace("project-serviceaccountmanager"), ["o", "m4"]);
        assert_eq!(
            (in_cluster("project-member"), in_namespace("project-member")),
            (vec!["m2".to_owned(), "o".to_owned()], vec!["m2".to_owned(), "o".to_owned()])
        );
        assert_eq!(
            (in_cluster("project-viewer"), in_namespace("project-viewer")),
            (vec!["m1".to_owned(), "o".to_owned()], vec!["m1".to_owned(), "o".to_owned()])
        );
        assert_eq!(in_namespace(FOO), ["m1"]);
    });
}

/// spec 82 A.7.2, B1 to B3, scenario 15
#[test]
fn roles_have_exactly_their_rules_labels_and_owner() {
    garden(|garden| async move {
        ready(&garden, many()).await;

        let see =
            json!({"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["garden-dev"], "verbs": ["get"]});
        let use_project = |verbs: &[&str]| {
            let group = "core.gardener.cloud";
            json!({"apiGroups": [group], "resources": ["projects"], "resourceNames": ["dev"], "verbs": verbs})
        };
        let rules = |role| find(&garden, &kinds::CLUSTER_ROLE, role).unwrap()["rules"].clone();
        assert_eq!(
            rules("project"),
            json!([see, use_project(&["get", "patch", "manage-members", "update", "delete"])])
        );
        assert_eq!(rules("project-uam"), json!([use_project(&["get", "manage-members", "patch", "update"])]));
        assert_eq!(rules("project-member"), json!([see, use_project(&["get", "patch", "update", "delete"])]));
        assert_eq!(rules("project-viewer"), json!([see, use_project(&["get"])]));
        let aggregation = json!({"clusterRoleSelectors": [
            {"matchLabels": {"rbac.gardener.cloud/aggregate-to-extension-role": "foo"}}
        ]});
        assert_eq!(find(&garden, &kinds::CLUSTER_ROLE, FOO).unwrap()["aggregationRule"], aggregation);
        let all = belongings(&garden);
        assert_eq!(all.len(), 13);
        for object in all {
            let name = object["metadata"]["name"].as_str().unwrap();
            assert_eq!(
                object["metadata"]["ownerReferences"],
                json!([owner_reference(&garden, "dev", false)]),
                "{name}"
            );
            let labels = json!({ROLE: "extension-project-role", PROJECT: "dev"});
            let expected = if name == FOO { labels } else { Value::Null };
            assert_eq!(object["metadata"]["labels"], expected, "{name}");
            if object["kind"] != "ClusterRole" {
                assert_eq!(object["roleRef"], json!({"apiGroup": RBAC, "kind": "ClusterRole", "name": name}));
            }
        }
    });
}

/// spec 82 A.7, B5, scenario 16
#[test]
fn project_of_nobody_has_its_roles_too() {
    garden(|garden| async move {
        ready(&garden, json!({})).await;

        let all = belongings(&garden);
        assert_eq!(all.len(), 11);
        assert!(all.iter().all(|object| object["subjects"].is_null()), "{all:?}");
    });
}

/// spec 82 W3, B6, "better" 1, scenario 17: ClusterRoles and ClusterRoleBindings, too.
#[test]
fn objects_that_somebody_edits_or_deletes_are_restored() {
    garden(|garden| async move {
        ready(&garden, many()).await;
        let edits: [fn(&mut Value); 3] = [
            |object| object["metadata"]["labels"] = json!({"rbac.example.com/aggregate-to-x": "true"}),
            |object| object["metadata"]["ownerReferences"] = Value::Null,
            |object| match object["kind"].as_str() {
                Some("ClusterRole") => object["aggregationRule"] = json!({"clusterRoleSelectors": [{}]}),
                _ => object["subjects"] = json!([user("thief")]),
            },
        ];
        let plain = |mut object: Value| {
            for field in ["resourceVersion", "uid", "creationTimestamp", "managedFields"] {
                object["metadata"].as_object_mut().unwrap().remove(field);
            }
            object
        };
        let before: Vec<_> = belongings(&garden).into_iter().map(plain).collect();
        for wanted in &before {
            let text = |field: &str| wanted["metadata"][field].as_str().unwrap_or_default();
            let (namespace, name) = (text("namespace"), text("name"));
            let kind = [kinds::CLUSTER_ROLE, kinds::CLUSTER_ROLE_BINDING, kinds::ROLE_BINDING]
                .into_iter()
                .find(|kind| wanted["kind"] == *kind.kind)
                .unwrap();
            for edit in edits.iter().map(Some).chain([None]) {
                match edit {
                    Some(edit) => garden.edit(&kind, namespace, name, edit),
                    None => drop(garden.sim.remove(&format!("{}.{RBAC}", kind.plural), namespace, name)),
                }
                let is_restored = || garden.find(&kind, namespace, name).map(plain).as_ref() == Some(wanted);
                let what = format!("{} {name} is restored", kind.kind);
                eventually(&what, Duration::from_secs(20), is_restored).await;
            }
        }
        assert_eq!(phase(&garden, "dev"), "Ready");
        assert_eq!(notes(&garden, "dev", "NamespaceReconcileFailed"), Vec::<String>::new());
    });
}

/// spec 82 W1, A.7, A.8, scenario 18
#[test]
fn members_come_and_go_with_their_extension_roles() {
    garden(|garden| async move {
        let members =
            json!([member("m1", &["extension:foo", "extension:bar"]), member("m2", &["extension:bar", "admin"])]);
        let mut foreign = object(&kinds::CLUSTER_ROLE, "", "gardener.cloud:extension:project:other:foo", json!({}));
        foreign["metadata"]["labels"] = json!({ROLE: "extension-project-role", PROJECT: "other"});
        garden.put(foreign);
        ready(&garden, json!({"members": members})).await;
        assert_eq!(bound(&garden, &kinds::ROLE_BINDING, BAR), ["m1", "m2"]);
        let rest = find(&garden, &kinds::CLUSTER_ROLE, BAR);

        set_members(&garden, json!([member("m2", &["extension:bar", "viewer"])])).await;

        garden.gone(&kinds::ROLE_BINDING, "garden-dev", FOO).await;
        garden.gone(&kinds::CLUSTER_ROLE, "", FOO).await;
        becomes(&garden, "dev", "Ready").await;
        assert_eq!(bound(&garden, &kinds::ROLE_BINDING, BAR), ["m2"]);
        assert_eq!(find(&garden, &kinds::CLUSTER_ROLE, BAR), rest);
        assert_eq!(bound(&garden, &kinds::CLUSTER_ROLE_BINDING, "project-member"), Vec::<String>::new());
        assert_eq!(bound(&garden, &kinds::CLUSTER_ROLE_BINDING, "project-viewer"), ["m2"]);
        let other = "gardener.cloud:extension:project:other:foo";
        assert!(garden.find(&kinds::CLUSTER_ROLE, "", other).is_some(), "the role of another Project");
    });
}

/// spec 82 A.8: what claims to be an extension role goes at once. Without such a name, the labels mean nothing.
#[test]
fn object_with_the_labels_and_a_name_of_extension_roles_is_deleted() {
    garden(|garden| async move {
        ready(&garden, json!({"members": [member("m1", &["extension:foo"])]})).await;
        let role_ref = json!({"roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}});
        let mut binding = object(&kinds::ROLE_BINDING, "garden-dev", "x", role_ref);
        garden.put(binding.clone());
        let unknown = "gardener.cloud:extension:project:y";
        binding["metadata"]["labels"] = json!({ROLE: "extension-project-role", PROJECT: "dev"});
        for name in ["y", unknown] {
            binding["metadata"]["name"] = json!(name);
            garden.put(binding.clone());
        }

        garden.gone(&kinds::ROLE_BINDING, "garden-dev", unknown).await;

        garden.settle().await;
        for kept in ["x", "y"] {
            assert!(garden.find(&kinds::ROLE_BINDING, "garden-dev", kept).is_some(), "{kept}");
        }
        assert!(garden.find(&kinds::ROLE_BINDING, "garden-dev", FOO).is_some());
    });
}

/// spec 82 B8, scenario 19
#[test]
fn rules_of_extension_roles_belong_to_the_aggregation() {
    garden(|garden| async move {
        ready(&garden, json!({"members": [member("m1", &["extension:foo"])]})).await;
        let filled = json!([{"apiGroups": ["x"], "resources": ["y"], "verbs": ["get"]}]);
        garden.sim.clear_requests();
        garden.edit(&kinds::CLUSTER_ROLE, "", FOO, |role| role["rules"] = filled.clone());
        garden.settle().await;
        assert_eq!(garden.asked(), Vec::<String>::new(), "the aggregation wakes nobody");

        set_members(&garden, json!([member("m1", &["extension:foo"]), member("m2", &["viewer"])])).await;
        becomes(&garden, "dev", "Ready").await;

        assert_eq!(find(&garden, &kinds::CLUSTER_ROLE, FOO).unwrap()["rules"], filled);
    });
}

/// spec 82 B9, scenario 20
#[test]
fn binding_to_another_role_is_replaced() {
    garden(|garden| async move {
        hand_over(&garden, "garden-dev", "dev");
        let name = "gardener.cloud:system:project-viewer";
        let role_ref = json!({
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}, "subjects": [user("thief")],
        });
        garden.put(object(&kinds::ROLE_BINDING, "garden-dev", name, role_ref));
        garden.put(object(&kinds::CLUSTER_ROLE_BINDING, "", &format!("{name}:dev"), json!({
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}, "subjects": [user("thief")],
        })));

        ready(&garden, json!({"members": [member("m", &["viewer"])]})).await;

        let binding = garden.find(&kinds::ROLE_BINDING, "garden-dev", name).unwrap();
        assert_eq!((&binding["roleRef"]["name"], &binding["subjects"]), (&json!(name), &json!([user("m")])));
        let binding = find(&garden, &kinds::CLUSTER_ROLE_BINDING, "project-viewer").unwrap();
        assert_eq!(binding["roleRef"]["name"], format!("{name}:dev"));
        assert_eq!(notes(&garden, "dev", "NamespaceReconcileFailed"), Vec::<String>::new());
    });
}

/// spec 82 B4, scenario 21
#[test]
fn subject_appears_once_and_defaults_are_no_difference() {
    garden(|garden| async move {
        let members = json!([
            member("m", &["admin", "owner"]), member("n", &["admin"]), member("m", &["admin"]),
            {"kind": "User", "name": "m", "role": "admin"}, {"kind": "User", "name": "v", "role": "viewer"},
            {"kind": "ServiceAccount", "name": "s", "namespace": "default", "role": "viewer"},
        ]);
        ready(&garden, json!({"members": members})).await;
        assert_eq!(bound(&garden, &kinds::CLUSTER_ROLE_BINDING, "project-member"), ["m", "n"]);
        assert_eq!(bound(&garden, &kinds::ROLE_BINDING, "project-viewer"), ["v", "s"]);
        let before = belongings(&garden);

        for number in 0..3 {
            garden.patch(&kinds::PROJECT, "", "dev", json!({"spec": {"description": number.to_string()}})).await;
            becomes(&garden, "dev", "Ready").await;
        }

        assert_eq!(belongings(&garden), before);
    });
}

/// spec 82 A.3 step 8, B10, "better" 6, scenario 25
#[test]
fn refused_write_shows_until_it_succeeds_and_stops_no_other_row() {
    garden(|garden| async move {
        garden.settled().await;
        garden.sim.set_faults(|info| {
            let is_meant = info.resource == "clusterrolebindings" && info.verb == "create" && info.user == "gcm";
            if is_meant { Fault::FailBefore(Seen::status(403, "Forbidden", "not you")) } else { Fault::None }
        });
        put_dev(&garden, many());
        becomes(&garden, "dev", "Failed").await;
        let prefix = "Error while reconciling RBAC resources for namespace \"garden-dev\": 4 error(s) occurred: ";
        let is_told = || {
            notes(&garden, "dev", "NamespaceReconcileFailed")
                .iter()
                .any(|note| note.starts_with(prefix) && note.contains("gardener.cloud:system:project:dev: not you"))
        };
        garden.soon("the Event names the object and the cause", is_told).await;
        let bindings = garden.sim.objects("rolebindings.rbac.authorization.k8s.io");
        let mut names: Vec<_> = bindings.iter().map(|binding| &binding["metadata"]["name"]).collect();
        names.sort_by_key(ToString::to_string);
        assert_eq!(names, [FOO, "gardener.cloud:system:project-serviceaccountmanager"], "rows without the failure");

        let failing = |count| format!("gardener_controller_manager_projects_failing{{step=\"rbac\"}} {count}\n");
        assert!(garden.metrics.render().contains(&failing(1)));

        garden.sim.clear_faults();

        becomes(&garden, "dev", "Ready").await;
        garden.settle().await;
        assert_eq!(belongings(&garden).len(), 13);
        assert!(garden.metrics.render().contains(&failing(0)));
    });
}

/// A member that the server refuses is named; other roles follow their members.
#[test]
fn member_that_the_server_refuses_is_named_and_blocks_only_its_role() {
    garden(|garden| async move {
        garden.settled().await;
        garden.sim.set_faults(|info| {
            let is_meant = info.name.contains("project-viewer") || info.path.contains("project-viewer");
            let text = "subjects[0].kind: Unsupported value: \"Robot\": supported values: \"ServiceAccount\", \"User\", \"Group\"";
            match is_meant && info.verb != "get" && info.user == "gcm" {
                true => Fault::FailBefore(Seen::status(422, "Invalid", text)),
                false => Fault::None,
            }
        });
        put_dev(&garden, json!({"members": [member("m", &["admin"])]}));
        becomes(&garden, "dev", "Ready").await;

        let robot = json!({"kind": "Robot", "name": "r", "role": "viewer"});
        set_members(&garden, json!([robot, member("n", &["admin"])])).await;

        becomes(&garden, "dev", "Failed").await;
        let is_told =
            || notes(&garden, "dev", "NamespaceReconcileFailed").iter().any(|note| note.contains("\"Robot\""));
        garden.soon("the Event names the kind", is_told).await;
        assert_eq!(bound(&garden, &kinds::CLUSTER_ROLE_BINDING, "project-member"), ["n"]);
    });
}

/// spec 82 A.4, "better and allowed": nothing is created in a Namespace that is being deleted, but who is no member any
/// more loses all rights.
#[test]
fn removed_member_loses_its_rights_while_the_namespace_is_stuck() {
    garden(|garden| async move {
        ready(&garden, json!({"members": [member("m", &["admin", "extension:foo"]), member("n", &["admin"])]})).await;
        hold_namespace(&garden, "garden-dev");
        garden.delete(&kinds::NAMESPACE, "", "garden-dev").await;
        becomes(&garden, "dev", "Failed").await;
        garden.settle().await;
        garden.sim.clear_requests();

        set_members(&garden, json!([member("n", &["admin", "extension:bar"])])).await;

        garden.soon("it is revoked", || bound(&garden, &kinds::CLUSTER_ROLE_BINDING, "project-member") == ["n"]).await;
        garden.gone(&kinds::CLUSTER_ROLE, "", FOO).await;
        garden.settle().await;
        let asked = garden.asked();
        assert!(!asked.iter().any(|asked| asked.starts_with("create rolebindings")), "{asked:?}");
        assert_eq!(phase(&garden, "dev"), "Failed");
    });
}

/// Names that are too long for a label or no names at all are refused by the server, and everything else is written.
#[test]
fn extension_role_with_an_impossible_name_is_an_error_and_stops_nothing_else() {
    let long = format!("extension:{}", "x".repeat(300));
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            garden.settled().await;
            let roles = ["extension:a/b", "extension:..", "extension:a%2Fb", &long, "extension:", "viewer"];
            put_dev(&garden, json!({"members": [member("m", &roles)]}));
            becomes(&garden, "dev", "Failed").await;
            garden.settle().await;

            assert_eq!(bound(&garden, &kinds::ROLE_BINDING, "project-viewer"), ["m"]);
            for request in garden.requests() {
                assert!(!request.info.path.contains("a/b"), "{request:?}");
            }
            let note = notes(&garden, "dev", "NamespaceReconcileFailed").join(" ");
            assert!(note.len() <= 1024 && note.contains("gardener.cloud:extension:project:dev:"), "{note}");
            set_members(&garden, json!([])).await;
            becomes(&garden, "dev", "Ready").await;
        });
    });
    assert!(log.lines().all(|line| line.len() < 8_000), "{log}");
}

/// spec 82 A.7.3: two writers do not keep each other busy.
#[test]
fn repairs_of_grants_that_another_client_undoes_follow_ever_more_rarely() {
    let opponents: [fn(&Garden); 3] = [
        |garden| {
            if bound(garden, &kinds::ROLE_BINDING, "project-viewer") == ["m"] {
                let name = "gardener.cloud:system:project-viewer";
                garden.edit(&kinds::ROLE_BINDING, "garden-dev", name, |it| it["subjects"] = json!([user("thief")]));
            }
        },
        |garden| drop(garden.sim.remove(&format!("clusterroles.{RBAC}"), "", "gardener.cloud:system:project:dev")),
        |garden| {
            let name = "gardener.cloud:extension:project:dev:x";
            if garden.find(&kinds::CLUSTER_ROLE, "", name).is_none() {
                let mut role = object(&kinds::CLUSTER_ROLE, "", name, json!({}));
                role["metadata"]["labels"] = json!({ROLE: "extension-project-role", PROJECT: "dev"});
                garden.put(role);
            }
        },
    ];
    for (number, opponent) in opponents.into_iter().enumerate() {
        garden(|garden| async move {
            ready(&garden, json!({"members": [member("m", &["viewer"])]})).await;
            garden.sim.clear_requests();

            garden.minute_beside(|| opponent(&garden)).await;

            let asked = garden.asked();
            assert!((3..=16).contains(&asked.len()), "opponent {number}: {asked:?}");
            tokio::time::sleep(Duration::from_secs(120)).await;
            assert_eq!(bound(&garden, &kinds::ROLE_BINDING, "project-viewer"), ["m"], "opponent {number}");
            assert_eq!(find_project(&garden, "dev")["status"]["phase"], "Ready");
        });
    }
}

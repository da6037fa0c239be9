use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{DEV, project};
use crate::actors::controller_manager::{
    project::{
        cached::MOST_EXTENSION_ROLES,
        roles::{excess_of_roles, extended_projects, is_role_of_project, is_stale, project_of, rows},
    },
    rbac::{RbacKind, RbacObject, RbacState},
};

const RBAC: &str = "rbac.authorization.k8s.io";

fn user(name: &str) -> Value {
    json!({"apiGroup": RBAC, "kind": "User", "name": name})
}

fn member(name: &str, role: &str, roles: &[&str]) -> Value {
    let mut member = user(name);
    member["role"] = json!(role);
    member["roles"] = json!(roles);
    member
}

fn objects(spec: Value) -> Vec<RbacObject> {
    rows(DEV, &project(spec), "garden-dev").into_iter().flatten().collect()
}

/// Returns kind and name of each object, with the names of its subjects if it is a binding.
fn subjects(spec: Value) -> Vec<(RbacKind, String, Vec<String>)> {
    let named = |object: RbacObject| {
        let subjects = object.object()["subjects"].as_array().cloned().unwrap_or_default();
        let subjects = subjects.iter().map(|subject| subject["name"].as_str().unwrap().to_owned()).collect();
        (object.kind(), object.name().to_string(), subjects)
    };
    objects(spec).into_iter().map(named).collect()
}

/// The spec of scenario 14.
fn many() -> Value {
    json!({"owner": user("o"), "members": [
        member("m1", "extension:foo", &["viewer"]),
        member("m2", "", &["admin", "uam"]),
        member("o", "", &["owner", "viewer", "admin"]),
        member("m4", "", &["serviceaccountmanager"]),
    ]})
}

fn system(role: &str) -> String {
    format!("gardener.cloud:system:{role}:dev")
}

fn shared(role: &str) -> String {
    format!("garden-dev/gardener.cloud:system:{role}")
}

/// spec 82 A.7.1, B10, scenario 14
#[test]
fn each_role_binds_its_members_in_their_order() {
    let all = |subjects: &[&str]| subjects.iter().map(|subject| (*subject).to_owned()).collect::<Vec<_>>();
    let (role, binding, local) = (RbacKind::ClusterRole, RbacKind::ClusterRoleBinding, RbacKind::RoleBinding);
    let foo = "gardener.cloud:extension:project:dev:foo";
    let expected = vec![
        (role, system("project"), all(&[])),
        (binding, system("project"), all(&["o"])),
        (role, system("project-uam"), all(&[])),
        (binding, system("project-uam"), all(&["m2"])),
        (local, shared("project-serviceaccountmanager"), all(&["o", "m4"])),
        (role, system("project-member"), all(&[])),
        (binding, system("project-member"), all(&["m2", "o"])),
        (local, shared("project-member"), all(&["m2", "o"])),
        (role, system("project-viewer"), all(&[])),
        (binding, system("project-viewer"), all(&["m1", "o"])),
        (local, shared("project-viewer"), all(&["m1", "o"])),
        (role, foo.to_owned(), all(&[])),
        (local, format!("garden-dev/{foo}"), all(&["m1"])),
    ];

    assert_eq!(subjects(many()), expected);
}

/// spec 82 A.7.2, A.7.3 B1 to B3, scenario 15
#[test]
fn objects_have_exactly_the_rules_labels_and_owner_of_the_specification() {
    let objects = objects(many());
    let find = |kind: RbacKind, name: &str| {
        let is_meant = |object: &&RbacObject| object.kind() == kind && object.name().to_string() == name;
        objects.iter().find(is_meant).unwrap().object().clone()
    };
    let rules = |role: &str| find(RbacKind::ClusterRole, &system(role))["rules"].clone();
    let see =
        json!({"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["garden-dev"], "verbs": ["get"]});
    let project = |verbs: &[&str]| json!({"apiGroups": ["core.gardener.cloud"], "resources": ["projects"], "resourceNames": ["dev"], "verbs": verbs});
    assert_eq!(rules("project"), json!([see, project(&["get", "patch", "manage-members", "update", "delete"])]));
    assert_eq!(rules("project-uam"), json!([project(&["get", "manage-members", "patch", "update"])]));
    assert_eq!(rules("project-member"), json!([see, project(&["get", "patch", "update", "delete"])]));
    assert_eq!(rules("project-viewer"), json!([see, project(&["get"])]));

    let name = "gardener.cloud:extension:project:dev:foo";
    let labels = json!({"gardener.cloud/role": "extension-project-role", "project.gardener.cloud/name": "dev"});
    let owner = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project", "name": "dev", "uid": "u1",
        "controller": true, "blockOwnerDeletion": false,
    });
    let selects = json!([{"matchLabels": {"rbac.gardener.cloud/aggregate-to-extension-role": "foo"}}]);
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels, "ownerReferences": [owner]},
        "aggregationRule": {"clusterRoleSelectors": selects},
    });
    assert_eq!(find(RbacKind::ClusterRole, name), role);
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": "garden-dev", "labels": labels, "ownerReferences": [owner]},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}, "subjects": [user("m1")],
    });
    assert_eq!(find(RbacKind::RoleBinding, &format!("garden-dev/{name}")), binding);
    for object in objects.iter().filter(|object| !object.name().name.contains("extension")) {
        assert_eq!(object.object()["metadata"].get("labels"), None);
        assert_eq!(object.object()["metadata"]["ownerReferences"], json!([owner]));
    }
}

/// spec 82 B5, scenario 16, A.7.1; spec 80 A12: names of nothing are ignored.
#[test]
fn project_of_nobody_has_all_objects_without_subjects() {
    let odd = json!([
        member("m", "extension:", &["", "Viewer", "unknown"]),
        "text",
        null,
        {"role": 5, "roles": "viewer"},
    ]);
    let empty = json!({"kind": "", "name": "", "namespace": null});
    for spec in [
        json!({}),
        json!({"owner": null, "members": null}),
        json!({"owner": "x", "members": odd}),
        json!({"owner": {}, "members": []}),
        json!({"owner": empty}),
    ] {
        let subjects = subjects(spec.clone());
        assert_eq!(subjects.len(), 11, "{spec}");
        assert!(subjects.iter().all(|(_, _, subjects)| subjects.is_empty()), "{subjects:?}");
        assert!(objects(spec).iter().all(|object| object.object().get("subjects").is_none()));
    }
}

/// spec 82 B4, scenario 21: a missing API group is filled in first.
#[test]
fn subject_appears_once_in_a_binding() {
    let account = json!({"kind": "ServiceAccount", "name": "s", "namespace": "x", "role": "viewer", "foreign": 1});
    let spec = json!({"members": [
        member("m", "viewer", &["viewer"]),
        {"kind": "User", "name": "m", "role": "viewer"},
        {"kind": "Group", "name": "m", "role": "viewer"},
        account,
        member("m", "viewer", &[]),
    ]});
    let viewers = objects(spec).into_iter().find(|object| object.name().to_string() == shared("project-viewer"));

    let group = json!({"apiGroup": RBAC, "kind": "Group", "name": "m"});
    let account = json!({"kind": "ServiceAccount", "name": "s", "namespace": "x"});
    assert_eq!(viewers.unwrap().object()["subjects"], json!([user("m"), group, account]));
}

/// spec 82 A.7.1
#[test]
fn names_of_objects_lead_to_their_project() {
    for (name, expected) in [
        ("gardener.cloud:system:project:dev", Some("dev")),
        ("gardener.cloud:system:project-uam:dev", Some("dev")),
        ("gardener.cloud:system:project-member:dev", Some("dev")),
        ("gardener.cloud:system:project-viewer:dev", Some("dev")),
        ("gardener.cloud:extension:project:dev:foo", Some("dev")),
        ("gardener.cloud:extension:project:dev:a:b", Some("dev")),
        ("gardener.cloud:system:project-member", None),
        ("gardener.cloud:system:project-serviceaccountmanager:dev", None),
        ("gardener.cloud:system:project:", None),
        ("gardener.cloud:system:project:a:b", None),
        ("gardener.cloud:extension:project::foo", None),
        ("gardener.cloud:extension:project:dev", None),
        ("cluster-admin", None),
    ] {
        assert_eq!(project_of(name), expected, "{name}");
    }
    assert!(is_role_of_project("gardener.cloud:system:project-serviceaccountmanager"));
    assert!(is_role_of_project("gardener.cloud:extension:project:dev:foo"));
    assert!(!is_role_of_project("gardener.cloud:system:project-member:dev"));
}

/// spec 82 A.7.1: what is beyond the cap is not wanted, so it is stale.
#[test]
fn extension_roles_beyond_the_cap_are_not_granted() {
    let with_roles = |count: usize| {
        let roles: Vec<String> = (0..count).rev().map(|number| format!("extension:r{number:05}")).collect();
        let mut member = user("m");
        member["roles"] = json!(roles);
        project(json!({"members": [member]}))
    };
    let full = with_roles(MOST_EXTENSION_ROLES);
    assert_eq!((full.extension_roles().len(), excess_of_roles(&full)), (MOST_EXTENSION_ROLES, None));

    let many = with_roles(80_000);

    let granted = many.extension_roles();
    assert_eq!((granted.len(), granted.last().copied()), (MOST_EXTENSION_ROLES, Some("r00499")));
    assert_eq!(many.members_by_extension().into_keys().collect::<BTreeSet<_>>(), granted);
    assert_eq!(rows(DEV, &many, "garden-dev").len(), 5 + MOST_EXTENSION_ROLES);
    let name = |role: &str| format!("gardener.cloud:extension:project:dev:{role}");
    let object = RbacState::of(&json!({}));
    assert!(is_stale("dev", &granted, &name("r00500"), &object));
    assert!(!is_stale("dev", &granted, &name("r00499"), &object));
    let error = excess_of_roles(&many).unwrap();
    assert!(error.contains("80000") && error.contains("500"), "{error}");
}

/// spec 82 A.8, scenario 18
#[test]
fn extension_role_is_stale_if_no_member_has_it() {
    let object = |role: &str, project: &str| {
        let labels = json!({"gardener.cloud/role": role, "project.gardener.cloud/name": project});
        RbacState::of(&json!({"metadata": {"labels": labels}}))
    };
    let own = object("extension-project-role", "dev");
    let present = BTreeSet::from(["bar"]);
    let stale = |name: &str, object: &RbacState| is_stale("dev", &present, name, object);

    assert!(stale("gardener.cloud:extension:project:dev:foo", &own));
    assert!(!stale("gardener.cloud:extension:project:dev:bar", &own));
    assert!(stale("gardener.cloud:extension:project:other:bar", &own), "an unknown role");
    for name in [
        "x",
        "gardener.cloud:system:project:dev",
        "gardener.cloud:system:project-member",
        "gardener.cloud:system:project-member:dev",
        "gardener.cloud:extension:project",
    ] {
        assert!(!stale(name, &own), "{name} is no name of an extension role");
    }
    let foo = "gardener.cloud:extension:project:dev:foo";
    assert!(stale(foo, &object("project", "dev")) && stale(foo, &RbacState::of(&json!({}))), "the name is enough");
    let other = "gardener.cloud:extension:project:other:foo";
    assert!(!stale(other, &object("project", "dev")) && !stale(other, &object("extension-project-role", "other")));
    let projects = |name: &str, object: &RbacState| extended_projects(name, object).into_iter().collect::<Vec<_>>();
    assert_eq!(projects("x", &own), ["dev"]);
    assert_eq!(projects("gardener.cloud:extension:project:other:bar", &own), ["dev", "other"]);
    assert_eq!(projects("gardener.cloud:system:project:dev", &RbacState::of(&json!({}))), Vec::<String>::new());
}

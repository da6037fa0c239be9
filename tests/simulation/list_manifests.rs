//! Lists in manifests (spec 10 §11.3).

use serde_json::{Value, json};

use crate::{
    objects::object,
    world::{NAMESPACE, config_map, seconds, world},
};

const GROUP: &str = "rbac.authorization.k8s.io/v1";

fn role(name: &str) -> Value {
    let rules = json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }]);
    object(GROUP, "Role", name, json!({ "rules": rules }))
}

fn binding(name: &str) -> Value {
    let subjects = json!([{ "kind": "ServiceAccount", "name": "prometheus", "namespace": NAMESPACE }]);
    let role = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name });
    object(GROUP, "RoleBinding", name, json!({ "roleRef": role, "subjects": subjects }))
}

fn list(api_version: &str, kind: &str, items: Value) -> Value {
    json!({ "apiVersion": api_version, "kind": kind, "items": items })
}

/// spec 10 §11.3: as kube-prometheus publishes its manifests.
#[test]
fn lists_of_roles_and_bindings_are_applied_and_pruned() {
    world(1, |world| async move {
        world.start().await;
        let bindings = list(GROUP, "RoleBindingList", json!([binding("a"), binding("b")]));
        world.bundle("one", &[list(GROUP, "RoleList", json!([role("a"), role("b")])), bindings.clone()]);
        world.applied("one").await;
        assert_eq!(world.refs("one"), ["a", "b", "a", "b"]);
        assert!(world.sim.object("roles.rbac.authorization.k8s.io", NAMESPACE, "b").is_some());

        world.secret("one", &[list("v1", "List", json!([role("a"), config_map("c", "v")])), bindings]);
        seconds(20).await;

        assert!(world.is_applied("one"), "{:#?}", world.mr("one"));
        assert_eq!(world.value("c").as_deref(), Some("v"));
        assert_eq!(world.sim.object("roles.rbac.authorization.k8s.io", NAMESPACE, "b"), None);
    });
}

/// spec 10 §9.8, §11.3
#[test]
fn lists_that_cannot_be_split_are_reported_and_prune_nothing() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), config_map("b", "v")]);
        world.applied("one").await;
        let items = json!([config_map("c", "v"), { "metadata": { "name": "b" } }]);
        world.secret("one", &[config_map("a", "w"), list("v1", "ConfigMapList", items)]);
        seconds(20).await;

        let (status, reason, message) = world.condition("one", "ResourcesApplied").unwrap();
        assert_eq!((status.as_str(), reason.as_str()), ("False", "ApplyFailed"));
        let text = "object type \"/v1, Kind=ConfigMapList\" is unsupported (document at index 1 in 'objects.yaml' in secret 'shoot/one')";
        assert!(message.contains(text), "{message}");
        let values = ["a", "b", "c"].map(|name| world.value(name));
        assert_eq!(values, [Some("w".to_owned()), Some("v".to_owned()), None]);
    });
}

//! What Shoots refer to is protected, as chapter 84 says it. `references` has what all referrers share.

use cluster::Resource;
use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use tracing::Level;

use super::{
    garden::{Garden, garden, object},
    references::{PROTECTION, delete_in_use, finish, held, is_held, put_object, refer, referrer, released, to},
    shoots::seconds,
};
use crate::log_capture::logged;

/// One Shoot's spec for each path of E.2, with the kind to which it refers; the name is `x`.
fn paths() -> Vec<(Resource, Value)> {
    let reference = |kind: &Resource| to(kind, "x")["resourceRef"].clone();
    let api_server = |fields: Value| json!({ "kubernetes": { "kubeAPIServer": fields } });
    let dns = |fields: Value| json!({ "dns": { "providers": [fields] } });
    vec![
        (kinds::SECRET, dns(json!({ "credentialsRef": reference(&kinds::SECRET) }))),
        (kinds::SECRET, dns(json!({ "secretName": "x" }))),
        (kinds::SECRET, api_server(json!({ "admissionPlugins": [{ "name": "p", "kubeconfigSecretName": "x" }] }))),
        (kinds::SECRET, api_server(json!({ "structuredAuthorization": { "kubeconfigs": [{ "secretName": "x" }] } }))),
        (kinds::SECRET, json!({ "resources": [to(&kinds::SECRET, "x")] })),
        (
            kinds::CONFIG_MAP,
            api_server(json!({ "auditConfig": { "auditPolicy": { "configMapRef": { "name": "x" } } } })),
        ),
        (kinds::CONFIG_MAP, api_server(json!({ "structuredAuthentication": { "configMapName": "x" } }))),
        (kinds::CONFIG_MAP, api_server(json!({ "structuredAuthorization": { "configMapName": "x" } }))),
        (kinds::CONFIG_MAP, json!({ "resources": [to(&kinds::CONFIG_MAP, "x")] })),
        (kinds::WORKLOAD_IDENTITY, json!({ "resources": [to(&kinds::WORKLOAD_IDENTITY, "x")] })),
        (kinds::WORKLOAD_IDENTITY, dns(json!({ "credentialsRef": reference(&kinds::WORKLOAD_IDENTITY) }))),
    ]
}

const AUDIT_POLICY: usize = 5;

fn put_shoot(garden: &Garden, name: &str, spec: Value) {
    garden.put(object(&kinds::SHOOT, "a", name, json!({ "spec": spec })));
}

fn set_spec(garden: &Garden, name: &str, spec: Value) {
    garden.edit(&kinds::SHOOT, "a", name, |shoot| shoot["spec"] = spec);
}

/// spec 84 scenarios 83 and 84: each path of E.2; the object of another Shoot stays protected.
#[test]
fn shoot_references_by_each_path_are_protected() {
    for (kind, spec) in &paths() {
        garden(|garden| async move {
            put_object(&garden, kind, "a", "x");
            put_object(&garden, kind, "b", "x");
            put_shoot(&garden, "s1", spec.clone());
            garden.settled().await;
            assert!(is_held(&garden, kind, "a", "x") && is_held(&garden, &kinds::SHOOT, "a", "s1"), "{spec}");
            assert!(!is_held(&garden, kind, "b", "x"), "the namespace is that of the Shoot");

            put_shoot(&garden, "s2", spec.clone());
            held(&garden, &kinds::SHOOT, "a", "s2").await;
            set_spec(&garden, "s1", json!({}));
            released(&garden, &kinds::SHOOT, "a", "s1").await;
            garden.settle().await;
            assert!(is_held(&garden, kind, "a", "x"), "s2 still refers to it");
            set_spec(&garden, "s2", Value::Null);

            released(&garden, kind, "a", "x").await;
            released(&garden, &kinds::SHOOT, "a", "s2").await;
        });
    }
}

/// spec 84 scenario 85: empty names and other kinds are no references, in any shape.
#[test]
fn shoot_without_references_is_never_protected() {
    let odd = [
        json!({}),
        json!({ "secretBindingName": "x", "provider": { "infrastructureConfig": { "secretName": "x" } } }),
        json!({ "dns": { "providers": [{ "secretName": "" }, 7, { "credentialsRef": "x" }] } }),
        json!({ "kubernetes": { "kubeAPIServer": { "admissionPlugins": [{ "kubeconfigSecretName": "" }], "auditConfig": 5 } } }),
        json!({ "kubernetes": { "kubeAPIServer": ["x"] }, "resources": { "resourceRef": to(&kinds::SECRET, "x") } }),
        json!({ "resources": [{ "resourceRef": { "apiVersion": "v2", "kind": "Secret", "name": "x" } }] }),
    ];
    garden(|garden| async move {
        put_object(&garden, &kinds::SECRET, "a", "x");
        for (number, spec) in odd.into_iter().enumerate() {
            put_shoot(&garden, &format!("s{number}"), spec);
        }
        garden.settled().await;

        assert!((0..6).all(|number| !is_held(&garden, &kinds::SHOOT, "a", &format!("s{number}"))));
        assert!(!is_held(&garden, &kinds::SECRET, "a", "x"));
    });
}

/// spec 84 scenario 86
#[test]
fn shoot_in_deletion_keeps_its_objects_until_gardenlet_is_done() {
    garden(|garden| async move {
        for name in ["x", "shared"] {
            put_object(&garden, &kinds::SECRET, "a", name);
        }
        garden.put(referrer(&kinds::SHOOT, "a", "s1", &[to(&kinds::SECRET, "x"), to(&kinds::SECRET, "shared")]));
        garden.put(referrer(&kinds::SHOOT, "a", "s2", &[to(&kinds::SECRET, "shared")]));
        garden.settled().await;
        delete_in_use(&garden, &kinds::SHOOT, "a", "s1", "gardener").await;
        seconds(600).await;
        assert!(is_held(&garden, &kinds::SECRET, "a", "x") && is_held(&garden, &kinds::SHOOT, "a", "s1"));

        finish(&garden, &kinds::SHOOT, "a", "s1", "gardener");

        garden.gone(&kinds::SHOOT, "a", "s1").await;
        assert!(!is_held(&garden, &kinds::SECRET, "a", "x"), "objects first");
        assert!(is_held(&garden, &kinds::SECRET, "a", "shared"));
    });
}

/// spec 84 scenario 87
#[test]
fn shoot_reference_to_a_missing_secret_leaves_no_other_unprotected() {
    let ((), log) = logged(Level::ERROR, || {
        garden(|garden| async move {
            put_object(&garden, &kinds::SECRET, "a", "x");
            garden.put(referrer(&kinds::SHOOT, "a", "s1", &[to(&kinds::SECRET, "x"), to(&kinds::SECRET, "y")]));
            garden.settled().await;
            assert!(is_held(&garden, &kinds::SECRET, "a", "x") && is_held(&garden, &kinds::SHOOT, "a", "s1"));

            put_object(&garden, &kinds::SECRET, "a", "y");

            held(&garden, &kinds::SECRET, "a", "y").await;
        });
    });
    assert!(log.contains("not found"), "{log}");
}

/// spec 84 scenario 88, D-1
#[test]
fn shoot_references_to_audit_policies_may_be_switched_off() {
    garden(|garden| async move {
        garden.config.borrow_mut().controllers.shoot_reference.protect_audit_policy_config_maps = false;
        for (number, (kind, spec)) in paths().iter().enumerate() {
            let namespace = if number == AUDIT_POLICY { "b" } else { "a" };
            put_object(&garden, kind, namespace, "x");
            garden.put(object(&kinds::SHOOT, namespace, &format!("s{number}"), json!({ "spec": spec })));
        }
        garden.settled().await;

        for (number, (kind, _)) in paths().iter().enumerate() {
            let namespace = if number == AUDIT_POLICY { "b" } else { "a" };
            assert_eq!(is_held(&garden, kind, namespace, "x"), number != AUDIT_POLICY, "{number}");
        }
    });
}

/// spec 84 scenario 89
#[test]
fn shoot_reference_that_comes_with_its_parent_is_protected() {
    garden(|garden| async move {
        put_object(&garden, &kinds::CONFIG_MAP, "a", "x");
        put_shoot(&garden, "s1", json!({ "kubernetes": {} }));
        garden.settled().await;

        set_spec(&garden, "s1", paths().remove(AUDIT_POLICY).1);

        held(&garden, &kinds::CONFIG_MAP, "a", "x").await;
        held(&garden, &kinds::SHOOT, "a", "s1").await;
    });
}

/// spec 84 scenario 90
#[test]
fn shoot_in_garden_releases_nothing_that_others_refer_to() {
    for other in [&kinds::SEED, &kinds::CONTROLLER_DEPLOYMENT] {
        garden(|garden| async move {
            put_object(&garden, &kinds::SECRET, "garden", "x");
            garden.put(referrer(other, "", "r", &[to(&kinds::SECRET, "x")]));
            garden.put(referrer(&kinds::SHOOT, "garden", "s1", &[to(&kinds::SECRET, "x")]));
            garden.settled().await;

            refer(&garden, &kinds::SHOOT, "garden", "s1", &[]);
            garden.settle().await;
            assert!(is_held(&garden, &kinds::SECRET, "garden", "x"));
            garden.delete(&kinds::SHOOT, "garden", "s1").await;
            garden.settle().await;

            assert!(is_held(&garden, &kinds::SECRET, "garden", "x"), "{other}");
        });
    }
}

/// spec 84 scenario 91, E-1
#[test]
fn shoot_that_was_removed_by_force_leaves_no_object_protected() {
    for is_down in [true, false] {
        garden(|garden| async move {
            put_object(&garden, &kinds::SECRET, "a", "x");
            garden.put(referrer(&kinds::SHOOT, "a", "s1", &[to(&kinds::SECRET, "x")]));
            garden.settled().await;
            assert_eq!(garden.finalizers(&kinds::SECRET, "a", "x"), [PROTECTION]);
            if is_down {
                garden.stop().await;
            }
            garden.sim.remove("shoots.core.gardener.cloud", "a", "s1").expect("it exists");
            if is_down {
                garden.start().await;
            }

            released(&garden, &kinds::SECRET, "a", "x").await;
        });
    }
}

/// spec 84 scenario 92
#[test]
fn shoot_references_cost_nothing_while_they_stay() {
    garden(|garden| async move {
        put_object(&garden, &kinds::SECRET, "a", "x");
        garden.put(referrer(&kinds::SHOOT, "a", "s1", &[to(&kinds::SECRET, "x")]));
        garden.settled().await;

        garden.edit(&kinds::SHOOT, "a", "s1", |shoot| {
            shoot["metadata"]["labels"]["x"] = json!("y");
            shoot["status"] = json!({ "conditions": [], "technicalID": "t" });
            shoot["spec"]["purpose"] = json!("testing");
        });
        seconds(600).await;

        assert_eq!(garden.asked(), Vec::<String>::new());
    });
}

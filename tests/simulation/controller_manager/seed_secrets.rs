//! The Namespaces of Seeds, and the copies of shared Secrets in them.

use std::{collections::BTreeMap, time::Duration};

use cluster::object::uid;
use gardener_resource_manager::{actors::controller_manager::seed::secrets::roles::PRIVATE_ROLES, api::kinds};
use kit::testing::eventually;
use serde_json::{Value, json};
use sim::Recorded;
use tracing::Level;

use super::garden::{Garden, garden, object};
use crate::log_capture::logged;

pub(super) const ROLE: &str = "gardener.cloud/role";

pub(super) fn put_seed(garden: &Garden, name: &str) {
    garden.put(object(&kinds::SEED, "", name, json!({})));
}

pub(super) fn secret(namespace: &str, name: &str, role: Option<&str>, value: &str) -> Value {
    let mut secret = object(&kinds::SECRET, namespace, name, json!({"type": "Opaque", "data": {"k": value}}));
    if let Some(role) = role {
        secret["metadata"]["labels"] = json!({ROLE: role});
    }
    secret
}

/// Shares a Secret of the garden.
pub(super) fn share(garden: &Garden, name: &str, value: &str) {
    garden.put(secret("garden", name, Some("foo"), value));
}

fn namespace_of(seed: &str) -> String {
    format!("seed-{seed}")
}

/// Returns what copies have of their sources, for each Secret of a Seed's Namespace.
fn copies(garden: &Garden, seed: &str) -> BTreeMap<String, Value> {
    let namespace = namespace_of(seed);
    let is_in = |secret: &Value| secret["metadata"]["namespace"] == *namespace;
    let secrets = garden.sim.objects("secrets").into_iter().filter(is_in);
    secrets
        .map(|secret| (secret["metadata"]["name"].as_str().unwrap_or_default().to_owned(), content(&secret)))
        .collect()
}

fn content(secret: &Value) -> Value {
    let metadata = &secret["metadata"];
    json!([secret["type"], secret["data"], metadata["labels"], metadata["annotations"]])
}

pub(super) fn names(garden: &Garden, seed: &str) -> Vec<String> {
    copies(garden, seed).into_keys().collect()
}

pub(super) fn is_copied(garden: &Garden, name: &str, seed: &str) -> bool {
    let source = garden.find(&kinds::SECRET, "garden", name);
    source.is_some_and(|source| copies(garden, seed).get(name) == Some(&content(&source)))
}

pub(super) async fn copied(garden: &Garden, name: &str, seed: &str) {
    let what = format!("{name} is copied to {seed}");
    // The end of a Namespace takes some seconds, and so does a back-off.
    eventually(&what, Duration::from_secs(60), || is_copied(garden, name, seed)).await;
}

async fn only(garden: &Garden, seed: &str, expected: &[&str]) {
    garden.soon(&format!("{seed} has only {expected:?}"), || names(garden, seed) == expected).await;
}

/// Returns the requests of the program to Secrets in the Namespace of a Seed.
fn requests(garden: &Garden, seed: &str, verb: &str) -> Vec<Recorded> {
    let namespace = namespace_of(seed);
    let is_meant = |request: &Recorded| {
        let info = &request.info;
        info.resource == "secrets" && info.namespace == namespace && info.verb == verb
    };
    garden.requests().into_iter().filter(is_meant).collect()
}

/// spec 83 scenario 1
#[test]
fn seed_gets_its_namespace() {
    garden(|garden| async move {
        garden.settled().await;
        put_seed(&garden, "s1");
        garden.soon("the Namespace exists", || garden.find(&kinds::NAMESPACE, "", "seed-s1").is_some()).await;

        let seed = garden.find(&kinds::SEED, "", "s1").unwrap();
        let namespace = garden.find(&kinds::NAMESPACE, "", "seed-s1").unwrap();
        assert_eq!(namespace["metadata"]["labels"][ROLE], "seed");
        let owner = json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "name": "s1", "uid": uid(&seed),
            "controller": true, "blockOwnerDeletion": true,
        });
        assert_eq!(namespace["metadata"]["ownerReferences"], json!([owner]));
    });
}

/// spec 83 scenarios 2 and 3, decision 25
#[test]
fn shared_secrets_and_no_others_are_copied() {
    garden(|garden| async move {
        let mut x = secret("garden", "x", Some("foo"), "eA==");
        x["type"] = json!("example.com/t");
        x["metadata"]["annotations"] = json!({"n": "o"});
        garden.put(x);
        garden.put(secret("garden", "y", Some(""), "eQ=="));
        garden.put(secret("garden", "z", None, "eg=="));
        garden.put(secret("default", "w", Some("foo"), "dw=="));
        for role in PRIVATE_ROLES {
            garden.put(secret("garden", role, Some(role), "cA=="));
        }
        put_seed(&garden, "s1");
        garden.start().await;

        copied(&garden, "x", "s1").await;
        copied(&garden, "y", "s1").await;
        garden.settle().await;
        assert_eq!(names(&garden, "s1"), ["x", "y"]);
    });
}

/// spec 83 scenario 4
#[test]
fn copies_follow_their_sources() {
    garden(|garden| async move {
        share(&garden, "x", "eA==");
        share(&garden, "y", "eQ==");
        put_seed(&garden, "s1");
        garden.settled().await;
        assert_eq!(names(&garden, "s1"), ["x", "y"]);

        let changes = [
            json!({"data": {"k": null, "new": "bmV3"}}),
            json!({"metadata": {"labels": {"l": "m"}, "annotations": {"n": "o"}}}),
            json!({"data": null, "metadata": {"annotations": null, "labels": {"l": null}}}),
        ];
        for change in changes {
            garden.patch(&kinds::SECRET, "garden", "y", change).await;
            copied(&garden, "y", "s1").await;
        }
        garden.delete(&kinds::SECRET, "garden", "x").await;
        only(&garden, "s1", &["y"]).await;
    });
}

/// spec 83 scenario 5: whatever role it gets, and also with a private role from the beginning.
#[test]
fn secret_is_copied_only_while_its_role_is_shared() {
    garden(|garden| async move {
        put_seed(&garden, "s1");
        garden.settled().await;
        for role in PRIVATE_ROLES.into_iter().map(Some).chain([None]) {
            share(&garden, "x", "eA==");
            copied(&garden, "x", "s1").await;

            garden
                .patch(
                    &kinds::SECRET,
                    "garden",
                    "x",
                    json!({"metadata": {"labels": {ROLE: role}}, "data": {"k": "cA=="}}),
                )
                .await;

            only(&garden, "s1", &[]).await;
            garden.settle().await;
            assert_eq!(names(&garden, "s1"), Vec::<String>::new(), "{role:?}");
        }
    });
}

/// spec 83 scenario 6, A-T1
#[test]
fn namespace_of_somebody_else_is_not_used() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            share(&garden, "x", "eA==");
            garden.put(object(&kinds::NAMESPACE, "", "seed-s1", json!({})));
            put_seed(&garden, "s1");
            garden.settled().await;
            tokio::time::sleep(Duration::from_secs(3600)).await;
            assert_eq!(names(&garden, "s1"), Vec::<String>::new());
            assert_eq!(garden.asked(), Vec::<String>::new(), "no back-off: the Namespace wakes the Seed");

            garden.delete(&kinds::NAMESPACE, "", "seed-s1").await;

            copied(&garden, "x", "s1").await;
        });
    });
    let text = "namespace \"seed-s1\" is not controlled by seed \"s1\"";
    assert!(log.replace("\\\"", "\"").contains(text), "{log}");
}

/// spec 83 scenario 6, A-T1: a Seed that is created anew waits for the end of the old Namespace.
#[test]
fn namespace_of_an_earlier_seed_of_the_same_name_is_not_used() {
    garden(|garden| async move {
        share(&garden, "x", "eA==");
        put_seed(&garden, "s1");
        garden.settled().await;
        let hold = |copy: &mut Value| copy["metadata"]["finalizers"] = json!(["example.com/x"]);
        assert!(garden.sim.edit("secrets", "seed-s1", "x", hold));
        let earlier = garden.find(&kinds::NAMESPACE, "", "seed-s1").unwrap();
        garden.delete(&kinds::SEED, "", "s1").await;
        garden.gone(&kinds::SEED, "", "s1").await;
        put_seed(&garden, "s1");
        share(&garden, "y", "eQ==");
        garden.settle().await;
        assert_eq!(names(&garden, "s1"), ["x"], "the Namespace is being deleted");
        let now = garden.find(&kinds::NAMESPACE, "", "seed-s1").unwrap();
        assert_eq!(uid(&now), uid(&earlier));

        garden.sim.edit("secrets", "seed-s1", "x", |copy| copy["metadata"]["finalizers"] = Value::Null);
        garden.sim.remove("secrets", "seed-s1", "x");

        copied(&garden, "x", "s1").await;
        copied(&garden, "y", "s1").await;
        let now = garden.find(&kinds::NAMESPACE, "", "seed-s1").unwrap();
        let seed = garden.find(&kinds::SEED, "", "s1").unwrap();
        assert_eq!(now["metadata"]["ownerReferences"][0]["uid"], uid(&seed));
    });
}

/// spec 83 scenario 7
#[test]
fn label_of_the_namespace_is_restored() {
    garden(|garden| async move {
        put_seed(&garden, "s1");
        garden.settled().await;

        let labels = json!({"metadata": {"labels": {ROLE: null, "a": "b"}}});
        garden.patch(&kinds::NAMESPACE, "", "seed-s1", labels).await;

        let labels = || garden.find(&kinds::NAMESPACE, "", "seed-s1").unwrap()["metadata"]["labels"].clone();
        garden.soon("the label is back", || labels()[ROLE] == "seed" && labels()["a"] == "b").await;
        assert_eq!(garden.asked(), ["get namespaces seed-s1", "patch namespaces seed-s1"]);
    });
}

/// spec 83 scenario 8
#[test]
fn other_secrets_of_the_namespace_stay() {
    garden(|garden| async move {
        put_seed(&garden, "s1");
        garden.settled().await;

        garden.put(secret("seed-s1", "none", None, "bg=="));
        for role in PRIVATE_ROLES {
            garden.put(secret("seed-s1", role, Some(role), "cA=="));
        }
        garden.put(secret("seed-s1", "stale", Some("foo"), "cw=="));

        garden.gone(&kinds::SECRET, "seed-s1", "stale").await;
        garden.settle().await;
        assert_eq!(names(&garden, "s1").len(), PRIVATE_ROLES.len() + 1);
        for request in requests(&garden, "s1", "delete") {
            assert_eq!(request.info.name, "stale");
        }
    });
}

/// spec 83 scenario 9
#[test]
fn copy_that_cannot_be_changed_is_replaced_and_stale_copies_go() {
    garden(|garden| async move {
        share(&garden, "x", "eA==");
        put_seed(&garden, "s1");
        garden.settled().await;
        let changes: [fn(&mut Value); 2] = [
            |copy| copy["type"] = json!("example.com/other"),
            |copy| {
                copy["immutable"] = json!(true);
                copy["data"] = json!({"other": "bw=="});
            },
        ];
        for change in changes {
            assert!(garden.sim.edit("secrets", "seed-s1", "x", change));
            garden.put(secret("seed-s1", "stale", Some("foo"), "cw=="));

            copied(&garden, "x", "s1").await;
            only(&garden, "s1", &["x"]).await;
        }
        let refused: Vec<_> = ["create", "patch", "delete"]
            .into_iter()
            .flat_map(|verb| requests(&garden, "s1", verb))
            .filter(|request| request.code.is_some_and(|code| code >= 400))
            .collect();
        assert!(refused.is_empty(), "{refused:?}");
    });
}

/// spec 83 A.3: a Secret without the label that has the name of a shared one is overwritten, but never deleted.
#[test]
fn secret_that_is_no_copy_is_never_deleted_for_its_name() {
    garden(|garden| async move {
        put_seed(&garden, "s1");
        garden.settled().await;
        garden.put(secret("seed-s1", "x", None, "bg=="));
        let mut other = secret("seed-s1", "y", None, "bg==");
        other["type"] = json!("example.com/other");
        garden.put(other);
        garden.put(secret("seed-s1", "stale", Some("foo"), "cw=="));

        share(&garden, "x", "eA==");
        share(&garden, "y", "eQ==");

        copied(&garden, "x", "s1").await;
        garden.gone(&kinds::SECRET, "seed-s1", "stale").await;
        garden.settle().await;
        assert_eq!(copies(&garden, "s1")["y"][0], "example.com/other");
    });
}

/// spec 83 scenario 10
#[test]
fn copies_are_restored() {
    garden(|garden| async move {
        share(&garden, "x", "eA==");
        put_seed(&garden, "s1");
        garden.settled().await;

        garden.patch(&kinds::SECRET, "seed-s1", "x", json!({"data": {"k": "eHh4", "more": "eHh4"}})).await;
        copied(&garden, "x", "s1").await;
        garden.patch(&kinds::SECRET, "seed-s1", "x", json!({"metadata": {"labels": {ROLE: "kubeconfig"}}})).await;
        copied(&garden, "x", "s1").await;
        garden.delete(&kinds::SECRET, "seed-s1", "x").await;
        copied(&garden, "x", "s1").await;
    });
}

/// spec 83 scenario 11, "better" 2
#[test]
fn copies_of_many_seeds_follow_quick_changes_with_few_requests() {
    garden(|garden| async move {
        let seeds: Vec<_> = (0..200).map(|number| format!("s{number}")).collect();
        seeds.iter().for_each(|seed| put_seed(&garden, seed));
        for name in ["x", "y", "z"] {
            share(&garden, name, "eA==");
        }
        garden.settled().await;
        assert!(seeds.iter().all(|seed| names(&garden, seed) == ["x", "y", "z"]));

        for change in 0..10 {
            let data = json!({"data": {"k": format!("{change}eHh4eHh4eHg")[..8]}});
            garden.patch(&kinds::SECRET, "garden", "x", data).await;
        }
        garden.settle().await;

        for seed in &seeds {
            assert!(is_copied(&garden, "x", seed), "{seed}");
            let written = requests(&garden, seed, "patch").len();
            assert!((1..=10).contains(&written), "{seed}: {written}");
        }
        let asked = garden.asked();
        let is_about_another = |asked: &&String| asked.starts_with("patch") && !asked.ends_with(" x");
        assert_eq!(asked.iter().filter(is_about_another).count(), 0);
        let lists = asked.iter().filter(|asked| *asked == "list secrets").count();
        assert!(lists <= 400, "reconciles share lists: {lists}");
    });
}

/// spec 83 scenario 12, A-T2
#[test]
fn terminating_namespace_gets_no_new_copies_and_causes_no_errors() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            share(&garden, "x", "eA==");
            share(&garden, "y", "eQ==");
            put_seed(&garden, "s1");
            garden.settled().await;
            let hold = |copy: &mut Value| copy["metadata"]["finalizers"] = json!(["example.com/x"]);
            assert!(garden.sim.edit("secrets", "seed-s1", "x", hold));
            garden.settle().await;
            garden.sim.clear_requests();

            garden.delete(&kinds::NAMESPACE, "", "seed-s1").await;
            garden.settle().await;
            share(&garden, "new", "bmV3");
            garden.patch(&kinds::SECRET, "garden", "x", json!({"data": {"k": "bGF0ZQ=="}})).await;
            garden.settle().await;

            assert_eq!(names(&garden, "s1"), ["x"]);
            assert!(is_copied(&garden, "x", "s1"), "copies that exist are kept");
            let row = garden.row("seed-secrets/s1").expect("the Seed has a row");
            let ending = garden.metric("seed_secrets{state=\"ending\"}");
            assert_eq!((row.line.as_str(), ending), ("its Namespace is being deleted", Some(1.0)));
            let refused = requests(&garden, "s1", "create");
            assert!(refused.len() <= 2, "only before the deletion is known: {refused:?}");
            garden.sim.remove("secrets", "seed-s1", "x");
            copied(&garden, "new", "s1").await;
            copied(&garden, "x", "s1").await;
        });
    });
    let is_error = |line: &&str| line.contains("ERROR") && line.contains("seed-secrets");
    assert_eq!(log.lines().find(is_error), None);
}

/// spec 83 A-T2
#[test]
fn seed_in_deletion_still_gets_copies() {
    garden(|garden| async move {
        garden.put(object(&kinds::SEED, "", "s1", json!({"metadata": {"finalizers": ["gardener"]}})));
        garden.settled().await;
        garden.delete(&kinds::SEED, "", "s1").await;
        garden.settle().await;

        share(&garden, "x", "eA==");

        copied(&garden, "x", "s1").await;
    });
}

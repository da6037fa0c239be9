//! What the dashboard shows of a ManagedResource: its summary in the status registry, and its page.

use std::time::Duration;

use kit::{ObjectSummary, Tone};
use serde_json::{Value, json};
use sim::{Fault, Seen};

use crate::{
    health_objects::{MRS, ready, set_status, workload},
    objects::with,
    world::{NAMESPACE, PROGRAM, World, config_map, managed_resource, namespace, seconds, world},
};

async fn page(world: &World, name: &str) -> Value {
    let path = format!("managedresource/{NAMESPACE}/{name}");
    let answer = world.universe.env.status_registry.ask(&path, Duration::from_secs(2)).await;
    answer.expect("it answers in time").expect("there is such an actor").own["bundle"].clone()
}

fn summary(world: &World, name: &str) -> Option<ObjectSummary> {
    let path = format!("managedresource/{NAMESPACE}/{name}");
    let actor = world.actors_of(PROGRAM).into_iter().find(|actor| actor.path == path)?;
    actor.object.map(|object| ObjectSummary::clone(&object))
}

fn marks(world: &World, name: &str) -> Option<Vec<&'static str>> {
    summary(world, name).map(|summary| summary.marks)
}

/// The row of an object.
fn row<'a>(page: &'a Value, name: &str) -> &'a Value {
    let mut rows = page["objects"].as_array().into_iter().flatten();
    rows.find(|row| row["name"] == name).unwrap_or(&Value::Null)
}

fn has_cause(row: &Value, cause: &str) -> bool {
    row["last"]["why"].as_array().is_some_and(|why| why.contains(&json!(cause)))
}

fn secret(name: &str, key: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": { "namespace": NAMESPACE, "name": name }, "stringData": { key: value },
    })
}

#[test]
fn page_of_a_bundle_shows_its_objects_without_a_request() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), namespace("other"), workload("StatefulSet", "db", 2)]);
        world.applied("one").await;
        seconds(3).await;
        world.sim.clear_requests();

        let page = page(&world, "one").await;

        assert_eq!(world.asked(), [""; 0]);
        assert_eq!((&page["class"], &page["truncated"]), (&json!("resources"), &json!(0)));
        assert_eq!(page["generation"], page["observedGeneration"]);
        let period: jiff::Timestamp = page["period"].as_str().unwrap().parse().unwrap();
        let left = period.duration_since(world.universe.env.clock.wall());
        assert!((30..=62).contains(&left.as_secs()), "{left}");
        let tone = |kind: &str| {
            let conditions = page["conditions"].as_array().unwrap();
            conditions.iter().find(|condition| condition["type"] == kind).unwrap()["tone"].clone()
        };
        assert_eq!(["ResourcesApplied", "ResourcesHealthy"].map(tone), ["good", "bad"]);
        let map = row(&page, "a");
        assert_eq!(
            (&map["kind"], &map["namespace"], &map["health"]),
            (&json!("ConfigMap"), &json!(NAMESPACE), &json!("unchecked"))
        );
        assert_eq!(map["last"]["what"], "created");
        assert!(map["last"]["why"].as_array().is_some_and(|causes| !causes.is_empty()), "{map}");
        assert_eq!(map["document"], json!({ "secret": "one", "key": "objects.yaml", "index": 0 }));
        assert_eq!(row(&page, "other")["namespace"], Value::Null);
        let set = row(&page, "db");
        assert_eq!(
            (&set["health"], &set["healthText"]),
            (&json!("unhealthy"), &json!("observed generation outdated (0/1)"))
        );
        assert_eq!(page["secrets"][0]["name"], "one");
        assert_eq!(page["secrets"][0]["missing"], false);
        let documents = page["secrets"][0]["documents"].as_array().unwrap();
        let objects: Vec<&Value> = documents.iter().map(|document| &document["objects"][0]).collect();
        assert_eq!(objects, ["ConfigMap shoot/a", "Namespace other", "StatefulSet shoot/db"]);

        set_status(&world, "statefulsets.apps", "db", ready(2));
        seconds(5).await;
        assert_eq!(row(&self::page(&world, "one").await, "db")["health"], "healthy");
    });
}

#[test]
fn page_says_what_was_last_done_to_an_object_and_why() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), config_map("b", "v"), config_map("same", "v")]);
        world.applied("one").await;
        seconds(2).await;
        world.secret("one", &[config_map("a", "w"), config_map("same", "v")]);
        seconds(5).await;

        let page = page(&world, "one").await;
        let updated = row(&page, "a");
        assert_eq!((&updated["last"]["what"], &updated["last"]["paths"]), (&json!("updated"), &json!(["data.k"])));
        assert!(has_cause(updated, "secret"), "{updated}");
        assert_eq!(row(&page, "same")["last"]["what"], "created", "it was not written again");
        let deleted = row(&page, "b");
        assert_eq!((&deleted["last"]["what"], &deleted["gone"]), (&json!("deleted"), &json!(true)));

        world.sim.edit("configmaps", NAMESPACE, "same", |live| live["data"]["k"] = json!("x"));
        seconds(5).await;
        let page = self::page(&world, "one").await;
        let repaired = row(&page, "same");
        assert_eq!(repaired["last"]["what"], "updated");
        assert!(has_cause(repaired, "drift"), "{repaired}");

        world.restart_as(PROGRAM).await;
        seconds(10).await;
        let page = self::page(&world, "one").await;
        assert_eq!((&row(&page, "a")["last"], row(&page, "b")), (&Value::Null, &Value::Null), "nothing was written");
        assert_eq!(row(&page, "a")["document"]["secret"], "one", "the start decodes the manifests");
    });
}

#[test]
fn page_of_a_failing_bundle_shows_error_condition_and_event() {
    world(1, |world| async move {
        world.start().await;
        world.sim.set_faults(|info| {
            let is_creation = info.verb == "create" && info.resource == "configmaps";
            if is_creation { Fault::FailBefore(Seen::forbidden(info)) } else { Fault::None }
        });
        world.bundle("one", &[config_map("a", "v")]);
        seconds(20).await;

        let page = page(&world, "one").await;
        let event = &page["events"][0];
        assert_eq!(
            (&event["type"], &event["reason"], &event["count"]),
            (&json!("Warning"), &json!("ApplyFailed"), &json!(1))
        );
        // It joins the status, so that it is known before it is created.
        let last = &row(&page, "a")["last"];
        assert_eq!(last["what"], "failed");
        assert!(last["error"].as_str().unwrap().contains("forbidden"), "{last}");
        let summary = summary(&world, "one").unwrap();
        assert_eq!((&*summary.conditions[0].reason, summary.conditions[0].tone), ("ApplyFailed", Tone::Bad));

        world.sim.clear_faults();
        world.applied("one").await;
        let page = self::page(&world, "one").await;
        assert_eq!(row(&page, "a")["last"]["what"], "created");
        assert_eq!(page["events"].as_array().map(Vec::len), Some(2));
    });
}

#[test]
fn page_says_what_a_deletion_waits_for() {
    world(1, |world| async move {
        world.start().await;
        let held = with(config_map("held", "v"), "/metadata/finalizers", json!(["example.org/held"]));
        world.bundle("one", &[config_map("free", "v"), held]);
        world.applied("one").await;
        world.delete_bundle("one").await;
        seconds(8).await;

        assert_eq!(marks(&world, "one"), Some(vec!["deleting"]));
        let page = page(&world, "one").await;
        let pending = &row(&page, "held")["pendingDeletion"];
        assert_eq!(pending["why"], "waits for the finalizer example.org/held");
        assert!(pending["since"].is_string(), "{pending}");
        assert_eq!(row(&page, "held")["last"]["what"], "deleted");
        assert_eq!(row(&page, "free")["pendingDeletion"], Value::Null);

        let path = "/api/v1/namespaces/shoot/configmaps/held";
        world.ask("PATCH", path, Some(json!({ "metadata": { "finalizers": null } }))).await.unwrap();
        world.eventually("the bundle is gone", || world.mr("one").is_none()).await;
        seconds(1).await;
        assert_eq!(summary(&world, "one"), None);
    });
}

#[test]
fn page_names_other_bundles_that_claim_an_object() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("x", "v"), config_map("own", "v")]);
        world.applied("one").await;
        world.bundle("two", &[config_map("x", "w")]);
        seconds(20).await;

        let page = page(&world, "one").await;
        assert_eq!(row(&page, "x")["claimedBy"], json!(["shoot/two"]));
        assert_eq!(row(&page, "own")["claimedBy"], Value::Null);
        assert_eq!(row(&self::page(&world, "two").await, "x")["claimedBy"], json!(["shoot/one"]));
    });
}

#[test]
fn page_never_shows_data_keys_or_content_of_managed_secrets() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[secret("s", "hidden-key", "hidden-value")]);
        world.applied("one").await;
        world.secret("one", &[secret("s", "other-hidden-key", "other-hidden-value")]);
        seconds(10).await;

        let page = page(&world, "one").await;

        assert_eq!(row(&page, "s")["last"]["paths"], json!(["data[…]"]));
        assert!(!page.to_string().contains("hidden"), "{page}");
    });
}

#[test]
fn page_says_which_secret_is_missing() {
    world(1, |world| async move {
        world.start().await;
        world.secret("there", &[config_map("a", "v")]);
        world.sim.put(managed_resource("one", &["there", "lost", "there"], json!({}))).unwrap();
        seconds(10).await;

        let page = page(&world, "one").await;

        let secrets: Vec<_> =
            page["secrets"].as_array().unwrap().iter().map(|it| (&it["name"], &it["missing"])).collect();
        assert_eq!(secrets, [(&json!("there"), &json!(false)), (&json!("lost"), &json!(true))]);
    });
}

#[test]
fn ignored_bundle_is_listed_also_after_a_restart() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        assert_eq!(marks(&world, "one"), Some(Vec::new()));
        let ignore =
            |value: Value| json!({ "metadata": { "annotations": { "resources.gardener.cloud/ignore": value } } });
        world.patch_bundle("one", ignore(json!("true"))).await;
        seconds(5).await;
        assert_eq!(marks(&world, "one"), Some(vec!["ignored"]));

        world.restart_as(PROGRAM).await;
        seconds(30).await;
        let listed = summary(&world, "one").unwrap();
        assert_eq!((listed.marks.as_slice(), listed.objects), (["ignored"].as_slice(), 1));
        assert!(listed.conditions.iter().all(|condition| condition.tone == Tone::None), "{listed:?}");
        assert_eq!(row(&page(&world, "one").await, "a")["health"], "unknown");

        world.patch_bundle("one", ignore(Value::Null)).await;
        seconds(10).await;
        let listed = summary(&world, "one").unwrap();
        assert_eq!((listed.marks.len(), listed.conditions[0].tone), (0, Tone::Good));
    });
}

/// Another client may write anything into the status.
#[test]
fn page_of_a_hostile_status_is_bounded() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        world
            .patch_bundle(
                "one",
                json!({ "metadata": { "annotations": { "gardener.cloud/operation": "wait-for-state" } } }),
            )
            .await;
        seconds(2).await;
        let names = ["", "/", "../..", "<script>", "\u{0}", "ä\u{202e}", "%2f"];
        let reference = |number: usize| {
            let name = names.get(number).map_or_else(|| format!("n{number}"), |name| (*name).to_owned());
            json!({ "apiVersion": "/", "kind": "<b>", "namespace": "a/b/c", "name": name })
        };
        let references: Vec<_> = (0..2500).map(reference).chain([json!({ "name": "x".repeat(100_000) })]).collect();
        world.sim.edit(MRS, NAMESPACE, "one", |live| live["status"]["resources"] = references.into());
        seconds(5).await;

        let page = page(&world, "one").await;

        assert_eq!((page["objects"].as_array().map(Vec::len), &page["truncated"]), (Some(2000), &json!(501)));
        let listed = summary(&world, "one").unwrap();
        assert_eq!((listed.objects, listed.marks), (2501, vec!["wait-for-state"]));
    });
}

/// All objects are gone, and only the finalizer of somebody else keeps the ManagedResource.
#[test]
fn bundle_that_only_others_hold_is_shown_until_it_is_gone() {
    world(1, |world| async move {
        let line = || {
            let path = format!("managedresource/{NAMESPACE}/one");
            world.actors_of(PROGRAM).into_iter().find(|actor| actor.path == path).map(|actor| actor.line)
        };
        let expected = Some("all objects are gone; held by finalizers of others: a.b/c".to_owned());
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        let mut finalizers = world.mr("one").unwrap()["metadata"]["finalizers"].clone();
        finalizers.as_array_mut().unwrap().push(json!("a.b/c"));
        world.patch_bundle("one", json!({ "metadata": { "finalizers": finalizers } })).await;

        world.delete_bundle("one").await;
        seconds(20).await;
        assert_eq!(world.mr("one").unwrap()["metadata"]["finalizers"], json!(["a.b/c"]));
        assert_eq!((line(), marks(&world, "one")), (expected.clone(), Some(vec!["deleting"])));

        world.crash().await;
        world.start().await;
        seconds(20).await;
        assert_eq!((line(), marks(&world, "one")), (expected, Some(vec!["deleting"])), "after a restart");

        world.patch_bundle("one", json!({ "metadata": { "finalizers": null } })).await;
        seconds(20).await;
        assert_eq!((world.mr("one"), line()), (None, None));
    });
}

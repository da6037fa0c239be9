//! Scenarios of spec 10 about applying manifests: compression, namespaces, definitions and their objects.

use std::{io::Write, time::Duration};

use serde_json::{Value, json};
use sim::Fault;

use crate::{
    objects::{annotated, definition, widget, with},
    state::{State, state},
    world::{NAMESPACE, World, config_map, managed_resource, seconds, stream, world},
};

fn brotli(data: &[u8]) -> Vec<u8> {
    let mut compressed = Vec::new();
    brotli::CompressorWriter::new(&mut compressed, 4096, 5, 22).write_all(data).expect("a Vec takes everything");
    compressed
}

fn references(world: &World) -> Value {
    world.mr("one").expect("it exists")["status"]["resources"].clone()
}

/// spec 10 scenario 2.
#[test]
fn compressed_manifests_are_the_same_objects_with_another_checksum() {
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shoot}\ndata: {k: \"1\"}\n---\n\
                apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: shoot, labels: {l: x}}\n";
    let applied = |key: &'static str, data: Vec<u8>| -> (State, Value) {
        world(1, |world| async move {
            world.start().await;
            world.secret_data("one", &[(key, &data)]);
            world.sim.put(managed_resource("one", &["one"], json!({}))).unwrap();
            world.applied("one").await;
            let objects = state(&world).into_iter().filter(|(name, _)| name.contains(" ConfigMap shoot/")).collect();
            (objects, world.mr("one").unwrap()["status"]["secretsDataChecksum"].clone())
        })
    };

    let (plain, plain_checksum) = applied("data.yaml", yaml.into());
    let (compressed, compressed_checksum) = applied("data.yaml.br", brotli(yaml.as_bytes()));

    assert_eq!(plain.len(), 2, "{plain:#?}");
    assert_eq!(plain, compressed);
    assert!(plain_checksum.is_string() && compressed_checksum.is_string());
    assert_ne!(plain_checksum, compressed_checksum);
}

/// spec 10 scenario 4.
#[test]
fn good_documents_of_a_new_bundle_are_applied_and_the_next_reconcile_comes_with_the_period() {
    let text = format!("{}---\n{{ broken\n---\n{}", stream(&[config_map("a", "v")]), stream(&[config_map("c", "v")]));
    world(1, |world| async move {
        world.start().await;
        world.secret_data("one", &[("objects.yaml", text.as_bytes())]);
        world.sim.put(managed_resource("one", &["one"], json!({}))).unwrap();
        world
            .eventually("it is reported", || {
                world.condition("one", "ResourcesApplied").is_some_and(|(_, reason, _)| reason == "DecodingFailed")
            })
            .await;
        let (status, _, message) = world.condition("one", "ResourcesApplied").unwrap();
        assert_eq!(status, "False");
        assert!(message.contains("at index 1 in 'objects.yaml' in secret 'shoot/one'"), "{message}");
        assert_eq!(message.matches("Could not decode resource").count(), 1, "{message}");
        assert_eq!(world.refs("one"), ["a", "c"]);
        assert!(world.config_map("a").is_some() && world.config_map("c").is_some());
        assert_eq!(world.mr("one").unwrap()["status"]["observedGeneration"], 1);

        seconds(1).await;
        world.sim.clear_requests();
        seconds(55).await;
        assert_eq!(world.asked(), [""; 0], "not before the period");
    });
}

/// spec 10 scenario 6.
#[test]
fn namespaces_are_completed_for_namespaced_kinds_and_dropped_for_others() {
    let map = with(config_map("a", "v"), "/metadata", json!({ "name": "a" }));
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": "r", "namespace": "foo" }, "rules": []
    });
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[map, role]);
        world.applied("one").await;

        assert!(world.sim.object("configmaps", "default", "a").is_some());
        let role = world.sim.object("clusterroles.rbac.authorization.k8s.io", "", "r").unwrap();
        assert_eq!(role["metadata"]["namespace"], Value::Null);
        let places: Vec<_> = references(&world).as_array().unwrap().iter().map(|r| r["namespace"].clone()).collect();
        assert_eq!(places, [json!("default"), Value::Null]);
    });
}

/// spec 10 scenario 7.
#[test]
fn definition_is_applied_before_its_object_which_follows_by_itself() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[widget(1), definition()]);
        let mut reasons = Vec::new();
        for _ in 0..5_000 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let reason = world.condition("one", "ResourcesApplied").map(|(_, reason, _)| reason).unwrap_or_default();
            if reasons.last() != Some(&reason) {
                reasons.push(reason);
            }
        }

        assert_eq!(reasons, ["", "ApplyProgressing", "ApplyFailed", "ApplySucceeded"]);
        assert!(world.sim.object("widgets.example.org", NAMESPACE, "kept").is_some());
        let writes = world.writes();
        let place = |wanted: &str| writes.iter().position(|write| write == wanted);
        assert!(place("create customresourcedefinitions").unwrap() < place("create widgets").unwrap(), "{writes:#?}");
        assert!(!writes.iter().any(|write| write.starts_with("delete")), "{writes:#?}");
    });
}

/// spec 10 scenario 35: which ManagedResources are reconciled.
#[test]
fn changed_secret_reconciles_only_responsible_bundles_that_name_it_and_are_not_ignored() {
    world(1, |world| async move {
        // Created and never updated, so the ManagedResources share it without a conflict.
        let common = |value: &str| annotated(config_map("a", value), "ignore", "true");
        world.start().await;
        world.secret("shared", &[common("1")]);
        world.secret("other", &[]);
        let put = |mr: Value| world.sim.put(mr).unwrap();
        put(managed_resource("first", &["shared"], json!({})));
        put(managed_resource("second", &["other", "shared"], json!({})));
        put(managed_resource("without", &["other"], json!({})));
        put(managed_resource("foreign", &["shared"], json!({ "class": "x" })));
        let ignored = managed_resource("ignored", &["shared"], json!({}));
        put(annotated(ignored, "ignore", "true"));
        seconds(5).await;
        let checksums = || {
            let names = ["first", "second", "without", "foreign", "ignored"];
            names.map(|name| world.mr(name).unwrap()["status"]["secretsDataChecksum"].clone())
        };
        let updated = |name: &str| {
            let conditions = world.mr(name).unwrap()["status"]["conditions"].clone();
            let health = conditions.as_array().unwrap().iter().find(|it| it["type"] == "ResourcesHealthy").cloned();
            health.unwrap()["lastUpdateTime"].as_str().unwrap().to_owned()
        };
        let (before, judged) = (checksums(), ["first", "second"].map(updated));
        world.secret("shared", &[common("2")]);
        seconds(1).await;

        let after = checksums();
        let changed: Vec<bool> = before.iter().zip(&after).map(|(before, after)| before != after).collect();
        assert_eq!(changed, [true, true, false, false, false]);
        // Health was reset, and is checked again by now.
        let again = ["first", "second"].map(updated);
        assert!(judged[0] < again[0] && judged[1] < again[1], "{judged:?} {again:?}");
    });
}

/// spec 10 scenario 7: a slow server.
#[test]
fn object_is_applied_soon_after_its_slow_definition_is_served() {
    world(1, |world| async move {
        // A busy server answers creations late.
        world.sim.set_faults(|info| match (info.verb.as_str(), info.resource.as_str()) {
            ("create", "customresourcedefinitions") => Fault::Delay(Duration::from_secs(4)),
            _ => Fault::None,
        });
        world.start().await;
        world.bundle("one", &[widget(1), definition()]);
        seconds(6).await;

        assert!(world.is_applied("one"), "{:#?}", world.mr("one"));
    });
}

//! Bad input: the error names it, no object is deleted because of it, and the other objects are applied.

use std::{io::Write, time::Duration};

use serde_json::{Value, json};

use crate::{
    objects::{with, workload},
    world::{NAMESPACE, World, config_map, managed_resource, seconds, stream, world},
};

fn applied(world: &World) -> [String; 3] {
    world
        .condition("one", "ResourcesApplied")
        .map(|(status, reason, message)| [status, reason, message])
        .unwrap_or_default()
}

async fn replaced(world: &World, data: &[(&str, &[u8])]) {
    world.start().await;
    world.bundle("one", &[config_map("kept", "v"), config_map("other", "v")]);
    world.applied("one").await;
    seconds(2).await;
    world.secret_data("one", data);
    seconds(10).await;

    assert_eq!(world.value("kept").as_deref(), Some("v"), "an object of unknown state is not deleted");
    assert_eq!(world.value("other").as_deref(), Some("w"), "other objects are applied");
    let deletions: Vec<_> = world.writes().into_iter().filter(|write| write.starts_with("delete")).collect();
    assert_eq!(deletions, [""; 0]);
}

/// spec 10 §11.3, §11.7.
#[test]
fn documents_without_type_or_name_are_reported_and_block_no_other() {
    let without = |field: &str| {
        let mut object = config_map("kept", "v");
        match field.strip_prefix("metadata.") {
            Some(field) => object["metadata"].as_object_mut().unwrap().remove(field),
            None => object.as_object_mut().unwrap().remove(field),
        };
        object
    };
    let table = [
        ("apiVersion", "error during apply of object \"/ConfigMap/shoot/kept\": resource apiVersion may not be empty"),
        ("kind", "error during apply of object \"v1//shoot/kept\": resource kind may not be empty"),
        ("metadata.name", "error during apply of object \"v1/ConfigMap/shoot/\": resource name may not be empty"),
    ];

    for (field, text) in table {
        world(1, |world| async move {
            let data = stream(&[without(field), config_map("other", "w")]);
            replaced(&world, &[("objects.yaml", data.as_bytes())]).await;

            let [status, reason, message] = applied(&world);
            assert_eq!((status.as_str(), reason.as_str()), ("False", "ApplyFailed"), "{field}");
            assert!(message.starts_with(text), "{field}: {message}");
            assert!(message.contains("index 0 in 'objects.yaml' in secret 'shoot/one'"), "{field}: {message}");
            assert!(world.refs("one").contains(&"kept".to_owned()), "{field}: the object is still managed");
        });
    }
}

#[test]
fn duplicate_manifests_of_one_object_apply_the_last_without_conflicts() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "1"), config_map("b", "v"), config_map("a", "2")]);
        world.applied("one").await;
        seconds(5).await;
        assert_eq!((world.value("a").as_deref(), world.value("b").as_deref()), (Some("2"), Some("v")));
        world.sim.clear_requests();
        seconds(600).await;

        assert_eq!(world.value("a").as_deref(), Some("2"));
        assert!(world.writes().len() <= 2 * 10, "two a period at most: {:#?}", world.writes());
    });
}

#[test]
fn object_in_two_bundles_keeps_the_last_write_and_both_get_an_event() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "1"), config_map("b", "v")]);
        world.applied("one").await;
        world.bundle("two", &[config_map("a", "2"), config_map("c", "v")]);
        world.applied("two").await;
        seconds(5).await;

        assert_eq!(world.value("a").as_deref(), Some("2"));
        assert!(world.config_map("b").is_some() && world.config_map("c").is_some());
        let events = world.sim.objects("events");
        let event = events.iter().find(|event| event["reason"] == "ConflictingOwner");
        let event = event.unwrap_or_else(|| panic!("{events:#?}"));
        let message = event["message"].as_str().unwrap();
        assert!(
            ["v1/ConfigMap/shoot/a", "shoot/one", "shoot/two"].iter().all(|part| message.contains(part)),
            "{message}"
        );
    });
}

#[test]
fn rejected_object_is_reported_and_the_others_are_applied() {
    world(1, |world| async move {
        let data = stream(&[
            config_map("kept", "v"),
            config_map("Bad_Name", "v"),
            with(workload("Deployment", "web"), "/spec/selector/matchLabels", json!({ "app": "other" })),
            config_map("other", "w"),
        ]);
        replaced(&world, &[("objects.yaml", data.as_bytes())]).await;

        let [status, reason, message] = applied(&world);
        assert_eq!((status.as_str(), reason.as_str()), ("False", "ApplyFailed"));
        for display in ["v1/ConfigMap/shoot/Bad_Name", "apps/v1/Deployment/shoot/web"] {
            assert!(message.contains(&format!("error during apply of object \"{display}\": ")), "{message}");
        }
    });
}

#[test]
fn equivalences_may_be_cyclic_empty_or_of_kinds_that_do_not_exist() {
    let kind = |group: &str, kind: &str| json!({ "group": group, "kind": kind });
    let lists = json!([
        [kind("", "ConfigMap"), kind("x.y", "A")],
        [kind("x.y", "A"), kind("x.y", "B")],
        [kind("x.y", "B"), kind("", "ConfigMap")],
        [kind("x.y", "B"), kind("x.y", "B")],
        [kind("", "")],
        [],
    ]);
    world(1, |world| async move {
        world.start().await;
        world.bundle_with("one", &[config_map("a", "v"), config_map("b", "v")], json!({ "equivalences": lists }));
        world.applied("one").await;
        world.secret("one", &[config_map("a", "w")]);
        seconds(10).await;

        assert!(world.is_applied("one"), "{:#?}", world.mr("one"));
        assert_eq!((world.value("a").as_deref(), world.config_map("b")), (Some("w"), None));
    });
}

/// Returns 100 MiB of compressed newlines. Compressing all takes seconds, so one MiB is compressed and repeated.
fn bomb() -> Vec<u8> {
    let mut writer = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 22);
    let mut ends = Vec::new();
    for _ in 0..4 {
        writer.write_all(&[b'\n'; 1 << 20]).expect("a Vec takes everything");
        writer.flush().expect("a Vec takes everything");
        ends.push(writer.get_ref().len());
    }
    let stream = writer.into_inner();
    let middle = &stream[ends[1]..ends[2]];
    assert_eq!(middle, &stream[ends[2]..ends[3]], "the compressor repeats itself");
    let bomb = [&stream[..ends[1]], &middle.repeat(97), &stream[ends[2]..]].concat();
    assert!(bomb.len() < 1 << 20, "it fits into a Secret: {} bytes", bomb.len());
    bomb
}

/// spec 10 scenario 5: the 100 MiB are never decompressed.
#[test]
fn decompression_bomb_is_one_error_and_the_other_keys_are_applied() {
    let bomb = bomb();
    world(1, |world| async move {
        let data = stream(&[config_map("other", "w")]);
        replaced(&world, &[("bomb.br", &bomb), ("objects.yaml", data.as_bytes())]).await;

        let text = "Could not decode all new resources: [Could not decode resource at index 0 in 'bomb.br' in secret \
                    'shoot/one': decompressed data is larger than 67108864 bytes.]";
        assert_eq!(applied(&world), ["False", "DecodingFailed", text]);
    });
}

#[test]
fn invalid_utf_8_is_an_error_that_names_the_key() {
    world(1, |world| async move {
        let data = stream(&[config_map("other", "w")]);
        let invalid = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \xff\xfe}\n";
        replaced(&world, &[("invalid.yaml", invalid), ("objects.yaml", data.as_bytes())]).await;

        let [status, reason, message] = applied(&world);
        assert_eq!((status.as_str(), reason.as_str()), ("False", "DecodingFailed"));
        assert!(message.contains("at index 0 in 'invalid.yaml' in secret 'shoot/one': "), "{message}");
    });
}

/// spec 10 §11.4, §11.5.
#[test]
fn labels_of_the_wrong_type_are_ignored_in_objects_and_reported_in_pod_templates() {
    world(1, |world| async move {
        let wrong = json!({ "number": 1, "text": "x" });
        let data = stream(&[
            config_map("kept", "v"),
            with(config_map("other", "w"), "/metadata/labels", wrong.clone()),
            with(config_map("third", "v"), "/metadata/labels", json!(["x"])),
            with(workload("Deployment", "web"), "/spec/template/metadata/labels", wrong),
        ]);
        replaced(&world, &[("objects.yaml", data.as_bytes())]).await;

        for name in ["other", "third"] {
            let labels = world.config_map(name).unwrap()["metadata"]["labels"].clone();
            assert_eq!(labels, json!({ "resources.gardener.cloud/managed-by": "gardener" }), "{name}");
        }
        let [_, reason, message] = applied(&world);
        assert_eq!(reason, "ApplyFailed");
        let text = "error during apply of object \"apps/v1/Deployment/shoot/web\": error injecting labels into object";
        assert!(message.starts_with(text) && message.contains("\"number\""), "{message}");
        assert_eq!(world.sim.object("deployments.apps", NAMESPACE, "web"), None);
    });
}

/// spec 10 scenario 5: the hour after the error.
#[test]
fn corrupt_brotli_costs_at_most_one_reconcile_a_period() {
    world(1, |world| async move {
        world.start().await;
        world.secret_data("one", &[("x.br", &[0xff, 0x13, 0x37, 0x42, 0x00, 0x99])]);
        world.sim.put(managed_resource("one", &["one"], json!({}))).unwrap();
        seconds(5).await;
        let before = applied(&world);
        world.sim.clear_requests();
        tokio::time::sleep(Duration::from_secs(3600)).await;

        assert_eq!(applied(&world), before);
        let looks = world.asked().into_iter().filter(|request| !request.starts_with("watch")).count();
        assert!(looks <= 60, "{:#?}", world.asked());
        assert_eq!(world.writes(), [""; 0]);
        assert_eq!(world.mr("one").unwrap()["status"]["resources"], Value::Null);
    });
}

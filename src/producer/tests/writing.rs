use serde_json::json;
use sim::{Fault, Seen};

use super::*;
use crate::producer::{ManagedResourceBuilder, Parts, ProducerError, SecretBuilder, bundle};

const MANAGED_RESOURCES: &str = "managedresources.resources.gardener.cloud";
const COLLECTABLE: &str = "resources.gardener.cloud/garbage-collectable-reference";

fn parts(text: &str) -> Parts {
    Parts { namespace: "ns".to_owned(), name: "mr".to_owned(), data: data(text), ..Parts::default() }
}

/// spec 10 §19.5
#[tokio::test(start_paused = true)]
async fn secret_is_created_then_updated_and_unchanged_when_nothing_differs() {
    let (sim, client) = cluster();
    let secret = SecretBuilder::new("ns", "s").labels(texts(&[("a", "b")])).data(data("x"));

    secret.reconcile(&client).await.unwrap();
    secret.clone().data(data("y")).annotations(texts(&[("c", "d")])).reconcile(&client).await.unwrap();
    sim.clear_requests();
    secret.data(data("y")).annotations(texts(&[("c", "d")])).reconcile(&client).await.unwrap();

    let stored = sim.object("secrets", "ns", "s").unwrap();
    assert_eq!(stored["data"], json!({"data.yaml": "eQ=="}));
    assert_eq!(stored["metadata"]["annotations"], json!({"c": "d"}));
    assert_eq!(requests(&sim), ["get /api/v1/namespaces/ns/secrets/s"]);
}

/// spec 10 §19.5
#[tokio::test(start_paused = true)]
async fn secret_is_created_despite_disabled_creation_only_if_unique() {
    let (sim, client) = cluster();
    let secret = SecretBuilder::new("ns", "s").data(data("x")).create_if_not_exists(false);

    let refused = secret.reconcile(&client).await.unwrap_err();
    let created = secret.unique().labels(texts(&[("a", "b")])).reconcile(&client).await.unwrap();

    assert_eq!(refused.to_string(), "secrets \"s\" not found");
    assert_eq!(created["metadata"]["labels"], json!({"a": "b", COLLECTABLE: "true"}));
    assert_eq!(created["immutable"], true);
    assert_eq!(sim.objects("secrets").len(), 1);
}

/// spec 10 §19.6
#[tokio::test(start_paused = true)]
async fn old_secrets_are_marked_before_the_managed_resource_forgets_them() {
    let (sim, client) = cluster();
    SecretBuilder::new("ns", "old").reconcile(&client).await.unwrap();
    let old = ManagedResourceBuilder::new("ns", "mr").secret_ref("old").secret_ref("gone").labels(texts(&[("a", "1")]));
    old.reconcile(&client).await.unwrap();
    sim.clear_requests();

    let new = ManagedResourceBuilder::new("ns", "mr").secret_ref("new").class("seed").labels(texts(&[("b", "2")]));
    let stored = new.reconcile(&client).await.unwrap();

    let at = "/apis/resources.gardener.cloud/v1alpha1/namespaces/ns/managedresources/mr";
    let expected = [
        format!("get {at}"),
        "get /api/v1/namespaces/ns/secrets/old".to_owned(),
        "patch /api/v1/namespaces/ns/secrets/old".to_owned(),
        "get /api/v1/namespaces/ns/secrets/gone".to_owned(),
        format!("update {at}"),
    ];
    assert_eq!(requests(&sim), expected);
    assert_eq!(sim.object("secrets", "ns", "old").unwrap()["metadata"]["labels"], json!({COLLECTABLE: "true"}));
    assert_eq!(stored["spec"], json!({"class": "seed", "secretRefs": [{"name": "new"}]}));
    assert_eq!(stored["metadata"]["labels"], json!({"a": "1", "b": "2"}));
    assert_eq!(stored["metadata"]["annotations"].as_object().unwrap().len(), 1, "the stale references are gone");

    new.reconcile(&client).await.unwrap();
    assert!(requests(&sim).iter().all(|line| line.starts_with("get")), "nothing differs any more");
}

/// spec 10 §19.6
#[tokio::test(start_paused = true)]
async fn old_secret_that_cannot_be_marked_leaves_the_managed_resource_unchanged() {
    let (sim, client) = cluster();
    SecretBuilder::new("ns", "old").reconcile(&client).await.unwrap();
    ManagedResourceBuilder::new("ns", "mr").secret_ref("old").reconcile(&client).await.unwrap();
    sim.set_faults(|request| match request.verb.as_str() {
        "patch" => Fault::FailBefore(Seen::internal_error("no")),
        _ => Fault::None,
    });

    let error = ManagedResourceBuilder::new("ns", "mr").secret_ref("new").reconcile(&client).await.unwrap_err();

    assert!(error.to_string().starts_with("marking old secrets as garbage collectable: "), "{error}");
    assert_eq!(managed_resource(&sim, "mr").unwrap()["spec"]["secretRefs"], json!([{"name": "old"}]));
}

/// spec 10 §19.7
#[tokio::test(start_paused = true)]
async fn bundle_is_created_updated_read_and_deleted() {
    let (sim, client) = cluster();
    let with_prefix = |text| Parts { secret_name_with_prefix: true, class: "x".to_owned(), ..parts(text) };

    bundle::create(&client, &with_prefix("kind: A")).await.unwrap();
    bundle::update(&client, &with_prefix("kind: B\n---\nkind: C")).await.unwrap();

    let stored = managed_resource(&sim, "mr").unwrap();
    let name = with_prefix("kind: B\n---\nkind: C").secret().name();
    assert!(name.starts_with("managedresource-mr-"), "{name}");
    assert_eq!(stored["spec"], json!({"class": "x", "secretRefs": [{"name": name}]}));
    assert_eq!(sim.objects("secrets").len(), 2, "the old Secret is left to the garbage collector");
    assert_eq!(bundle::objects(&client, "ns", "mr").await.unwrap(), [json!({"kind": "B"}), json!({"kind": "C"})]);

    bundle::set_keep_objects(&client, "ns", "mr", true).await.unwrap();
    bundle::set_keep_objects(&client, "ns", "missing", true).await.unwrap();
    assert_eq!(managed_resource(&sim, "mr").unwrap()["spec"]["keepObjects"], true);

    sim.clear_requests();
    bundle::delete(&client, "ns", "mr", true).await.unwrap();
    let lines = requests(&sim);
    let deletions: Vec<_> = lines.iter().filter(|line| line.starts_with("delete")).collect();
    assert!(deletions[0].ends_with("/secrets/managedresource-mr"), "{deletions:?}");
    assert!(deletions[1].ends_with(&format!("/secrets/{name}")), "{deletions:?}");
    assert!(deletions[2].ends_with("/managedresources/mr"), "{deletions:?}");
    bundle::delete(&client, "ns", "mr", true).await.unwrap();
}

/// spec 10 §19.7
#[tokio::test(start_paused = true)]
async fn bundle_update_needs_the_managed_resource_but_writes_its_secret() {
    let (sim, client) = cluster();

    let error = bundle::update(&client, &parts("kind: A")).await.unwrap_err();

    assert_eq!(
        error.to_string(),
        "could not create or update managed resource: managedresources.resources.gardener.cloud \"mr\" not found"
    );
    assert_eq!(sim.objects("secrets").len(), 1);
}

/// spec 10 §19.7
#[tokio::test(start_paused = true)]
async fn bundle_for_seed_and_shoot_has_labels_and_class() {
    let (sim, client) = cluster();
    let labels = texts(&[("a", "b")]);

    bundle::create(&client, &Parts::for_seed("ns", "seed", true, &labels, data(""))).await.unwrap();
    bundle::create(&client, &Parts::for_seed("shoot-x", "seed", false, &labels, data(""))).await.unwrap_err();
    bundle::create(&client, &Parts::for_shoot("ns", "shoot", "gardener", false, &labels, data(""))).await.unwrap();

    let seed = managed_resource(&sim, "seed").unwrap();
    assert_eq!(seed["metadata"]["labels"], json!({"a": "b", "gardener.cloud/role": "seed-system-component"}));
    assert_eq!((&seed["spec"]["class"], &seed["spec"]["keepObjects"]), (&json!("seed"), &json!(true)));
    assert_eq!(Parts::for_seed("shoot-x", "seed", false, &labels, data("")).labels, labels);
    let shoot = managed_resource(&sim, "shoot").unwrap();
    assert_eq!(shoot["metadata"]["labels"], json!({"a": "b", "origin": "gardener"}));
    assert_eq!(shoot["spec"]["class"], Value::Null);
    assert_eq!(shoot["spec"]["injectLabels"], json!({"shoot.gardener.cloud/no-cleanup": "true"}));
    bundle::delete(&client, "ns", "seed", true).await.unwrap();
    bundle::delete(&client, "ns", "shoot", true).await.unwrap();
    assert!(sim.objects(MANAGED_RESOURCES).is_empty() && sim.objects("secrets").is_empty());
}

/// spec 10 §19.7
#[tokio::test(start_paused = true)]
async fn bundle_of_raw_objects_is_json_under_the_name_of_the_managed_resource() {
    let (sim, client) = cluster();

    bundle::create_from_objects(&client, &parts(""), &[json!({"kind": "A"}), json!({"kind": "B"})]).await.unwrap();

    let secret = sim.objects("secrets").remove(0);
    let keys: Vec<_> = secret["data"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["mr"]);
    assert_eq!(bundle::objects(&client, "ns", "mr").await.unwrap(), [json!({"kind": "A"}), json!({"kind": "B"})]);

    bundle::create_from_objects(&client, &parts("ignored"), &[]).await.unwrap();
    assert!(bundle::objects(&client, "ns", "mr").await.unwrap().is_empty());
}

/// spec 10 §19.7
#[tokio::test(start_paused = true)]
async fn bundle_existence_is_checked_by_class_with_exceptions() {
    let (_sim, client) = cluster();
    ManagedResourceBuilder::new("ns", "plain").reconcile(&client).await.unwrap();
    ManagedResourceBuilder::new("ns", "seed").class("seed").reconcile(&client).await.unwrap();
    type Row = (Option<&'static str>, &'static [&'static str], &'static [&'static str], bool);
    let table: [Row; 7] = [
        (None, &[], &[], true),
        (Some("seed"), &[], &[], true),
        (Some("other"), &[], &[], false),
        (None, &["plain"], &[], false),
        (Some("seed"), &["plain"], &[], true),
        (None, &[], &["ns"], false),
        (Some("seed"), &[], &["other"], true),
    ];

    for (class, names, namespaces, expected) in table {
        let exist = bundle::exist(&client, class, names, namespaces).await.unwrap();

        assert_eq!(exist, expected, "{class:?} {names:?} {namespaces:?}");
    }
}

/// spec 10 §19.7
#[tokio::test(start_paused = true)]
async fn bundle_errors_name_objects_without_content() {
    let (sim, client) = cluster();
    bundle::create(&client, &parts("- hidden")).await.unwrap();
    let secret = parts("- hidden").secret().name();

    let extract = bundle::objects(&client, "ns", "mr").await.unwrap_err();
    let missing = bundle::objects(&client, "ns", "missing").await.unwrap_err();
    sim.set_faults(|request| match request.verb.as_str() {
        "delete" => Fault::FailBefore(Seen::internal_error("no")),
        _ => Fault::None,
    });
    let delete = bundle::delete(&client, "ns", "mr", false).await.unwrap_err();
    sim.clear_faults();
    sim.remove("secrets", "ns", &secret);
    let gone = bundle::objects(&client, "ns", "mr").await.unwrap_err();

    assert!(
        extract
            .to_string()
            .starts_with(&format!("could not extract objects from secret \"ns/{secret}\": could not decode object: "))
    );
    assert!(!extract.to_string().contains("hidden"));
    assert!(missing.to_string().starts_with("could not get ManagedResource \"ns/missing\": "), "{missing}");
    assert!(gone.to_string().starts_with(&format!("could not get secret \"ns/{secret}\": ")), "{gone}");
    assert!(delete.to_string().starts_with("could not delete secret 'ns/mr' of managed resource: "), "{delete}");
    assert!(matches!(delete, ProducerError::DeleteSecret { .. }));
    assert!(managed_resource(&sim, "mr").is_some());
}

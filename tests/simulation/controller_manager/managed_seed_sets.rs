//! ManagedSeedSets: how replicas come, and which Shoots are replicas.

use cluster::object;
use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use tracing::Level;

use super::{
    garden::{Garden, STATUS_LABEL, garden, object},
    shoots::{operation, put_seed, seconds},
};
use crate::log_capture::logged;

pub(super) const SETS: &str = "managedseedsets";

/// The namespace of the ManagedSeedSet `m` and of its replicas.
pub(super) const NAMESPACE: &str = "garden";

/// What is written of a replica that is waited for: name, reason, retries.
pub(super) type Pending = (String, String, Option<i64>);

pub(super) fn labels(set: &str) -> Value {
    json!({ "set": set, STATUS_LABEL: "healthy" })
}

/// Returns the ManagedSeedSet `m`.
pub(super) fn set(replicas: impl Into<Value>) -> Value {
    let seed = json!({ "metadata": { "labels": { "set": "m" } }, "spec": { "ingress": { "domain": "replica-name.in.ex.com" } } });
    let spec = json!({
        "replicas": replicas.into(),
        "selector": { "matchLabels": { "set": "m" } },
        "shootTemplate": {
            "metadata": { "labels": labels("m"), "annotations": { "a": "shoot" } },
            "spec": { "dns": { "domain": "replica-name.ex.com" }, "region": "r" },
        },
        "template": {
            "metadata": { "labels": { "set": "m" }, "annotations": { "a": "managedseed" } },
            "spec": { "gardenlet": { "deployment": { "replicaCount": 1 }, "config": {
                "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration", "seedConfig": seed,
            } } },
        },
    });
    object(&kinds::MANAGED_SEED_SET, NAMESPACE, "m", json!({ "spec": spec }))
}

pub(super) fn name(ordinal: u32) -> String {
    format!("m-{ordinal}")
}

fn conditions(conditions: &[(&str, &str)]) -> Value {
    let condition =
        |(kind, status): &(&str, &str)| json!({ "type": kind, "status": status, "reason": "R", "message": "m" });
    conditions.iter().map(condition).collect()
}

/// The conditions of a Seed that is ready.
pub(super) const READY: [(&str, &str); 2] = [("GardenletReady", "True"), ("SeedSystemComponentsHealthy", "True")];

/// Writes a status that was observed of the present generation, as gardenlet does.
fn report(object: &mut Value, field: &str, value: Value) {
    object["status"]["observedGeneration"] = object["metadata"]["generation"].clone();
    object["status"][field] = value;
    if object["metadata"]["deletionTimestamp"].is_null() {
        hold(object);
    }
}

/// Adds the finalizer of gardenlet.
pub(super) fn hold(object: &mut Value) {
    if !object::finalizers(object).any(|finalizer| finalizer == "gardener") {
        let finalizers = object::finalizers(object).chain(["gardener"]).map(str::to_owned).collect::<Vec<_>>();
        object["metadata"]["finalizers"] = json!(finalizers);
    }
}

/// gardenlet has worked on the Shoot of a replica.
pub(super) fn worked(garden: &Garden, ordinal: u32, kind: &str, state: &str) {
    garden.edit(&kinds::SHOOT, NAMESPACE, &name(ordinal), |shoot| {
        report(shoot, "lastOperation", operation(kind, state));
    });
}

/// The ManagedSeed of a replica has registered its Seed.
pub(super) fn registered(garden: &Garden, ordinal: u32) {
    garden.edit(&kinds::MANAGED_SEED, NAMESPACE, &name(ordinal), |managed_seed| {
        report(managed_seed, "conditions", conditions(&[("SeedRegistered", "True")]));
    });
}

/// The Seed of a replica has these conditions.
pub(super) fn seed_reports(garden: &Garden, ordinal: u32, of_seed: &[(&str, &str)]) {
    if garden.find(&kinds::SEED, "", &name(ordinal)).is_none() {
        put_seed(garden, object(&kinds::SEED, "", &name(ordinal), json!({ "metadata": { "labels": { "set": "m" } } })));
    }
    garden.edit(&kinds::SEED, "", &name(ordinal), |seed| {
        seed["status"]["observedGeneration"] = seed["metadata"]["generation"].clone();
        seed["status"]["conditions"] = conditions(of_seed);
    });
}

/// Puts a Shoot that has the labels of the ManagedSeedSet `m`.
pub(super) fn put_shoot(garden: &Garden, shoot: &str, change: impl FnOnce(&mut Value)) {
    let mut shoot =
        object(&kinds::SHOOT, NAMESPACE, shoot, json!({ "metadata": { "labels": labels("m") }, "spec": {} }));
    hold(&mut shoot);
    change(&mut shoot);
    garden.put(shoot);
}

/// Puts a Shoot that is up to date.
pub(super) fn put_reconciled_shoot(garden: &Garden, ordinal: u32) {
    put_shoot(garden, &name(ordinal), |_| {});
    worked(garden, ordinal, "Create", "Succeeded");
}

/// Puts a replica that lacks nothing.
pub(super) fn put_replica(garden: &Garden, ordinal: u32) {
    put_reconciled_shoot(garden, ordinal);
    let metadata = json!({ "labels": { "set": "m" }, "finalizers": ["gardener"] });
    let managed_seed = json!({ "metadata": metadata, "spec": { "shoot": { "name": name(ordinal) } } });
    garden.put(object(&kinds::MANAGED_SEED, NAMESPACE, &name(ordinal), managed_seed));
    registered(garden, ordinal);
    seed_reports(garden, ordinal, &READY);
}

/// Puts a ManagedSeedSet with so many replicas that lack nothing, and lets the controllers know them.
pub(super) async fn established(garden: &Garden, replicas: u32) {
    (0..replicas).for_each(|ordinal| put_replica(garden, ordinal));
    garden.put(set(replicas));
    garden.settled().await;
    assert_eq!((number(garden, "readyReplicas"), pending(garden)), (i64::from(replicas), None));
}

pub(super) async fn scale(garden: &Garden, replicas: u32) {
    garden.patch(&kinds::MANAGED_SEED_SET, NAMESPACE, "m", json!({ "spec": { "replicas": replicas } })).await;
}

pub(super) fn found(garden: &Garden) -> Value {
    garden.find(&kinds::MANAGED_SEED_SET, NAMESPACE, "m").expect("the ManagedSeedSet exists")
}

/// Returns a number of the status, 0 if it is absent.
pub(super) fn number(garden: &Garden, field: &str) -> i64 {
    found(garden)["status"][field].as_i64().unwrap_or_default()
}

pub(super) fn pending(garden: &Garden) -> Option<Pending> {
    let pending = found(garden)["status"]["pendingReplica"].clone();
    let text = |field: &str| pending[field].as_str().unwrap_or_default().to_owned();
    pending.is_object().then(|| (text("name"), text("reason"), pending["retries"].as_i64()))
}

/// The ManagedSeedSet soon waits for this replica.
pub(super) async fn waits(garden: &Garden, ordinal: u32, reason: &str, retries: Option<i64>) {
    let expected = Some((name(ordinal), reason.to_owned(), retries));
    garden.soon(&format!("it waits for {expected:?}"), || pending(garden) == expected).await;
}

/// The ManagedSeedSet soon waits for nothing, and has so many replicas that are ready.
pub(super) async fn is_ready(garden: &Garden, replicas: i64) {
    let is_so =
        || (number(garden, "replicas"), number(garden, "readyReplicas"), pending(garden)) == (replicas, replicas, None);
    garden.soon("it is ready", is_so).await;
}

/// Returns the names of all Shoots of the namespace.
pub(super) fn shoots(garden: &Garden) -> Vec<String> {
    let all = garden.sim.objects("shoots.core.gardener.cloud");
    all.iter()
        .filter(|shoot| object::namespace(shoot) == NAMESPACE)
        .map(|shoot| object::name(shoot).to_owned())
        .collect()
}

/// Returns true if the object of a replica is gone or is being deleted.
pub(super) fn is_going(garden: &Garden, kind: &cluster::Resource, ordinal: u32) -> bool {
    let object = garden.find(kind, NAMESPACE, &name(ordinal));
    object.is_none_or(|object| object::deletion_timestamp(&object).is_some())
}

/// Returns the notes of the Events with this reason.
pub(super) fn notes(garden: &Garden, reason: &str) -> Vec<String> {
    let events = garden.events(&kinds::MANAGED_SEED_SET, "m", reason);
    events.into_iter().map(|(_, _, note)| note).collect()
}

/// Returns what the program has asked for about ManagedSeedSets and their replicas.
pub(super) fn asked(garden: &Garden) -> Vec<String> {
    ["shoots", "managedseeds", SETS].iter().flat_map(|plural| garden.asked_for(plural)).collect()
}

/// spec 86 scenarios 1 to 4
#[test]
fn managed_seed_set_gets_its_first_replica_step_by_step() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            garden.start().await;
            garden.put(set(1));
            waits(&garden, 0, "ShootReconciling", None).await;
            let live = found(&garden);
            assert_eq!(live["metadata"]["finalizers"], json!(["gardener"]));
            let numbers = ["replicas", "readyReplicas", "nextReplicaNumber"].map(|field| number(&garden, field));
            assert_eq!(numbers, [1, 0, 1]);
            assert_eq!(live["status"]["observedGeneration"], live["metadata"]["generation"]);
            let shoot = garden.find(&kinds::SHOOT, NAMESPACE, "m-0").expect("the Shoot exists");
            let owner = json!([{
                "apiVersion": "seedmanagement.gardener.cloud/v1alpha1", "kind": "ManagedSeedSet", "name": "m",
                "uid": live["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
            }]);
            let (metadata, spec) = (&shoot["metadata"], json!({ "dns": { "domain": "m-0.ex.com" }, "region": "r" }));
            assert_eq!((&metadata["ownerReferences"], &shoot["spec"]), (&owner, &spec));
            assert_eq!((&metadata["labels"], &metadata["annotations"]), (&labels("m"), &json!({ "a": "shoot" })));
            let told = garden.events(&kinds::MANAGED_SEED_SET, "m", "CreatingShoot");
            assert_eq!(told, [("Normal".into(), "Reconcile".into(), "Creating Shoot garden/m-0".into())]);

            worked(&garden, 0, "Create", "Processing");
            seconds(60).await;
            assert_eq!(garden.find(&kinds::MANAGED_SEED, NAMESPACE, "m-0"), None);
            worked(&garden, 0, "Create", "Succeeded");
            waits(&garden, 0, "ManagedSeedPreparing", None).await;
            let managed_seed = garden.find(&kinds::MANAGED_SEED, NAMESPACE, "m-0").expect("it exists");
            let mut gardenlet = set(1)["spec"]["template"]["spec"]["gardenlet"].take();
            gardenlet["config"]["seedConfig"]["spec"]["ingress"]["domain"] = json!("m-0.in.ex.com");
            assert_eq!(managed_seed["spec"], json!({ "shoot": { "name": "m-0" }, "gardenlet": gardenlet }));
            assert_eq!(managed_seed["metadata"]["ownerReferences"], owner);
            assert_eq!(found(&garden)["spec"], set(1)["spec"], "the set itself is unchanged");

            registered(&garden, 0);
            waits(&garden, 0, "SeedNotReady", None).await;
            garden.edit(&kinds::SHOOT, NAMESPACE, "m-0", |shoot| {
                shoot["status"]["conditions"] = conditions(&[("ControlPlaneHealthy", "False")]);
            });
            seconds(1).await;
            seed_reports(&garden, 0, &READY);
            waits(&garden, 0, "ShootNotHealthy", None).await;
            garden.edit(&kinds::SHOOT, NAMESPACE, "m-0", |shoot| {
                shoot["status"]["conditions"] = conditions(&[("ControlPlaneHealthy", "True")]);
            });
            is_ready(&garden, 1).await;
            for (reason, note) in [
                ("CreatingManagedSeed", "Creating ManagedSeed garden/m-0"),
                ("WaitingForSeedReady", "Waiting for Seed m-0 to be ready"),
                ("WaitingForShootHealthy", "Waiting for Shoot garden/m-0 to be healthy"),
            ] {
                assert_eq!(notes(&garden, reason), [note]);
            }
        });
    });
    for text in ["Creating Shoot", "Creating ManagedSeed", "Waiting for Seed to be ready"] {
        assert!(log.contains(text), "{text}: {log}");
    }
}

/// spec 86 scenario 5
#[test]
fn seed_that_turns_bad_is_noticed_and_one_that_recovers_too() {
    garden(|garden| async move {
        established(&garden, 1).await;
        for bad in [&[("GardenletReady", "False"), READY[1]][..], &READY[..1]] {
            seed_reports(&garden, 0, bad);
            waits(&garden, 0, "SeedNotReady", None).await;
            assert_eq!(number(&garden, "readyReplicas"), 0);
            seed_reports(&garden, 0, &READY);
            is_ready(&garden, 1).await;
        }
        garden.edit(&kinds::SEED, "", "m-0", |seed| seed["status"]["observedGeneration"] = json!(0));
        waits(&garden, 0, "SeedNotReady", None).await;
    });
}

/// spec 86 scenario 6
#[test]
fn replicas_are_created_one_after_the_other() {
    garden(|garden| async move {
        garden.start().await;
        garden.put(set(3));
        for ordinal in 0..3 {
            waits(&garden, ordinal, "ShootReconciling", None).await;
            assert_eq!(shoots(&garden), (0..=ordinal).map(name).collect::<Vec<_>>());
            worked(&garden, ordinal, "Create", "Succeeded");
            waits(&garden, ordinal, "ManagedSeedPreparing", None).await;
            registered(&garden, ordinal);
            waits(&garden, ordinal, "SeedNotReady", None).await;
            seconds(3600).await;
            assert_eq!(shoots(&garden), (0..=ordinal).map(name).collect::<Vec<_>>());
            seed_reports(&garden, ordinal, &READY);
        }
        is_ready(&garden, 3).await;
    });
}

/// spec 86 scenario 7
#[test]
fn managed_seed_set_without_a_number_has_one_replica() {
    garden(|garden| async move {
        garden.start().await;
        garden.put(set(Value::Null));
        waits(&garden, 0, "ShootReconciling", None).await;
        seconds(60).await;
        assert_eq!(shoots(&garden), ["m-0"]);
    });
    garden(|garden| async move {
        garden.start().await;
        garden.put(set(0));
        garden.settle().await;
        assert_eq!(shoots(&garden), Vec::<String>::new());
        let live = found(&garden);
        assert_eq!(live["status"], json!({ "observedGeneration": live["metadata"]["generation"], "replicas": 0 }));
    });
}

/// spec 86 scenarios 8 and 40, "better" 1: no request at rest, whatever changes in metadata.
#[test]
fn ready_managed_seed_set_costs_no_request() {
    garden(|garden| async move {
        established(&garden, 2).await;
        garden.edit(&kinds::MANAGED_SEED_SET, NAMESPACE, "m", |set| set["metadata"]["labels"] = json!({ "a": "b" }));
        garden.edit(&kinds::SHOOT, NAMESPACE, "m-0", |shoot| shoot["metadata"]["annotations"] = json!({ "a": "b" }));
        garden.edit(&kinds::SHOOT, NAMESPACE, "m-1", |shoot| shoot["status"]["lastOperation"]["progress"] = json!(7));
        seconds(2 * 3600).await;

        assert_eq!(asked(&garden), Vec::<String>::new());
    });
}

/// spec 86 scenario 39
#[test]
fn changed_template_concerns_new_replicas_only() {
    garden(|garden| async move {
        established(&garden, 1).await;
        let spec = json!({ "shootTemplate": { "spec": { "region": "other" } } });
        garden.patch(&kinds::MANAGED_SEED_SET, NAMESPACE, "m", json!({ "spec": spec })).await;
        garden.settle().await;
        assert_eq!(asked(&garden), ["patch managedseedsets m"], "the observed generation");
        scale(&garden, 2).await;
        waits(&garden, 1, "ShootReconciling", None).await;

        let region = |ordinal| {
            garden.find(&kinds::SHOOT, NAMESPACE, &name(ordinal)).unwrap_or_default()["spec"]["region"].clone()
        };
        assert_eq!((region(0), region(1)), (Value::Null, json!("other")));
    });
}

/// spec 86 scenario 12, DEV-10
#[test]
fn name_of_a_foreign_shoot_is_passed_over() {
    garden(|garden| async move {
        garden.put(object(&kinds::SHOOT, NAMESPACE, "m-0", json!({})));
        garden.start().await;
        garden.put(set(1));
        waits(&garden, 1, "ShootReconciling", None).await;

        let note = "Shoot garden/m-0 already exists and is not controlled by the ManagedSeedSet";
        assert_eq!(notes(&garden, "ReconcileError"), [note]);
        assert_eq!((number(&garden, "replicas"), number(&garden, "nextReplicaNumber")), (1, 2));
        let foreign = garden.find(&kinds::SHOOT, NAMESPACE, "m-0").expect("it exists");
        assert!(foreign["metadata"].get("ownerReferences").is_none());
    });
}

/// spec 86 scenarios 32 and 33
#[test]
fn shoots_of_other_namespaces_and_sets_are_no_replicas() {
    garden(|garden| async move {
        garden.put(object(&kinds::SHOOT, "a", "m-7", json!({ "metadata": { "labels": labels("m") } })));
        let mut other = set(1);
        other["metadata"]["name"] = json!("x");
        garden.put(other);
        let other = garden.find(&kinds::MANAGED_SEED_SET, NAMESPACE, "x").unwrap_or_default();
        let owner = json!({
            "apiVersion": other["apiVersion"], "kind": other["kind"], "name": "x", "uid": other["metadata"]["uid"],
            "controller": true,
        });
        put_shoot(&garden, "x-3", |shoot| shoot["metadata"]["ownerReferences"] = json!([owner]));
        garden.put(set(0));
        garden.settled().await;
        assert_eq!(number(&garden, "replicas"), 0);
        let shoot = garden.find(&kinds::SHOOT, NAMESPACE, "x-3").expect("it stays");
        assert_eq!((object::deletion_timestamp(&shoot), shoots(&garden)), (None, vec!["x-3".to_owned()]));
        scale(&garden, 1).await;

        waits(&garden, 0, "ShootReconciling", None).await;
    });
}

/// spec 86 scenario 34, DEV-13
#[test]
fn foreign_name_of_a_replica_is_not_written_in_the_status() {
    garden(|garden| async move {
        put_shoot(&garden, "x", |_| {});
        garden.put(set(1));
        garden.settled().await;
        seconds(2 * 3600).await;

        assert_eq!(shoots(&garden), ["x"]);
        assert_eq!((number(&garden, "replicas"), pending(&garden)), (1, None));
        assert_eq!(notes(&garden, "WaitingForShootReconciled"), ["Waiting for Shoot garden/x to be reconciled"]);
        assert_eq!(asked(&garden), Vec::<String>::new());
    });
}

/// spec 86 scenario 35, DEV-17
#[test]
fn templates_that_the_selector_does_not_match_make_no_shoot() {
    garden(|garden| async move {
        garden.start().await;
        let mut set = set(1);
        set["spec"]["selector"]["matchLabels"] = json!({ "set": "other" });
        garden.put(set);
        garden.soon("the error is told", || !notes(&garden, "ReconcileError").is_empty()).await;
        seconds(600).await;

        assert_eq!(shoots(&garden), Vec::<String>::new());
        let told = garden.events(&kinds::MANAGED_SEED_SET, "m", "ReconcileError");
        let expected = ("Warning".into(), "Reconcile".into(), "selector does not match template labels".into());
        assert_eq!(told, [expected]);
    });
}

/// spec 86 scenario 36, DEV-16
#[test]
fn empty_selector_creates_and_deletes_nothing() {
    garden(|garden| async move {
        put_shoot(&garden, "x", |_| {});
        let mut set = set(0);
        set["spec"]["selector"] = json!({ "matchLabels": null });
        garden.put(set);
        garden.settled().await;
        seconds(600).await;

        assert_eq!(notes(&garden, "ReconcileError"), ["empty selector is invalid for ManagedSeedSet"]);
        assert_eq!(garden.asked_for("shoots"), Vec::<String>::new());
        // In deletion only the Shoots that it controls are its replicas: none.
        garden.delete(&kinds::MANAGED_SEED_SET, NAMESPACE, "m").await;
        garden.gone(&kinds::MANAGED_SEED_SET, NAMESPACE, "m").await;
        assert!(garden.find(&kinds::SHOOT, NAMESPACE, "x").is_some_and(|it| object::deletion_timestamp(&it).is_none()));
    });
}

/// spec 86 scenario 37
#[test]
fn unknown_status_label_counts_as_not_healthy() {
    garden(|garden| async move {
        established(&garden, 1).await;
        garden
            .edit(&kinds::SHOOT, NAMESPACE, "m-0", |shoot| shoot["metadata"]["labels"][STATUS_LABEL] = json!("weird"));
        // `shoot-statuslabel` corrects it soon.
        garden.soon("it is told", || !notes(&garden, "WaitingForShootHealthy").is_empty()).await;
        is_ready(&garden, 1).await;
    });
}

/// spec 86 scenario 43: nothing wakes, and nothing is listed.
#[test]
fn heartbeats_of_other_shoots_wake_no_managed_seed_set() {
    garden(|garden| async move {
        for number in 0..300 {
            garden.put(object(&kinds::SHOOT, "a", &format!("s{number}"), json!({ "spec": { "seedName": "m-0" } })));
            garden.put(object(&kinds::SHOOT, NAMESPACE, &format!("s{number}"), json!({})));
        }
        established(&garden, 2).await;
        let before = garden.reconciles("managedseedset");
        for number in 0..300 {
            for namespace in ["a", NAMESPACE] {
                garden.edit(&kinds::SHOOT, namespace, &format!("s{number}"), |shoot| {
                    shoot["status"] = json!({ "lastOperation": operation("Reconcile", "Processing") });
                });
            }
        }
        garden.settle().await;

        assert_eq!(garden.reconciles("managedseedset"), before);
        assert_eq!(asked(&garden), Vec::<String>::new());
    });
}

//! What operators see of the garden: rows of the dashboard, and metrics.

use cluster::{Resource, object::deletion_timestamp};
use gardener_resource_manager::api::{config::controller_manager, kinds};
use jiff::Timestamp;
use kit::ActorState;
use serde_json::{Value, json};
use sim::{Fault, Seen};

use super::{
    garden::{Garden, garden, object},
    guards::{finalizer_of, in_use, namespace_of, shoot, uses},
    references::{PROTECTION, put_object, referrer, to},
};

const LEASES: &str = "gardener-system-seed-lease";

fn detail<'a>(row: &'a ActorState, label: &str) -> Option<&'a str> {
    row.details.iter().find(|(known, _)| known == label).map(|(_, text)| text.as_str())
}

/// When the deletion of an object began, in seconds since 1970.
fn deleted(garden: &Garden, kind: &Resource, namespace: &str, name: &str) -> Option<f64> {
    let object = garden.find(kind, namespace, name)?;
    let time: Timestamp = deletion_timestamp(&object)?.parse().ok()?;
    Some(time.as_duration().as_secs_f64())
}

fn held(garden: &Garden, controller: &str, kind: &str) -> (Option<f64>, Option<f64>) {
    let labels = format!("{{controller=\"{controller}\",kind=\"{kind}\"}}");
    let oldest = garden.metric(&format!("held_deletion_oldest_timestamp_seconds{labels}"));
    (garden.metric(&format!("held_deletions{labels}")), oldest)
}

/// spec 81 §3.1 G-3: what keeps a guarded object shows as long as it is kept.
#[test]
fn operators_see_finalizer_and_referrers_of_each_guarded_object() {
    for case in uses() {
        garden(|garden| async move {
            let (kind, namespace) = (&case.guarded, namespace_of(&case.guarded));
            let controller = kind.kind.to_lowercase();
            let name = if namespace.is_empty() { "o".to_owned() } else { format!("{namespace}/o") };
            let path = format!("{controller}/{name}");
            in_use(&garden, &case).await;

            let row = garden.row(&path).expect("the object has a row");
            let (referring, referrer) = (&*case.referrer.kind, if case.referrer.namespaced { "a/r" } else { "r" });
            assert_eq!(row.line, format!("in use by 1 {referring}"));
            assert_eq!(detail(&row, "Finalizer"), Some(finalizer_of(kind)));
            assert_eq!(detail(&row, &format!("{referring}s")), Some(referrer));
            let since = deleted(&garden, kind, namespace, "o");
            assert!(since.is_some() && detail(&row, "In deletion since").is_some());
            assert_eq!(held(&garden, &controller, &kind.kind), (Some(1.0), since));

            garden.delete(&case.referrer, "a", "r").await;
            garden.settle().await;
            assert_eq!(garden.row(&path), None);
            assert_eq!(held(&garden, &controller, &kind.kind), (Some(0.0), None));
        });
    }
}

/// spec 81 §3.2 G-11
#[test]
fn operators_see_who_refers_to_a_secret_in_deletion() {
    garden(|garden| async move {
        put_object(&garden, &kinds::SECRET, "a", "s");
        garden.put(referrer(&kinds::SHOOT, "a", "one", &[to(&kinds::SECRET, "s")]));
        garden.put(referrer(&kinds::SHOOT, "a", "two", &[to(&kinds::SECRET, "s")]));
        garden.settled().await;
        let path = "reference-protection/Secret a/s";
        assert_eq!(garden.row(path), None);

        garden.delete(&kinds::SECRET, "a", "s").await;
        garden.settle().await;

        let row = garden.row(path).expect("the Secret has a row");
        assert_eq!(row.line, "in use by 2 Shoots");
        assert_eq!((detail(&row, "Finalizer"), detail(&row, "Shoots")), (Some(PROTECTION), Some("a/one, a/two")));
        let since = deleted(&garden, &kinds::SECRET, "a", "s");
        assert_eq!(held(&garden, "reference-protection", "Secret"), (Some(1.0), since));
        assert_eq!(garden.asked(), Vec::<String>::new(), "a row costs no request");

        garden.delete(&kinds::SHOOT, "a", "one").await;
        garden.delete(&kinds::SHOOT, "a", "two").await;
        garden.gone(&kinds::SECRET, "a", "s").await;
        garden.settle().await;
        assert_eq!(garden.row(path), None);
        assert_eq!(held(&garden, "reference-protection", "Secret"), (Some(0.0), None));
    });
}

/// spec 81 §3.2 G-16
#[test]
fn operators_see_how_many_referrers_lack_their_objects() {
    const MISSING: &str = "referrers_with_missing_objects{controller=\"shoot-reference\"}";

    garden(|garden| async move {
        garden.settled().await;
        assert_eq!(garden.metric(MISSING), Some(0.0));

        garden.put(referrer(&kinds::SHOOT, "a", "r", &[to(&kinds::SECRET, "s")]));
        garden.settle().await;
        assert_eq!(garden.metric(MISSING), Some(1.0));

        put_object(&garden, &kinds::SECRET, "a", "s");
        garden.settle().await;
        assert_eq!(garden.metric(MISSING), Some(0.0));
    });
}

/// spec 81 G.2
#[test]
fn operators_see_the_binding_that_keeps_credentials_in_deletion() {
    const FINALIZER: &str = "gardener.cloud/secretbinding";
    const MISSING: &str = "referrers_with_missing_objects{controller=\"secretbinding\"}";

    garden(|garden| async move {
        garden.put(object(&kinds::SECRET_BINDING, "a", "b", json!({ "secretRef": { "name": "s" } })));
        garden.settled().await;
        assert_eq!(garden.metric(MISSING), Some(1.0));
        put_object(&garden, &kinds::SECRET, "a", "s");
        garden.settle().await;
        assert_eq!((garden.metric(MISSING), garden.row("secretbinding/a/b")), (Some(0.0), None));

        garden.delete(&kinds::SECRET, "a", "s").await;
        garden.settle().await;

        let row = garden.row("secretbinding/a/b").expect("the binding has a row");
        assert_eq!(row.line, "its credentials are being deleted, and stay while it refers to them");
        assert_eq!((detail(&row, "Credentials"), detail(&row, "Finalizer")), (Some("Secret a/s"), Some(FINALIZER)));
        assert_eq!(detail(&row, "SecretBindings"), Some("a/b"));
        let since = deleted(&garden, &kinds::SECRET, "a", "s");
        assert_eq!(held(&garden, "secretbinding", "Secret"), (Some(1.0), since));

        garden.delete(&kinds::SECRET_BINDING, "a", "b").await;
        garden.gone(&kinds::SECRET, "a", "s").await;
        garden.settle().await;
        assert_eq!(garden.row("secretbinding/a/b"), None);
        assert_eq!(held(&garden, "secretbinding", "Secret"), (Some(0.0), None));
    });
}

/// spec 81 K.3
#[test]
fn operators_see_gardenlets_by_their_state() {
    garden(|garden| async move {
        let seed = |status: Value| json!({ "spec": {}, "status": status });
        let ready = json!([{ "type": "GardenletReady", "status": "True", "reason": "R", "message": "m" }]);
        let expired = json!({ "conditions": ready, "clientCertificateExpirationTimestamp": garden.time(-60) });
        for (name, status) in [("new", json!({})), ("well", json!({ "conditions": ready })), ("old", expired)] {
            garden.put(object(&kinds::SEED, "", name, seed(status)));
        }
        let lease = |age: i64| json!({ "spec": { "renewTime": garden.time(-age) } });
        garden.put(object(&kinds::LEASE, LEASES, "well", lease(0)));
        garden.put(object(&kinds::LEASE, LEASES, "old", lease(3600)));
        garden.settled().await;

        let count = |state: &str| garden.metric(&format!("gardenlets{{kind=\"Seed\",state=\"{state}\"}}"));
        let counts = || ["alive", "silent", "expired", "unreported"].map(count);
        assert_eq!(counts(), [Some(1.0), Some(0.0), Some(1.0), Some(1.0)]);
        let row = |name: &str| garden.row(&format!("gardenlet-lifecycle/Seed {name}")).expect("each Seed has a row");
        assert_eq!(row("old").line, "silent, and its client certificate has expired");
        assert!(detail(&row("old"), "Lease renewed").is_some());
        assert_eq!((row("well").line.as_str(), row("new").line.as_str()), ("alive", "has not reported yet"));

        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        assert_eq!(counts(), [Some(0.0), Some(1.0), Some(1.0), Some(1.0)]);
        for name in ["new", "well", "old"] {
            garden.delete(&kinds::SEED, "", name).await;
        }
        garden.settle().await;
        assert_eq!(counts(), [Some(0.0); 4]);
    });
}

/// spec 81 K.3: a gardenlet counts as silent also if its Seed cannot be written.
#[test]
fn operators_see_a_silent_gardenlet_although_its_seed_cannot_be_written() {
    garden(|garden| async move {
        let ready = json!([{ "type": "GardenletReady", "status": "True", "reason": "R", "message": "m" }]);
        let status = json!({ "conditions": ready });
        garden.put(object(&kinds::SEED, "", "x", json!({ "spec": {}, "status": status })));
        let lease = |age: i64| {
            let spec = json!({ "renewTime": garden.time(-age) });
            garden.put(object(&kinds::LEASE, LEASES, "x", json!({ "spec": spec })));
        };
        lease(0);
        garden.settled().await;
        let count = |state: &str| garden.metric(&format!("gardenlets{{kind=\"Seed\",state=\"{state}\"}}"));
        assert_eq!((count("alive"), count("silent")), (Some(1.0), Some(0.0)));

        garden.sim.set_faults(|request| match request.resource == "seeds" && request.subresource == "status" {
            true => Fault::FailBefore(Seen::status(403, "Forbidden", "not you")),
            false => Fault::None,
        });
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;

        let seed = garden.find(&kinds::SEED, "", "x").unwrap_or_default();
        assert_eq!(seed["status"], status, "nothing was written");
        assert_eq!((count("alive"), count("silent")), (Some(0.0), Some(1.0)));
        let row = garden.row("gardenlet-lifecycle/Seed x").expect("the Seed has a row");
        assert_eq!(row.line, "silent");

        garden.sim.clear_faults();
        lease(0);
        tokio::time::sleep(std::time::Duration::from_secs(30)).await;
        assert_eq!((count("alive"), count("silent")), (Some(1.0), Some(0.0)));
    });
}

/// spec 83 A, B
#[test]
fn operators_see_conditions_and_copies_of_seeds() {
    garden(|garden| async move {
        garden.put(object(&kinds::SEED, "", "x", json!({})));
        let status = json!({ "lastError": { "description": "no access" } });
        garden.put(object(&kinds::BACKUP_BUCKET, "", "b", json!({ "spec": { "seedName": "x" }, "status": status })));
        let shared = json!({ "metadata": { "labels": { "gardener.cloud/role": "foo" } } });
        garden.put(object(&kinds::SECRET, "garden", "s", shared));
        garden.settled().await;

        let condition = |status: &str| {
            garden.metric(&format!("seed_conditions{{condition=\"BackupBucketsReady\",status=\"{status}\"}}"))
        };
        assert_eq!(["True", "False"].map(condition), [Some(0.0), Some(1.0)]);
        let row = garden.row("seed-backupbuckets-check/x").expect("the Seed has a row");
        assert_eq!((detail(&row, "BackupBuckets"), detail(&row, "Reason")), (Some("1"), Some("BackupBucketsError")));
        let copies = |state: &str| garden.metric(&format!("seed_secrets{{state=\"{state}\"}}"));
        let states = ["copied", "undone", "failing", "ending"];
        assert_eq!(states.map(copies), [Some(1.0), Some(0.0), Some(0.0), Some(0.0)]);
        let row = garden.row("seed-secrets/x").expect("the Seed has a row");
        assert_eq!((detail(&row, "Shared Secrets"), detail(&row, "Copies")), (Some("1"), Some("1")));

        garden.put(object(&kinds::NAMESPACE, "", "seed-y", json!({})));
        garden.put(object(&kinds::SEED, "", "y", json!({})));
        garden.settle().await;
        assert_eq!(copies("failing"), Some(1.0));
        garden.delete(&kinds::SEED, "", "y").await;
        garden.settle().await;
        assert_eq!(copies("failing"), Some(0.0));
    });
}

/// spec 81 A, J: each deletion counts, from zero on.
#[test]
fn operators_see_how_many_bastions_and_events_were_deleted() {
    garden(|garden| async move {
        garden.config.borrow_mut().controllers.event = Some(controller_manager::Event::default());
        garden.settled().await;
        let gone = "deleted_bastions_total{reason=\"shoot_gone\"}";
        assert_eq!((garden.metric(gone), garden.metric("deleted_events_total")), (Some(0.0), Some(0.0)));

        garden.put(object(&kinds::BASTION, "a", "b", json!({ "spec": { "shootRef": { "name": "none" } } })));
        garden.put(shoot("a", "s", json!({})));
        garden.put(object(&kinds::BASTION, "a", "young", json!({ "spec": { "shootRef": { "name": "s" } } })));
        let event = json!({ "eventTime": garden.time(-7200), "regarding": { "apiVersion": "v1", "kind": "Secret" } });
        garden.put(object(&kinds::EVENT, "a", "old", event));
        let event = json!({ "eventTime": garden.time(0), "regarding": { "apiVersion": "v1", "kind": "Secret" } });
        garden.put(object(&kinds::EVENT, "a", "new", event));
        garden.settle().await;

        assert_eq!((garden.metric(gone), garden.metric("deleted_events_total")), (Some(1.0), Some(1.0)));
        let row = garden.row("bastion/a/young").expect("the Bastion has a row");
        assert!(row.line.starts_with("of Shoot s, is deleted at "), "{}", row.line);
        let row = garden.row("event/timer").expect("the timer has a row");
        assert!(row.line.starts_with("1 Events wait for their end, the next until "), "{}", row.line);
    });
}

//! Collections that are about to be deleted are read live (spec 60 §2.3).

use super::*;
use crate::webhooks::view::Collection;

fn collection(kind: &str, plural: &str, namespace: &str) -> Collection {
    Collection {
        group: "extensions.gardener.cloud".into(),
        version: "v1alpha1".into(),
        kind: kind.into(),
        plural: plural.into(),
        namespace: namespace.into(),
        label_selector: None,
    }
}

fn put_extension(sim: &Sim, kind: &str, namespace: &str, name: &str, confirmed: bool) {
    let annotations = if confirmed { json!({ "confirmation.gardener.cloud/deletion": "true" }) } else { json!({}) };
    let fields = json!({ "metadata": { "annotations": annotations }, "spec": { "type": "t" } });
    put(sim, "extensions.gardener.cloud/v1alpha1", kind, namespace, name, fields);
}

fn define(sim: &Sim) {
    for (kind, plural, scope) in
        [("Infrastructure", "infrastructures", "Namespaced"), ("BackupEntry", "backupentries", "Cluster")]
    {
        let spec = json!({ "spec": {
            "group": "extensions.gardener.cloud", "scope": scope,
            "names": { "kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List") },
            "versions": [{ "name": "v1alpha1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }],
        }});
        put(
            sim,
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "",
            &format!("{plural}.extensions.gardener.cloud"),
            spec,
        );
    }
}

impl World {
    async fn unconfirmed(&self, collection: &Collection) -> Result<Option<NamespacedName>, Failure> {
        self.ask(|view| view.unconfirmed(collection)).await
    }
}

/// spec 60 scenarios 8, 9, 10; spec 60 "Better than upstream"
#[test]
fn collection_deletion_calls_share_one_list() {
    world(&[], &[], define, async |world| {
        let infrastructures = collection("Infrastructure", "infrastructures", "ns");
        assert_eq!(world.unconfirmed(&infrastructures).await, Ok(None));
        sleep(Duration::from_secs(2)).await;
        for name in ["a", "b", "c"] {
            put_extension(&world.sim, "Infrastructure", "ns", name, true);
        }
        put_extension(&world.sim, "Infrastructure", "istio", "other", false);
        world.sim.clear_requests();

        for _ in 0..10 {
            assert_eq!(world.unconfirmed(&infrastructures).await, Ok(None));
        }
        assert_eq!(world.requests(), ["list infrastructures"]);

        // A second later the answer has expired; a missing confirmation is never remembered.
        sleep(Duration::from_secs(1)).await;
        put_extension(&world.sim, "Infrastructure", "ns", "b", false);
        let found = world.unconfirmed(&infrastructures).await;
        assert_eq!(found, Ok(Some(NamespacedName::new("ns", "b"))));
        put_extension(&world.sim, "Infrastructure", "ns", "b", true);
        assert_eq!(world.unconfirmed(&infrastructures).await, Ok(None));
        world
    });
}

/// spec 60 scenario 11
#[test]
fn collection_of_a_cluster_scoped_kind_is_all_of_its_objects() {
    world(&[], &[], define, async |world| {
        (0..600).for_each(|at| put_extension(&world.sim, "BackupEntry", "", &format!("e-{at:03}"), at != 599));

        let found = world.unconfirmed(&collection("BackupEntry", "backupentries", "")).await;

        assert_eq!(found, Ok(Some(NamespacedName::new("", "e-599"))), "on the last of several pages");
        world
    });
}

/// spec 60 scenarios 13, 14
#[test]
fn collection_list_refused_by_the_api_server_is_passed_on() {
    world(&[], &[], define, async |world| {
        let gone = world.unconfirmed(&collection("Worker", "workers", "ns")).await;
        let Err(Failure::Status(status)) = gone else { panic!("{gone:?}") };
        assert_eq!(status.code, 404);
        world.sim.set_faults(|info| match &*info.resource {
            "infrastructures" => Fault::FailBefore(Seen::Disconnect),
            _ => Fault::None,
        });
        let failed = world.unconfirmed(&collection("Infrastructure", "infrastructures", "ns")).await;
        assert!(!matches!(failed, Ok(_) | Err(Failure::ReadLive(_))), "{failed:?}");
        world
    });
}

/// spec 60 scenario 22
#[test]
fn collection_list_timeout_is_an_error_within_the_deadline() {
    world(&[], &[], define, async |world| {
        world.sim.set_faults(|info| match &*info.resource {
            "infrastructures" => Fault::Hang,
            _ => Fault::None,
        });
        let begin = Instant::now();

        let failed = world.unconfirmed(&collection("Infrastructure", "infrastructures", "ns")).await;

        let message = "listing \"infrastructures\" took too long; try again".to_owned();
        assert_eq!(failed, Err(Failure::Errored { code: 500, message }));
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
        world
    });
}

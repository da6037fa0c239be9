//! Credentials and Quotas of SecretBindings and CredentialsBindings.

use std::{collections::BTreeMap, time::Duration};

use cluster::Resource;
use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::EventFault;
use tracing::Level;

use super::{
    garden::{Garden, garden, object},
    guards::shoot,
};
use crate::log_capture::logged;

pub(super) const LEGACY: &str = "gardener.cloud/gardener";

/// Both kinds of bindings, with the finalizer and the label of their credentials, and the field of Shoots.
pub(super) const KINDS: [(&Resource, &str, &str, &str); 2] = [
    (
        &kinds::SECRET_BINDING,
        "gardener.cloud/secretbinding",
        "reference.gardener.cloud/secretbinding",
        "secretBindingName",
    ),
    (
        &kinds::CREDENTIALS_BINDING,
        "gardener.cloud/credentialsbinding",
        "reference.gardener.cloud/credentialsbinding",
        "credentialsBindingName",
    ),
];

/// A binding in a namespace to a Secret `a/s` and a Quota `a/q`.
pub(super) fn binding(kind: &Resource, namespace: &str, name: &str, provider: &str) -> Value {
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "namespace": "a", "name": "s" });
    let field = if *kind == kinds::SECRET_BINDING { "secretRef" } else { "credentialsRef" };
    let fields =
        json!({ field: secret, "provider": { "type": provider }, "quotas": [{ "namespace": "a", "name": "q" }] });
    object(kind, namespace, name, fields)
}

fn to(kind: &Resource, name: &str, provider: &str) -> Value {
    let reference = json!({ "apiVersion": kind.api_version(), "kind": &*kind.kind, "namespace": "a", "name": name });
    let fields = json!({ "credentialsRef": reference, "provider": { "type": provider } });
    object(&kinds::CREDENTIALS_BINDING, "a", &format!("to-{name}"), fields)
}

pub(super) fn put(garden: &Garden, kind: &Resource, name: &str, labels: Value) {
    garden.put(object(kind, "a", name, json!({ "metadata": { "labels": labels } })));
}

/// A Secret `a/s` and a Quota `a/q`, each with a label of its own.
pub(super) fn put_both(garden: &Garden) {
    put(garden, &kinds::SECRET, "s", json!({ "own": "x" }));
    put(garden, &kinds::QUOTA, "q", json!({ "own": "x" }));
}

pub(super) fn labels(garden: &Garden, kind: &Resource, name: &str) -> BTreeMap<String, String> {
    let object = garden.find(kind, "a", name).unwrap_or_default();
    let labels = object["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    labels.into_iter().map(|(label, value)| (label, value.as_str().unwrap_or_default().to_owned())).collect()
}

/// The labels with the value `true`, beside `own`.
pub(super) fn with(marks: &[&str]) -> BTreeMap<String, String> {
    let marks = marks.iter().map(|label| ((*label).to_owned(), "true".to_owned()));
    marks.chain([("own".to_owned(), "x".to_owned())]).collect()
}

pub(super) fn finalizers(garden: &Garden, kind: &Resource, name: &str) -> Vec<String> {
    garden.finalizers(kind, "a", name)
}

pub(super) async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// The credentials and the Quota have no marks any more.
pub(super) fn assert_released(garden: &Garden) {
    assert_eq!(finalizers(garden, &kinds::SECRET, "s"), [""; 0]);
    assert_eq!((labels(garden, &kinds::SECRET, "s"), labels(garden, &kinds::QUOTA, "q")), (with(&[]), with(&[])));
}

/// spec 81 scenarios 57 and 59
#[test]
fn binding_protects_and_labels_what_it_refers_to_until_it_is_deleted() {
    for (kind, finalizer, label, _) in KINDS {
        garden(|garden| async move {
            put_both(&garden);
            garden.put(binding(kind, "b", "o", "aws"));
            garden.settled().await;
            let aws = "provider.shoot.gardener.cloud/aws";
            assert_eq!(finalizers(&garden, &kinds::SECRET, "s"), [finalizer]);
            assert_eq!(labels(&garden, &kinds::SECRET, "s"), with(&[aws, label]));
            assert_eq!(labels(&garden, &kinds::QUOTA, "q"), with(&[label]));
            seconds(3600).await;
            assert_eq!(garden.asked(), Vec::<String>::new());

            garden.delete(kind, "b", "o").await;
            garden.gone(kind, "b", "o").await;

            assert_released(&garden);
        });
    }
}

/// spec 81 scenario 57
#[test]
fn secret_binding_of_two_types_gives_two_labels_also_if_they_are_set_later() {
    garden(|garden| async move {
        put_both(&garden);
        garden.put(binding(&kinds::SECRET_BINDING, "a", "o", ""));
        garden.settled().await;
        assert_eq!(labels(&garden, &kinds::SECRET, "s"), with(&[KINDS[0].2]));

        garden.patch(&kinds::SECRET_BINDING, "a", "o", json!({ "provider": { "type": "aws, gcp" } })).await;
        garden.settle().await;

        let providers = ["provider.shoot.gardener.cloud/aws", "provider.shoot.gardener.cloud/gcp", KINDS[0].2];
        assert_eq!(labels(&garden, &kinds::SECRET, "s"), with(&providers));
    });
}

/// spec 81 scenario 58
#[test]
fn credentials_binding_protects_three_kinds() {
    let credentials = [&kinds::SECRET, &kinds::INTERNAL_SECRET, &kinds::WORKLOAD_IDENTITY];
    for labels_identities in [true, false] {
        garden(|garden| async move {
            garden.config.borrow_mut().controllers.credentials_binding.label_workload_identities = labels_identities;
            for kind in credentials {
                let name = kind.kind.to_lowercase();
                put(&garden, kind, &name, json!({ "own": "x", "provider.shoot.gardener.cloud/aws": "true" }));
                garden.put(to(kind, &name, "aws"));
            }
            garden.settled().await;

            for kind in credentials {
                let name = kind.kind.to_lowercase();
                let is_labelled = labels_identities || *kind != kinds::WORKLOAD_IDENTITY;
                let provider = is_labelled.then_some("provider.shoot.gardener.cloud/aws");
                let marks: Vec<_> = provider.into_iter().chain([KINDS[1].2]).collect();
                assert_eq!(labels(&garden, kind, &name), with(&marks), "{kind}");
                assert_eq!(finalizers(&garden, kind, &name), [KINDS[1].1], "{kind}");
            }
        });
    }
}

/// spec 81 scenario 60
#[test]
fn credentials_and_quota_of_two_bindings_stay_until_both_are_gone() {
    for (kind, finalizer, label, _) in KINDS {
        garden(|garden| async move {
            put_both(&garden);
            garden.put(binding(kind, "a", "one", "aws"));
            garden.put(binding(kind, "b", "two", "aws"));
            garden.settled().await;

            garden.delete(kind, "a", "one").await;
            garden.gone(kind, "a", "one").await;
            garden.settle().await;
            assert_eq!(finalizers(&garden, &kinds::SECRET, "s"), [finalizer]);
            assert_eq!(labels(&garden, &kinds::SECRET, "s"), with(&["provider.shoot.gardener.cloud/aws", label]));
            assert_eq!(labels(&garden, &kinds::QUOTA, "q"), with(&[label]));

            garden.delete(kind, "b", "two").await;
            garden.gone(kind, "b", "two").await;
            assert_released(&garden);
        });
    }
}

/// spec 81 scenario 61
#[test]
fn secret_keeps_what_the_other_kind_of_binding_needs() {
    garden(|garden| async move {
        put_both(&garden);
        for (kind, ..) in KINDS {
            garden.put(binding(kind, "a", "o", "aws"));
        }
        garden.settled().await;
        assert_eq!(finalizers(&garden, &kinds::SECRET, "s").len(), 2);

        garden.delete(&kinds::SECRET_BINDING, "a", "o").await;
        garden.gone(&kinds::SECRET_BINDING, "a", "o").await;
        garden.settle().await;

        assert_eq!(finalizers(&garden, &kinds::SECRET, "s"), [KINDS[1].1]);
        assert_eq!(labels(&garden, &kinds::SECRET, "s"), with(&["provider.shoot.gardener.cloud/aws", KINDS[1].2]));
        assert_eq!(labels(&garden, &kinds::QUOTA, "q"), with(&[KINDS[1].2]));
    });
}

/// spec 81 scenarios 62 and 63
#[test]
fn secret_of_two_deleted_bindings_is_free_when_no_shoot_uses_them() {
    for is_used in [false, true] {
        for (kind, finalizer, _, field) in KINDS {
            garden(|garden| async move {
                put_both(&garden);
                for name in ["one", "two"] {
                    garden.put(binding(kind, "a", name, "aws"));
                }
                if is_used {
                    garden.put(shoot("a", "r", json!({ field: "two" })));
                }
                garden.settled().await;

                for name in ["two", "one"] {
                    garden.delete(kind, "a", name).await;
                }
                garden.gone(kind, "a", "one").await;
                garden.settle().await;
                if is_used {
                    assert_eq!(finalizers(&garden, &kinds::SECRET, "s"), [finalizer]);
                    garden.delete(&kinds::SHOOT, "a", "r").await;
                }
                garden.gone(kind, "a", "two").await;
                garden.settle().await;

                assert_eq!(finalizers(&garden, &kinds::SECRET, "s"), [""; 0]);
                assert_eq!(
                    (labels(&garden, &kinds::SECRET, "s"), labels(&garden, &kinds::QUOTA, "q")),
                    (with(&[]), with(&[]))
                );
            });
        }
    }
}

/// spec 81 scenario 63; spec 80 §16 S-13: the watch of bindings is late.
#[test]
fn secret_keeps_its_finalizer_for_a_binding_that_the_watch_does_not_report() {
    for (kind, finalizer, ..) in KINDS {
        garden(|garden| async move {
            put_both(&garden);
            garden.put(binding(kind, "a", "one", "aws"));
            garden.settled().await;
            garden.sim.set_event_faults(|event| match event.event == "ADDED" && event.name == "two" {
                true => EventFault::Drop,
                false => EventFault::Deliver,
            });
            garden.put(binding(kind, "b", "two", "aws"));

            garden.delete(kind, "a", "one").await;
            garden.gone(kind, "a", "one").await;

            assert_eq!(finalizers(&garden, &kinds::SECRET, "s"), [finalizer]);
        });
    }
}

/// spec 81 scenario 64
#[test]
fn secret_of_earlier_releases_gets_the_new_finalizer_in_one_step() {
    for (kind, finalizer, _, field) in KINDS {
        garden(|garden| async move {
            let finalizers_of = || finalizers(&garden, &kinds::SECRET, "s");
            put_both(&garden);
            garden.edit(&kinds::SECRET, "a", "s", |secret| secret["metadata"]["finalizers"] = json!([LEGACY]));
            // Also while Shoots keep a deleted binding.
            garden.put(shoot("a", "r", json!({ field: "o" })));
            let mut deleted = binding(kind, "a", "o", "aws");
            deleted["metadata"]["finalizers"] = json!(["gardener"]);
            garden.put(deleted);
            garden.delete(kind, "a", "o").await;
            garden.sim.clear_requests();
            garden.start().await;
            garden.settle().await;

            assert_eq!(finalizers_of(), [finalizer]);
            let writes = garden.asked().into_iter().filter(|asked| asked == "patch secrets s").count();
            assert_eq!(writes, 1);
        });
    }
}

/// spec 81 scenario 65
#[test]
fn secret_that_comes_later_is_protected_and_one_that_never_comes_blocks_nothing() {
    for (kind, finalizer, ..) in KINDS {
        garden(|garden| async move {
            put(&garden, &kinds::QUOTA, "q", json!({ "own": "x" }));
            garden.put(binding(kind, "a", "o", "aws"));
            garden.settled().await;
            assert_eq!(garden.finalizers(kind, "a", "o"), ["gardener"]);
            seconds(3600).await;
            assert_eq!(garden.asked(), Vec::<String>::new());

            put(&garden, &kinds::SECRET, "s", json!({ "own": "x" }));
            garden.soon("it is protected", || finalizers(&garden, &kinds::SECRET, "s") == [finalizer]).await;
            garden.sim.remove("secrets", "a", "s");
            garden.delete(kind, "a", "o").await;

            garden.gone(kind, "a", "o").await;
        });
    }
}

/// spec 81 scenario 66
#[test]
fn binding_without_its_quota_protects_its_secret_and_can_be_deleted() {
    for (kind, finalizer, label, _) in KINDS {
        let ((), log) = logged(Level::INFO, || {
            garden(|garden| async move {
                put(&garden, &kinds::SECRET, "s", json!({ "own": "x" }));
                garden.put(binding(kind, "a", "o", "aws"));
                garden.settled().await;
                assert_eq!(finalizers(&garden, &kinds::SECRET, "s"), [finalizer]);
                seconds(3600).await;
                assert_eq!(garden.asked(), Vec::<String>::new());

                put(&garden, &kinds::QUOTA, "q", json!({ "own": "x" }));
                garden.soon("it is labelled", || labels(&garden, &kinds::QUOTA, "q") == with(&[label])).await;
                garden.sim.remove("quotas.core.gardener.cloud", "a", "q");
                garden.delete(kind, "a", "o").await;
                garden.gone(kind, "a", "o").await;
            });
        });
        assert!(log.contains("quotas.core.gardener.cloud \"q\" not found"), "{log}");
    }
}

/// spec 81 scenario 67
#[test]
fn binding_without_a_namespace_refers_to_its_own() {
    garden(|garden| async move {
        put_both(&garden);
        let fields = json!({ "secretRef": { "name": "s" }, "quotas": [{ "name": "q" }] });
        garden.put(object(&kinds::SECRET_BINDING, "a", "o", fields));
        garden.settled().await;

        assert_eq!(finalizers(&garden, &kinds::SECRET, "s"), [KINDS[0].1]);
        assert_eq!(labels(&garden, &kinds::QUOTA, "q"), with(&[KINDS[0].2]));
    });
}

/// spec 81 scenario 68
#[test]
fn provider_label_with_another_value_is_not_overwritten() {
    garden(|garden| async move {
        put_both(&garden);
        let provider = "provider.shoot.gardener.cloud/aws";
        garden.edit(&kinds::SECRET, "a", "s", |secret| secret["metadata"]["labels"][provider] = json!("false"));
        garden.put(binding(&kinds::SECRET_BINDING, "a", "o", "aws"));
        garden.settled().await;

        assert_eq!(labels(&garden, &kinds::SECRET, "s")[provider], "false");
    });
}

/// spec 81 scenario 69
#[test]
fn binding_to_another_kind_is_an_error_and_changes_nothing() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            put(&garden, &kinds::CONFIG_MAP, "c", json!({ "own": "x" }));
            garden.put(to(&kinds::CONFIG_MAP, "c", "aws"));
            garden.settled().await;
            let name = "to-c";
            assert_eq!(garden.finalizers(&kinds::CREDENTIALS_BINDING, "a", name), ["gardener"]);
            assert_eq!(labels(&garden, &kinds::CONFIG_MAP, "c"), with(&[]));

            garden.delete(&kinds::CREDENTIALS_BINDING, "a", name).await;
            garden.gone(&kinds::CREDENTIALS_BINDING, "a", name).await;
        });
    });
    assert!(log.contains("unsupported credentials reference: a/c, v1, Kind=ConfigMap"), "{log}");
}

/// spec 81 "better" 12
#[test]
fn marks_that_somebody_removes_come_back() {
    for (kind, finalizer, label, _) in KINDS {
        garden(|garden| async move {
            put_both(&garden);
            garden.put(binding(kind, "a", "o", "aws"));
            garden.settled().await;

            let none = json!({ "metadata": { "finalizers": null, "labels": { label: null } } });
            garden.patch(&kinds::SECRET, "a", "s", none.clone()).await;
            garden.patch(&kinds::QUOTA, "a", "q", none).await;
            garden.settle().await;

            assert_eq!(finalizers(&garden, &kinds::SECRET, "s"), [finalizer]);
            assert_eq!(labels(&garden, &kinds::SECRET, "s"), with(&["provider.shoot.gardener.cloud/aws", label]));
            assert_eq!(labels(&garden, &kinds::QUOTA, "q"), with(&[label]));
        });
    }
}

/// spec 81 G.2: credentials that are being deleted cannot be protected any more.
#[test]
fn secret_that_is_being_deleted_is_labelled_and_told_once() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            put_both(&garden);
            garden.edit(&kinds::SECRET, "a", "s", |secret| secret["metadata"]["finalizers"] = json!(["example.com/x"]));
            garden.delete(&kinds::SECRET, "a", "s").await;
            garden.put(binding(&kinds::SECRET_BINDING, "a", "o", "aws"));
            garden.settled().await;
            seconds(3600).await;

            assert_eq!(garden.asked(), Vec::<String>::new());
            assert_eq!(finalizers(&garden, &kinds::SECRET, "s"), ["example.com/x"]);
            assert_eq!(labels(&garden, &kinds::SECRET, "s"), with(&["provider.shoot.gardener.cloud/aws", KINDS[0].2]));
        });
    });
    assert_eq!(log.matches("are being deleted without the finalizer").count(), 1, "{log}");
}

/// spec 80 §16 S-9, S-13: a binding that waits for its Shoots looks for its credentials in the cache.
#[test]
fn binding_in_use_whose_secret_is_gone_asks_for_nothing() {
    for (kind, finalizer, _, field) in KINDS {
        garden(|garden| async move {
            garden.put(binding(kind, "a", "o", "aws"));
            garden.put(shoot("a", "shoot", json!({ field: "o" })));
            garden.settled().await;
            garden.delete(kind, "a", "o").await;
            garden.settle().await;
            garden.sim.clear_requests();

            seconds(3600).await;

            assert_eq!(garden.asked(), Vec::<String>::new());
            put(&garden, &kinds::SECRET, "s", json!({}));
            garden.settle().await;
            assert_eq!(finalizers(&garden, &kinds::SECRET, "s"), [finalizer]);
        });
    }
}

/// spec 80 §9: neither kind of binding needs the other.
#[test]
fn secret_bindings_work_without_credentials_bindings() {
    garden(|garden| async move {
        garden.withdraw(&kinds::CREDENTIALS_BINDING);
        garden.withdraw(&kinds::WORKLOAD_IDENTITY);
        put_both(&garden);
        garden.put(binding(&kinds::SECRET_BINDING, "a", "o", "aws"));
        garden.start().await;
        seconds(75).await;
        assert_eq!(finalizers(&garden, &kinds::SECRET, "s"), [KINDS[0].1]);

        garden.delete(&kinds::SECRET_BINDING, "a", "o").await;
        garden.gone(&kinds::SECRET_BINDING, "a", "o").await;

        assert_eq!(finalizers(&garden, &kinds::SECRET, "s"), [""; 0]);
    });
}

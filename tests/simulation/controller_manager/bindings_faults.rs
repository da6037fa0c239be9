//! Credentials and Quotas of bindings: others write at the same time, and references that lead nowhere.

use std::time::Duration;

use gardener_resource_manager::api::kinds;
use serde_json::json;
use sim::Fault;

use super::{
    bindings::{KINDS, LEGACY, binding, finalizers, labels, put_both, with},
    garden::{garden, object},
};

async fn milliseconds(milliseconds: u64) {
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
}

/// spec 81 G.2, G.5: the live list of a release began before the other binding was created.
#[test]
fn binding_that_comes_while_another_is_released_gets_all_marks_back() {
    for (kind, finalizer, label, _) in KINDS {
        garden(|garden| async move {
            put_both(&garden);
            garden.put(binding(kind, "a", "one", "aws"));
            garden.settled().await;
            garden.sim.set_faults(move |request| match request.verb == "list" && request.resource == *kind.plural {
                true => Fault::DelayAnswer(Duration::from_secs(1)),
                false => Fault::None,
            });

            garden.delete(kind, "a", "one").await;
            milliseconds(500).await;
            garden.put(binding(kind, "b", "two", "aws"));
            garden.gone(kind, "a", "one").await;
            garden.settle().await;

            assert_eq!(finalizers(&garden, &kinds::SECRET, "s"), [finalizer]);
            let aws = "provider.shoot.gardener.cloud/aws";
            assert_eq!(labels(&garden, &kinds::SECRET, "s"), with(&[aws, label]));
            assert_eq!(labels(&garden, &kinds::QUOTA, "q"), with(&[label]));
        });
    }
}

/// spec 81 G.5: between the removal of the labels and that of the finalizer, another binding marks the Secret.
#[test]
fn secret_that_is_marked_again_during_its_release_keeps_its_finalizer() {
    for (kind, finalizer, label, _) in KINDS {
        garden(|garden| async move {
            put_both(&garden);
            garden.put(binding(kind, "a", "one", "aws"));
            garden.settled().await;
            let mut patches = 0;
            garden.sim.set_faults(move |request| {
                patches += u32::from(request.verb == "patch" && request.resource == "secrets");
                let is_second = patches == 2 && request.verb == "patch" && request.resource == "secrets";
                if is_second { Fault::Delay(Duration::from_secs(2)) } else { Fault::None }
            });

            garden.delete(kind, "a", "one").await;
            milliseconds(1000).await;
            assert_eq!(labels(&garden, &kinds::SECRET, "s"), with(&[]), "its release has begun");
            garden.put(binding(kind, "b", "two", "aws"));
            for _ in 0..5000 {
                milliseconds(1).await;
                assert_eq!(finalizers(&garden, &kinds::SECRET, "s"), [finalizer]);
            }

            garden.gone(kind, "a", "one").await;
            assert_eq!(
                labels(&garden, &kinds::SECRET, "s"),
                with(&["provider.shoot.gardener.cloud/aws", label]),
                "the other binding needs them"
            );
        });
    }
}

/// spec 81 G.4, trap G-T2: a Secret in deletion can get no finalizer of the new kind any more.
#[test]
fn secret_keeps_the_finalizer_of_earlier_releases_for_the_other_kind_of_binding() {
    let [(secret_binding, ..), (credentials_binding, ..)] = KINDS;
    for (kind, other) in [(secret_binding, credentials_binding), (credentials_binding, secret_binding)] {
        garden(|garden| async move {
            put_both(&garden);
            garden.edit(&kinds::SECRET, "a", "s", |secret| secret["metadata"]["finalizers"] = json!([LEGACY]));
            garden.delete(&kinds::SECRET, "a", "s").await;
            let mut deleted = binding(kind, "a", "one", "aws");
            deleted["metadata"]["finalizers"] = json!(["gardener"]);
            garden.put(deleted);
            garden.delete(kind, "a", "one").await;
            garden.put(binding(other, "a", "two", "aws"));

            garden.settled().await;

            assert_eq!(garden.find(kind, "a", "one"), None);
            assert_eq!(finalizers(&garden, &kinds::SECRET, "s"), [LEGACY]);
            garden.delete(other, "a", "two").await;
            garden.gone(other, "a", "two").await;
            assert_eq!(garden.find(&kinds::SECRET, "a", "s"), None, "nobody needs it any more");
        });
    }
}

/// spec 81 G.3 step 5: one live list answers for all Quotas of a binding.
#[test]
fn binding_with_many_quotas_is_released() {
    let names: Vec<String> = (0..200).map(|number| format!("q{number}")).collect();
    for (kind, _, label, _) in KINDS {
        let names = names.clone();
        garden(|garden| async move {
            put_both(&garden);
            for name in &names {
                garden.put(object(&kinds::QUOTA, "a", name, json!({ "metadata": { "labels": { "own": "x" } } })));
            }
            let mut many = binding(kind, "a", "one", "aws");
            many["quotas"] = names.iter().map(|name| json!({ "namespace": "a", "name": name })).collect();
            garden.put(many);
            garden.settled().await;
            assert!(names.iter().all(|name| labels(&garden, &kinds::QUOTA, name) == with(&[label])));

            garden.delete(kind, "a", "one").await;
            garden.gone(kind, "a", "one").await;

            assert!(names.iter().all(|name| labels(&garden, &kinds::QUOTA, name) == with(&[])));
            let list = format!("list {}", kind.plural);
            let lists = garden.asked().into_iter().filter(|asked| *asked == list).count();
            assert_eq!(lists, 1);
        });
    }
}

/// spec 81 G.3: what cannot exist is not found, and blocks no deletion.
#[test]
fn binding_with_references_that_no_object_can_have_can_be_deleted() {
    for (kind, ..) in KINDS {
        for (namespace, name) in [("x/y", "s"), ("a", "x/y"), ("..", "s")] {
            garden(|garden| async move {
                put_both(&garden);
                let mut odd = binding(kind, "a", "one", "aws");
                for field in ["secretRef", "credentialsRef"] {
                    if let Some(reference) = odd.get_mut(field) {
                        reference["namespace"] = json!(namespace);
                        reference["name"] = json!(name);
                    }
                }
                odd["quotas"] = json!([{ "namespace": namespace, "name": name }, { "namespace": "a", "name": "q" }]);
                garden.put(odd);
                garden.settled().await;
                assert_eq!(garden.finalizers(kind, "a", "one"), ["gardener"]);
                assert_eq!(labels(&garden, &kinds::QUOTA, "q").len(), 2, "the other Quota is labelled");

                garden.delete(kind, "a", "one").await;
                garden.gone(kind, "a", "one").await;

                assert_eq!(labels(&garden, &kinds::QUOTA, "q"), with(&[]));
            });
        }
    }
}

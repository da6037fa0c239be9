//! What bindings leave: credentials and Quotas without a binding (spec 81 G-T6).

use std::collections::BTreeMap;

use gardener_resource_manager::api::kinds;
use serde_json::json;

use super::{
    bindings::{KINDS, assert_released, binding, finalizers, labels, put, put_both, with},
    garden::garden,
};

/// spec 81 G-T6: a binding that refers to others now, or lost its finalizer by hand, leaves nothing behind.
#[test]
fn what_a_binding_leaves_is_released() {
    for is_running in [true, false] {
        for (kind, ..) in KINDS {
            garden(|garden| async move {
                put_both(&garden);
                garden.put(binding(kind, "a", "o", "aws"));
                garden.settled().await;
                if !is_running {
                    garden.stop().await;
                }

                garden.edit(kind, "a", "o", |binding| binding["metadata"]["finalizers"] = json!([]));
                garden.sim.remove(&format!("{}.{}", kind.plural, kind.group), "a", "o");
                if !is_running {
                    garden.start().await;
                }
                garden.settle().await;

                assert_released(&garden);
            });
        }
    }
}

/// spec 81 G-T6: only what has the finalizer was left by a binding.
#[test]
fn label_of_another_client_stays_without_a_binding() {
    for (_, _, label, _) in KINDS {
        garden(|garden| async move {
            garden.settled().await;
            for kind in [&kinds::SECRET, &kinds::QUOTA] {
                put(&garden, kind, "x", json!({ label: "any" }));
            }
            garden.settle().await;

            for kind in [&kinds::SECRET, &kinds::QUOTA] {
                assert_eq!(labels(&garden, kind, "x"), BTreeMap::from([(label.to_owned(), "any".to_owned())]));
            }
        });
    }
}

/// spec 81 G-T6; spec 80 §10 A9
#[test]
fn binding_that_turns_to_other_credentials_releases_the_old_ones() {
    for (kind, finalizer, label, _) in KINDS {
        garden(|garden| async move {
            put_both(&garden);
            put(&garden, &kinds::SECRET, "s2", json!({ "own": "x" }));
            garden.put(binding(kind, "a", "o", "aws"));
            garden.settled().await;

            let changed = json!({ "secretRef": { "name": "s2" }, "credentialsRef": { "name": "s2" }, "quotas": [] });
            garden.patch(kind, "a", "o", changed).await;
            garden.settle().await;

            assert_eq!(finalizers(&garden, &kinds::SECRET, "s2"), [finalizer]);
            assert_eq!(labels(&garden, &kinds::SECRET, "s2"), with(&["provider.shoot.gardener.cloud/aws", label]));
            assert_released(&garden);
        });
    }
}

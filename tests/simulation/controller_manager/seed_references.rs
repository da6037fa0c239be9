//! References of Seeds: the scenarios of spec 83 D. `references` has those of all referrers.

use cluster::Resource;
use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};

use super::{
    garden::{Garden, garden, object},
    references::{PROTECTION, delete_in_use, finish, held, is_held, put_object, refer, referrer, released, to},
};

const KINDS: [&Resource; 3] = [&kinds::SECRET, &kinds::CONFIG_MAP, &kinds::WORKLOAD_IDENTITY];

fn references(name: &str) -> Vec<Value> {
    KINDS.iter().map(|kind| to(kind, name)).collect()
}

fn put_objects(garden: &Garden, name: &str) {
    KINDS.iter().for_each(|kind| put_object(garden, kind, "garden", name));
}

async fn all_held(garden: &Garden, name: &str) {
    for kind in KINDS {
        held(garden, kind, "garden", name).await;
    }
}

async fn all_released(garden: &Garden, name: &str) {
    for kind in KINDS {
        released(garden, kind, "garden", name).await;
    }
}

/// spec 83 scenarios 27 and 28
#[test]
fn references_of_a_seed_are_protected_while_it_has_them() {
    garden(|garden| async move {
        put_objects(&garden, "x");
        garden.put(referrer(&kinds::SEED, "", "s1", &references("x")));
        garden.put(referrer(&kinds::SEED, "", "s2", &[]));
        garden.start().await;
        all_held(&garden, "x").await;
        held(&garden, &kinds::SEED, "", "s1").await;
        assert!(!is_held(&garden, &kinds::SEED, "", "s2"));

        refer(&garden, &kinds::SEED, "", "s2", &references("x"));
        held(&garden, &kinds::SEED, "", "s2").await;
        refer(&garden, &kinds::SEED, "", "s1", &[]);
        released(&garden, &kinds::SEED, "", "s1").await;
        garden.settle().await;
        assert!(KINDS.iter().all(|kind| is_held(&garden, kind, "garden", "x")));

        refer(&garden, &kinds::SEED, "", "s2", &[]);
        all_released(&garden, "x").await;
        released(&garden, &kinds::SEED, "", "s2").await;
    });
}

/// spec 83 scenario 29, D-T1
#[test]
fn references_of_a_deleted_seed_are_protected_until_gardenlet_is_done() {
    garden(|garden| async move {
        put_objects(&garden, "x");
        garden.put(referrer(&kinds::SEED, "", "s1", &references("x")));
        garden.start().await;
        all_held(&garden, "x").await;
        held(&garden, &kinds::SEED, "", "s1").await;
        delete_in_use(&garden, &kinds::SEED, "", "s1", "gardener").await;
        garden.settle().await;
        assert!(KINDS.iter().all(|kind| is_held(&garden, kind, "garden", "x")));

        finish(&garden, &kinds::SEED, "", "s1", "gardener");

        all_released(&garden, "x").await;
        garden.gone(&kinds::SEED, "", "s1").await;
    });
}

/// spec 83 scenario 30
#[test]
fn reference_of_another_kind_keeps_an_object_that_a_seed_leaves() {
    for (kind, namespace) in [(&kinds::SHOOT, "garden"), (&kinds::CONTROLLER_DEPLOYMENT, "")] {
        garden(|garden| async move {
            put_object(&garden, &kinds::SECRET, "garden", "x");
            garden.put(referrer(kind, namespace, "r", &[to(&kinds::SECRET, "x")]));
            for seed in ["s1", "s2"] {
                garden.put(referrer(&kinds::SEED, "", seed, &[to(&kinds::SECRET, "x")]));
            }
            garden.start().await;
            held(&garden, &kinds::SECRET, "garden", "x").await;
            held(&garden, &kinds::SEED, "", "s2").await;

            refer(&garden, &kinds::SEED, "", "s1", &[]);
            garden.delete(&kinds::SEED, "", "s2").await;
            garden.gone(&kinds::SEED, "", "s2").await;
            garden.settle().await;

            assert!(is_held(&garden, &kinds::SECRET, "garden", "x"), "{kind}");
        });
    }
}

/// spec 83 scenarios 31 and 32
#[test]
fn references_that_are_missing_or_of_other_kinds_keep_nothing_else_unprotected() {
    garden(|garden| async move {
        put_object(&garden, &kinds::CONFIG_MAP, "garden", "x");
        put_object(&garden, &kinds::CONFIG_MAP, "garden", "y");
        put_object(&garden, &kinds::SECRET, "garden", "y");
        let deployment = to(&kinds::DEPLOYMENT, "y");
        garden.put(referrer(&kinds::SEED, "", "s1", &[to(&kinds::SECRET, "x"), to(&kinds::CONFIG_MAP, "x")]));
        garden.put(referrer(&kinds::SEED, "", "s2", &[deployment, to(&kinds::SECRET, "y")]));
        garden.start().await;
        held(&garden, &kinds::CONFIG_MAP, "garden", "x").await;
        held(&garden, &kinds::SEED, "", "s1").await;
        held(&garden, &kinds::SECRET, "garden", "y").await;

        put_object(&garden, &kinds::SECRET, "garden", "x");

        held(&garden, &kinds::SECRET, "garden", "x").await;
        assert!(!is_held(&garden, &kinds::CONFIG_MAP, "garden", "y"));
    });
}

/// spec 83 scenario 33
#[test]
fn references_of_a_seed_that_finished_before_the_start_are_released() {
    garden(|garden| async move {
        let finalizers = json!([PROTECTION]);
        for kind in KINDS {
            garden.put(object(kind, "garden", "x", json!({"metadata": {"finalizers": finalizers}})));
        }
        let mut seed = referrer(&kinds::SEED, "", "s1", &references("x"));
        seed["metadata"]["finalizers"] = finalizers;
        garden.put(seed);
        garden.delete(&kinds::SEED, "", "s1").await;
        garden.start().await;

        all_released(&garden, "x").await;
        garden.gone(&kinds::SEED, "", "s1").await;
    });
}

/// spec 83 D-T3: the copy of a protected Secret has no finalizer.
#[test]
fn reference_to_a_shared_secret_does_not_hold_its_copies() {
    garden(|garden| async move {
        let labels = json!({"gardener.cloud/role": "foo"});
        garden.put(object(&kinds::SECRET, "garden", "x", json!({"metadata": {"labels": labels}, "type": "Opaque"})));
        garden.put(referrer(&kinds::SEED, "", "s1", &[to(&kinds::SECRET, "x")]));
        garden.start().await;
        held(&garden, &kinds::SECRET, "garden", "x").await;
        garden.settle().await;

        assert_eq!(garden.finalizers(&kinds::SECRET, "seed-s1", "x"), Vec::<String>::new());
        assert!(garden.find(&kinds::SECRET, "seed-s1", "x").is_some());
    });
}

//! References as an attacker or an unlucky tenant makes them: very many, to names that are none, amid other writers,
//! and while the API server starts.

use std::time::Duration;

use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::{Fault, Seen};
use tracing::Level;

use super::{
    garden::{Garden, garden, object},
    references::{PROTECTION, delete_in_use, finish, held, is_held, put_object, refer, referrer, released, to},
};
use crate::log_capture::logged;

fn with_finalizer(mut object: Value) -> Value {
    let finalizers = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    object["metadata"]["finalizers"] = finalizers.into_iter().chain([PROTECTION.into()]).collect();
    object
}

fn patches(garden: &Garden) -> Vec<String> {
    garden.asked().into_iter().filter(|asked| asked.starts_with("patch")).collect()
}

/// Runs `change` before the first patch of the program that concerns this resource.
fn before_first_patch(garden: &Garden, resource: &'static str, change: impl Fn(&sim::Sim) + Send + 'static) {
    let sim = garden.sim.clone();
    let mut is_done = false;
    garden.sim.set_faults(move |info| {
        let is_meant = info.verb == "patch" && info.user == "gcm" && info.resource == resource;
        if is_meant && !std::mem::replace(&mut is_done, true) {
            change(&sim);
        }
        Fault::None
    });
}

/// 10,000 missing objects cost a list, not 10,000 reads, and a bounded error text.
#[test]
fn referrer_with_ten_thousand_missing_objects_costs_few_requests() {
    let ((), log) = logged(Level::WARN, || {
        garden(|garden| async move {
            let missing: Vec<_> = (0..10_000).map(|number| to(&kinds::SECRET, &format!("m{number}"))).collect();
            let shoot = object(&kinds::SHOOT, "a", "r", json!({ "spec": { "resources": missing } }));
            garden.put(with_finalizer(shoot));
            garden.start().await;
            garden.settle().await;
            assert!(!is_held(&garden, &kinds::SHOOT, "a", "r"), "nothing is there to protect");
            let reads = garden.asked().iter().filter(|asked| asked.contains("secrets")).count();
            assert!(reads < 20, "{reads}");

            put_object(&garden, &kinds::SECRET, "a", "m7");

            held(&garden, &kinds::SECRET, "a", "m7").await;
            held(&garden, &kinds::SHOOT, "a", "r").await;
            refer(&garden, &kinds::SHOOT, "a", "r", &[]);
            released(&garden, &kinds::SECRET, "a", "m7").await;
            released(&garden, &kinds::SHOOT, "a", "r").await;
        });
    });
    let longest = log.lines().map(str::len).max().unwrap_or_default();
    assert!(log.contains("and 9990 more") && longest < 4_000, "{longest}");
}

/// The server is never asked about a name that no object can have: such a reference is missing.
#[test]
fn references_to_names_that_are_none_are_missing() {
    let long = "a".repeat(300);
    let names = ["../../default/secrets/x", "a/b", "a%2Fb", ".", "..", "UPPER", "a b", "x?watch=1", "ä", "-", &long];
    garden(|garden| async move {
        put_object(&garden, &kinds::SECRET, "a", "x");
        put_object(&garden, &kinds::SECRET, "default", "x");
        let none: Vec<_> = names.iter().map(|name| to(&kinds::SECRET, name)).collect();
        let references = [none.clone(), vec![to(&kinds::SECRET, "x")]].concat();
        garden.put(referrer(&kinds::SHOOT, "a", "r", &references));
        garden.start().await;
        held(&garden, &kinds::SECRET, "a", "x").await;
        held(&garden, &kinds::SHOOT, "a", "r").await;

        refer(&garden, &kinds::SHOOT, "a", "r", &none);

        released(&garden, &kinds::SECRET, "a", "x").await;
        released(&garden, &kinds::SHOOT, "a", "r").await;
        assert!(!is_held(&garden, &kinds::SECRET, "default", "x"));
        for request in garden.requests() {
            let info = &request.info;
            assert!(info.resource != "secrets" || ["", "x"].contains(&&*info.name), "{info:?}");
        }
    });
}

/// One object of thousands of referrers: at rest nothing is written, and the last referrer releases it with few lists.
#[test]
fn object_of_five_thousand_shoots_costs_few_requests() {
    garden(|garden| async move {
        garden.put(with_finalizer(object(&kinds::SECRET, "a", "x", json!({}))));
        for number in 0..5_000 {
            garden.put(with_finalizer(referrer(&kinds::SHOOT, "a", &format!("r{number}"), &[to(&kinds::SECRET, "x")])));
        }
        garden.settled().await;
        garden.patch(&kinds::SECRET, "a", "x", json!({ "metadata": { "finalizers": null } })).await;
        held(&garden, &kinds::SECRET, "a", "x").await;
        garden.settle().await;
        assert_eq!(patches(&garden), ["patch secrets x"]);

        let remove = |number: u32| garden.sim.remove("shoots.core.gardener.cloud", "a", &format!("r{number}"));
        assert!((1..5_000).all(|number| remove(number).is_some()));
        garden.settle().await;
        assert!(is_held(&garden, &kinds::SECRET, "a", "x"));
        garden.sim.clear_requests();
        remove(0);
        released(&garden, &kinds::SECRET, "a", "x").await;

        let lists = garden.asked().iter().filter(|asked| asked.starts_with("list")).count();
        assert!((1..=2).contains(&lists), "{lists}");
    });
}

/// spec 80 scenario 29
#[test]
fn reference_finalizer_changes_no_finalizer_of_a_concurrent_writer() {
    garden(|garden| async move {
        put_object(&garden, &kinds::SECRET, "a", "x");
        garden.settled().await;
        before_first_patch(&garden, "secrets", |sim| {
            let add = |secret: &mut Value| secret["metadata"]["finalizers"] = json!(["example.com/x"]);
            assert!(sim.edit("secrets", "a", "x", add));
        });
        garden.put(referrer(&kinds::SHOOT, "a", "r", &[to(&kinds::SECRET, "x")]));
        held(&garden, &kinds::SECRET, "a", "x").await;
        assert_eq!(garden.finalizers(&kinds::SECRET, "a", "x"), ["example.com/x", PROTECTION]);

        before_first_patch(&garden, "secrets", |sim| {
            let add = |secret: &mut Value| {
                secret["metadata"]["finalizers"] = json!(["example.com/y", PROTECTION, "example.com/z"]);
            };
            assert!(sim.edit("secrets", "a", "x", add));
        });
        refer(&garden, &kinds::SHOOT, "a", "r", &[]);
        released(&garden, &kinds::SECRET, "a", "x").await;

        assert_eq!(garden.finalizers(&kinds::SECRET, "a", "x"), ["example.com/y", "example.com/z"]);
    });
}

/// spec 81 §3.2 G-14: an object that is deleted in the very moment of its release still goes after its referrer.
#[test]
fn object_that_is_deleted_during_its_release_goes_after_its_referrer() {
    garden(|garden| async move {
        put_object(&garden, &kinds::SECRET, "a", "x");
        garden.put(referrer(&kinds::SHOOT, "a", "r", &[to(&kinds::SECRET, "x")]));
        garden.settled().await;
        delete_in_use(&garden, &kinds::SHOOT, "a", "r", "gardener").await;
        garden.settle().await;
        garden.sim.clear_requests();
        before_first_patch(&garden, "secrets", |sim| {
            let delete = |secret: &mut Value| {
                secret["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
                secret["metadata"]["deletionGracePeriodSeconds"] = json!(0);
            };
            assert!(sim.edit("secrets", "a", "x", delete));
        });

        finish(&garden, &kinds::SHOOT, "a", "r", "gardener");

        garden.gone(&kinds::SECRET, "a", "x").await;
        garden.gone(&kinds::SHOOT, "a", "r").await;
        assert_eq!(patches(&garden), ["patch secrets x", "patch shoots r", "patch secrets x"]);
    });
}

/// The patch meets another object of the same name: that one is protected, too.
#[test]
fn object_that_is_created_anew_while_it_is_protected_is_protected() {
    garden(|garden| async move {
        put_object(&garden, &kinds::SECRET, "a", "x");
        garden.settled().await;
        before_first_patch(&garden, "secrets", |sim| {
            assert!(sim.remove("secrets", "a", "x").is_some());
            sim.put(object(&kinds::SECRET, "a", "x", json!({}))).expect("it is valid");
        });

        garden.put(referrer(&kinds::SHOOT, "a", "r", &[to(&kinds::SECRET, "x")]));

        held(&garden, &kinds::SECRET, "a", "x").await;
        held(&garden, &kinds::SHOOT, "a", "r").await;
        garden.sim.remove("secrets", "a", "x");
        garden.settle().await;
        assert!(!is_held(&garden, &kinds::SHOOT, "a", "r"));
        put_object(&garden, &kinds::SECRET, "a", "x");
        held(&garden, &kinds::SECRET, "a", "x").await;
        held(&garden, &kinds::SHOOT, "a", "r").await;
    });
}

/// The same for guards.
#[test]
fn guarded_object_that_is_created_anew_while_it_gets_its_finalizer_gets_it() {
    garden(|garden| async move {
        garden.settled().await;
        before_first_patch(&garden, "quotas", |sim| {
            assert!(sim.remove("quotas.core.gardener.cloud", "a", "o").is_some());
            sim.put(object(&kinds::QUOTA, "a", "o", json!({}))).expect("it is valid");
        });

        garden.put(object(&kinds::QUOTA, "a", "o", json!({})));

        garden.soon("it is guarded", || garden.finalizers(&kinds::QUOTA, "a", "o") == ["gardener"]).await;
    });
}

/// A Shoot moves to another project: it is created there, and deleted here.
#[test]
fn shoot_that_moves_between_projects_takes_its_protection_along() {
    garden(|garden| async move {
        for namespace in ["a", "b"] {
            put_object(&garden, &kinds::SECRET, namespace, "x");
        }
        garden.put(referrer(&kinds::SHOOT, "a", "r", &[to(&kinds::SECRET, "x")]));
        garden.settled().await;
        assert!(!is_held(&garden, &kinds::SECRET, "b", "x"));

        garden.put(referrer(&kinds::SHOOT, "b", "r", &[to(&kinds::SECRET, "x")]));
        held(&garden, &kinds::SECRET, "b", "x").await;
        garden.delete(&kinds::SHOOT, "a", "r").await;

        released(&garden, &kinds::SECRET, "a", "x").await;
        garden.gone(&kinds::SHOOT, "a", "r").await;
        garden.settle().await;
        assert!(is_held(&garden, &kinds::SECRET, "b", "x") && is_held(&garden, &kinds::SHOOT, "b", "r"));
    });
}

/// Rights that come late, and a server that does not know any version yet: nothing is released before it is listed.
#[test]
fn first_second_of_failing_lists_releases_nothing_that_is_in_use() {
    for (code, reason) in [(403, "Forbidden"), (410, "Expired"), (503, "ServiceUnavailable")] {
        for resource in ["shoots", "seeds", "secrets", ""] {
            garden(|garden| async move {
                for name in ["used", "left"] {
                    garden.put(with_finalizer(object(&kinds::SECRET, "garden", name, json!({}))));
                }
                put_object(&garden, &kinds::SECRET, "garden", "new");
                let references = [to(&kinds::SECRET, "used"), to(&kinds::SECRET, "new")];
                garden.put(referrer(&kinds::SHOOT, "garden", "r", &references[..1]));
                garden.put(referrer(&kinds::SEED, "", "r", &references[1..]));
                let begun = tokio::time::Instant::now();
                garden.sim.set_faults(move |info| {
                    let is_meant = info.user == "gcm" && (resource.is_empty() || info.resource == resource);
                    let is_read = matches!(&*info.verb, "list" | "watch") && !info.resource.is_empty();
                    match is_meant && is_read && begun.elapsed() < Duration::from_secs(1) {
                        true => Fault::FailBefore(Seen::status(code, reason, "the first second")),
                        false => Fault::None,
                    }
                });
                garden.start().await;
                tokio::time::sleep(Duration::from_secs(60)).await;

                let is_held = |name| is_held(&garden, &kinds::SECRET, "garden", name);
                assert_eq!(["used", "new", "left"].map(is_held), [true, true, false], "{code} {resource}");
                assert!(!garden.asked().contains(&"patch secrets used".to_owned()), "{code} {resource}");
            });
        }
    }
}

/// A first list that lacks what exists, as of a lagging server: the live list of a release knows better.
#[test]
fn first_lists_that_are_empty_release_nothing_that_is_in_use() {
    for (kind, namespace) in [(&kinds::SHOOT, "garden"), (&kinds::SEED, "")] {
        garden(|garden| async move {
            let before = garden.sim.revision();
            garden.put(with_finalizer(object(&kinds::SECRET, "garden", "x", json!({}))));
            garden.put(with_finalizer(referrer(kind, namespace, "r", &[to(&kinds::SECRET, "x")])));
            let mut is_listed = false;
            let resource = kind.plural.to_string();
            garden.sim.set_faults(move |info| {
                let is_meant = info.user == "gcm" && info.verb == "list" && info.resource == resource;
                match is_meant && !std::mem::replace(&mut is_listed, true) {
                    true => Fault::ReadAsOf(before),
                    false => Fault::None,
                }
            });
            garden.start().await;
            tokio::time::sleep(Duration::from_secs(60)).await;

            assert!(is_held(&garden, &kinds::SECRET, "garden", "x") && is_held(&garden, kind, namespace, "r"));
            assert_eq!(patches(&garden), Vec::<String>::new());
        });
    }
}

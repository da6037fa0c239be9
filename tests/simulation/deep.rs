//! Objects whose lists and maps are nested deeply. API servers take 10,000 levels (`maxNestingDepth` of `sigs.k8s.io/json`).

use gardener_resource_manager::actors::kit::testing::on_a_large_stack;
use serde_json::{Value, json};

use crate::{
    health_objects::{ALL_HEALTHY, HEALTHY, PROGRESSING, ROLLED_OUT, stands},
    objects::{object, with},
    world::{NAMESPACE, World, seconds, world},
};

/// The resource of [`foo`].
const FOOS: &str = "foos.example.org";

/// A kind whose objects may hold anything.
fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": FOOS },
        "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": { "kind": "Foo", "listKind": "FooList", "plural": "foos", "singular": "foo" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }],
        },
    })
}

fn foo(name: &str, spec: Value) -> Value {
    object("example.org/v1", "Foo", name, json!({ "spec": spec }))
}

/// A map in a map, and so on; `k` is in the innermost one.
fn nested(levels: usize, value: &str) -> Value {
    (1..levels).fold(json!({ "k": value }), |inner, _| json!({ "a": inner }))
}

/// An object so deep in all: itself and its spec count too.
fn deep(name: &str, levels: usize) -> Value {
    foo(name, nested(levels - 1, "v"))
}

fn is_as_wanted(world: &World, wanted: &Value) -> bool {
    let name = wanted["metadata"]["name"].as_str().expect("a name");
    world.sim.look_at(FOOS, NAMESPACE, name, |live| live["spec"] == wanted["spec"]).unwrap_or(false)
}

/// Applies a deep object and one beside it, has both changed and deleted by somebody else, and expects them to be mended
/// and judged all along.
async fn is_kept(world: &World, levels: usize) {
    world.sim.put(definition()).unwrap();
    seconds(1).await;
    world.start().await;
    let objects = [deep("deep", levels), foo("flat", json!({ "size": 1 }))];
    world.bundle("one", &objects);
    world.applied("one").await;
    assert!(objects.iter().all(|wanted| is_as_wanted(world, wanted)), "{levels} levels are applied");
    stands(world, HEALTHY, ALL_HEALTHY).await;
    stands(world, PROGRESSING, ROLLED_OUT).await;

    for wanted in &objects {
        let name = wanted["metadata"]["name"].as_str().unwrap();
        world.sim.edit(FOOS, NAMESPACE, name, |live| *live = with(live.clone(), "/spec", json!({ "by": "somebody" })));
        world.eventually("a change is mended", || is_as_wanted(world, wanted)).await;
        world.sim.remove(FOOS, NAMESPACE, name);
        world.eventually("a deletion is mended", || is_as_wanted(world, wanted)).await;
    }
    // A new life knows nothing: it reads the deep object in a list.
    world.crash().await;
    world.sim.edit(FOOS, NAMESPACE, "flat", |live| live["spec"]["size"] = json!(2));
    world.start().await;
    world.eventually("what happened meanwhile is mended", || is_as_wanted(world, &objects[1])).await;
    stands(world, HEALTHY, ALL_HEALTHY).await;
    world.sim.edit(FOOS, NAMESPACE, "flat", |live| live["spec"]["size"] = json!(3));
    world.eventually("the kind is watched", || is_as_wanted(world, &objects[1])).await;

    world.bundle_with("one", &objects[1..], json!({}));
    world.eventually("what left the bundle is deleted", || world.sim.object(FOOS, NAMESPACE, "deep").is_none()).await;
}

#[test]
fn an_object_of_two_hundred_levels_is_applied_watched_and_judged_like_any_other() {
    on_a_large_stack(|| world(1, |world| async move { is_kept(&world, 200).await }));
}

/// As deep as a server takes it. Its `managedFields`, which it counts too, are three levels deeper than the object.
#[test]
fn an_object_of_nearly_ten_thousand_levels_is_applied_watched_and_judged_like_any_other() {
    on_a_large_stack(|| world(1, |world| async move { is_kept(&world, 9990).await }));
}

/// One level more than what is read is an error of that object alone.
#[test]
fn an_object_that_is_deeper_than_servers_take_is_named_and_holds_up_nobody() {
    on_a_large_stack(|| {
        world(1, |world| async move {
            world.sim.put(definition()).unwrap();
            seconds(1).await;
            world.start().await;
            let flat = foo("flat", json!({ "size": 1 }));
            world.bundle("one", &[deep("deep", 10_001), flat.clone()]);
            seconds(10).await;

            let condition = world.condition("one", "ResourcesApplied");
            let text = condition.map(|(_, reason, message)| format!("{reason} {message}")).unwrap_or_default();
            assert!(text.contains("nested deeper than 10000 levels"), "{text}");
            let beside = deep("beside", 200);
            world.bundle("two", &[beside.clone(), flat.clone()]);
            world
                .eventually("others are applied", || [&beside, &flat].iter().all(|one| is_as_wanted(&world, one)))
                .await;
        });
    });
}

#[test]
fn an_object_of_two_thousand_levels_is_applied_watched_and_judged_like_any_other() {
    on_a_large_stack(|| world(1, |world| async move { is_kept(&world, 2000).await }));
}

//! Deeply nested objects. API servers accept 10,000 levels (`maxNestingDepth` of `sigs.k8s.io/json`).

use kit::testing::on_a_large_stack;
use serde_json::{Value, json};

use crate::{
    health_objects::{ALL_HEALTHY, HEALTHY, PROGRESSING, ROLLED_OUT, condition, set_status, stands, unhealthy},
    objects::object,
    world::{NAMESPACE, World, seconds, world},
};

const ISSUERS: &str = "issuers.cert.gardener.cloud";

/// A kind with arbitrary fields, whose health depends on its status, so that whole objects are watched.
fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": ISSUERS },
        "spec": {
            "group": "cert.gardener.cloud", "scope": "Namespaced",
            "names": { "kind": "Issuer", "listKind": "IssuerList", "plural": "issuers", "singular": "issuer" },
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            }],
        },
    })
}

fn issuer(name: &str, spec: Value) -> Value {
    object("cert.gardener.cloud/v1alpha1", "Issuer", name, json!({ "spec": spec }))
}

fn nested(levels: usize) -> Value {
    // `json!` would copy the inner maps each time.
    (1..levels).fold(json!({ "k": "v" }), |inner, _| Value::Object([("a".to_owned(), inner)].into_iter().collect()))
}

fn deep(name: &str, levels: usize) -> Value {
    issuer(name, nested(levels - 1))
}

fn flat() -> Value {
    issuer("flat", json!({ "size": 1 }))
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().expect("a name")
}

fn is_as_wanted(world: &World, wanted: &Value) -> bool {
    world.sim.look_at(ISSUERS, NAMESPACE, name_of(wanted), |live| live["spec"] == wanted["spec"]).unwrap_or(false)
}

fn change(world: &World, name: &str) {
    let is_there = world.sim.edit(ISSUERS, NAMESPACE, name, |live| {
        live["spec"] = json!({ "by": "somebody" });
        let generation = live["metadata"]["generation"].as_i64().expect("a generation");
        live["metadata"]["generation"] = json!(generation + 1);
    });
    assert!(is_there, "{name}");
}

fn says(world: &World, name: &str, state: &str) {
    set_status(world, ISSUERS, name, json!({ "state": state, "observedGeneration": 99 }));
}

async fn stands_unhealthy(world: &World, name: &str, state: &str) {
    let text = format!("issuer state is \"{state}\" (\"Ready\" expected)");
    let expected = unhealthy("Issuer", name, &text);
    world.eventually(&format!("{name} is {state}"), || condition(world, HEALTHY) == expected).await;
}

/// Applies a deep object and another one. Checks that both are applied, health-checked and repaired all the time.
async fn is_kept(world: &World, levels: usize) {
    world.sim.put(definition()).expect("the definition is valid");
    seconds(1).await;
    world.start().await;
    let objects = [deep("deep", levels), flat()];
    world.bundle("one", &objects);
    world.applied("one").await;
    assert!(objects.iter().all(|wanted| is_as_wanted(world, wanted)), "{levels} levels are applied");

    for wanted in &objects {
        let name = name_of(wanted);
        for name in ["deep", "flat"] {
            says(world, name, "Ready");
        }
        stands(world, HEALTHY, ALL_HEALTHY).await;
        stands(world, PROGRESSING, ROLLED_OUT).await;
        says(world, name, "Error");
        stands_unhealthy(world, name, "Error").await;
        change(world, name);
        world.eventually("a change is repaired", || is_as_wanted(world, wanted)).await;
        world.sim.remove(ISSUERS, NAMESPACE, name);
        world.eventually("a deletion is repaired", || is_as_wanted(world, wanted)).await;
    }

    // A new process knows nothing and reads the deep object in a list.
    world.crash().await;
    change(world, "flat");
    world.start().await;
    world.eventually("the changes during the crash are repaired", || is_as_wanted(world, &objects[1])).await;
    says(world, "deep", "Ready");
    says(world, "flat", "Odd");
    stands_unhealthy(world, "flat", "Odd").await;
    change(world, "flat");
    world.eventually("the kind is watched", || is_as_wanted(world, &objects[1])).await;

    world.secret("one", &objects[1..]);
    world.eventually("the removed object is pruned", || world.sim.object(ISSUERS, NAMESPACE, "deep").is_none()).await;
}

#[test]
fn object_of_200_levels_is_applied_watched_and_health_checked() {
    on_a_large_stack(|| world(1, |world| async move { is_kept(&world, 200).await }));
}

#[test]
fn object_of_2000_levels_is_applied_watched_and_health_checked() {
    on_a_large_stack(|| world(1, |world| async move { is_kept(&world, 2000).await }));
}

/// A server accepts 10,000 levels; the `managedFields` of the object are a few levels deeper than its spec.
#[test]
fn object_of_nearly_10000_levels_is_applied_on_a_large_stack() {
    on_a_large_stack(|| {
        world(1, |world| async move {
            world.sim.put(definition()).unwrap();
            seconds(1).await;
            world.start().await;
            let deepest = deep("deep", 9990);
            world.bundle("one", std::slice::from_ref(&deepest));
            world.applied("one").await;
            assert!(is_as_wanted(&world, &deepest));
            change(&world, "deep");
            world.eventually("a change is repaired", || is_as_wanted(&world, &deepest)).await;
        });
    });
}

/// spec 10 §11.3: an object that exceeds what is read by one level is an error of that object alone.
#[test]
fn object_deeper_than_servers_accept_is_reported_and_blocks_no_other() {
    on_a_large_stack(|| {
        world(1, |world| async move {
            world.sim.put(definition()).unwrap();
            seconds(1).await;
            world.start().await;
            world.bundle("one", &[deep("deep", 10_001), flat()]);
            seconds(10).await;

            let condition = world.condition("one", "ResourcesApplied");
            let text = condition.map(|(_, reason, message)| format!("{reason} {message}")).unwrap_or_default();
            assert!(text.contains("nested deeper than 10000 levels"), "{text}");
            let beside = deep("beside", 200);
            world.bundle("two", &[beside.clone(), flat()]);
            world
                .eventually("others are applied", || is_as_wanted(&world, &beside) && is_as_wanted(&world, &flat()))
                .await;
        });
    });
}

//! Scenarios of spec 10 about objects that HorizontalPodAutoscalers scale.

use serde_json::{Value, json};

use crate::{
    log_capture::logged,
    objects::{annotated, object, with, workload},
    world::{NAMESPACE, World, seconds, world},
};

const WARNING: &str = "a HorizontalPodAutoscaler with an invalid API version in its scaleTargetRef is left out";

fn web() -> Value {
    with(workload("Deployment", "web"), "/spec/replicas", json!(2))
}

fn autoscaler(api_version: &str) -> Value {
    let target = json!({ "apiVersion": api_version, "kind": "Deployment", "name": "web" });
    object(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        "web",
        json!({ "spec": { "scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 9 } }),
    )
}

async fn scale(world: &World, replicas: u32) {
    let path = "/apis/apps/v1/namespaces/shoot/deployments/web/scale";
    world.ask("PATCH", path, Some(json!({ "spec": { "replicas": replicas } }))).await.expect("it is scaled");
}

fn replicas(world: &World) -> Value {
    world.sim.object("deployments.apps", NAMESPACE, "web").expect("it exists")["spec"]["replicas"].clone()
}

/// spec 10 scenario 14.
#[test]
fn replicas_stay_where_an_autoscaler_or_the_annotation_says_so() {
    let preserve = |value| annotated(web(), "preserve-replicas", value);
    let table = [
        (web(), None, 2),
        (web(), Some("apps/v1"), 5),
        (web(), Some("example.org/v1"), 2),
        (preserve("1"), None, 2),
        (preserve("true"), None, 5),
    ];

    for (manifest, scaled, expected) in table {
        world(1, |world| async move {
            if let Some(api_version) = scaled {
                world.sim.put(autoscaler(api_version)).unwrap();
            }
            world.start().await;
            world.bundle("one", std::slice::from_ref(&manifest));
            world.applied("one").await;
            seconds(2).await;
            scale(&world, 5).await;
            seconds(130).await;
            assert_eq!(replicas(&world), expected, "{scaled:?} {}", manifest["metadata"]["annotations"]);

            scale(&world, 5).await;
            world.secret("one", &[with(manifest, "/spec/template/spec/containers/0/image", json!("i:2"))]);
            seconds(65).await;
            assert_eq!(replicas(&world), expected, "with a new image; {scaled:?}");
        });
    }
}

/// spec 10 scenario 14: an autoscaler is deleted and created.
#[test]
fn replicas_follow_the_manifest_again_when_the_autoscaler_is_gone() {
    for api_version in ["apps/v1", "extensions/v1beta1"] {
        world(1, |world| async move {
            world.start().await;
            world.bundle("one", &[web()]);
            world.applied("one").await;
            world.sim.put(autoscaler(api_version)).unwrap();
            seconds(2).await;
            scale(&world, 5).await;
            seconds(130).await;
            assert_eq!(replicas(&world), 5);

            world.sim.remove("horizontalpodautoscalers.autoscaling", NAMESPACE, "web");
            seconds(65).await;
            assert_eq!(replicas(&world), 2);
        });
    }
}

/// Applies a Deployment of two replicas, which its autoscaler scales to eight, and waits until no period is near.
async fn scaled(world: &World) {
    world.sim.put(autoscaler("apps/v1")).expect("it is valid");
    world.start().await;
    world.bundle("one", &[web()]);
    world.applied("one").await;
    seconds(2).await;
    scale(world, 8).await;
    seconds(120).await;
    assert_eq!(replicas(world), 8);
}

/// spec 10 §11.2: `kubectl replace --force` deletes and creates.
#[test]
fn replicas_survive_an_autoscaler_that_is_replaced() {
    world(1, |world| async move {
        scaled(&world).await;
        for _ in 0..3 {
            world.sim.remove("horizontalpodautoscalers.autoscaling", NAMESPACE, "web");
            seconds(1).await;
            assert_eq!(replicas(&world), 8);
            world.secret("one", &[with(web(), "/spec/template/spec/containers/0/image", json!("i:2"))]);
            seconds(1).await;
            assert_eq!(replicas(&world), 8, "another manifest does not reset them either");
            world.sim.put(autoscaler("apps/v1")).expect("it is valid");
            seconds(70).await;
            assert_eq!(replicas(&world), 8);
        }
    });
}

/// spec 10 §11.2: for a minute, or until the next period.
#[test]
fn replicas_follow_the_manifest_a_minute_after_the_autoscaler_is_deleted_or_at_the_next_period() {
    for (period, stays, goes) in [(600, 55, 65), (10, 0, 12)] {
        world(1, |world| async move {
            world.managed_resource().sync_period = std::time::Duration::from_secs(period).into();
            scaled(&world).await;
            world.sim.remove("horizontalpodautoscalers.autoscaling", NAMESPACE, "web");
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            seconds(stays).await;
            let stay = replicas(&world);
            seconds(goes - stays).await;

            assert!(stays == 0 || stay == 8, "{period}");
            assert_eq!(replicas(&world), 2, "{period}");
        });
    }
}

/// spec 10 §11.2: a ManagedResource does not wait for an autoscaler that it pruned itself.
#[test]
fn replicas_follow_the_manifest_at_once_when_the_bundle_itself_drops_the_autoscaler() {
    world(1, |world| async move {
        world.managed_resource().sync_period = std::time::Duration::from_secs(600).into();
        world.start().await;
        world.bundle("one", &[web(), autoscaler("apps/v1")]);
        world.applied("one").await;
        seconds(2).await;
        scale(&world, 8).await;
        seconds(5).await;
        assert_eq!(replicas(&world), 8);
        world.secret("one", &[web()]);
        seconds(3).await;

        assert!(world.sim.objects("horizontalpodautoscalers.autoscaling").is_empty());
        assert_eq!(replicas(&world), 2);
    });
}

/// spec 10 §11.2: a new autoscaler takes effect at once.
#[test]
fn replicas_are_left_to_a_new_autoscaler_at_once() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[web()]);
        world.applied("one").await;
        seconds(70).await;
        world.sim.put(autoscaler("apps/v1")).expect("it is valid");
        scale(&world, 8).await;
        seconds(130).await;

        assert_eq!(replicas(&world), 8);
    });
}

/// spec 10 scenario 40.
#[test]
fn autoscaler_that_is_broken_is_named_in_a_warning_and_blocks_no_other() {
    let ((), text) = logged(tracing::Level::INFO, || {
        world(1, |world| async move {
            world.sim.put(with(autoscaler("a/b/c"), "/metadata/name", json!("broken"))).unwrap();
            world.sim.put(autoscaler("apps/v1")).expect("it is valid");
            world.start().await;
            world.bundle("one", &[web()]);
            world.applied("one").await;
            scale(&world, 5).await;
            seconds(130).await;

            assert!(world.is_applied("one"));
            assert_eq!(replicas(&world), 5, "the other autoscalers count");
        });
    });

    let warning = text.lines().find(|line| line.contains(WARNING)).unwrap_or_else(|| panic!("{text}"));
    assert!(warning.contains("WARN") && warning.contains("autoscaler=shoot/broken"), "{warning}");
}

//! Policies that follow client pods (`onlyForMatchingPods`).

use gardener_resource_manager::api::config::NetworkPolicyController;
use serde_json::{Value, json};

use super::{BLUE, OWN, P, WEB, cart, has, namespace, pod, put, settings, start};
use crate::world::{seconds, world};

fn gated() -> NetworkPolicyController {
    NetworkPolicyController { only_for_matching_pods: true, ..settings() }
}

fn to(key: &str, value: &str) -> Value {
    json!({ format!("{P}to-{key}"): value })
}

/// spec 40 scenario 26
#[test]
fn without_clients_only_the_world_is_let_in() {
    world(1, |world| async move {
        start(&world, gated()).await;
        put(&world, cart(&[("from-world-to-ports", "[]"), ("from-probes-allowed-ports", r#"[{"port":9090}]"#)]));
        has(&world, &["shop/ingress-to-cart-from-world"]).await;
    });
}

/// spec 40 scenarios 27 and 29
#[test]
fn a_pair_comes_with_the_first_client_and_goes_with_the_last() {
    world(1, |world| async move {
        namespace(&world, "web", &[("team", "blue")]);
        start(&world, gated()).await;
        put(&world, cart(&[BLUE]));
        seconds(5).await;
        pod(&world, "web", "one", to("shop-cart-tcp-8443", "allowed"));
        has(&world, &WEB).await;
        pod(&world, "web", "two", to("shop-cart-tcp-8443", "allowed"));
        seconds(2).await;
        world.sim.clear_requests();
        world.sim.remove("pods", "web", "one");
        seconds(5).await;
        assert_eq!(world.writes(), [""; 0]);
        world.sim.remove("pods", "web", "two");
        has(&world, &[]).await;
    });
}

/// spec 40 scenario 28
#[test]
fn a_label_with_another_value_is_no_client() {
    world(1, |world| async move {
        start(&world, gated()).await;
        put(&world, cart(&[]));
        pod(&world, "shop", "one", to("cart-tcp-8443", "denied"));
        seconds(5).await;
        has(&world, &[]).await;
        pod(&world, "shop", "two", to("cart-tcp-8443", "allowed"));
        has(&world, &OWN).await;
    });
}

/// spec 40 "Better than upstream" 4
#[test]
fn a_template_brings_the_policies_before_its_pods() {
    let template = |spec: Value| json!({ "metadata": { "labels": to("cart-tcp-8443", "allowed") }, "spec": spec });
    let spec = json!({ "containers": [{ "name": "c", "image": "i" }] });
    let selector = json!({ "matchLabels": to("cart-tcp-8443", "allowed") });
    let cases = [
        ("apps/v1", "Deployment", json!({ "selector": selector, "template": template(spec.clone()) })),
        (
            "batch/v1",
            "CronJob",
            json!({ "schedule": "@daily", "jobTemplate": { "spec": { "template": template(spec) } } }),
        ),
    ];
    for (version, kind, spec) in cases {
        world(1, |world| async move {
            start(&world, gated()).await;
            put(&world, cart(&[]));
            seconds(5).await;
            let metadata = json!({ "namespace": "shop", "name": "client" });
            put(&world, json!({ "apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec }));
            has(&world, &OWN).await;
        });
    }
}

//! Policies that follow client pods (`onlyForMatchingPods`).

use std::time::Duration;

use gardener_resource_manager::api::config::resource_manager::NetworkPolicyController;
use serde_json::{Value, json};
use sim::{Fault, Seen};

use super::{BLUE, OWN, P, WEB, begin, cart, has, namespace, pod, put, settings, start};
use crate::world::{World, seconds, world};

fn gated() -> NetworkPolicyController {
    NetworkPolicyController { only_for_matching_pods: true, ..settings() }
}

fn to(key: &str, value: &str) -> Value {
    json!({ format!("{P}to-{key}"): value })
}

/// spec 40 scenario 26
#[test]
fn gated_policies_without_clients_allow_only_the_world() {
    world(1, |world| async move {
        start(&world, gated()).await;
        put(&world, cart(&[("from-world-to-ports", "[]"), ("from-probes-allowed-ports", r#"[{"port":9090}]"#)]));
        has(&world, &["shop/ingress-to-cart-from-world"]).await;
    });
}

/// spec 40 scenarios 27 and 29
#[test]
fn gated_policies_exist_from_the_first_to_the_last_client() {
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
fn gated_policies_ignore_a_label_with_another_value() {
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
fn gated_policies_of_a_template_precede_its_pods() {
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

fn deployment(world: &World) {
    let template = json!({
        "metadata": { "labels": to("cart-tcp-8443", "allowed") },
        "spec": { "containers": [{ "name": "c", "image": "i" }] },
    });
    let spec = json!({ "selector": { "matchLabels": to("cart-tcp-8443", "allowed") }, "template": template });
    let metadata = json!({ "namespace": "shop", "name": "client" });
    put(world, json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec }));
}

/// spec 40 §7.6, T-11: everything that defines clients is known before the first reconcile.
#[test]
fn gated_policies_of_a_template_outlive_a_restart() {
    world(1, |world| async move {
        start(&world, gated()).await;
        put(&world, cart(&[]));
        deployment(&world);
        has(&world, &OWN).await;
        world.stop().await;
        world.sim.clear_requests();
        // The list of Deployments comes last.
        world.sim.set_faults(|info| {
            let is_it = info.resource == "deployments" && info.verb == "list";
            if is_it { Fault::DelayAnswer(Duration::from_secs(20)) } else { Fault::None }
        });
        begin(&world, gated()).await;
        seconds(60).await;
        assert_eq!(world.writes(), [""; 0]);
        has(&world, &OWN).await;
    });
}

/// spec 40 §5.6: an API server that has not yet read its roles denies everything.
#[test]
fn gated_policies_of_a_template_outlive_a_start_of_the_api_server() {
    for is_restarted in [true, false] {
        world(1, move |world| async move {
            start(&world, gated()).await;
            put(&world, cart(&[]));
            deployment(&world);
            has(&world, &OWN).await;
            world.sim.clear_requests();
            world.sim.set_faults(|info| {
                let is_it = info.resource == "deployments" && info.user.starts_with("grm");
                if is_it { Fault::FailBefore(Seen::forbidden(info)) } else { Fault::None }
            });
            if is_restarted {
                world.stop().await;
                begin(&world, gated()).await;
            } else {
                world.sim.break_watches(sim::WatchEnd::Disconnect);
            }
            seconds(3).await;
            world.sim.clear_faults();
            seconds(120).await;
            assert_eq!(world.writes(), [""; 0]);
            has(&world, &OWN).await;
        });
    }
}

/// spec 40 §5.6: the right to read templates may not be granted.
#[test]
fn gated_policies_need_no_right_to_see_templates() {
    world(1, |world| async move {
        world.sim.set_faults(|info| {
            let is_it = info.resource == "deployments" && info.user.starts_with("grm");
            if is_it { Fault::FailBefore(Seen::forbidden(info)) } else { Fault::None }
        });
        start(&world, gated()).await;
        put(&world, cart(&[]));
        pod(&world, "shop", "one", to("cart-tcp-8443", "allowed"));
        seconds(25).await;
        has(&world, &[]).await;
        seconds(75).await;
        has(&world, &OWN).await;
        world.sim.remove("pods", "shop", "one");
        has(&world, &[]).await;
    });
}

/// spec 40 §5.3: a client affects the Services of its own namespace, and Services that select it.
#[test]
fn gated_client_enqueues_only_the_services_it_affects() {
    world(1, |world| async move {
        for name in ["web", "other", "third"] {
            namespace(&world, name, &[("team", if name == "web" { "blue" } else { "red" })]);
        }
        start(&world, gated()).await;
        let selectors = |team: &str| json!([{ "matchLabels": { "team": team } }]).to_string();
        let put_in = |home: &str, annotations: &[(&str, &str)]| {
            let mut service = cart(annotations);
            service["metadata"]["namespace"] = json!(home);
            put(&world, service);
        };
        let probes = ("from-probes-allowed-ports", r#"[{"port":9090}]"#);
        let alias = ("pod-label-selector-namespace-alias", "all");
        // Their actors stay: each has a policy.
        let open = ("from-world-to-ports", "[]");
        put_in("shop", &[open, probes, alias, ("namespace-selectors", &selectors("blue"))]);
        put_in("other", &[open, probes, alias, ("namespace-selectors", &selectors("red"))]);
        put_in("third", &[open, probes, alias]);
        seconds(5).await;
        let reconciles = || {
            let actors = world.universe.env.status_registry.snapshot();
            let of = |home: &str| {
                let path = format!("networkpolicy/{home}/cart");
                actors.iter().find(|actor| actor.path == path).map_or(0, |actor| actor.finished)
            };
            ["shop", "other", "third"].map(of)
        };
        let before = reconciles();
        pod(&world, "web", "one", to("all-probes", "allowed"));
        seconds(5).await;
        let after = reconciles();
        assert!(before.iter().all(|reconciles| *reconciles > 0) && after[0] > before[0], "{before:?} {after:?}");
        assert_eq!(after[1..], before[1..]);
        pod(&world, "third", "one", to("probes", "allowed"));
        seconds(5).await;
        let last = reconciles();
        assert!(last[2] > after[2], "{after:?} {last:?}");
        assert_eq!(last[0], after[0]);
    });
}

//! Unreadable sources of policies: they never open more than they say, and exactly their existing policies stay.

use serde_json::{Value, json};

use super::{
    BLUE, OWN, P, WEB, begin, cart, cart_with_ports,
    exposure::{HOST, gateway, istio, virtual_service},
    has, namespace, pod, policy, put, set_label, settings, start,
};
use crate::world::{World, seconds, world};

const PROBES: (&str, &str) = ("from-probes-allowed-ports", r#"[{"port":9090}]"#);
const PROBES_OWN: [&str; 2] = ["shop/ingress-to-cart-tcp-9090-via-probes", "shop/egress-to-cart-tcp-9090-via-probes"];

async fn is_reported(world: &World, parts: &[&str]) {
    let reports =
        |event: &Value| parts.iter().all(|part| event["message"].as_str().is_some_and(|it| it.contains(part)));
    world.eventually("a warning", || world.sim.objects("events").iter().any(reports)).await;
}

/// spec 40 §11 P3, P9, decision 39
#[test]
fn annotation_is_read_in_any_case() {
    world(1, |world| async move {
        namespace(&world, "web", &[("team", "blue")]);
        namespace(&world, "db", &[("team", "red")]);
        start(&world, settings()).await;
        let selectors = r#"[{"MatchLabels":{"team":"red"},"matchlabels":{"team":"blue"}}]"#;
        put(
            &world,
            cart(&[("namespace-selectors", selectors), ("from-probes-allowed-ports", r#"[{"PORT":1,"Port":9090}]"#)]),
        );
        let probes_web =
            ["shop/ingress-to-cart-tcp-9090-via-probes-from-web", "web/egress-to-shop-cart-tcp-9090-via-probes"];
        has(&world, &[OWN, WEB, PROBES_OWN, probes_web].concat()).await;
    });
}

/// spec 40 §11 P3, P9, decision 39: an unknown field never widens a policy.
#[test]
fn annotation_with_an_unknown_field_is_unusable() {
    for (selectors, field) in [
        (r#"[{"matchLabel":{"team":"blue"}}]"#, "\"matchLabel\""),
        (r#"[{"matchLabels":{"team":"blue"},"matchExpression":[]}]"#, "\"matchExpression\""),
        (r#"[{"matchExpressions":[{"key":"team","operator":"Exists","value":"blue"}]}]"#, "\"value\""),
    ] {
        world(1, |world| async move {
            namespace(&world, "web", &[("team", "blue")]);
            namespace(&world, "db", &[("team", "red")]);
            start(&world, settings()).await;
            put(&world, cart(&[("namespace-selectors", selectors)]));
            seconds(30).await;
            has(&world, &OWN).await;
            is_reported(&world, &["namespace-selectors: failed unmarshalling", "unknown field", field]).await;
            put(&world, cart(&[BLUE]));
            has(&world, &[OWN, WEB].concat()).await;
            put(&world, cart(&[("namespace-selectors", selectors)]));
            seconds(30).await;
            has(&world, &[OWN, WEB].concat()).await;
        });
    }
    world(1, |world| async move {
        start(&world, settings()).await;
        put(&world, cart(&[("from-world-to-ports", r#"[{"prot":8443}]"#)]));
        seconds(30).await;
        has(&world, &OWN).await;
        is_reported(&world, &["from-world-to-ports: failed unmarshalling", "port [0]: unknown field \"prot\""]).await;
    });
}

/// spec 40 §8.4, "Better than upstream" 5
#[test]
fn annotation_that_is_broken_keeps_no_other_alias_open() {
    world(1, |world| async move {
        start(&world, settings()).await;
        let (pro, tail) =
            (("from-pro-allowed-ports", r#"[{"port":1}]"#), ("from-x-via-pro-allowed-ports", r#"[{"port":2}]"#));
        put(&world, cart(&[pro, tail, PROBES]));
        let pro_own = ["shop/ingress-to-cart-tcp-1-via-pro", "shop/egress-to-cart-tcp-1-via-pro"];
        let tail_own = ["shop/ingress-to-cart-tcp-2-via-x-via-pro", "shop/egress-to-cart-tcp-2-via-x-via-pro"];
        has(&world, &[OWN, pro_own, tail_own, PROBES_OWN].concat()).await;
        put(&world, cart(&[("from-pro-allowed-ports", "[")]));
        has(&world, &[OWN, pro_own].concat()).await;
        put(&world, cart(&[]));
        has(&world, &OWN).await;
    });
}

/// spec 40 §11 P2, §8.4
#[test]
fn annotation_of_the_empty_alias_that_is_broken_keeps_its_own() {
    world(1, |world| async move {
        namespace(&world, "web", &[("team", "blue")]);
        start(&world, settings()).await;
        put(&world, cart(&[BLUE, ("from--allowed-ports", r#"[{"port":9090}]"#), PROBES]));
        let plain = ["shop/ingress-to-cart-tcp-9090", "shop/egress-to-cart-tcp-9090"];
        let plain_web = ["shop/ingress-to-cart-tcp-9090-from-web", "web/egress-to-shop-cart-tcp-9090"];
        let probes_web =
            ["shop/ingress-to-cart-tcp-9090-via-probes-from-web", "web/egress-to-shop-cart-tcp-9090-via-probes"];
        has(&world, &[OWN, WEB, plain, plain_web, PROBES_OWN, probes_web].concat()).await;
        put(&world, cart(&[BLUE, ("from--allowed-ports", "{")]));
        has(&world, &[OWN, WEB, plain, plain_web].concat()).await;
        // The namespace's label says that it is no longer a client.
        set_label(&world, "web", "team", json!("red"));
        has(&world, &[OWN, plain].concat()).await;
    });
}

/// spec 40 §8.4
#[test]
fn annotation_of_namespaces_that_is_broken_keeps_no_removed_port() {
    world(1, |world| async move {
        namespace(&world, "web", &[("team", "blue")]);
        start(&world, settings()).await;
        let port = |target: u16| json!([{ "port": 443, "protocol": "TCP", "targetPort": target }]);
        put(&world, cart(&[BLUE]));
        has(&world, &[OWN, WEB].concat()).await;
        let mut broken = cart_with_ports(port(9443));
        broken["metadata"]["annotations"] = json!({ format!("{P}namespace-selectors"): "[" });
        put(&world, broken.clone());
        has(&world, &["shop/ingress-to-cart-tcp-9443", "shop/egress-to-cart-tcp-9443"]).await;
        put(&world, cart(&[BLUE]));
        has(&world, &[OWN, WEB].concat()).await;
        put(&world, cart(&[("namespace-selectors", "[")]));
        seconds(30).await;
        has(&world, &[OWN, WEB].concat()).await;
    });
}

/// spec 40 §7.10, §8.4
#[test]
fn gateway_that_is_missing_keeps_no_namespace_open_that_is_named_like_istio() {
    world(1, |world| async move {
        istio(&world);
        namespace(&world, "istio-x", &[("team", "blue")]);
        namespace(&world, "ingress", &[]);
        pod(&world, "ingress", "gateway", json!({ "app": "gw" }));
        start(&world, settings()).await;
        gateway(&world, "gw", "gw");
        virtual_service(&world, &["gw"], HOST);
        put(&world, cart(&[BLUE]));
        let of_gateway =
            ["shop/ingress-to-cart-tcp-8443-from-ingress", "ingress/egress-to-shop-cart-tcp-8443-from-istio"];
        let of_client = ["shop/ingress-to-cart-tcp-8443-from-istio-x", "istio-x/egress-to-shop-cart-tcp-8443"];
        has(&world, &[OWN, of_gateway, of_client].concat()).await;
        world.sim.remove("gateways.networking.istio.io", "shop", "gw");
        set_label(&world, "istio-x", "team", json!("red"));
        seconds(60).await;
        has(&world, &[OWN, of_gateway].concat()).await;
    });
}

/// spec 40 §7.11, §8.4: a client and a gateway in one policy.
#[test]
fn gateway_that_is_missing_keeps_its_part_of_a_policy() {
    world(1, |world| async move {
        istio(&world);
        namespace(&world, "ingress", &[("team", "blue")]);
        pod(&world, "ingress", "gateway", json!({ "app": "gw" }));
        start(&world, settings()).await;
        gateway(&world, "gw", "gw");
        virtual_service(&world, &["gw"], HOST);
        put(&world, cart(&[BLUE]));
        let shared = "shop/ingress-to-cart-tcp-8443-from-ingress";
        let out = ["ingress/egress-to-shop-cart-tcp-8443-from-istio", "ingress/egress-to-shop-cart-tcp-8443"];
        has(&world, &[OWN[0], OWN[1], shared, out[0], out[1]]).await;
        let peers = || policy(&world, shared)["spec"]["ingress"][0]["from"].as_array().map_or(0, Vec::len);
        assert_eq!(peers(), 2);
        world.sim.remove("gateways.networking.istio.io", "shop", "gw");
        seconds(60).await;
        assert_eq!(peers(), 2);
        virtual_service(&world, &[], HOST);
        world.eventually("the client alone", || peers() == 1).await;
    });
}

/// spec 40 §7.10: a request for pods never means something other than the Gateway's selector.
#[test]
fn gateway_with_a_selector_that_is_no_label_is_refused() {
    for app in ["gw,!x", "gw,other=1", "a b", "!gw"] {
        world(1, |world| async move {
            istio(&world);
            namespace(&world, "ingress", &[]);
            pod(&world, "ingress", "gateway", json!({ "app": "gw" }));
            begin(&world, settings()).await;
            namespace(&world, "shop", &[]);
            gateway(&world, "odd", app);
            virtual_service(&world, &["odd"], HOST);
            put(&world, cart(&[]));
            is_reported(
                &world,
                &["gateway shop/odd of VirtualService cart has a selector that cannot be used: key \"app\""],
            )
            .await;
            has(&world, &OWN).await;
            assert!(!world.asked().iter().any(|request| request.contains("pods")), "{:?}", world.asked());
        });
    }
}

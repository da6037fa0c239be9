use serde_json::{Value, json};
use sim::{Fault, Seen};

use super::{BLUE, OWN, P, WEB, begin, cart, has, names, namespace, pod, policies_of, policy, put, settings, start};
use crate::world::{seconds, world};

/// spec 40 scenario 2
#[test]
fn up_to_date_policies_cost_no_request() {
    world(1, |world| async move {
        start(&world, settings()).await;
        put(&world, cart(&[("from-world-to-ports", r#"[{"port":53}]"#)]));
        has(&world, &["shop/ingress-to-cart-from-world", OWN[0], OWN[1]]).await;
        world.stop().await;
        begin(&world, settings()).await;
        world.sim.edit("networkpolicies.networking.k8s.io", "shop", "ingress-to-cart-from-world", |live| {
            live["metadata"]["annotations"]["mine"] = json!("1");
        });
        seconds(60).await;
        assert_eq!(world.asked(), [""; 0]);
    });
}

/// spec 40 scenario 15, §8.4, "Better than upstream" 5
#[test]
fn broken_annotation_keeps_its_policies() {
    world(1, |world| async move {
        namespace(&world, "web", &[("team", "blue")]);
        start(&world, settings()).await;
        let world_policy = "shop/ingress-to-cart-from-world";
        let probes = ["shop/ingress-to-cart-tcp-9090-via-probes", "shop/egress-to-cart-tcp-9090-via-probes"];
        let probes_web =
            ["shop/ingress-to-cart-tcp-9090-via-probes-from-web", "web/egress-to-shop-cart-tcp-9090-via-probes"];
        let good = [BLUE, ("from-world-to-ports", "[]"), ("from-probes-allowed-ports", r#"[{"port":9090}]"#)];
        put(&world, cart(&good));
        let all = [&[world_policy][..], &OWN, &WEB, &probes, &probes_web].concat();
        has(&world, &all).await;
        for broken in 0..good.len() {
            let mut annotations = good;
            annotations[broken].1 = "[{";
            put(&world, cart(&annotations));
            seconds(30).await;
            has(&world, &all).await;
            let key = format!("annotation {P}{}: failed unmarshalling [{{: ", good[broken].0);
            let is_reported = |event: &Value| event["message"].as_str().is_some_and(|text| text.starts_with(&key));
            world.eventually("a warning", || world.sim.objects("events").iter().any(is_reported)).await;
        }
        // Readable parts still apply: the alias is removed, the world's ports cannot be read.
        put(&world, cart(&[BLUE, ("from-world-to-ports", "{}")]));
        has(&world, &[&[world_policy][..], &OWN, &WEB].concat()).await;
    });
}

/// spec 40 §11 P6, P7
#[test]
fn alias_port_without_a_number_is_reported_by_its_index() {
    world(1, |world| async move {
        start(&world, settings()).await;
        put(&world, cart(&[("from-probes-allowed-ports", r#"[{"port":1},{"protocol":"UDP"}]"#)]));
        has(&world, &OWN).await;
        let is_reported =
            |event: &Value| event["message"].as_str().is_some_and(|text| text.contains("port [1]: it has no port"));
        world.eventually("a warning", || world.sim.objects("events").iter().any(is_reported)).await;
    });
}

/// spec 40 scenario 39
#[test]
fn start_with_three_thousand_services_reconciles_each_once() {
    world(1, |world| async move {
        namespace(&world, "shop", &[]);
        for number in 0..3_000 {
            let mut service = cart(&[]);
            service["metadata"]["name"] = json!(format!("s{number}"));
            service["spec"]["selector"] = json!({});
            put(&world, service);
        }
        for number in 0..200 {
            pod(&world, "shop", &format!("p{number}"), json!({ format!("{P}to-cart-tcp-8443"): "allowed" }));
        }
        let settings = super::NetworkPolicyController { only_for_matching_pods: true, ..settings() };
        world.config.borrow_mut().controllers.network_policy = settings.into();
        world.start().await;
        seconds(30).await;
        let asked = world.asked();
        assert!(asked.iter().filter(|request| request.starts_with("list pods")).count() <= 1, "{asked:?}");
        assert!(
            !asked.iter().any(|request| request.starts_with("get pods") || request.starts_with("get services")),
            "{asked:?}"
        );
        let actors = world.universe.env.status_registry.snapshot();
        let reconciles: u64 =
            actors.iter().filter(|it| it.path.starts_with("networkpolicy/shop/")).map(|it| it.finished).sum();
        assert!(reconciles <= 3_000, "{reconciles}");
    });
}

/// spec 40 §8.4: the failure of one policy does not affect the others.
#[test]
fn refused_policy_blocks_no_other() {
    world(1, |world| async move {
        start(&world, settings()).await;
        world.sim.set_faults(|info| {
            let is_one = info.verb == "create" && info.resource == "networkpolicies" && info.number.is_multiple_of(2);
            if is_one { Fault::FailBefore(Seen::unavailable()) } else { Fault::None }
        });
        put(&world, cart(&[]));
        world.eventually("one of them", || !names(&world).is_empty()).await;
        world.sim.clear_faults();
        has(&world, &OWN).await;
    });
}

/// spec 40 §7.8: accepted wordings.
#[test]
fn older_wording_of_a_description_is_not_updated() {
    world(1, |world| async move {
        start(&world, settings()).await;
        put(&world, cart(&[]));
        has(&world, &OWN).await;
        let text = policy(&world, OWN[0])["metadata"]["annotations"]["gardener.cloud/description"].clone();
        let text = text.as_str().expect("a text").replace(":allowed].", ":allowed] []}.").replace(" map[", " {map[");
        world.sim.edit("networkpolicies.networking.k8s.io", "shop", "ingress-to-cart-tcp-8443", |live| {
            live["metadata"]["annotations"]["gardener.cloud/description"] = json!(text);
        });
        seconds(30).await;
        assert_eq!(policy(&world, OWN[0])["metadata"]["annotations"]["gardener.cloud/description"], json!(text));
        assert_eq!(policies_of(&world, "shop", "cart").len(), 2);
    });
}

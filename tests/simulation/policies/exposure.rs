use std::time::Duration;

use serde_json::{Value, json};
use sim::Start;
use tracing::Level;

use super::{
    BLUE, OWN, begin, cart, cart_with_ports, has, namespace, pod, policy, put, set_label, settings, start, terminate,
    with_ingress_controller,
};
use crate::{
    log_capture::logged,
    objects::istio_definition,
    world::{World, seconds, world},
};

fn ingress(backends: &[Value]) -> Value {
    let path = |port: &Value| json!({ "pathType": "Prefix", "path": "/", "backend": { "service": { "name": "cart", "port": port } } });
    let paths: Vec<Value> = backends.iter().map(path).collect();
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": { "namespace": "shop", "name": "cart" },
        "spec": { "rules": [{ "http": { "paths": paths } }] },
    })
}

const EDGE: [&str; 2] = [
    "shop/ingress-to-cart-tcp-8443-from-ingress-controller",
    "edge/egress-to-shop-cart-tcp-8443-from-ingress-controller",
];

/// spec 40 scenarios 30 and 31
#[test]
fn ingress_backend_is_open_to_the_ingress_controller() {
    world(1, |world| async move {
        namespace(&world, "edge", &[]);
        start(&world, with_ingress_controller("edge")).await;
        put(&world, cart(&[]));
        has(&world, &OWN).await;
        let number = json!({ "number": 443 });
        put(&world, ingress(&[number.clone(), number.clone(), number]));
        has(&world, &[OWN, EDGE].concat()).await;
        let egress = policy(&world, EDGE[1]);
        assert_eq!(egress["spec"]["podSelector"], json!({ "matchLabels": { "app": "edge-proxy" } }));
        assert_eq!(
            policy(&world, EDGE[0])["metadata"]["annotations"]["gardener.cloud/description"],
            "Allows ingress TCP traffic to port 8443 for pods selected by the shop/cart service selector from ingress \
             controller pods running in the edge namespace labeled with map[app:edge-proxy]."
        );
        put(&world, ingress(&[json!({ "name": "https" })]));
        has(&world, &[OWN, EDGE].concat()).await;
        world.sim.remove("ingresses.networking.k8s.io", "shop", "cart");
        has(&world, &OWN).await;
    });
}

/// spec 40 scenario 32
#[test]
fn ingress_controller_beside_the_service_needs_no_namespace() {
    world(1, |world| async move {
        start(&world, with_ingress_controller("shop")).await;
        put(&world, cart(&[]));
        put(&world, ingress(&[json!({ "number": 443 })]));
        let egress = "shop/egress-to-cart-tcp-8443-from-ingress-controller";
        has(&world, &[OWN[0], OWN[1], EDGE[0], egress]).await;
        assert!(policy(&world, EDGE[0])["spec"]["ingress"][0]["from"][0].get("namespaceSelector").is_none());
        assert!(policy(&world, egress)["spec"]["egress"][0]["to"][0].get("namespaceSelector").is_none());
    });
}

/// spec 40 scenario 33
#[test]
fn ingress_backend_without_a_port_of_the_service_opens_nothing() {
    world(1, |world| async move {
        namespace(&world, "edge", &[]);
        start(&world, with_ingress_controller("edge")).await;
        put(&world, cart_with_ports(json!([{ "port": 443, "protocol": "TCP", "targetPort": 8443 }])));
        put(&world, ingress(&[json!({ "number": 8080 })]));
        seconds(5).await;
        has(&world, &OWN).await;
    });
}

/// spec 40 §7.9, "Better than upstream" 14
#[test]
fn ingress_controller_egress_waits_for_its_namespace() {
    world(1, |world| async move {
        start(&world, with_ingress_controller("edge")).await;
        put(&world, cart(&[]));
        put(&world, ingress(&[json!({ "number": 443 })]));
        has(&world, &[OWN[0], OWN[1], EDGE[0]]).await;
        namespace(&world, "edge", &[]);
        has(&world, &[OWN, EDGE].concat()).await;
    });
}

pub(super) fn istio(world: &World) {
    put(world, istio_definition("v1beta1", "VirtualService", "virtualservices"));
    put(world, istio_definition("v1beta1", "Gateway", "gateways"));
}

pub(super) fn gateway(world: &World, name: &str, app: &str) {
    put(
        world,
        json!({
            "apiVersion": "networking.istio.io/v1beta1", "kind": "Gateway",
            "metadata": { "namespace": "shop", "name": name }, "spec": { "selector": { "app": app } },
        }),
    );
}

pub(super) fn virtual_service(world: &World, gateways: &[&str], host: &str) {
    put(
        world,
        json!({
            "apiVersion": "networking.istio.io/v1beta1", "kind": "VirtualService",
            "metadata": { "namespace": "shop", "name": "cart" },
            "spec": {
                "gateways": gateways,
                "http": [{ "route": [{ "destination": { "host": host, "port": { "number": 443 } } }] }],
            },
        }),
    );
}

pub(super) const HOST: &str = "cart.shop.svc.cluster.local";

fn gateway_pods(world: &World) {
    for namespace in ["istio-a", "istio-b"] {
        super::namespace(world, namespace, &[]);
        pod(world, namespace, "gateway", json!({ "app": "gw" }));
    }
}

const ISTIO: [&str; 4] = [
    "shop/ingress-to-cart-tcp-8443-from-istio-a",
    "shop/ingress-to-cart-tcp-8443-from-istio-b",
    "istio-a/egress-to-shop-cart-tcp-8443-from-istio",
    "istio-b/egress-to-shop-cart-tcp-8443-from-istio",
];

/// spec 40 scenario 34
#[test]
fn virtual_service_destination_is_open_to_the_pods_of_its_gateways() {
    world(1, |world| async move {
        istio(&world);
        gateway_pods(&world);
        start(&world, settings()).await;
        put(&world, cart(&[]));
        gateway(&world, "gw", "gw");
        virtual_service(&world, &["gw"], HOST);
        has(&world, &[&OWN[..], &ISTIO].concat()).await;
        assert_eq!(policy(&world, ISTIO[2])["spec"]["podSelector"], json!({ "matchLabels": { "app": "gw" } }));

        world.sim.remove("pods", "istio-a", "gateway");
        has(&world, &[OWN[0], OWN[1], ISTIO[1], ISTIO[3]]).await;
        gateway(&world, "gw", "other");
        has(&world, &OWN).await;
        gateway(&world, "gw", "gw");
        pod(&world, "istio-a", "gateway", json!({ "app": "gw" }));
        has(&world, &[&OWN[..], &ISTIO].concat()).await;
        terminate(&world, "istio-a");
        has(&world, &[OWN[0], OWN[1], ISTIO[1], ISTIO[3]]).await;
    });
}

/// decision 38; spec 40 scenario 38: an API server that is starting denies that Istio's kinds exist.
#[test]
fn gateways_keep_their_policies_while_the_api_server_starts() {
    let usual = Start::default();
    let lingering = [
        usual,
        Start { installing: Duration::from_secs(20), ..usual },
        Start { discovering: Duration::from_secs(20), unready: Duration::from_secs(20), ..usual },
    ];
    for api_server in lingering {
        for is_program_started_too in [false, true] {
            world(1, |world| async move {
                istio(&world);
                gateway_pods(&world);
                start(&world, settings()).await;
                put(&world, cart(&[]));
                gateway(&world, "gw", "gw");
                virtual_service(&world, &["gw"], HOST);
                has(&world, &[&OWN[..], &ISTIO].concat()).await;
                if is_program_started_too {
                    world.stop().await;
                }
                world.sim.clear_requests();
                world.sim.restart(api_server);
                if is_program_started_too {
                    world.start().await;
                }
                seconds(10).await;
                set_label(&world, "shop", "touched", json!("yes"));
                put(&world, cart(&[BLUE]));
                seconds(120).await;
                let writes = world.writes();
                assert!(!writes.iter().any(|write| write.starts_with("delete networkpolicies")), "{writes:?}");

                // The controller still works.
                virtual_service(&world, &["other"], HOST);
                gateway(&world, "other", "none");
                has(&world, &OWN).await;
            });
        }
    }
}

/// spec 40 §5.5, spec 42 §2
#[test]
fn missing_istio_is_logged() {
    let (_, log) = logged(Level::INFO, || {
        world(1, |world| async move {
            start(&world, settings()).await;
            seconds(60).await;
        });
    });
    let text = "VirtualService watch will not be added because Istio CRDs are not installed";
    assert_eq!(log.matches(text).count(), 1, "{log}");
}

/// spec 40 scenario 35
#[test]
fn virtual_service_with_a_short_host_opens_nothing() {
    for host in ["cart", "cart.shop", "cart.shop.svc", "cart.shop.svc.example.org", "a.cart.shop.svc.cluster.local"] {
        world(1, |world| async move {
            istio(&world);
            gateway_pods(&world);
            start(&world, settings()).await;
            put(&world, cart(&[]));
            gateway(&world, "gw", "gw");
            virtual_service(&world, &["gw"], host);
            seconds(5).await;
            has(&world, &OWN).await;
        });
    }
}

/// spec 40 scenario 36
#[test]
fn gateway_that_is_missing_blocks_no_other_policy() {
    world(1, |world| async move {
        istio(&world);
        gateway_pods(&world);
        start(&world, settings()).await;
        gateway(&world, "gw", "gw");
        virtual_service(&world, &["nope", "gw"], HOST);
        put(&world, cart(&[]));
        has(&world, &[&OWN[..], &ISTIO].concat()).await;
        let is_reported = |event: &Value| {
            let text = event["message"].as_str().unwrap_or_default();
            text.contains("gateway shop/nope of VirtualService cart does not exist")
        };
        world.eventually("a warning", || world.sim.objects("events").iter().any(is_reported)).await;
        super::namespace(&world, "istio-c", &[]);
        pod(&world, "istio-c", "gateway", json!({ "app": "third" }));
        gateway(&world, "nope", "third");
        let third = ["shop/ingress-to-cart-tcp-8443-from-istio-c", "istio-c/egress-to-shop-cart-tcp-8443-from-istio"];
        has(&world, &[&OWN[..], &ISTIO, &third].concat()).await;
        // A Gateway that existed and is deleted leaves its policies: the VirtualService still names it.
        world.sim.remove("gateways.networking.istio.io", "shop", "nope");
        seconds(60).await;
        has(&world, &[&OWN[..], &ISTIO, &third].concat()).await;
        virtual_service(&world, &["gw"], HOST);
        has(&world, &[&OWN[..], &ISTIO].concat()).await;
    });
}

/// spec 40 scenario 37
#[test]
fn gateway_in_a_selected_namespace_shares_a_policy_with_other_clients() {
    world(1, |world| async move {
        istio(&world);
        super::namespace(&world, "istio-a", &[("team", "blue")]);
        pod(&world, "istio-a", "gateway", json!({ "app": "gw" }));
        start(&world, settings()).await;
        gateway(&world, "gw", "gw");
        virtual_service(&world, &["gw"], HOST);
        put(&world, cart(&[BLUE]));
        let shared = ISTIO[0];
        has(&world, &[OWN[0], OWN[1], shared, ISTIO[2], "istio-a/egress-to-shop-cart-tcp-8443"]).await;
        let from = &policy(&world, shared)["spec"]["ingress"][0]["from"];
        let selectors: Vec<&Value> =
            from.as_array().into_iter().flatten().map(|it| &it["podSelector"]["matchLabels"]).collect();
        let clients = json!({ "networking.resources.gardener.cloud/to-shop-cart-tcp-8443": "allowed" });
        assert_eq!(selectors, [&json!({ "app": "gw" }), &clients]);
        world.sim.clear_requests();
        seconds(60).await;
        assert_eq!(world.writes(), [""; 0]);
    });
}

/// spec 40 scenario 38, §5.5
#[test]
fn istio_may_come_later_and_stays_after_a_restart() {
    world(1, |world| async move {
        gateway_pods(&world);
        start(&world, settings()).await;
        put(&world, cart(&[]));
        has(&world, &OWN).await;
        istio(&world);
        gateway(&world, "gw", "gw");
        virtual_service(&world, &["gw"], HOST);
        has(&world, &[&OWN[..], &ISTIO].concat()).await;
        world.stop().await;
        world.sim.clear_requests();
        begin(&world, settings()).await;
        seconds(60).await;
        assert_eq!(world.writes(), [""; 0]);
        has(&world, &[&OWN[..], &ISTIO].concat()).await;
    });
}

/// spec 40 §7.10: of any number of Gateways, named or not.
#[test]
fn gateways_may_have_any_number_of_selectors() {
    world(1, |world| async move {
        istio(&world);
        gateway_pods(&world);
        for number in 0..100 {
            gateway(&world, &format!("idle{number}"), &format!("idle{number}"));
        }
        start(&world, settings()).await;
        put(&world, cart(&[]));
        gateway(&world, "gw", "gw");
        virtual_service(&world, &["gw"], HOST);
        has(&world, &[&OWN[..], &ISTIO].concat()).await;
        let pods = |world: &World| world.asked().iter().filter(|request| request.starts_with("list pods")).count();
        assert_eq!(pods(&world), 1, "{:?}", world.asked());

        // Many named Gateways: the pods of the last one are found as those of the first.
        super::namespace(&world, "istio-c", &[]);
        pod(&world, "istio-c", "gateway", json!({ "app": "g99" }));
        for number in 0..100 {
            gateway(&world, &format!("g{number}"), &format!("g{number}"));
        }
        let names: Vec<String> = (0..100).map(|number| format!("g{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).chain(["gw"]).collect();
        virtual_service(&world, &names, HOST);
        let third = ["shop/ingress-to-cart-tcp-8443-from-istio-c", "istio-c/egress-to-shop-cart-tcp-8443-from-istio"];
        has(&world, &[&OWN[..], &ISTIO, &third].concat()).await;
        pod(&world, "istio-a", "other", json!({ "app": "g98" }));
        world.sim.remove("pods", "istio-c", "gateway");
        world.sim.remove("pods", "istio-b", "gateway");
        // Both have pods in one namespace now: the second egress policy has a suffix.
        let out = |name: &str| name.starts_with("istio-a/egress-to-shop-cart-tcp-8443-from-istio");
        world
            .eventually("both in istio-a", || {
                let names = super::names(&world);
                names.len() == 5 && names.iter().filter(|name| out(name)).count() == 2
            })
            .await;
    });
}

/// spec 40 §7.10: taking over leadership does not cost the square of their number.
#[test]
fn gateways_by_the_thousand_do_not_delay_the_start() {
    world(1, |world| async move {
        istio(&world);
        gateway_pods(&world);
        for number in 0..3_000 {
            gateway(&world, &format!("g{number}"), &format!("g{number}"));
        }
        gateway(&world, "gw", "gw");
        start(&world, settings()).await;
        put(&world, cart(&[]));
        virtual_service(&world, &["gw"], HOST);
        has(&world, &[&OWN[..], &ISTIO].concat()).await;
    });
}

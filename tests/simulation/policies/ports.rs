use serde_json::json;

use super::{
    BLUE, OWN, TCP, WEB, cart, cart_with_ports, has, names, namespace, policies_of, policy, put, settings, start,
};
use crate::world::{seconds, world};

/// spec 40 scenario 1
#[test]
fn port_has_an_ingress_and_an_egress_policy() {
    world(1, |world| async move {
        start(&world, settings()).await;
        put(&world, cart(&[]));
        has(&world, &OWN).await;

        let peer = json!({ "podSelector": { "matchLabels": { "networking.resources.gardener.cloud/to-cart-tcp-8443": "allowed" } } });
        let ports = json!([{ "protocol": TCP, "port": 8443 }]);
        let ingress = policy(&world, OWN[0]);
        assert_eq!(
            ingress["spec"],
            json!({
                "podSelector": { "matchLabels": { "app": "cart" } }, "policyTypes": ["Ingress"],
                "ingress": [{ "from": [peer], "ports": ports }],
            })
        );
        assert_eq!(
            ingress["metadata"]["labels"],
            json!({
                "networking.resources.gardener.cloud/service-name": "cart",
                "networking.resources.gardener.cloud/service-namespace": "shop",
            })
        );
        assert_eq!(
            ingress["metadata"]["annotations"]["gardener.cloud/description"],
            "Allows ingress TCP traffic to port 8443 for pods selected by the shop/cart service selector from pods running in \
             namespace shop labeled with map[networking.resources.gardener.cloud/to-cart-tcp-8443:allowed]."
        );
        let egress = policy(&world, OWN[1]);
        assert_eq!(
            egress["spec"],
            json!({
                "podSelector": peer["podSelector"], "policyTypes": ["Egress"],
                "egress": [{ "to": [{ "podSelector": { "matchLabels": { "app": "cart" } } }], "ports": ports }],
            })
        );
        assert_eq!(
            egress["metadata"]["annotations"]["gardener.cloud/description"],
            "Allows egress TCP traffic to port 8443 from pods running in namespace shop labeled with \
             map[networking.resources.gardener.cloud/to-cart-tcp-8443:allowed] to pods selected by the shop/cart service selector."
        );
    });
}

/// spec 40 scenario 3
#[test]
fn port_name_is_kept() {
    world(1, |world| async move {
        start(&world, settings()).await;
        put(&world, cart_with_ports(json!([{ "port": 9090, "protocol": TCP, "targetPort": "prom" }])));
        has(&world, &["shop/ingress-to-cart-tcp-prom", "shop/egress-to-cart-tcp-prom"]).await;
        let ingress = policy(&world, "shop/ingress-to-cart-tcp-prom");
        assert_eq!(ingress["spec"]["ingress"][0]["ports"], json!([{ "protocol": TCP, "port": "prom" }]));
    });
}

/// spec 40 scenario 4
#[test]
fn ports_with_one_target_share_a_pair_with_one_creation_each() {
    world(1, |world| async move {
        start(&world, settings()).await;
        let port =
            |name: &str, number: u16| json!({ "name": name, "port": number, "protocol": TCP, "targetPort": 8080 });
        put(&world, cart_with_ports(json!([port("http", 80), port("https", 443)])));
        has(&world, &["shop/ingress-to-cart-tcp-8080", "shop/egress-to-cart-tcp-8080"]).await;
        assert_eq!(world.writes().len(), 2, "{:?}", world.writes());
    });
}

/// spec 40 scenario 5
#[test]
fn selected_namespaces_have_their_own_pair() {
    world(1, |world| async move {
        namespace(&world, "web", &[("team", "blue")]);
        namespace(&world, "db", &[("team", "red")]);
        start(&world, settings()).await;
        put(&world, cart(&[BLUE]));
        has(&world, &[OWN, WEB].concat()).await;
        let peer = &policy(&world, WEB[0])["spec"]["ingress"][0]["from"][0];
        assert_eq!(peer["namespaceSelector"], json!({ "matchLabels": { "kubernetes.io/metadata.name": "web" } }));
        let peer = &policy(&world, WEB[1])["spec"]["egress"][0]["to"][0];
        assert_eq!(peer["namespaceSelector"], json!({ "matchLabels": { "kubernetes.io/metadata.name": "shop" } }));
    });
}

/// spec 40 scenario 8
#[test]
fn namespace_alias_appears_in_labels_and_not_in_names() {
    world(1, |world| async move {
        namespace(&world, "web", &[("team", "blue")]);
        start(&world, settings()).await;
        put(&world, cart(&[BLUE, ("pod-label-selector-namespace-alias", "all-shops")]));
        has(&world, &[OWN, WEB].concat()).await;
        let clients = |name: &str| policy(&world, name)["spec"]["podSelector"]["matchLabels"].clone();
        assert_eq!(
            clients(WEB[1]),
            json!({ "networking.resources.gardener.cloud/to-all-shops-cart-tcp-8443": "allowed" })
        );
        assert_eq!(clients(OWN[1]), json!({ "networking.resources.gardener.cloud/to-cart-tcp-8443": "allowed" }));
    });
}

const PROBES: (&str, &str) = ("from-probes-allowed-ports", r#"[{"protocol":"TCP","port":9090}]"#);
const PROBES_OWN: [&str; 2] = ["shop/ingress-to-cart-tcp-9090-via-probes", "shop/egress-to-cart-tcp-9090-via-probes"];

/// spec 40 scenarios 9 and 10
#[test]
fn ports_for_an_alias_are_open_to_pods_with_the_alias() {
    world(1, |world| async move {
        namespace(&world, "web", &[("team", "blue")]);
        start(&world, settings()).await;
        put(&world, cart(&[PROBES, BLUE]));
        let probes_web =
            ["shop/ingress-to-cart-tcp-9090-via-probes-from-web", "web/egress-to-shop-cart-tcp-9090-via-probes"];
        has(&world, &[OWN, WEB, PROBES_OWN, probes_web].concat()).await;
        let clients = |name: &str| policy(&world, name)["spec"]["podSelector"]["matchLabels"].clone();
        assert_eq!(clients(PROBES_OWN[1]), json!({ "networking.resources.gardener.cloud/to-probes": "allowed" }));
        assert_eq!(clients(probes_web[1]), json!({ "networking.resources.gardener.cloud/to-shop-probes": "allowed" }));
    });
}

/// spec 40 scenario 11
#[test]
fn alias_is_removed_alone() {
    world(1, |world| async move {
        start(&world, settings()).await;
        let scrape = ("from-scrape-allowed-ports", r#"[{"port":"prom"}]"#);
        put(&world, cart(&[PROBES, scrape]));
        let scrape = ["shop/ingress-to-cart-tcp-prom-via-scrape", "shop/egress-to-cart-tcp-prom-via-scrape"];
        has(&world, &[OWN, PROBES_OWN, scrape].concat()).await;
        put(&world, cart(&[PROBES]));
        has(&world, &[OWN, PROBES_OWN].concat()).await;
    });
}

const WORLD: &str = "shop/ingress-to-cart-from-world";

/// spec 40 scenarios 12 and 13
#[test]
fn world_is_a_list_of_three_peers() {
    let cases = [
        (r#"[{"port":"8443","protocol":"TCP"}]"#, json!([{ "protocol": TCP, "port": 8443 }]), "TCP/8443"),
        ("[]", json!(null), ""),
        ("null", json!(null), ""),
        (
            r#"[{"port":53},{"protocol":"UDP"}]"#,
            json!([{ "port": 53, "protocol": "TCP" }, { "protocol": "UDP" }]),
            "53 UDP/<nil>",
        ),
    ];
    for (annotation, ports, listed) in cases {
        world(1, |world| async move {
            start(&world, settings()).await;
            put(&world, cart(&[("from-world-to-ports", annotation)]));
            has(&world, &[WORLD, OWN[0], OWN[1]]).await;
            let policy = policy(&world, WORLD);
            let rule = &policy["spec"]["ingress"][0];
            assert_eq!(
                rule["from"],
                json!([
                    { "namespaceSelector": {}, "podSelector": {} }, { "ipBlock": { "cidr": "0.0.0.0/0" } },
                    { "ipBlock": { "cidr": "::/0" } },
                ])
            );
            assert_eq!(rule["ports"], ports);
            let text = policy["metadata"]["annotations"]["gardener.cloud/description"].as_str().expect("it exists");
            let end = format!("to ports [{listed}] for pods selected by the shop/cart service selector.");
            assert!(text.ends_with(&end), "{text}");
        });
    }
}

/// spec 40 scenario 14
#[test]
fn world_may_be_everything_except_listed_networks() {
    for (annotation, rule) in [
        (r#"[{"port":8443,"protocol":"TCP"}]"#, json!({ "ports": [{ "port": 8443, "protocol": TCP }] })),
        ("[]", json!({})),
    ] {
        world(1, |world| async move {
            let mut settings = settings();
            settings.explicit_from_world_peers = false;
            start(&world, settings).await;
            put(&world, cart(&[("from-world-to-ports", annotation)]));
            has(&world, &[WORLD, OWN[0], OWN[1]]).await;
            assert_eq!(policy(&world, WORLD)["spec"]["ingress"], json!([rule]));
        });
    }
}

/// spec 40 scenario 25
#[test]
fn client_label_that_is_too_long_is_cut_and_reported() {
    world(1, |world| async move {
        start(&world, settings()).await;
        let name = "this-is-a-very-long-svc-name-which-will-exceed-max-length";
        let mut service = cart_with_ports(json!([{ "port": 5678, "protocol": TCP, "targetPort": 5678 }]));
        service["metadata"]["name"] = json!(name);
        put(&world, service);
        let expected = format!("shop/egress-to-{name}-tcp-5678");
        world.eventually("its policies", || policies_of(&world, "shop", name).contains_key(&expected)).await;
        let cut = "networking.resources.gardener.cloud/to-this-is-a-very-long-svc-name-which-will-exceed-max-len-7c268";
        assert_eq!(policy(&world, &expected)["spec"]["podSelector"]["matchLabels"], json!({ cut: "allowed" }));
        seconds(5).await;
        let events = world.sim.objects("events");
        let event = events.iter().find(|event| event["reason"] == "PodLabelSelectorKey(s)TooLong").expect("an Event");
        assert_eq!(event["involvedObject"]["name"], name);
        assert_eq!(event["action"], "Reconcile");
        let text = event["message"].as_str().expect("a text");
        assert!(
            text.contains(&format!("was mutated to {{MatchLabels:map[{cut}:allowed] MatchExpressions:[]}})")),
            "{text}"
        );
    });
}

/// spec 40 scenario 40
#[test]
fn services_with_one_policy_name_have_two_policies() {
    world(1, |world| async move {
        for name in ["a", "a-b", "x"] {
            namespace(&world, name, &[("team", "blue")]);
        }
        start(&world, settings()).await;
        for (home, name) in [("a-b", "c"), ("a", "b-c")] {
            let mut service =
                cart(&[("namespace-selectors", r#"[{"matchLabels":{"kubernetes.io/metadata.name":"x"}}]"#)]);
            (service["metadata"]["namespace"], service["metadata"]["name"]) = (json!(home), json!(name));
            put(&world, service);
        }
        let in_x = |home: &str, name: &str| -> Vec<String> {
            policies_of(&world, home, name).into_keys().filter(|name| name.starts_with("x/")).collect()
        };
        world.eventually("both have one in x", || in_x("a-b", "c").len() == 1 && in_x("a", "b-c").len() == 1).await;
        assert_ne!(in_x("a-b", "c"), in_x("a", "b-c"));
        world.sim.clear_requests();
        seconds(300).await;
        assert_eq!(world.writes(), [""; 0], "{:?}", names(&world));
    });
}

use std::time::Duration;

use serde_json::json;
use sim::Fault;

use super::{
    BLUE, OWN, WEB, begin, cart, cart_with_ports, has, labels, names, namespace, policy, put, set_label, settings,
    start, terminate,
};
use crate::world::{seconds, world};

/// spec 40 scenarios 6 and 7
#[test]
fn namespaces_gain_and_lose_policies_with_their_labels() {
    world(1, |world| async move {
        namespace(&world, "web", &[("team", "blue")]);
        namespace(&world, "db", &[("team", "red")]);
        start(&world, settings()).await;
        put(&world, cart(&[BLUE]));
        has(&world, &[OWN, WEB].concat()).await;
        let db = ["shop/ingress-to-cart-tcp-8443-from-db", "db/egress-to-shop-cart-tcp-8443"];
        set_label(&world, "db", "team", json!("blue"));
        has(&world, &[OWN, WEB, db].concat()).await;
        set_label(&world, "web", "team", json!("red"));
        has(&world, &[OWN, db].concat()).await;
        let new = ["shop/ingress-to-cart-tcp-8443-from-new", "new/egress-to-shop-cart-tcp-8443"];
        namespace(&world, "new", &[("team", "blue")]);
        has(&world, &[OWN, db, new].concat()).await;
    });
}

/// spec 40 scenarios 16 and 17
#[test]
fn services_are_handled_in_the_namespaces_that_are_selected() {
    world(1, |world| async move {
        namespace(&world, "web", &[("team", "blue")]);
        let selectors = vec![labels(&[("np", "handled")])];
        let settings = super::NetworkPolicyController { namespace_selectors: selectors, ..settings() };
        start(&world, settings).await;
        put(&world, cart(&[BLUE]));
        seconds(5).await;
        has(&world, &[]).await;
        set_label(&world, "shop", "np", json!("handled"));
        has(&world, &[OWN, WEB].concat()).await;
        set_label(&world, "shop", "np", json!(null));
        has(&world, &[]).await;
    });
}

/// spec 40 scenario 18
#[test]
fn client_namespace_need_not_be_selected() {
    world(1, |world| async move {
        namespace(&world, "web", &[("team", "blue")]);
        namespace(&world, "shop", &[("np", "handled")]);
        let selectors = vec![labels(&[("np", "handled")])];
        begin(&world, super::NetworkPolicyController { namespace_selectors: selectors, ..settings() }).await;
        put(&world, cart(&[BLUE]));
        has(&world, &[OWN, WEB].concat()).await;
    });
}

/// spec 40 scenario 19
#[test]
fn deleted_service_leaves_no_policy() {
    world(1, |world| async move {
        namespace(&world, "web", &[("team", "blue")]);
        start(&world, settings()).await;
        put(&world, cart(&[BLUE]));
        has(&world, &[OWN, WEB].concat()).await;
        world.sim.remove("services", "shop", "cart");
        has(&world, &[]).await;
    });
}

/// spec 40 scenario 20
#[test]
fn selector_of_a_service_changes_policies_and_a_missing_one_removes_them() {
    world(1, |world| async move {
        start(&world, settings()).await;
        put(&world, cart(&[]));
        has(&world, &OWN).await;
        world.sim.clear_requests();
        world.sim.edit("services", "shop", "cart", |live| live["spec"]["selector"] = json!({ "app": "cart2" }));
        let selects = || policy(&world, OWN[0])["spec"]["podSelector"]["matchLabels"].clone();
        world.eventually("another selector", || selects() == json!({ "app": "cart2" })).await;
        seconds(2).await;
        let writes = world.writes();
        assert!(
            writes.len() == 2 && writes.iter().all(|write| write.starts_with("patch networkpolicies")),
            "{writes:?}"
        );
        world.sim.edit("services", "shop", "cart", |live| live["spec"]["selector"] = json!({}));
        has(&world, &[]).await;
    });
}

/// spec 40 scenario 21
#[test]
fn policies_of_a_service_that_does_not_exist_are_deleted() {
    world(1, |world| async move {
        let labels = json!({
            "networking.resources.gardener.cloud/service-name": "ghost",
            "networking.resources.gardener.cloud/service-namespace": "shop",
        });
        let metadata = json!({ "namespace": "shop", "name": "left-over", "labels": labels });
        namespace(&world, "shop", &[]);
        let spec = json!({ "podSelector": {} });
        put(
            &world,
            json!({ "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec }),
        );
        begin(&world, settings()).await;
        world
            .eventually("it is gone", || {
                world.sim.object("networkpolicies.networking.k8s.io", "shop", "left-over").is_none()
            })
            .await;
    });
}

/// spec 40 scenario 22, §8.3
#[test]
fn policies_edited_or_deleted_by_users_are_restored() {
    world(1, |world| async move {
        start(&world, settings()).await;
        put(&world, cart(&[]));
        has(&world, &OWN).await;
        let before = policy(&world, OWN[0]);
        let name = "ingress-to-cart-tcp-8443";
        let is_as_before = || {
            world.sim.object("networkpolicies.networking.k8s.io", "shop", name).is_some_and(|live| {
                live["spec"] == before["spec"] && live["metadata"]["labels"] == before["metadata"]["labels"]
            })
        };
        world.sim.remove("networkpolicies.networking.k8s.io", "shop", name);
        world.eventually("it exists again", is_as_before).await;
        world.sim.edit("networkpolicies.networking.k8s.io", "shop", name, |live| live["spec"]["ingress"] = json!([{}]));
        world.eventually("its rules are as before", is_as_before).await;
        world
            .sim
            .edit("networkpolicies.networking.k8s.io", "shop", name, |live| live["metadata"]["labels"] = json!({}));
        world.eventually("its labels are as before", is_as_before).await;
        world.sim.edit("networkpolicies.networking.k8s.io", "shop", name, |live| {
            live["metadata"]["annotations"] = json!({})
        });
        let description = "gardener.cloud/description";
        let text = || policy(&world, OWN[0])["metadata"]["annotations"][description].clone();
        world.eventually("its text is as before", || text() == before["metadata"]["annotations"][description]).await;
    });
}

/// spec 40 scenario 23
#[test]
fn terminating_namespace_gets_no_policy() {
    world(1, |world| async move {
        namespace(&world, "web", &[("team", "blue")]);
        start(&world, settings()).await;
        put(&world, cart(&[BLUE]));
        has(&world, &[OWN, WEB].concat()).await;
        terminate(&world, "shop");
        has(&world, &[]).await;
        world.sim.clear_requests();
        let ports = json!([{ "port": 80, "protocol": "TCP", "targetPort": 8080 }]);
        put(&world, cart_with_ports(ports));
        seconds(60).await;
        assert_eq!(world.writes(), [""; 0]);
    });
}

/// spec 40 scenario 24
#[test]
fn terminating_client_namespace_gets_no_policy_again() {
    world(1, |world| async move {
        namespace(&world, "web", &[("team", "blue")]);
        start(&world, settings()).await;
        put(&world, cart(&[BLUE]));
        has(&world, &[OWN, WEB].concat()).await;
        terminate(&world, "web");
        world.sim.remove("networkpolicies.networking.k8s.io", "web", "egress-to-shop-cart-tcp-8443");
        has(&world, &OWN).await;
        assert!(!world.writes().iter().skip(4).any(|write| write.starts_with("create")), "{:?}", world.writes());
    });
}

/// spec 40 §8.1: a policy without the labels is adopted.
#[test]
fn policy_of_that_name_without_labels_is_adopted() {
    world(1, |world| async move {
        namespace(&world, "shop", &[]);
        let metadata = json!({ "namespace": "shop", "name": "ingress-to-cart-tcp-8443", "labels": { "mine": "yes" } });
        let spec = json!({ "podSelector": {}, "policyTypes": ["Egress"], "egress": [{}] });
        put(
            &world,
            json!({ "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec }),
        );
        begin(&world, settings()).await;
        put(&world, cart(&[]));
        has(&world, &OWN).await;
        let adopted = policy(&world, OWN[0]);
        assert_eq!(adopted["metadata"]["labels"]["mine"], "yes");
        assert_eq!(adopted["spec"]["policyTypes"], json!(["Ingress"]));
        assert!(adopted["spec"].get("egress").is_none(), "{adopted:#}");
    });
}

/// spec 40 scenarios 41 and 42
#[test]
fn irrelevant_changes_cause_no_reconcile() {
    world(1, |world| async move {
        start(&world, settings()).await;
        put(&world, cart(&[BLUE]));
        has(&world, &OWN).await;
        world.sim.clear_requests();
        let reconciles = || {
            let actors = world.universe.env.status_registry.snapshot();
            let actor =
                actors.into_iter().find(|actor| actor.path == "networkpolicy/shop/cart").expect("it has an actor");
            actor.finished
        };
        let before = reconciles();
        world.sim.edit("services", "shop", "cart", |live| live["metadata"]["labels"] = json!({ "a": "b" }));
        world.sim.edit("services", "shop", "cart", |live| live["status"]["loadBalancer"] = json!({}));
        world.sim.edit("namespaces", "", "shop", |live| live["metadata"]["annotations"] = json!({ "a": "b" }));
        seconds(10).await;
        assert_eq!(reconciles(), before);
        assert_eq!((world.writes(), names(&world).len()), (Vec::new(), 2));
    });
}

/// spec 40 §8.3: a change between our read and our patch is drift, too.
#[test]
fn policy_edited_while_it_is_patched_is_restored() {
    world(1, |world| async move {
        start(&world, settings()).await;
        put(&world, cart(&[]));
        has(&world, &OWN).await;
        // Only the answer reports it.
        world.sim.set_faults(|info| match (&*info.verb, &*info.resource) {
            ("watch", "networkpolicies") => Fault::Hang,
            ("patch", "networkpolicies") => Fault::Delay(Duration::from_secs(2)),
            _ => Fault::None,
        });
        world.stop().await;
        begin(&world, settings()).await;
        world.sim.edit("services", "shop", "cart", |live| live["spec"]["selector"] = json!({ "app": "cart2" }));
        seconds(1).await;
        let edit = |live: &mut serde_json::Value| live["spec"]["policyTypes"] = json!(["Ingress", "Egress"]);
        world.sim.edit("networkpolicies.networking.k8s.io", "shop", "ingress-to-cart-tcp-8443", edit);
        seconds(10).await;
        let policy = policy(&world, OWN[0]);
        assert_eq!(policy["spec"]["podSelector"]["matchLabels"], json!({ "app": "cart2" }));
        assert_eq!(policy["spec"]["policyTypes"], json!(["Ingress"]));
        let patches = world.writes().iter().filter(|write| write.starts_with("patch")).count();
        assert_eq!(patches, 3, "one for each policy, and one repair");
    });
}

/// spec 40 §7.11: however many names two Services have in common.
#[test]
fn services_with_hundreds_of_names_in_common_have_their_policies() {
    const CLIENTS: usize = 200;
    world(1, |world| async move {
        namespace(&world, "a", &[]);
        namespace(&world, "a-b", &[]);
        for number in 0..CLIENTS {
            namespace(&world, &format!("x{number}"), &[("team", "blue")]);
        }
        start(&world, settings()).await;
        for (home, name) in [("a-b", "c"), ("a", "b-c")] {
            let mut service = cart(&[BLUE]);
            (service["metadata"]["namespace"], service["metadata"]["name"]) = (json!(home), json!(name));
            put(&world, service);
        }
        let count = |home: &str, name: &str| super::policies_of(&world, home, name).len();
        let all = 2 * (CLIENTS + 1);
        world.eventually("all of both", || count("a-b", "c") == all && count("a", "b-c") == all).await;
        seconds(5).await;
        world.sim.clear_requests();
        seconds(60).await;
        assert_eq!(world.writes(), [""; 0]);
    });
}

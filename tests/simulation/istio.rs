//! EnvoyFilters for the gateways of Istio (spec 42) in the whole program.

mod concurrent_changes;
mod missing_kinds;

use std::collections::BTreeMap;

use gardener_resource_manager::api::config::resource_manager::WorkersOnly;
use serde_json::{Value, json};

use crate::{
    objects::istio_definition,
    world::{World, seconds, world},
};

const HOST: &str = "web.team-a.svc.cluster.local";
const FILTERS: &str = "envoyfilters.networking.istio.io";
const RULES: &str = "destinationrules.networking.istio.io";
const CLUSTER: &str = "outbound|443||web.team-a.svc.cluster.local";

pub(super) fn put(world: &World, object: Value) {
    world.sim.put(object).expect("it is valid");
}

pub(super) fn install(world: &World) {
    put(world, istio_definition("v1beta1", "DestinationRule", "destinationrules"));
    put(world, istio_definition("v1alpha3", "EnvoyFilter", "envoyfilters"));
}

pub(super) fn namespace(world: &World, name: &str, labels: Value) {
    put(world, json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": labels } }));
}

pub(super) fn role() -> Value {
    json!({ "gardener.cloud/role": "istio-ingress" })
}

pub(super) fn service(world: &World, export: Option<&str>, ports: Value) {
    let annotations = export.map(|export| json!({ "networking.istio.io/exportTo": export }));
    let metadata = json!({ "namespace": "team-a", "name": "web", "annotations": annotations });
    put(world, json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": { "ports": ports } }));
}

pub(super) fn https() -> Value {
    json!([{ "name": "https-main", "port": 443 }])
}

fn rule_of(world: &World, namespace: &str, name: &str, spec: Value) {
    let mut all = json!({ "host": HOST, "exportTo": ["*"] });
    for (key, value) in spec.as_object().into_iter().flatten() {
        all[key] = value.clone();
    }
    put(
        world,
        json!({
            "apiVersion": "networking.istio.io/v1beta1", "kind": "DestinationRule",
            "metadata": { "namespace": namespace, "name": name }, "spec": all,
        }),
    );
}

pub(super) fn rule(world: &World, spec: Value) {
    rule_of(world, "team-a", "web", spec);
}

async fn start(world: &World) {
    world.config.borrow_mut().controllers.istio_cluster_configuration = WorkersOnly::default().into();
    world.start().await;
    seconds(1).await;
    world.sim.clear_requests();
}

async fn begin(world: &World) {
    install(world);
    namespace(world, "istio-ingress", role());
    namespace(world, "team-a", json!({}));
    start(world).await;
}

fn filters(world: &World) -> BTreeMap<String, Vec<String>> {
    let of_source = |filter: &Value| filter["metadata"]["name"] == "team-a-cluster-configuration";
    let all = world.sim.objects(FILTERS).into_iter().filter(of_source);
    all.map(|filter| {
        let patches = filter["spec"]["configPatches"].as_array().cloned().unwrap_or_default();
        let namespace = filter["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        (namespace, patches.iter().map(mode).collect())
    })
    .collect()
}

fn mode(patch: &Value) -> String {
    let value = &patch["patch"]["value"];
    assert_eq!(value["per_connection_buffer_limit_bytes"], 32_768);
    let name = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
    let options = &value["typed_extension_protocol_options"][name];
    let windows = json!({ "http2_protocol_options": { "initial_stream_window_size": 65_536, "initial_connection_window_size": 1_048_576 } });
    let mode = match options {
        Value::Null => "default",
        options => {
            assert_eq!(options["common_http_protocol_options"], json!({ "max_connection_duration": "86400s" }));
            assert_eq!(options["@type"], format!("type.googleapis.com/{name}"));
            match (&options["explicit_http_config"], &options["use_downstream_protocol_config"]) {
                (http2, Value::Null) if *http2 == windows => "http2",
                (Value::Null, client) if *client == windows => "client",
                other => panic!("{other:?}"),
            }
        }
    };
    format!("{} {mode}", patch["match"]["cluster"]["name"].as_str().unwrap_or_default())
}

async fn has(world: &World, expected: &[(&str, &[&str])]) {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let expected: BTreeMap<String, Vec<String>> =
        expected.iter().map(|(namespace, patches)| ((*namespace).to_owned(), texts(patches))).collect();
    seconds(2).await;
    world.eventually(&format!("{expected:?}, found {:?}", filters(world)), || filters(world) == expected).await;
}

const DEFAULT: &str = "outbound|443||web.team-a.svc.cluster.local default";
const HTTP2: &str = "outbound|443||web.team-a.svc.cluster.local http2";
const CLIENT: &str = "outbound|443||web.team-a.svc.cluster.local client";

/// spec 42 scenario 1
#[test]
fn rule_and_its_service_have_a_filter() {
    world(1, |world| async move {
        begin(&world).await;
        service(&world, Some("*"), https());
        rule(&world, json!({}));
        has(&world, &[("istio-ingress", &[DEFAULT])]).await;
        let filter = world.sim.object(FILTERS, "istio-ingress", "team-a-cluster-configuration").expect("it exists");
        let uid = world.sim.object("namespaces", "", "team-a").expect("it exists")["metadata"]["uid"].clone();
        assert_eq!(
            filter["metadata"]["labels"],
            json!({ "resources.gardener.cloud/managed-by": "istio-cluster-configuration" })
        );
        assert_eq!(
            filter["metadata"]["ownerReferences"],
            json!([{
                "apiVersion": "v1", "kind": "Namespace", "name": "team-a", "uid": uid, "controller": true,
                "blockOwnerDeletion": true,
            }])
        );
        let patch = &filter["spec"]["configPatches"][0];
        assert_eq!((&patch["applyTo"], &patch["match"]["context"]), (&json!("CLUSTER"), &json!("GATEWAY")));
        assert_eq!(patch["match"]["cluster"]["name"], CLUSTER);
    });
}

/// spec 42 scenarios 2, 3, 4, 5, 6 and 7
#[test]
fn mode_comes_from_the_policy_or_else_from_the_port() {
    let http = |settings: Value| json!({ "connectionPool": { "http": settings } });
    let upgrade = json!({ "h2UpgradePolicy": "UPGRADE" });
    let both = json!({ "useClientProtocol": true, "h2UpgradePolicy": "UPGRADE" });
    let level = |top: Value, level: Value| {
        let mut policy = http(top);
        let mut setting = json!({ "port": { "number": 443 } });
        setting["connectionPool"] = level;
        policy["portLevelSettings"] = json!([setting]);
        policy
    };
    let name = |name: &str| json!({ "name": name, "port": 443 });
    let app = |name: &str, app: &str| json!({ "name": name, "port": 443, "appProtocol": app });
    let cases = [
        (name("grpc-main"), json!({}), HTTP2),
        (app("https", "kubernetes.io/h2c"), json!({}), HTTP2),
        (app("grpc", "http"), json!({}), DEFAULT),
        (name("grpc-webinar"), json!({}), HTTP2),
        (name("tcp-main"), json!({}), DEFAULT),
        (app("https", "GRPC-Web"), json!({}), HTTP2),
        (name("https"), http(both), CLIENT),
        (name("https"), level(json!({ "useClientProtocol": true }), json!({ "http": upgrade })), HTTP2),
        (name("https"), level(upgrade.clone(), json!({ "tcp": { "maxConnections": 1 } })), HTTP2),
    ];
    for (port, policy, expected) in cases {
        world(1, |world| async move {
            begin(&world).await;
            service(&world, Some("*"), json!([port]));
            rule(&world, json!({ "trafficPolicy": policy }));
            has(&world, &[("istio-ingress", &[expected])]).await;
        });
    }
}

/// spec 42 scenarios 6 and 8
#[test]
fn ports_have_their_patches_in_the_order_of_the_service() {
    world(1, |world| async move {
        begin(&world).await;
        service(&world, Some("*"), json!([{ "name": "z", "port": 8080 }, { "name": "a", "port": 443 }]));
        let http = json!({ "connectionPool": { "http": { "useClientProtocol": true } },
            "portLevelSettings": [{ "port": { "number": 443 }, "connectionPool": { "http": { "h2UpgradePolicy": "UPGRADE" } } }] });
        rule(&world, json!({ "trafficPolicy": http }));
        has(&world, &[("istio-ingress", &["outbound|8080||web.team-a.svc.cluster.local client", HTTP2])]).await;
    });
}

/// spec 42 scenario 9, I-T7
#[test]
fn rules_are_ordered_by_name() {
    world(1, |world| async move {
        begin(&world).await;
        service(&world, Some("*"), https());
        let export = json!({ "networking.istio.io/exportTo": "*" });
        let metadata = json!({ "namespace": "team-a", "name": "api", "annotations": export });
        put(
            &world,
            json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": { "ports": https() } }),
        );
        rule_of(&world, "team-a", "b", json!({}));
        rule_of(&world, "team-a", "a", json!({ "host": "api" }));
        rule_of(
            &world,
            "team-a",
            "c",
            json!({ "trafficPolicy": { "connectionPool": { "http": { "useClientProtocol": true } } } }),
        );
        has(&world, &[("istio-ingress", &["outbound|443||api.team-a.svc.cluster.local default", DEFAULT])]).await;
    });
}

/// spec 42 scenarios 10, 11 and 23
#[test]
fn ingress_namespaces_have_the_filter_once_each() {
    world(1, |world| async move {
        begin(&world).await;
        let class = "handler.exposureclass.gardener.cloud/name";
        namespace(&world, "class", json!({ class: "x" }));
        namespace(&world, "both", json!({ class: "x", "gardener.cloud/role": "istio-ingress" }));
        service(&world, Some("*"), https());
        rule(&world, json!({}));
        let all: [(&str, &[&str]); 3] = [("istio-ingress", &[DEFAULT]), ("class", &[DEFAULT]), ("both", &[DEFAULT])];
        has(&world, &all).await;
        namespace(&world, "new", role());
        has(&world, &[&all[..], &[("new", &[DEFAULT])]].concat()).await;
    });
}

/// spec 42 scenarios 12, 13 and 15
#[test]
fn filter_is_created_where_rule_and_service_are_exported_to() {
    let all: &[&str] = &["istio-ingress", "second"];
    let none: &[&str] = &[];
    let cases: [(Value, Option<&str>, &[&str]); 12] = [
        (json!(["istio-ingress"]), Some("*"), &["istio-ingress"]),
        (json!([]), Some("*"), none),
        (json!(["~"]), Some("*"), none),
        (json!(["istio-ingress", "~"]), Some("*"), none),
        (json!(["~", "*"]), Some("*"), none),
        (json!(["*", "~"]), Some("*"), all),
        (json!(["."]), Some("*"), none),
        (json!(["*"]), None, none),
        (json!(["*"]), Some(""), none),
        (json!(["istio-ingress"]), Some("second"), none),
        (json!(["*"]), Some("second, elsewhere"), &["second"]),
        (json!(["elsewhere", "second", "second"]), Some("*"), &["second"]),
    ];
    for (export, service_export, expected) in cases {
        world(1, |world| async move {
            begin(&world).await;
            namespace(&world, "second", role());
            service(&world, service_export, https());
            rule(&world, json!({ "exportTo": export }));
            seconds(5).await;
            let expected: Vec<(&str, &[&str])> =
                expected.iter().map(|namespace| (*namespace, &[DEFAULT][..])).collect();
            has(&world, &expected).await;
        });
    }
}

/// spec 42 scenario 14
#[test]
fn rule_of_an_ingress_namespace_may_export_to_its_own() {
    world(1, |world| async move {
        begin(&world).await;
        service(&world, Some("*"), https());
        rule_of(&world, "istio-ingress", "web", json!({ "exportTo": ["."] }));
        let name = "istio-ingress-cluster-configuration";
        world.eventually("a filter", || world.sim.object(FILTERS, "istio-ingress", name).is_some()).await;
    });
}

/// spec 42 scenarios 16, 18, 19 and 21
#[test]
fn filter_follows_its_service() {
    world(1, |world| async move {
        begin(&world).await;
        rule(&world, json!({}));
        seconds(5).await;
        has(&world, &[]).await;
        service(&world, Some("~"), https());
        has(&world, &[]).await;
        service(&world, Some("*"), https());
        has(&world, &[("istio-ingress", &[DEFAULT])]).await;
        service(&world, Some("*"), json!([{ "name": "grpc-main", "port": 443 }]));
        has(&world, &[("istio-ingress", &[HTTP2])]).await;
        world.sim.remove("services", "team-a", "web");
        has(&world, &[]).await;
    });
}

/// spec 42 scenario 17
#[test]
fn host_is_a_short_or_a_full_name() {
    for (host, is_used) in [
        ("web", true),
        (HOST, true),
        ("web.team-a", false),
        ("web.team-a.svc", false),
        ("www.example.com", false),
        ("a.web.team-a.svc.cluster.local", false),
        ("", false),
    ] {
        world(1, |world| async move {
            begin(&world).await;
            service(&world, Some("*"), https());
            rule(&world, json!({ "host": host }));
            seconds(5).await;
            let expected: &[(&str, &[&str])] = if is_used { &[("istio-ingress", &[DEFAULT])] } else { &[] };
            has(&world, expected).await;
        });
    }
}

/// spec 42 scenarios 20 and 22
#[test]
fn filter_follows_its_rules() {
    world(1, |world| async move {
        begin(&world).await;
        service(&world, Some("*"), https());
        for unused in [json!({ "subsets": [{ "name": "v1" }] }), json!({ "workloadSelector": { "matchLabels": {} } })] {
            rule(&world, unused);
            seconds(5).await;
            has(&world, &[]).await;
            rule(&world, json!({}));
            has(&world, &[("istio-ingress", &[DEFAULT])]).await;
        }
        world.sim.remove(RULES, "team-a", "web");
        has(&world, &[]).await;
    });
}

/// spec 42 scenario 24
#[test]
fn former_ingress_namespace_loses_its_filters() {
    world(1, |world| async move {
        begin(&world).await;
        namespace(&world, "second", role());
        service(&world, Some("*"), https());
        rule(&world, json!({}));
        has(&world, &[("istio-ingress", &[DEFAULT]), ("second", &[DEFAULT])]).await;
        namespace(&world, "second", json!({}));
        has(&world, &[("istio-ingress", &[DEFAULT])]).await;
    });
}

/// spec 42 scenarios 25 and 26
#[test]
fn filter_is_written_only_if_it_differs() {
    world(1, |world| async move {
        begin(&world).await;
        service(&world, Some("*"), https());
        rule(&world, json!({}));
        has(&world, &[("istio-ingress", &[DEFAULT])]).await;
        world.stop().await;
        start(&world).await;
        seconds(60).await;
        assert_eq!(world.asked(), [""; 0]);
        let name = "team-a-cluster-configuration";
        let filter = || world.sim.object(FILTERS, "istio-ingress", name).expect("it exists");
        let before = filter();
        world.sim.edit(FILTERS, "istio-ingress", name, |live| {
            live["metadata"]["labels"]["mine"] = json!("1");
            live["spec"]["priority"] = json!(7);
        });
        let parts = |filter: &Value| (filter["metadata"]["labels"].clone(), filter["spec"].clone());
        world.eventually("it is as before", || parts(&filter()) == parts(&before)).await;
        world.sim.remove(FILTERS, "istio-ingress", name);
        has(&world, &[("istio-ingress", &[DEFAULT])]).await;
    });
}

/// spec 42 §5.5: a foreign filter with that name is adopted.
#[test]
fn filter_of_others_with_that_name_is_adopted() {
    world(1, |world| async move {
        begin(&world).await;
        let metadata =
            json!({ "namespace": "istio-ingress", "name": "team-a-cluster-configuration", "labels": { "a": "b" } });
        let spec = json!({ "priority": 3 });
        put(
            &world,
            json!({ "apiVersion": "networking.istio.io/v1alpha3", "kind": "EnvoyFilter", "metadata": metadata, "spec": spec }),
        );
        service(&world, Some("*"), https());
        rule(&world, json!({}));
        has(&world, &[("istio-ingress", &[DEFAULT])]).await;
        let filter = &world.sim.objects(FILTERS)[0];
        assert_eq!(
            filter["metadata"]["labels"],
            json!({ "resources.gardener.cloud/managed-by": "istio-cluster-configuration" })
        );
        assert!(filter["spec"].get("priority").is_none());
    });
}

/// spec 42 scenario 27
#[test]
fn terminating_ingress_namespace_gets_no_filter() {
    world(1, |world| async move {
        begin(&world).await;
        namespace(&world, "second", role());
        world.sim.edit("namespaces", "", "istio-ingress", |live| {
            live["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
        });
        service(&world, Some("*"), https());
        rule(&world, json!({}));
        has(&world, &[("second", &[DEFAULT])]).await;
    });
}

/// spec 42 scenario 28
#[test]
fn missing_istio_is_no_error_and_may_appear_later() {
    world(1, |world| async move {
        namespace(&world, "istio-ingress", role());
        namespace(&world, "team-a", json!({}));
        service(&world, Some("*"), https());
        start(&world).await;
        seconds(60).await;
        assert_eq!(world.writes(), [""; 0]);
        install(&world);
        rule(&world, json!({}));
        has(&world, &[("istio-ingress", &[DEFAULT])]).await;
    });
}

/// spec 42 scenarios 29 and 30
#[test]
fn sources_are_reconciled_once_at_the_start() {
    world(1, |world| async move {
        install(&world);
        namespace(&world, "istio-ingress", role());
        namespace(&world, "team-a", json!({}));
        for number in 0..500 {
            let mut service = json!({ "apiVersion": "v1", "kind": "Service", "spec": { "ports": https() } });
            service["metadata"] = json!({ "namespace": "team-a", "name": format!("s{number}") });
            put(&world, service);
        }
        for number in 0..100 {
            rule_of(&world, "team-a", &format!("r{number}"), json!({ "host": format!("s{number}") }));
        }
        service(&world, Some("*"), https());
        rule(&world, json!({}));
        start(&world).await;
        let reconciles = || {
            let actors = world.universe.env.status_registry.snapshot();
            actors
                .iter()
                .filter(|actor| actor.path.starts_with("istio-cluster-configuration/"))
                .map(|it| it.finished)
                .sum::<u64>()
        };
        has(&world, &[("istio-ingress", &[DEFAULT])]).await;
        assert_eq!(reconciles(), 1);
        world.sim.edit(RULES, "team-a", "web", |live| live["metadata"]["labels"] = json!({ "a": "b" }));
        seconds(5).await;
        assert_eq!(reconciles(), 1);
    });
}

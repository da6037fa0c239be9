use cluster::Status;

use super::*;
use crate::webhooks::{
    testing::{TestView, changes, failure, leaves, object, request},
    view::Lookup,
};

const CONFIG_MAP_READ: &str = "ConfigMap kube-system/istio-internal-load-balancing";
const SERVICE_READ: &str = "Service istio-ingress/istio-ingressgateway-internal";

const POD: &str = "spec: {volumes: [{name: k, secret: {secretName: generic-token-kubeconfig}}]}";

fn view() -> TestView {
    TestView::new()
        .load_balancing("kube-system", [("hosts", "a.example.org"), ("istio-namespace", "istio-ingress")])
        .gateway("istio-ingress", ["10.4.0.9"])
}

/// spec 50 §9.2, scenarios 26 and 30
#[test]
fn pod_gets_an_alias_for_each_address_and_the_label() {
    let view = TestView::new()
        .load_balancing(
            "shoot--demo--a",
            [("hosts", "api.a.demo.example.org,api.a.internal.example.org"), ("istio-namespace", "istio-ingress")],
        )
        .gateway("istio-ingress", ["10.4.0.9", "fd00::9"]);

    changes(
        &LoadBalancing,
        &view,
        "
metadata: {generateName: kcm-, namespace: shoot--demo--a, labels: {app: kcm}}
spec:
  volumes:
  - name: kubeconfig
    projected: {sources: [{secret: {name: generic-token-kubeconfig-1a2b3c}}, {secret: {name: shoot-access-kcm}}]}
---
metadata:
  generateName: kcm-
  namespace: shoot--demo--a
  labels:
    app: kcm
    networking.resources.gardener.cloud/to-istio-ingress-istio-ingressgateway-internal-tcp-9443: allowed
spec:
  volumes:
  - name: kubeconfig
    projected: {sources: [{secret: {name: generic-token-kubeconfig-1a2b3c}}, {secret: {name: shoot-access-kcm}}]}
  hostAliases:
  - {ip: 10.4.0.9, hostnames: [api.a.demo.example.org, api.a.internal.example.org]}
  - {ip: 'fd00::9', hostnames: [api.a.demo.example.org, api.a.internal.example.org]}
",
    );
    assert_eq!(
        view.reads(),
        [
            "ConfigMap shoot--demo--a/istio-internal-load-balancing",
            "Service istio-ingress/istio-ingressgateway-internal"
        ]
    );
}

/// spec 50 §9.1 rule 1, scenario 24
#[test]
fn pod_without_a_generic_kubeconfig_stays_and_nothing_is_read() {
    let view = view();

    for volumes in [
        "null",
        "[]",
        "[{name: generic-token-kubeconfig}]",
        "[{secret: {secretName: my-generic-token-kubeconfig}}]",
        "[{configMap: {name: generic-token-kubeconfig}}]",
        "[{projected: {sources: [{configMap: {name: generic-token-kubeconfig}}, {secret: {name: a}}]}}]",
    ] {
        leaves(&LoadBalancing, &view, &format!("spec: {{volumes: {volumes}}}"));
    }

    assert!(view.reads().is_empty());
}

/// spec 50 §9.1 rule 2, scenario 25
#[test]
fn pod_stays_without_the_config_map() {
    let view = TestView::new();

    leaves(
        &LoadBalancing,
        &view,
        "spec: {volumes: [{projected: {sources: [{secret: {name: generic-token-kubeconfig-1a2b}}]}}]}",
    );

    assert_eq!(view.reads(), [CONFIG_MAP_READ]);
}

/// spec 50 §9.1 rules 3 and 5
#[test]
fn failure_without_an_api_status_gets_context() {
    let not_started = || Failure::Denied("the cache is not started, can not read objects".into());
    let timeout = || {
        let message = "Timeout: failed waiting for *v1.ConfigMap Informer to sync".to_owned();
        let status = Status { code: 504, reason: "Timeout".into(), message, ..Status::default() };
        Failure::Status(Box::new(status))
    };
    let denied = |text: &str| Failure::Denied(text.to_owned());

    for (read, answer, expected) in [
        (
            CONFIG_MAP_READ,
            not_started(),
            denied(
                "failed to get istio-internal-load-balancing configmap \"kube-system/istio-internal-load-balancing\": \
                 the cache is not started, can not read objects",
            ),
        ),
        (
            SERVICE_READ,
            not_started(),
            denied(
                "failed to get internal istio-ingressgateway service \"istio-ingress/istio-ingressgateway-internal\": \
                 the cache is not started, can not read objects",
            ),
        ),
        (CONFIG_MAP_READ, timeout(), timeout()),
        (SERVICE_READ, timeout(), timeout()),
        (
            CONFIG_MAP_READ,
            Failure::ReadLive(Lookup::missing(&CONFIG_MAPS, NamespacedName::new("kube-system", CONFIG_MAP))),
            Failure::ReadLive(Lookup::missing(&CONFIG_MAPS, NamespacedName::new("kube-system", CONFIG_MAP))),
        ),
        (
            SERVICE_READ,
            Failure::ReadLive(Lookup::missing(&SERVICES, NamespacedName::new("istio-ingress", SERVICE))),
            Failure::ReadLive(Lookup::missing(&SERVICES, NamespacedName::new("istio-ingress", SERVICE))),
        ),
    ] {
        assert_eq!(failure(&LoadBalancing, &view().failing(read, answer), POD), expected);
    }
}

/// spec 50 §9.1 rule 4, scenario 27
#[test]
fn config_map_without_hosts_denies_the_pod_before_the_service_is_read() {
    for data in [[("hosts", ""), ("istio-namespace", "istio-ingress")], [("host", "a"), ("istio-namespace", "a")]] {
        let view = TestView::new().load_balancing("ns", data);
        let pod = format!("{{metadata: {{namespace: ns}}, {POD}}}");

        let text = "\"hosts\" key in configmap \"ns/istio-internal-load-balancing\" provides an empty value";
        assert_eq!(failure(&LoadBalancing, &view, &pod), Failure::Denied(text.to_owned()));
        assert_eq!(view.reads(), ["ConfigMap ns/istio-internal-load-balancing"]);
    }
}

/// spec 50 §9.1 rule 5, scenario 28
#[test]
fn missing_service_denies_the_pod() {
    let config = |data: [(&str, &str); 1]| TestView::new().load_balancing("kube-system", data);

    // Without `istio-namespace` the namespace is empty.
    let view = config([("hosts", "a")]);
    let failure = failure(&LoadBalancing, &view, POD);

    let expected = Status {
        code: 404,
        reason: "NotFound".into(),
        message: "Service \"istio-ingressgateway-internal\" not found".into(),
        name: "istio-ingressgateway-internal".into(),
        kind: "Service".into(),
        ..Status::default()
    };
    assert_eq!(failure, Failure::Status(Box::new(expected)));
    assert_eq!(view.reads(), [CONFIG_MAP_READ, "Service /istio-ingressgateway-internal"]);
}

/// spec 50 §9.1, §9.3
#[test]
fn namespace_of_the_pod_takes_precedence_over_the_request() {
    for (metadata, namespace) in
        [("{namespace: garden}", "garden"), ("{namespace: ''}", "kube-system"), ("{}", "kube-system")]
    {
        let view = TestView::new();

        leaves(&LoadBalancing, &view, &format!("{{metadata: {metadata}, {POD}}}"));

        assert_eq!(view.reads(), [format!("ConfigMap {namespace}/istio-internal-load-balancing")]);
    }
}

/// spec 50 §9.2 step 3, scenario 29
#[test]
fn label_has_a_name_of_63_bytes_at_most() {
    for (namespace, name) in [
        ("istio-ingress", "to-istio-ingress-istio-ingressgateway-internal-tcp-9443"),
        ("istio-ingress--europe-west1-b", "to-istio-ingress--europe-west1-b-istio-ingressgateway-int-1881b"),
        ("virtual-garden-istio-ingress", "to-virtual-garden-istio-ingress-istio-ingressgateway-inte-02e09"),
        ("", "to--istio-ingressgateway-internal-tcp-9443"),
        ("a23456789012345678901", "to-a23456789012345678901-istio-ingressgateway-internal-tcp-9443"),
    ] {
        assert_eq!(label(namespace), format!("networking.resources.gardener.cloud/{name}"));
        assert!(name.len() <= 63, "{name}");
    }
    // Not a valid name of a Namespace, but a ConfigMap may have it: cut within a character.
    assert!(label(&"ä".repeat(40)).starts_with("networking.resources.gardener.cloud/to-ä"));
}

/// spec 50 §9.2 step 3
#[test]
fn label_is_overwritten() {
    changes(
        &LoadBalancing,
        &view(),
        "
metadata:
  labels: {networking.resources.gardener.cloud/to-istio-ingress-istio-ingressgateway-internal-tcp-9443: denied}
spec:
  volumes: [{secret: {secretName: generic-token-kubeconfig}}]
  hostAliases: null
---
metadata:
  labels: {networking.resources.gardener.cloud/to-istio-ingress-istio-ingressgateway-internal-tcp-9443: allowed}
spec:
  volumes: [{secret: {secretName: generic-token-kubeconfig}}]
  hostAliases: [{ip: 10.4.0.9, hostnames: [a.example.org]}]
",
    );
}

/// spec 50 §9.2 step 1
#[test]
fn hosts_are_split_at_commas_and_nothing_else() {
    let view = TestView::new().load_balancing("kube-system", [("hosts", "a, b,,a")]).gateway("", ["10.4.0.9"]);
    let mut pod = object(POD);
    let request = request(&LoadBalancing, &pod);

    LoadBalancing.mutate(&mut pod, &request, &view).unwrap();

    assert_eq!(pod["spec"]["hostAliases"], json!([{ "ip": "10.4.0.9", "hostnames": ["a", " b", "", "a"] }]));
}

/// spec 50 §9.2, scenario 30, "better" 6
#[test]
fn alias_is_not_added_twice_and_other_aliases_stay() {
    for (before, after) in [
        (
            "[{ip: 10.4.0.9, hostnames: [a.example.org], futureField: 7}]",
            "[{ip: 10.4.0.9, hostnames: [a.example.org], futureField: 7}]",
        ),
        (
            "[{ip: 10.4.0.9, hostnames: [b.example.org]}]",
            "[{ip: 10.4.0.9, hostnames: [b.example.org]}, {ip: 10.4.0.9, hostnames: [a.example.org]}]",
        ),
        (
            "[null, {ip: 10.4.0.8, hostnames: [a.example.org]}]",
            "[null, {ip: 10.4.0.8, hostnames: [a.example.org]}, {ip: 10.4.0.9, hostnames: [a.example.org]}]",
        ),
    ] {
        let pod = |aliases| {
            format!("spec: {{volumes: [{{secret: {{secretName: generic-token-kubeconfig}}}}], hostAliases: {aliases}}}")
        };
        let mut made = object(&pod(before));
        let request = request(&LoadBalancing, &made);

        LoadBalancing.mutate(&mut made, &request, &view()).unwrap();

        assert_eq!(made["spec"], object(&pod(after))["spec"]);
    }
}

/// spec 50 §9.3, "better" 15
#[test]
fn alias_is_not_added_for_an_invalid_address() {
    for addresses in [[].as_slice(), &["None"], &["", "10.4.0.256"]] {
        let gateway: Vec<String> = addresses.iter().map(|address| (*address).to_owned()).collect();
        let mut pod = object(POD);

        add_host_aliases(&mut pod, &gateway, "a.example.org").unwrap();

        assert_eq!(pod, object(POD));
    }
}

/// spec 50 §9.3
#[test]
fn label_is_added_even_without_an_address() {
    let view = TestView::new()
        .load_balancing("kube-system", [("hosts", "a"), ("istio-namespace", "istio-ingress")])
        .gateway("istio-ingress", []);

    changes(
        &LoadBalancing,
        &view,
        &format!(
            "
{POD}
---
metadata:
  labels: {{networking.resources.gardener.cloud/to-istio-ingress-istio-ingressgateway-internal-tcp-9443: allowed}}
{POD}
"
        ),
    );
}

/// spec 50 §2.2 row 7
#[test]
fn wrong_type_is_an_error_before_anything_is_read() {
    for (pod, message) in [
        (
            "spec: {volumes: [{}, {projected: {sources: [{secret: a}]}}]}",
            "spec.volumes[1].projected.sources[0].secret: expected a map, found a string",
        ),
        ("spec: {hostAliases: [a]}", "spec.hostAliases[0]: expected a map, found a string"),
        (
            "spec: {hostAliases: [{hostnames: [1]}]}",
            "spec.hostAliases[0].hostnames[0]: expected a string, found a number",
        ),
        ("metadata: {labels: []}", "metadata.labels: expected a map, found a list"),
    ] {
        let view = view();

        let failure = failure(&LoadBalancing, &view, pod);

        assert_eq!(failure, Failure::Errored { code: 400, message: message.to_owned() });
        assert!(view.reads().is_empty());
    }
}

use serde_json::json;

use super::*;

fn service(spec: Value) -> Value {
    object("v1", "Service", spec)
}

/// spec 10 scenario 17
#[test]
fn a_node_port_is_kept_by_name_and_the_address_too() {
    let live = service(json!({"type": "NodePort", "clusterIP": "10.0.0.7",
        "ports": [{"name": "http", "port": 80, "nodePort": 30080}]}));
    let manifest = service(json!({"type": "NodePort", "ports": [{"name": "http", "port": 8080}]}));

    let merged = merged(&manifest, &live);

    assert_eq!(merged["spec"]["ports"], json!([{"name": "http", "port": 8080, "nodePort": 30080}]));
    assert_eq!(merged["spec"]["clusterIP"], json!("10.0.0.7"));
}

/// spec 10 scenario 17
#[test]
fn an_external_name_does_not_send_the_old_address() {
    let live = service(json!({"type": "NodePort", "clusterIP": "10.0.0.7"}));

    let merged = merged(&service(json!({"type": "ExternalName", "externalName": "x"})), &live);

    assert_eq!(merged["spec"], json!({"type": "ExternalName", "externalName": "x"}));
}

/// spec 10 §12.7.2, with the deviation
#[test]
fn node_ports_are_kept_once_by_name_before_port() {
    let old_ports = json!([
        {"name": "a", "port": 1, "nodePort": 30001},
        {"name": "b", "port": 2, "nodePort": 30002},
    ]);
    let table = [
        ("by port", json!([{"name": "x", "port": 2}]), vec![30002]),
        ("swapped names and numbers", json!([{"name": "b", "port": 1}, {"name": "a", "port": 2}]), vec![30002, 30001]),
        (
            "explicit stays and is not given twice",
            json!([{"name": "x", "port": 9, "nodePort": 30001}, {"name": "a", "port": 1}]),
            vec![30001, 0],
        ),
        ("zero is absent", json!([{"name": "a", "port": 9, "nodePort": 0}]), vec![30001]),
        ("no match", json!([{"name": "x", "port": 9}]), vec![0]),
        ("more ports than before", json!([{"name": "n", "port": 1}, {"name": "a", "port": 9}]), vec![0, 30001]),
    ];

    for (case, ports, expected) in table {
        let live = service(json!({"type": "NodePort", "ports": old_ports}));

        for service_type in ["NodePort", "LoadBalancer"] {
            let merged = merged(&service(json!({"type": service_type, "ports": ports})), &live);

            let node_ports = merged["spec"]["ports"].as_array().unwrap().iter();
            let node_ports: Vec<_> = node_ports.map(|port| port["nodePort"].as_i64().unwrap_or_default()).collect();
            assert_eq!(node_ports, expected, "{case}");
        }
    }
}

/// spec 10 §12.7.2: what two ports have in common, with ports that have no name or other names than before
#[test]
fn node_ports_follow_name_port_and_protocol() {
    let dns = json!([{"port": 53, "nodePort": 30001}, {"port": 53, "protocol": "UDP", "nodePort": 30002}]);
    let named_dns = json!([
        {"name": "a", "port": 53, "nodePort": 30001},
        {"name": "b", "port": 53, "protocol": "UDP", "nodePort": 30002},
    ]);
    let udp = json!([{"name": "b", "port": 53, "protocol": "UDP", "nodePort": 30002}]);
    let table = [
        ("by port and protocol", json!([{"port": 53, "protocol": "UDP"}, {"port": 53}]), &dns, vec![30002, 30001]),
        (
            "by port and protocol, renamed",
            json!([{"name": "x", "port": 53, "protocol": "UDP"}, {"name": "y", "port": 53, "protocol": "TCP"}]),
            &named_dns,
            vec![30002, 30001],
        ),
        (
            "by port and protocol, renamed, in the other order",
            json!([{"name": "y", "port": 53}, {"name": "x", "port": 53, "protocol": "UDP"}]),
            &named_dns,
            vec![30001, 30002],
        ),
        ("by port alone", json!([{"name": "x", "port": 53}]), &udp, vec![30002]),
        ("an empty name is no name", json!([{"name": "", "port": 9}]), &dns, vec![30002]),
        ("a name is not like no name", json!([{"port": 9}]), &udp, vec![0]),
        ("no name is not like a name", json!([{"name": "x", "port": 9}]), &dns, vec![0]),
        ("explicit stays", json!([{"name": "b", "port": 53, "nodePort": 30009}]), &udp, vec![30009]),
        (
            "taken for the protocol of the new port",
            json!([{"name": "x", "port": 1, "nodePort": 30002}, {"name": "y", "port": 53}]),
            &udp,
            vec![30002, 0],
        ),
        (
            "taken for the protocol of the old port",
            json!([{"name": "x", "port": 1, "protocol": "UDP", "nodePort": 30002}, {"name": "y", "port": 53}]),
            &udp,
            vec![30002, 0],
        ),
    ];

    for (case, ports, old_ports, expected) in table {
        let live = service(json!({"type": "NodePort", "ports": old_ports}));

        let merged = merged(&service(json!({"type": "NodePort", "ports": ports})), &live);

        let node_ports = merged["spec"]["ports"].as_array().unwrap().iter();
        let node_ports: Vec<_> = node_ports.map(|port| port["nodePort"].as_i64().unwrap_or_default()).collect();
        assert_eq!(node_ports, expected, "{case}");
    }
}

/// spec 10 §12.7.2: two missing names are equal
#[test]
fn node_port_of_the_only_port_stays_when_its_number_changes() {
    let live = service(json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]}));

    let merged = merged(&service(json!({"type": "NodePort", "ports": [{"port": 81}]})), &live);

    assert_eq!(merged["spec"]["ports"], json!([{"port": 81, "nodePort": 30080}]));
}

#[test]
fn node_port_may_serve_two_protocols() {
    let ports = json!([
        {"name": "dns", "port": 53, "protocol": "UDP", "nodePort": 30053},
        {"name": "dns-tcp", "port": 53, "protocol": "TCP", "nodePort": 30053},
    ]);
    let live = service(json!({"type": "NodePort", "ports": ports}));
    let wanted = json!([{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53}]);

    let merged = merged(&service(json!({"type": "NodePort", "ports": wanted})), &live);

    assert_eq!(merged["spec"]["ports"][0]["nodePort"], json!(30053));
    assert_eq!(merged["spec"]["ports"][1]["nodePort"], json!(30053));
}

/// spec 10 §12.7.2
#[test]
fn a_cluster_ip_service_keeps_no_node_ports() {
    let live = service(json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]}));

    let merged = merged(&service(json!({"ports": [{"port": 80}]})), &live);

    assert_eq!(merged["spec"], json!({"type": "ClusterIP", "ports": [{"port": 80}]}));
}

/// spec 10 §12.7.4
#[test]
fn the_cluster_ip_follows_the_old_one() {
    let table = [
        // new type, new IP, old type, old IP, result
        ("ClusterIP", None, "ClusterIP", Some("10.0.0.7"), Some("10.0.0.7")),
        ("ClusterIP", Some("10.0.0.8"), "ClusterIP", Some("10.0.0.7"), Some("10.0.0.7")),
        ("ClusterIP", Some("None"), "ClusterIP", Some("10.0.0.7"), Some("None")),
        ("ClusterIP", None, "ClusterIP", Some("None"), Some("None")),
        ("LoadBalancer", None, "NodePort", Some("10.0.0.7"), Some("10.0.0.7")),
        ("ClusterIP", Some("10.0.0.8"), "ExternalName", None, Some("10.0.0.8")),
        ("ClusterIP", None, "ExternalName", Some(""), None),
    ];

    for (new_type, new_ip, old_type, old_ip, expected) in table {
        let build = |service_type: &str, ip: Option<&str>| {
            let mut spec = json!({"type": service_type});
            if let Some(ip) = ip {
                spec["clusterIP"] = json!(ip);
            }
            service(spec)
        };

        let merged = merged(&build(new_type, new_ip), &build(old_type, old_ip));

        let result = merged["spec"].get("clusterIP").and_then(Value::as_str);
        assert_eq!(result, expected, "{new_type} {new_ip:?} {old_type} {old_ip:?}");
    }
}

/// spec 10 §12.7.2: the address even survives a time as `NodePort`
#[test]
fn the_load_balancer_ip_is_kept_unless_the_manifest_has_one() {
    let live = service(json!({"type": "LoadBalancer", "loadBalancerIP": "1.1.1.1"}));

    for (service_type, new, expected) in [
        ("LoadBalancer", json!(null), json!("1.1.1.1")),
        ("NodePort", json!(""), json!("1.1.1.1")),
        ("LoadBalancer", json!("2.2.2.2"), json!("2.2.2.2")),
        ("ClusterIP", json!(null), json!(null)),
    ] {
        let merged = merged(&service(json!({"type": service_type, "loadBalancerIP": new})), &live);

        assert_eq!(merged["spec"]["loadBalancerIP"], expected);
    }
}

/// spec 10 §12.7.5
#[test]
fn the_health_check_port_is_kept_for_local_traffic_on_both_sides() {
    let build = |service_type: &str, policy: &str, port: i64| {
        service(json!({"type": service_type, "externalTrafficPolicy": policy, "healthCheckNodePort": port}))
    };
    let table = [
        (build("LoadBalancer", "Local", 0), build("LoadBalancer", "Local", 31000), 31000),
        (build("LoadBalancer", "Local", 32000), build("LoadBalancer", "Local", 31000), 32000),
        (build("LoadBalancer", "Cluster", 0), build("LoadBalancer", "Local", 31000), 0),
        (build("LoadBalancer", "Local", 0), build("LoadBalancer", "Cluster", 31000), 0),
        (build("NodePort", "Local", 0), build("LoadBalancer", "Local", 31000), 0),
    ];

    for (manifest, live, expected) in table {
        assert_eq!(merged(&manifest, &live)["spec"]["healthCheckNodePort"], json!(expected));
    }
}

/// spec 10 §12.7.1, deviation
#[test]
fn annotations_of_the_openstack_load_balancer_survive_forced_annotations() {
    let live = annotated(service(json!({})), "loadbalancer.openstack.org/load-balancer-id", "live");
    let live = annotated(live, "loadbalancer.openstack.org/keep-floatingip", "live");
    let live = annotated(live, "other", "live");
    let manifest = annotated(service(json!({})), "loadbalancer.openstack.org/keep-floatingip", "manifest");

    let merged = merge(&manifest, &live, &MergeContext { force_overwrite_annotations: true, ..context() }).unwrap();

    let annotations = &merged["metadata"]["annotations"];
    assert_eq!(annotations["loadbalancer.openstack.org/load-balancer-id"], json!("live"));
    assert_eq!(annotations["loadbalancer.openstack.org/keep-floatingip"], json!("manifest"));
    assert_eq!(annotations.get("other"), None);
}

/// spec 10 §12.7: the API server must refuse them; if we overwrote them, the mistake would stay hidden
#[test]
fn service_fields_of_a_wrong_type_are_sent_as_they_are() {
    let live = service(json!({"type": "LoadBalancer", "clusterIP": "10.0.0.1", "loadBalancerIP": "1.1.1.1",
        "externalTrafficPolicy": "Local", "healthCheckNodePort": 31000, "ports": [{"port": 80, "nodePort": 30000}]}));
    let with_type = |spec: Value| {
        let mut spec = spec;
        spec["type"] = json!("LoadBalancer");
        spec["clusterIP"] = json!("10.0.0.1");
        spec["externalTrafficPolicy"] = json!("Local");
        spec
    };

    for spec in [
        json!({"type": 5, "ports": [{"port": 80}]}),
        with_type(json!({"loadBalancerIP": 1, "healthCheckNodePort": 32000, "ports": []})),
        with_type(json!({"loadBalancerIP": "1.1.1.1", "healthCheckNodePort": "31001", "ports": []})),
        with_type(
            json!({"loadBalancerIP": "1.1.1.1", "healthCheckNodePort": 1, "ports": [{"port": 80, "nodePort": "x"}]}),
        ),
        with_type(
            json!({"loadBalancerIP": "1.1.1.1", "healthCheckNodePort": 1, "ports": [{"port": 80, "nodePort": 0.5}]}),
        ),
    ] {
        assert_eq!(merged(&service(spec.clone()), &live)["spec"], spec);
    }
}

/// spec 10 §12.7
#[test]
fn a_load_balancer_class_is_kept_where_the_manifest_has_none() {
    for (old, new, wanted, expected) in [
        ("LoadBalancer", "LoadBalancer", json!(null), json!("cloud")),
        ("LoadBalancer", "LoadBalancer", json!(""), json!("cloud")),
        ("LoadBalancer", "LoadBalancer", json!("own"), json!("own")),
        ("LoadBalancer", "NodePort", json!(null), json!(null)),
        ("NodePort", "LoadBalancer", json!(null), json!(null)),
    ] {
        let live = service(json!({"type": old, "loadBalancerClass": "cloud"}));

        let merged = merged(&service(json!({"type": new, "loadBalancerClass": wanted})), &live);

        assert_eq!(merged["spec"]["loadBalancerClass"], expected, "{old} {new} {wanted}");
    }
}

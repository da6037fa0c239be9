use serde_json::json;

use super::*;
use crate::kinds;

fn kind(plural: &str) -> ServedKind {
    kinds::built_in().into_iter().rfind(|kind| kind.plural == plural).unwrap()
}

fn completed(plural: &str, mut object: Value) -> Value {
    apply(&kind(plural), &mut object, None, &mut Allocations::default()).unwrap();
    object
}

/// A second write of what the server returned changes nothing, for each kind: facts §4.
#[test]
fn defaults_are_stable() {
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {
        "containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}},
            "livenessProbe": {"httpGet": {"port": 80}}, "env": [{"name": "E", "value": ""}]}],
        "volumes": [{"name": "s", "secret": {"secretName": "s"}}, {"name": "e"}],
    }});
    let workload = json!({"metadata": {"name": "n", "namespace": "x", "uid": "u"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}}, "template": template}});
    let objects = [
        ("deployments", workload.clone()),
        ("statefulsets", workload.clone()),
        ("daemonsets", workload.clone()),
        ("jobs", json!({"metadata": {"name": "n", "uid": "u"}, "spec": {"template": template}})),
        ("cronjobs", json!({"metadata": {"name": "n"}, "spec": {"jobTemplate": {"spec": {"template": template}}}})),
        ("pods", json!({"metadata": {"name": "n"}, "spec": template["spec"]})),
        ("secrets", json!({"metadata": {"name": "n"}, "data": {"a": "eA=="}, "stringData": {"a": "b"}})),
        ("namespaces", json!({"metadata": {"name": "n"}})),
        ("networkpolicies", json!({"metadata": {"name": "n"}, "spec": {"ingress": [{"ports": [{"port": 1}]}]}})),
        ("horizontalpodautoscalers", json!({"metadata": {"name": "n"}, "spec": {"maxReplicas": 3}})),
        (
            "mutatingwebhookconfigurations",
            json!({"metadata": {"name": "n"}, "webhooks": [{"name": "w", "rules": [{}]}]}),
        ),
        (
            "persistentvolumeclaims",
            json!({"metadata": {"name": "n"}, "spec": {"resources": {"requests": {"storage": "1024Mi"}}}}),
        ),
        (
            "rolebindings",
            json!({"metadata": {"name": "n"}, "subjects": [{"kind": "User", "name": "u"}], "roleRef": {}}),
        ),
        (
            "services",
            json!({"metadata": {"name": "n", "namespace": "x", "uid": "u"}, "spec": {"ports": [{"port": 80}]}}),
        ),
    ];
    for (plural, object) in objects {
        let mut allocations = Allocations::default();
        let mut once = object;
        apply(&kind(plural), &mut once, None, &mut allocations).unwrap();

        let mut twice = once.clone();
        apply(&kind(plural), &mut twice, Some(&once), &mut allocations).unwrap();

        assert_eq!(twice, once, "{plural}");
    }
}

#[test]
fn a_deployment_gets_the_defaults_of_its_kind_and_of_pods() {
    let deployment = completed(
        "deployments",
        json!({"metadata": {"name": "n"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}, "creationTimestamp": null},
            "spec": {"hostNetwork": false, "containers": [{"name": "c", "image": "r.io:5000/i:v1",
                "resources": {"requests": {"cpu": "1000m"}}, "ports": [{"containerPort": 80}],
                "readinessProbe": {"httpGet": {"port": 80}}}]},
        }}}),
    );

    assert_eq!(
        deployment["spec"],
        json!({
            "replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
                "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
                "securityContext": {}, "schedulerName": "default-scheduler",
                "containers": [{
                    "name": "c", "image": "r.io:5000/i:v1", "imagePullPolicy": "IfNotPresent",
                    "resources": {"requests": {"cpu": "1"}}, "ports": [{"containerPort": 80, "protocol": "TCP"}],
                    "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                    "readinessProbe": {"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, "timeoutSeconds": 1,
                        "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
                }],
            }},
        })
    );
    assert_eq!(deployment["status"], json!({}));
}

fn service(uid: &str, spec: Value) -> Value {
    json!({"metadata": {"name": uid, "namespace": "x", "uid": uid}, "spec": spec})
}

#[test]
fn a_service_keeps_what_it_was_given() {
    let mut allocations = Allocations::default();
    let kind = kind("services");
    let mut old = service("a", json!({"type": "LoadBalancer", "ports": [{"port": 80}]}));
    apply(&kind, &mut old, None, &mut allocations).unwrap();

    let mut same = service("a", json!({"type": "LoadBalancer", "ports": [{"port": 80}]}));
    apply(&kind, &mut same, Some(&old), &mut allocations).unwrap();
    let mut inner = service("a", old["spec"].clone());
    inner["spec"]["type"] = "ClusterIP".into();
    apply(&kind, &mut inner, Some(&old), &mut allocations).unwrap();
    let mut external = service("a", json!({"type": "ExternalName", "externalName": "e"}));
    apply(&kind, &mut external, Some(&old), &mut allocations).unwrap();

    assert_eq!(same["spec"], old["spec"]);
    let address = old["spec"]["clusterIP"].clone();
    assert_eq!(
        inner["spec"],
        json!({
            "type": "ClusterIP", "clusterIP": address, "clusterIPs": [address], "sessionAffinity": "None",
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "internalTrafficPolicy": "Cluster",
            "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        })
    );
    assert_eq!(external["spec"], json!({"type": "ExternalName", "externalName": "e", "sessionAffinity": "None"}));
}

#[test]
fn taken_addresses_and_ports_are_refused_without_trace() {
    let mut allocations = Allocations::default();
    let kind = kind("services");
    let spec = |address: &str, port: u16| json!({"type": "NodePort", "clusterIP": address, "ports": [{"port": 80, "nodePort": port}]});
    let mut first = service("a", spec("10.0.7.7", 30001));
    apply(&kind, &mut first, None, &mut allocations).unwrap();

    let mut create = |address: &str, port: u16| {
        let outcome = apply(&kind, &mut service("b", spec(address, port)), None, &mut allocations);
        outcome.map_err(|failure| String::from_utf8(failure.body.to_vec()).unwrap())
    };

    assert!(
        create("10.0.7.7", 30002)
            .unwrap_err()
            .contains("failed to allocate IP 10.0.7.7: provided IP is already allocated")
    );
    assert!(create("10.9.7.7", 30002).unwrap_err().contains("the provided network does not match the current range"));
    assert!(
        create("10.0.7.8", 30001)
            .unwrap_err()
            .contains("spec.ports[0].nodePort: Invalid value: 30001: provided port is already allocated")
    );
    assert_eq!(create("10.0.7.8", 30002), Ok(()));
}

#[test]
fn a_headless_service_has_no_address() {
    let service = completed("services", service("a", json!({"clusterIP": "None", "selector": {"a": "b"}})));

    assert_eq!(service["spec"]["clusterIPs"], json!(["None"]));
    assert_eq!(service["spec"]["ipFamilyPolicy"], "SingleStack");
    assert_eq!(service["status"], json!({"loadBalancer": {}}));
}

#[test]
fn jobs_and_namespaces_get_their_labels() {
    let job = completed("jobs", json!({"metadata": {"name": "n", "uid": "u"}, "spec": {"template": {"spec": {}}}}));
    let namespace = completed("namespaces", json!({"metadata": {"name": "n"}}));

    assert_eq!(job["spec"]["selector"], json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}));
    assert_eq!(job["metadata"]["labels"], job["spec"]["template"]["metadata"]["labels"]);
    assert_eq!(job["metadata"]["labels"].as_object().map(Map::len), Some(4));
    assert_eq!(namespace["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "n"}));
    assert_eq!(namespace["spec"], json!({"finalizers": ["kubernetes"]}));
}

#[test]
fn the_template_generation_of_a_daemon_set_counts_templates() {
    let set = |image: &str| json!({"metadata": {"name": "n"}, "spec": {"template": {"spec": {"containers": [{"image": image}]}}}});
    let old = completed("daemonsets", set("a"));

    let mut new = set("b");
    apply(&kind("daemonsets"), &mut new, Some(&old), &mut Allocations::default()).unwrap();

    assert_eq!(old["metadata"]["annotations"]["deprecated.daemonset.template.generation"], "1");
    assert_eq!(new["metadata"]["annotations"]["deprecated.daemonset.template.generation"], "2");
}

#[test]
fn defaults_survive_fields_of_any_shape() {
    let odd = [
        json!(1),
        json!("x"),
        json!([1, "x", null]),
        json!([{"resources": 1, "ports": [3], "env": [{"valueFrom": 4}]}]),
    ];
    for kind in kinds::built_in() {
        for value in &odd {
            let object = json!({
                "metadata": {"name": "n", "labels": value, "annotations": value, "finalizers": value},
                "spec": {
                    "template": {"metadata": value, "spec": {"containers": value, "volumes": value, "overhead": value}},
                    "ports": value, "strategy": value, "updateStrategy": value, "rules": value, "limits": value,
                    "containers": value, "clusterIPs": value, "names": value, "behavior": value, "metrics": value,
                },
                "data": value, "stringData": value, "subjects": value, "roleRef": value, "webhooks": value,
            });
            for mut object in [object, json!({"spec": value}), value.clone()] {
                let _ = apply(&kind, &mut object, None, &mut Allocations::default());
                let _ = crate::validate::create(&kind, &object);
                let _ = crate::validate::update(&kind, &object.clone(), &object, "");
            }
        }
    }
}

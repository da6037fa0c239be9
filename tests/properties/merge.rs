use std::collections::BTreeMap;

use gardener_resource_manager::api::resources::keys;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    checks::merge::{Case, Settings, check},
    json_value,
};

/// Every kind that has a rule, and some similar kinds without a rule.
const KINDS: [(&str, &str); 16] = [
    ("v1", "Service"),
    ("batch/v1", "CronJob"),
    ("batch/v2", "CronJob"),
    ("batch/v1", "Job"),
    ("apps/v1", "Deployment"),
    ("extensions/v1beta1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("extensions/v1beta1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "ReplicaSet"),
    ("v1", "ServiceAccount"),
    ("v1", "Secret"),
    ("v1", "PersistentVolume"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("g.io/v1", "ClusterRole"),
    ("serving.knative.dev/v1", "Service"),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn merge_is_idempotent_and_neither_loses_nor_invents_fields((kind, manifest, live) in objects(), settings in settings()) {
        let (manifest, live) = (of_kind(manifest, kind), live.map(|live| of_kind(live, kind)));

        check(&Case { settings, manifest, live });
    }
}

prop_compose! {
    fn settings()(
        force_labels in any::<bool>(),
        force_annotations in any::<bool>(),
        scaled in any::<bool>(),
        inject_labels in prop::collection::btree_map("[ab]", "[xy]", 0..2),
        old_labels in prop::collection::btree_map("[ab]", "[xy]", 0..3),
        old_annotations in prop::collection::btree_map("[ab]", "[xy]", 0..3),
    ) -> Settings {
        Settings { inject_labels, force_labels, force_annotations, scaled, old_labels, old_annotations }
    }
}

fn objects() -> impl Strategy<Value = (usize, Value, Option<Value>)> {
    (0..KINDS.len()).prop_flat_map(|kind| (Just(kind), object(kind), prop::option::weighted(0.9, object(kind))))
}

fn of_kind(mut object: Value, kind: usize) -> Value {
    let (api_version, kind) = KINDS[kind];
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    object
}

prop_compose! {
    fn object(kind: usize)(
        spec in match KINDS[kind].1 {
            "Service" => service_spec().boxed(),
            "PersistentVolume" => volume_spec().boxed(),
            "CronJob" => pod_template().prop_map(|template| json!({"jobTemplate": {"spec": {"template": template}}})).boxed(),
            _ => workload_spec().boxed(),
        },
        labels in strings(), annotations in strings(), preserve in any::<bool>(), ignore in prop::bool::weighted(0.1),
        exists in any::<bool>(), owners in prop::option::of(json_value()), finalizers in json_value(),
        status in json_value(), unknown in json_value(), secrets in json_value(), filled_in in filled_in(),
    ) -> Value {
        let (string_data, data, secret_type, rule, rules) = filled_in;
        let mut object = json!({
            "metadata": {"name": "a", "labels": labels, "annotations": annotations, "finalizers": finalizers},
            "spec": spec, "status": status, "unknown": unknown, "secrets": secrets, "stringData": string_data,
            "data": data, "type": secret_type, "aggregationRule": rule, "rules": rules,
        });
        let metadata = &mut object["metadata"];
        if preserve {
            metadata["annotations"][keys::PRESERVE_REPLICAS] = json!("true");
            metadata["annotations"][keys::PRESERVE_RESOURCES] = json!("true");
        }
        if ignore {
            metadata["annotations"][keys::IGNORE] = json!("true");
        }
        if exists {
            metadata["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        if let Some(owners) = owners {
            metadata["ownerReferences"] = owners;
        }
        object
    }
}

fn filled_in() -> impl Strategy<Value = (Value, Value, Value, Value, Value)> {
    let map = || {
        let key = prop::sample::select(vec!["token", "ca.crt", "namespace", "a"]);
        let value = prop_oneof![Just(Value::Null), "[xy]".prop_map(Value::from)];
        prop::option::of(prop::collection::btree_map(key, value, 0..3).prop_map(|map| json!(map)))
            .prop_map(Option::unwrap_or_default)
    };
    let secret_type = prop::sample::select(vec![json!("kubernetes.io/service-account-token"), json!("Opaque")]);
    let rule = prop::sample::select(vec![json!(null), json!({}), json!({"clusterRoleSelectors": []})]);
    (map(), map(), secret_type, rule, json_value())
}

fn volume_spec() -> impl Strategy<Value = Value> {
    let text = || prop::option::of("[ab]?");
    let claim = (text(), text(), text(), text(), json_value()).prop_map(|(namespace, name, uid, kind, unknown)| {
        json!({"namespace": namespace, "name": name, "uid": uid, "kind": kind, "unknown": unknown})
    });
    (prop::option::of(claim), json_value()).prop_map(|(claim, unknown)| json!({"claimRef": claim, "unknown": unknown}))
}

fn strings() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(vec![
        "a",
        "b",
        "reference.resources.gardener.cloud/x",
        "loadbalancer.openstack.org/y",
        "kubernetes.io/service-account.uid",
        keys::DESCRIPTION,
        keys::ORIGIN,
    ]);
    prop::collection::btree_map(key, "[xy]", 0..3)
        .prop_map(|map| map.into_iter().map(|(key, value)| (key.to_owned(), Value::from(value))).collect())
}

prop_compose! {
    fn workload_spec()(
        template in pod_template(), replicas in prop::option::of(0..3), selector in json_value(), unknown in json_value(),
        claims in prop::option::of(prop::collection::vec(json_value().prop_map(|it| json!({"spec": it})), 0..2)),
    ) -> Value {
        json!({"template": template, "replicas": replicas, "selector": selector, "unknown": unknown,
            "volumeClaimTemplates": claims})
    }
}

prop_compose! {
    fn pod_template()(
        labels in strings(),
        restarted_at in prop::option::of("[12]"),
        // Container names are unique.
        containers in prop::collection::btree_map("[ab]", container(), 0..3),
        init_containers in prop::collection::btree_map("[ab]", container(), 0..2),
        unknown in json_value(),
    ) -> Value {
        let list = |containers: BTreeMap<String, Value>| -> Value {
            containers.into_iter().map(|(name, mut container)| {
                container["name"] = name.into();
                container
            }).collect()
        };
        let annotations = restarted_at.map(|at| json!({keys::RESTARTED_AT: at}));
        json!({"metadata": {"labels": labels, "annotations": annotations}, "unknown": unknown,
            "spec": {"containers": list(containers), "initContainers": list(init_containers), "unknown": unknown}})
    }
}

prop_compose! {
    fn container()(
        requests in resources(), limits in resources(), unknown in json_value(), none in prop::bool::weighted(0.2),
    ) -> Value {
        let resources = if none { Value::Null } else { json!({"requests": requests, "limits": limits, "claims": unknown}) };
        json!({"resources": resources, "unknown": unknown})
    }
}

fn resources() -> impl Strategy<Value = Option<BTreeMap<String, String>>> {
    prop::option::of(prop::collection::btree_map("cpu|memory|gpu", "[12]", 0..3))
}

prop_compose! {
    fn service_spec()(
        service_type in prop::option::of(prop::sample::select(vec!["", "ClusterIP", "NodePort", "LoadBalancer", "ExternalName"])),
        ip in prop::option::of(prop::sample::select(vec!["None", "10.0.0.1", "10.0.0.2"])),
        policy in prop::option::of(prop::sample::select(vec!["Local", "Cluster"])),
        health in prop::option::of(31000..31002),
        balancer in prop::option::of("[12]?"),
        class in prop::option::of("[12]?"),
        // A Service has each port once per protocol.
        ports in prop::collection::btree_map((1..4u16, prop::sample::select(vec!["TCP", "UDP"])),
            (prop::option::of("[ab]"), prop::option::of(30000..30003u16), json_value()), 0..4),
        unknown in json_value(),
    ) -> Value {
        let ports: Vec<Value> = ports.into_iter().map(|((port, protocol), (name, node_port, unknown))| json!({
            "name": name, "port": port, "protocol": protocol, "nodePort": node_port, "unknown": unknown,
        })).collect();
        json!({"type": service_type, "clusterIP": ip, "externalTrafficPolicy": policy, "healthCheckNodePort": health,
            "loadBalancerIP": balancer, "loadBalancerClass": class, "ports": ports, "unknown": unknown})
    }
}

//! What holds for any manifest and any live object.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::actors::managed_resource::settled::{differs, settled};

const OWN_MANAGER: &str = "gardener-resource-manager";

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-d]", inner, 0..3).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn string_map() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(
        prop::sample::select(vec!["a", "b", "reference.resources.gardener.cloud/x", "loadbalancer.openstack.org/y"]),
        "[xy]",
        0..3,
    )
    .prop_map(|map| map.into_iter().map(|(key, value)| (key.to_owned(), Value::from(value))).collect())
}

prop_compose! {
    fn pod_template()(
        labels in string_map(),
        restarted_at in prop::option::of("[12]"),
        containers in prop::collection::btree_map("[ab]", (prop::option::of("[12]"), prop::option::of("[12]Mi")), 0..3),
        unknown in json_value(),
    ) -> Value {
        let containers: Vec<Value> = containers.into_iter().map(|(name, (cpu, memory))| json!({
            "name": name, "resources": {"requests": {"cpu": cpu, "memory": memory}},
        })).collect();
        let annotations = restarted_at.map(|at| json!({keys::RESTARTED_AT: at}));
        json!({"metadata": {"labels": labels, "annotations": annotations}, "spec": {"containers": containers}, "unknown": unknown})
    }
}

prop_compose! {
    fn service_spec()(
        service_type in prop::option::of(prop::sample::select(vec!["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"])),
        ip in prop::option::of(prop::sample::select(vec!["None", "10.0.0.1", "10.0.0.2"])),
        policy in prop::option::of(prop::sample::select(vec!["Local", "Cluster"])),
        health in prop::option::of(31000..31002),
        balancer in prop::option::of("[12]"),
        // A Service has each port once per protocol.
        ports in prop::collection::btree_map((1..4u16, prop::sample::select(vec!["TCP", "UDP"])),
            (prop::option::of("[ab]"), prop::option::of(30000..30003u16)), 0..4),
    ) -> Value {
        let ports: Vec<Value> = ports.into_iter().map(|((port, protocol), (name, node_port))| json!({
            "name": name, "port": port, "protocol": protocol, "nodePort": node_port,
        })).collect();
        json!({"type": service_type, "clusterIP": ip, "externalTrafficPolicy": policy, "healthCheckNodePort": health,
            "loadBalancerIP": balancer, "ports": ports})
    }
}

prop_compose! {
    /// An object of any kind that has a rule, or of one that has none, with fields nobody knows.
    fn any_object()(
        kind in prop::sample::select(vec![0, 1, 2, 3, 4, 5, 6, 7]),
    )(
        spec in match kind {
            0 => service_spec().boxed(),
            1 => pod_template().prop_map(|template| json!({"jobTemplate": {"spec": {"template": template}}})).boxed(),
            _ => (pod_template(), prop::option::of(0..3), json_value(), json_value()).prop_map(
                |(template, replicas, selector, unknown)| {
                    json!({"template": template, "replicas": replicas, "selector": selector, "unknown": unknown,
                        "volumeClaimTemplates": [{"metadata": {"name": "data"}}]})
                }).boxed(),
        },
        labels in string_map(), annotations in string_map(), status in json_value(), unknown in json_value(),
        preserve in any::<bool>(), exists in any::<bool>(), secrets in json_value(),
        kind in Just(kind),
    ) -> Value {
        let (api_version, kind) = [
            ("v1", "Service"), ("batch/v1", "CronJob"), ("batch/v1", "Job"), ("apps/v1", "Deployment"),
            ("apps/v1", "StatefulSet"), ("apps/v1", "DaemonSet"), ("v1", "ServiceAccount"), ("g.io/v1", "Thing"),
        ][kind];
        let mut object = json!({
            "apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "labels": labels, "annotations": annotations},
            "spec": spec, "status": status, "unknown": unknown, "secrets": secrets,
        });
        if preserve {
            object["metadata"]["annotations"][keys::PRESERVE_REPLICAS] = json!("true");
            object["metadata"]["annotations"][keys::PRESERVE_RESOURCES] = json!("true");
        }
        if exists {
            object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        object
    }
}

proptest! {
    #[test]
    fn a_merge_is_stable_and_keeps_unknown_fields(
        manifest in any_object(),
        live in any_object(),
        force in any::<bool>(),
        scaled in any::<bool>(),
        old_labels in prop::collection::btree_map("[ab]", "[xy]", 0..3),
    ) {
        let mut live = live;
        live["apiVersion"] = manifest["apiVersion"].clone();
        live["kind"] = manifest["kind"].clone();
        let old = Old { labels: old_labels, annotations: BTreeMap::new() };
        let context = MergeContext {
            old: Some(&old),
            force_overwrite_labels: force,
            force_overwrite_annotations: force,
            preserve_replicas: scaled,
            ..context()
        };

        let once = merge(&manifest, &live, &context).unwrap();
        let twice = merge(&manifest, &once, &context).unwrap();

        prop_assert_eq!(&twice, &once, "a second merge changes nothing");
        prop_assert_eq!(&once["unknown"], &manifest["unknown"]);
        prop_assert_eq!(once.pointer("/spec/unknown"), manifest.pointer("/spec/unknown"));
        prop_assert_eq!(once.pointer("/spec/template/unknown"), manifest.pointer("/spec/template/unknown"));
        prop_assert!(settled(&once, &once, OWN_MANAGER), "what was just sent is settled");
        prop_assert!(!differs(&once, &twice));
        if !differs(&once, &live) {
            prop_assert!(settled(&once, &live, OWN_MANAGER), "the tolerant comparison finds no more differences");
        }
    }

    #[test]
    fn a_creation_is_what_an_update_of_it_would_send(manifest in any_object()) {
        let context = context();

        let created = for_create(&manifest, &context).unwrap();

        prop_assert_eq!(&merge(&manifest, &created, &context).unwrap(), &created);
    }
}

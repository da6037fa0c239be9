//! Properties of the high-availability webhook for any object and any cluster (spec 51).

use std::{collections::BTreeMap, sync::Arc};

use cluster::object::{GroupVersionKind, NamespacedName};
use gardener_resource_manager::{
    api::config::resource_manager::HighAvailabilityConfig,
    webhooks::{
        cached_kind::{AnyCachedKind, Fields},
        mutating::{
            Mutation, Mutator, Request,
            high_availability::{
                FAILURE_TOLERANCE_TYPE, HOST_SPREAD, HighAvailability, REPLICAS, Space, TYPE, ZONE_PINNING, ZONES,
            },
        },
        view::{Annotations, Failure, Recency, Scaled, View},
    },
};
use proptest::{option::of, prelude::*, sample::select};
use serde_json::{Value, json};

use crate::json_value;

const KINDS: [(&str, &str, &str); 4] = [
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "StatefulSet"),
    ("autoscaling", "v2", "HorizontalPodAutoscaler"),
    ("apps", "v1", "ReplicaSet"),
];

#[derive(Debug, Clone)]
struct Cluster {
    annotations: Arc<Annotations>,
    max_replicas: Option<i64>,
    has_one_node: bool,
    config: HighAvailabilityConfig,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn object_changes_once_only_where_a_rule_says_so_and_stays_valid(
        kind in 0..KINDS.len(), object in object(), cluster in cluster(), operation in select(vec!["CREATE", "UPDATE"]),
    ) {
        check(kind, &object, &cluster, operation);
    }

    #[test]
    fn object_of_any_json_is_changed_or_denied(kind in 0..KINDS.len(), object in json_value(), cluster in cluster()) {
        check(kind, &object, &cluster, "CREATE");
    }
}

fn check(kind: usize, before: &Value, cluster: &Cluster, operation: &str) {
    let (group, version, name) = KINDS[kind];
    let request = Request { kind: GroupVersionKind::new(group, version, name), namespace: "ns", name: "a", operation };
    let webhook = HighAvailability(cluster.config);
    let mut after = before.clone();
    match webhook.mutate(&mut after, &request, cluster) {
        Ok(Mutation::Done) => assert_ne!(name, "ReplicaSet"),
        Ok(Mutation::Unexpected(_)) => {
            assert_eq!((name, &after), ("ReplicaSet", before));
            return;
        }
        Err(failure) => {
            assert!(matches!(failure, Failure::Denied(_)), "{failure:?}");
            return;
        }
    }

    let mut again = after.clone();
    assert_eq!(webhook.mutate(&mut again, &request, cluster), Ok(Mutation::Done));
    assert_eq!(again, after, "a second time changes nothing");

    match name {
        "HorizontalPodAutoscaler" => check_autoscaler(before, &after),
        _ => check_workload(before, &after, cluster),
    }
}

/// spec 51 §4.2
fn check_autoscaler(before: &Value, after: &Value) {
    let (min, max) = ("/spec/minReplicas", "/spec/maxReplicas");
    assert!(integer(after, min) >= integer(before, min), "a minimum is never lowered");
    assert!(integer(after, max) >= integer(before, max), "nor is a maximum");
    assert_eq!(without(before, &[min, max]), without(after, &[min, max]), "all else stays");
    if text(before, "labels", TYPE).is_empty() || integer(before, min) == 0 {
        assert_eq!(before, after, "not concerned");
    } else {
        assert!(integer(after, min) <= integer(after, max), "it is valid");
    }
}

/// spec 51 §4.1, §5, §6, §7
fn check_workload(before: &Value, after: &Value, cluster: &Cluster) {
    let pods = "/spec/template/spec";
    let required = format!("{pods}/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution");
    let (affinity, spread, tolerations) = (
        format!("{required}/nodeSelectorTerms"),
        format!("{pods}/topologySpreadConstraints"),
        format!("{pods}/tolerations"),
    );
    let changed = [&*affinity, &*spread, &*tolerations, "/spec/replicas"];
    assert_eq!(without(before, &changed), without(after, &changed), "all else stays");

    let (count_before, count) = (integer(before, "/spec/replicas"), integer(after, "/spec/replicas"));
    if count_before == 0 || text(before, "labels", TYPE).is_empty() {
        assert_eq!(count, count_before, "replicas are left alone");
    }
    if cluster.max_replicas.is_some() {
        assert!(count >= count_before, "an autoscaled workload is not scaled down");
    }
    if !cluster.annotations.contains_key(ZONES) {
        assert_eq!(before.pointer(&affinity), after.pointer(&affinity), "no zones, no affinity");
    }
    if cluster.config.default_not_ready_toleration_seconds.is_none()
        && cluster.config.default_unreachable_toleration_seconds.is_none()
    {
        assert_eq!(before.pointer(&tolerations), after.pointer(&tolerations), "none is configured");
    }
    check_begins_with(list(before, &tolerations), list(after, &tolerations));
    if count > 1 {
        check_spread(list(after, &spread));
    } else {
        let keyless = |constraint: &Value| without(constraint, &["/matchLabelKeys"]);
        let [before, after] =
            [before, after].map(|object| list(object, &spread).iter().map(keyless).collect::<Vec<_>>());
        assert_eq!(before, after, "a single Pod is not spread");
    }
}

/// spec 51 §6.2, §9: exactly one constraint over nodes, at most one over zones, and both are valid.
fn check_spread(constraints: &[Value]) {
    let of_key = |key: &'static str| constraints.iter().filter(move |constraint| constraint["topologyKey"] == key);
    let (hosts, zones) = ("kubernetes.io/hostname", "topology.kubernetes.io/zone");
    assert_eq!(of_key(hosts).count(), 1);
    assert!(of_key(zones).count() <= 1);
    for constraint in of_key(hosts).chain(of_key(zones)) {
        let is_hard = constraint["whenUnsatisfiable"] == "DoNotSchedule";
        assert_eq!(constraint.get("minDomains").is_some(), is_hard, "minDomains is only legal with DoNotSchedule");
        assert!(constraint["minDomains"].as_i64().is_none_or(|domains| domains > 0));
        assert_eq!(constraint["maxSkew"], 1);
        assert!(constraint["labelSelector"].is_object());
    }
}

fn check_begins_with(before: &[Value], after: &[Value]) {
    assert_eq!(after.get(..before.len()), Some(before), "existing elements keep their positions");
}

fn without(object: &Value, pointers: &[&str]) -> Value {
    let mut object = object.clone();
    for pointer in pointers {
        let (above, field) = pointer.rsplit_once('/').expect("a pointer");
        if let Some(fields) = object.pointer_mut(above).and_then(Value::as_object_mut) {
            fields.remove(field);
        }
    }
    pruned(object).unwrap_or_default()
}

fn pruned(value: Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Object(fields) => {
            let fields: serde_json::Map<_, _> =
                fields.into_iter().filter_map(|(key, value)| Some((key, pruned(value)?))).collect();
            (!fields.is_empty()).then_some(Value::Object(fields))
        }
        other => Some(other),
    }
}

fn integer(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(object: &'a Value, field: &str, key: &str) -> &'a str {
    object["metadata"][field][key].as_str().unwrap_or_default()
}

impl View for Cluster {
    fn find(
        &self,
        wanted: &'static dyn AnyCachedKind,
        _: &NamespacedName,
        _: Recency,
    ) -> Result<Option<Fields>, Failure> {
        assert_eq!(wanted.objects().kind, "Namespace", "not a matter of this webhook");
        Ok(Some(Arc::new(Space { considered: true, annotations: Annotations::clone(&self.annotations) })))
    }

    fn find_all(&self, _: &'static dyn AnyCachedKind) -> Result<Vec<(NamespacedName, Fields)>, Failure> {
        panic!("not a matter of this webhook")
    }

    fn autoscaler(&self, _: &Scaled<'_>, _: bool) -> Result<Option<i64>, Failure> {
        Ok(self.max_replicas)
    }

    fn has_one_node(&self) -> Result<bool, Failure> {
        Ok(self.has_one_node)
    }

    fn tolerations_of_nodes(&self) -> Result<Arc<Vec<Value>>, Failure> {
        panic!("not a matter of this webhook")
    }
}

prop_compose! {
    fn cluster()(
        tolerance in of(select(vec!["", "node", "zone", "other"])),
        zones in of(select(vec!["", ",", "a", "b,a", "a,,b,c,a"])),
        pinning in of(select(vec!["true", "false", "maybe"])),
        max_replicas in of(0..6_i64),
        has_one_node in any::<bool>(),
        not_ready in of(0..3_i64),
        unreachable in of(0..3_i64),
    ) -> Cluster {
        let annotations = [(FAILURE_TOLERANCE_TYPE, tolerance), (ZONES, zones), (ZONE_PINNING, pinning)];
        let annotations = annotations.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.to_owned())));
        Cluster {
            annotations: Arc::new(annotations.collect()),
            max_replicas,
            has_one_node,
            config: HighAvailabilityConfig {
                default_not_ready_toleration_seconds: not_ready,
                default_unreachable_toleration_seconds: unreachable,
            },
        }
    }
}

fn object() -> impl Strategy<Value = Value> {
    (metadata(), counts(), prop::collection::vec(json_value(), 2), affinity(), constraints(), tolerations()).prop_map(
        |(metadata, counts, unknown, affinity, constraints, tolerations)| {
            let mut spec = json!({
                "unknown": unknown[0],
                "selector": { "matchLabels": { "app": "x" } },
                "template": {
                    "metadata": { "labels": { "app": "x" } },
                    "spec": {
                        "unknown": unknown[1],
                        "affinity": affinity,
                        "topologySpreadConstraints": constraints,
                        "tolerations": tolerations,
                    },
                },
            });
            let fields = spec.as_object_mut().expect("it is a map");
            fields.extend(counts.into_iter().filter_map(|(key, count)| Some((key.to_owned(), count?.into()))));
            json!({ "metadata": metadata, "spec": spec })
        },
    )
}

fn metadata() -> impl Strategy<Value = Value> {
    let component = of(select(vec!["controller", "server", "other", ""]));
    let replicas = of(select(vec!["1", "3", "0", "-1", "", "many", "4294967296"]));
    let host_spread = of(select(vec!["true", "false", ""]));
    (component, replicas, host_spread, json_value()).prop_map(|(component, replicas, host_spread, unknown)| {
        json!({
            "labels": present([(TYPE, component)]),
            "annotations": present([(REPLICAS, replicas), (HOST_SPREAD, host_spread)]),
            "unknown": unknown,
        })
    })
}

fn counts() -> impl Strategy<Value = [(&'static str, Option<i64>); 3]> {
    [of(-1..5_i64), of(-1..5_i64), of(-1..5_i64)].prop_map(|[replicas, min, max]| {
        [("replicas", replicas), ("minReplicas", min), ("maxReplicas", max.map(|max| max.max(min.unwrap_or_default())))]
    })
}

fn affinity() -> impl Strategy<Value = Value> {
    let key = select(vec!["topology.kubernetes.io/zone", "kubernetes.io/hostname"]);
    let expression = (key, json_value()).prop_map(|(key, unknown)| json!({ "key": key, "values": unknown }));
    let term = (of(prop::collection::vec(expression, 0..3)), json_value())
        .prop_map(|(expressions, unknown)| json!({ "matchExpressions": expressions, "matchFields": unknown }));
    let required = of(prop::collection::vec(prop_oneof![8 => term, 1 => json_value()], 0..3));
    prop_oneof![
        1 => json_value(),
        6 => required.prop_map(|terms| json!({
            "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms } },
        })),
    ]
}

fn constraints() -> impl Strategy<Value = Value> {
    let key = select(vec!["topology.kubernetes.io/zone", "kubernetes.io/hostname", "rack"]);
    let selector = of(select(vec![json!({}), json!({ "matchLabels": { "pod-template-hash": "a" } })]));
    let keys = of(select(vec![json!([]), json!(["pod-template-hash"]), json!(["tier"])]));
    let constraint = (key, selector, keys, json_value()).prop_map(|(key, selector, keys, unknown)| {
        json!({
            "topologyKey": key, "labelSelector": selector, "matchLabelKeys": keys, "maxSkew": 9, "unknown": unknown,
        })
    });
    of(prop::collection::vec(prop_oneof![12 => constraint, 1 => json_value()], 0..4)).prop_map(|list| json!(list))
}

fn tolerations() -> impl Strategy<Value = Value> {
    let key = of(select(vec!["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", ""]));
    let effect = of(select(vec!["", "NoExecute", "NoSchedule"]));
    let toleration = (key, effect).prop_map(|(key, effect)| json!({ "key": key, "effect": effect }));
    of(prop::collection::vec(prop_oneof![12 => toleration, 1 => json_value()], 0..4)).prop_map(|list| json!(list))
}

fn present<const N: usize>(texts: [(&str, Option<&str>); N]) -> BTreeMap<String, String> {
    texts.into_iter().filter_map(|(key, text)| Some((key.to_owned(), text?.to_owned()))).collect()
}

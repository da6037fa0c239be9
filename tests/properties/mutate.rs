use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    checks::mutate::{Case, Settings, check},
    json_value,
};

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn webhooks_change_only_what_they_may_and_only_once(settings in settings(), object in object()) {
        check(&Case { settings, object });
    }

    #[test]
    fn webhooks_accept_any_json(settings in settings(), object in json_value()) {
        check(&Case { settings, object });
    }
}

fn settings() -> impl Strategy<Value = Settings> {
    let cluster = (
        prop::bool::weighted(0.1),
        prop::option::weighted(0.8, prop::bool::weighted(0.1)),
        prop::sample::select(vec!["", "a", "a,b", "a,,a"]),
        prop::sample::select(vec!["", "istio", "istio-ingress--europe-west1-b"]),
        prop::collection::vec(prop::sample::select(vec!["10.0.0.1", "fd00::9", "None", ""]), 0..3),
        prop::collection::vec(prop::collection::vec(taint(), 0..3), 0..4),
    );
    let configuration = (
        prop::collection::btree_map("[ab]", "[ab]", 0..3),
        prop::collection::vec(toleration(), 0..3),
        prop::sample::select(vec!["default-scheduler", "bin-packing-scheduler"]),
        any::<i64>(),
    );
    (cluster, configuration).prop_map(|(cluster, configuration)| {
        let (empty, automount, hosts, istio, addresses, nodes) = cluster;
        let (node_selector, tolerations, scheduler_name, expiration_seconds) = configuration;
        Settings {
            empty,
            automount,
            load_balancing: [("hosts".to_owned(), hosts.to_owned()), ("istio-namespace".to_owned(), istio.to_owned())]
                .into(),
            addresses: addresses.into_iter().map(str::to_owned).collect(),
            nodes: nodes.into_iter().map(|taints| json!({ "spec": { "taints": taints } })).collect(),
            node_selector,
            tolerations: tolerations.into(),
            scheduler_name: scheduler_name.to_owned(),
            expiration_seconds,
            ..Settings::default()
        }
    })
}

fn taint() -> impl Strategy<Value = Value> {
    let keys = vec!["a", "b", "node.kubernetes.io/x", "ToBeDeletedByClusterAutoscaler"];
    (prop::sample::select(keys), "[a]?", prop::sample::select(vec!["NoSchedule", "NoExecute"]))
        .prop_map(|(key, value, effect)| json!({ "key": key, "value": value, "effect": effect }))
}

fn toleration() -> impl Strategy<Value = Value> {
    let operators = prop::sample::select(vec![Value::Null, json!(""), json!("Equal"), json!("Exists")]);
    let seconds = prop::sample::select(vec![Value::Null, json!(10)]);
    (taint(), operators, seconds).prop_map(|(mut toleration, operator, seconds)| {
        toleration["operator"] = operator;
        toleration["tolerationSeconds"] = seconds;
        toleration
    })
}

fn object() -> impl Strategy<Value = Value> {
    let data = map("(token|ca\\.crt)", "(AAAA|dmFsaWQ=|)");
    (metadata(), spec(), field(endpoints().boxed()), field(data)).prop_map(|(metadata, spec, endpoints, data)| {
        json!({ "metadata": metadata, "spec": spec, "endpoints": endpoints, "data": data })
    })
}

fn metadata() -> impl Strategy<Value = Value> {
    let labels = map("(pod-template-hash|a|token-invalidator\\.resources\\.gardener\\.cloud/consider)", "[ab]?");
    let annotations = map("projected-token-mount\\.resources\\.gardener\\.cloud/expiration-seconds", "(3600|1h|)");
    let owners = one_of(["[]", r#"[{"apiVersion":"apps/v1","kind":"DaemonSet","controller":true}]"#]);
    fields([("labels", labels), ("annotations", annotations), ("ownerReferences", owners)])
}

fn spec() -> impl Strategy<Value = Value> {
    let modes = one_of([r#"{}"#, r#"{"updateMode":"Auto"}"#, r#"{"updateMode":"Off"}"#, r#"{"minReplicas":1}"#]);
    let security = one_of(["{}", r#"{"seccompProfile":{"type":""}}"#, r#"{"seccompProfile":{"type":"Unconfined"}}"#]);
    let constraint = fields([
        ("labelSelector", fields([("matchLabels", map("(pod-template-hash|a)", "[ab]"))]).boxed()),
        ("matchLabelKeys", prop::collection::vec("(pod-template-hash|a)", 0..3).prop_map(Value::from).boxed()),
    ]);
    fields([
        ("serviceAccountName", one_of([r#""a""#, r#""default""#])),
        ("automountServiceAccountToken", one_of(["true", "false"])),
        ("schedulerName", one_of([r#""default-scheduler""#, r#""a""#])),
        ("os", one_of([r#"{"name":"linux"}"#, r#"{"name":"windows"}"#])),
        ("securityContext", security),
        ("updatePolicy", modes),
        ("nodeSelector", map("[ab]", "[ab]")),
        ("volumes", prop::collection::vec(volume(), 0..3).prop_map(Value::from).boxed()),
        ("containers", prop::collection::vec(container(), 0..3).prop_map(Value::from).boxed()),
        ("initContainers", prop::collection::vec(container(), 0..3).prop_map(Value::from).boxed()),
        ("tolerations", prop::collection::vec(toleration(), 0..4).prop_map(Value::from).boxed()),
        ("topologySpreadConstraints", prop::collection::vec(constraint, 0..3).prop_map(Value::from).boxed()),
        ("hostAliases", one_of(["[]", r#"[{"ip":"10.0.0.1","hostnames":["a"]}]"#])),
    ])
}

fn volume() -> BoxedStrategy<Value> {
    one_of([
        r#"{"name":"a"}"#,
        r#"{"name":"kube-api-access-a"}"#,
        r#"{"secret":{"secretName":"generic-token-kubeconfig"}}"#,
        r#"{"projected":{"sources":[{"secret":{"name":"generic-token-kubeconfig-1"}}]}}"#,
    ])
}

fn container() -> BoxedStrategy<Value> {
    one_of([
        "null",
        r#"{"name":"a"}"#,
        r#"{"volumeMounts":[{"name":"a","mountPath":"/a","futureField":7}]}"#,
        r#"{"volumeMounts":[{"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}]}"#,
    ])
}

fn endpoints() -> impl Strategy<Value = Value> {
    let endpoint = fields([
        ("zone", one_of([r#""a""#, r#""b""#, r#""""#])),
        ("hints", one_of([r#"{"forZones":[{"name":"a"}]}"#, r#"{"forNodes":[]}"#])),
    ]);
    prop::collection::vec(endpoint, 0..3).prop_map(Value::from)
}

fn one_of<const N: usize>(texts: [&'static str; N]) -> BoxedStrategy<Value> {
    let values: Vec<Value> = texts.iter().map(|text| serde_json::from_str(text).expect("it is JSON")).collect();
    prop::sample::select(values).boxed()
}

fn map(keys: &'static str, values: &'static str) -> BoxedStrategy<Value> {
    prop::collection::btree_map(keys, values, 0..3).prop_map(|map| json!(map)).boxed()
}

fn fields<const N: usize>(fields: [(&'static str, BoxedStrategy<Value>); N]) -> BoxedStrategy<Value> {
    let (names, values): (Vec<&str>, Vec<BoxedStrategy<Value>>) = fields.into_iter().unzip();
    let values: Vec<_> = values.into_iter().map(field).collect();
    values
        .prop_map(move |values| {
            names
                .iter()
                .zip(values)
                .filter(|(_, value)| *value != json!("absent"))
                .map(|(name, value)| ((*name).to_owned(), value))
                .collect()
        })
        .boxed()
}

fn field(value: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    prop_oneof![16 => value, 4 => Just(json!("absent")), 1 => Just(Value::Null), 1 => json_value()].boxed()
}

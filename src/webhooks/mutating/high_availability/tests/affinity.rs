use super::*;

/// spec 51 §2.1, §5, scenarios 12, 13, 14
#[test]
fn pods_are_pinned_to_zones_if_the_namespace_asks_for_it() {
    let ab: &[&str] = &["a", "b"];
    let table = [
        // tolerance, zones, pinning, pinned to
        (Some(""), "b,a,,b", None, Some(ab)),
        (Some("node"), "a,b", None, Some(ab)),
        (Some("zone"), "a,b", None, Some(ab)),
        (Some("unknown"), "a,b", None, Some(ab)),
        (Some("zone"), "a, b", None, Some(&[" b", "a"])),
        (Some("zone"), "eu-b,eu-B,eu-10,eu-9", None, Some(&["eu-10", "eu-9", "eu-B", "eu-b"])),
        (None, "a,b", None, None),
        (None, "a", None, None),
        (None, "a,b", Some("true"), Some(ab)),
        (None, "a,b", Some("1"), Some(ab)),
        (None, "a,b", Some("T"), Some(ab)),
        (None, "a,b", Some("yes"), None),
        (None, "a,b", Some("false"), None),
        (None, "a,b", Some(""), None),
        (Some("zone"), "a,b", Some("false"), Some(ab)),
        (Some("zone"), "", None, None),
        (Some("zone"), ",", None, None),
        (None, ",,", Some("true"), None),
    ];

    for (tolerance, zones, pinning, expected) in table {
        let view = match (tolerance, pinning) {
            (None, None) => annotated([(ZONES, zones)]),
            (None, Some(pinning)) => annotated([(ZONES, zones), (ZONE_PINNING, pinning)]),
            (Some(tolerance), None) => annotated([(ZONES, zones), (FAILURE_TOLERANCE_TYPE, tolerance)]),
            (Some(tolerance), Some(pinning)) => {
                annotated([(ZONES, zones), (FAILURE_TOLERANCE_TYPE, tolerance), (ZONE_PINNING, pinning)])
            }
        };
        let expected = expected.map_or(Value::Null, |zones| {
            json!([{ "matchExpressions": [{ "key": "topology.kubernetes.io/zone", "operator": "In", "values": zones }] }])
        });

        for object in [deployment("", 1), stateful_set("", 0)] {
            assert_eq!(terms(&view, &object), expected, "{tolerance:?}, {zones:?}, {pinning:?}");
        }
    }
}

/// spec 51 §2.1: zones are absent
#[test]
fn without_zones_no_pod_is_pinned() {
    let view = annotated([(FAILURE_TOLERANCE_TYPE, "zone"), (ZONE_PINNING, "true")]);

    assert_eq!(mutated(&view, &deployment("", 1)), deployment("", 1));
}

/// spec 51 §5, the example; §9 R1, R2; scenario 16
#[test]
fn zones_are_required_in_each_term() {
    let before = "
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
      - matchExpressions: [{key: pool, operator: In, values: [etcd]}, {key: topology.kubernetes.io/zone, operator: NotIn, values: [eu-1c]}]
      - matchFields: [{key: metadata.name, operator: In, values: [node-7]}]
";
    let after = "
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
      - matchExpressions: [{key: pool, operator: In, values: [etcd]}, {key: topology.kubernetes.io/zone, operator: In, values: [eu-1a, eu-1b]}]
      - matchFields: [{key: metadata.name, operator: In, values: [node-7]}]
        matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [eu-1a, eu-1b]}]
";
    let view = cluster(Some("zone"), Some("eu-1a,eu-1b"));

    let made = mutated(&view, &with_pods(deployment("", 1), before));

    assert_eq!(made, with_pods(deployment("", 1), after));
}

/// spec 51 scenario 15
#[test]
fn requirements_about_other_keys_are_kept() {
    let object = with_pods(
        deployment("", 1),
        "
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
  {matchExpressions: [{key: topology.kubernetes.io/zone, operator: NotIn, values: [c]}, {key: topology.kubernetes.io/zone, operator: Exists}]},
  {matchExpressions: [{key: kubernetes.io/hostname, operator: Exists}]},
]}}}",
    );

    let made = terms(&cluster(Some("zone"), Some("a")), &object);

    let zone = json!({ "key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"] });
    let host = json!({ "key": "kubernetes.io/hostname", "operator": "Exists" });
    assert_eq!(made, json!([{ "matchExpressions": [zone] }, { "matchExpressions": [host, zone] }]));
}

/// spec 51 §5 rules 1 and 3
#[test]
fn other_affinity_stays_as_it_is() {
    let object = with_pods(
        deployment("", 1),
        "
affinity:
  podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: topology.kubernetes.io/zone}]}
  nodeAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
    - {weight: 1, preference: {matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [c]}]}}
    requiredDuringSchedulingIgnoredDuringExecution:
      future: 1
      nodeSelectorTerms:
      - matchExpressions: [{key: failure-domain.beta.kubernetes.io/zone, operator: In, values: [c]}]
",
    );

    let made = mutated(&cluster(Some("zone"), Some("a")), &object);

    let mut expected = object;
    let path = "/spec/template/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions";
    let expressions = expected.pointer_mut(path).and_then(Value::as_array_mut).unwrap();
    expressions.push(json!({ "key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"] }));
    assert_eq!(made, expected);
}

/// spec 51 §5 rule 1
#[test]
fn terms_that_are_missing_empty_or_null_become_one() {
    for pods in [
        "{}",
        "{affinity: null}",
        "{affinity: {nodeAffinity: null}}",
        "{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: null}}}",
        "{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: null}}}}",
        "{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}}",
        "{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [null]}}}}",
        "{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: null}]}}}}",
    ] {
        let made = terms(&cluster(Some(""), Some("a")), &with_pods(deployment("", 1), pods));

        let zone = json!({ "key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"] });
        assert_eq!(made, json!([{ "matchExpressions": [zone] }]), "{pods}");
    }
}

/// The copies would exhaust the memory, and no such object can be stored.
#[test]
fn zones_and_terms_that_cannot_be_stored_are_denied() {
    let zones: Vec<String> = (0..10_000).map(|zone| format!("zone-{zone}")).collect();
    let view = cluster(Some("zone"), Some(&zones.join(",")));
    let pinned = |terms: usize| {
        let required = json!({ "nodeSelectorTerms": vec![json!({}); terms] });
        let mut object = deployment("", 1);
        object["spec"]["template"]["spec"]["affinity"] =
            json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": required } });
        object
    };

    let made = terms(&view, &pinned(2));
    let denied = outcome(&view, &pinned(1_000), "CREATE");

    assert_eq!(made[1]["matchExpressions"][0]["values"].as_array().map(Vec::len), Some(10_000));
    let message = "spec.template.spec.affinity: 1000 node selector terms with 10000 zones each are too many";
    assert_eq!(denied, Err(Failure::Denied(message.to_owned())));
}

/// spec 51 §8, "Reverting"
#[test]
fn affinity_stays_when_the_namespace_drops_its_annotations() {
    let pinned = mutated(&cluster(Some("zone"), Some("a")), &deployment("", 1));

    assert_eq!(mutated(&plain(), &pinned), pinned);
}

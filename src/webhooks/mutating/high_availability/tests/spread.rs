use super::*;

fn over_nodes(domains: Option<i64>) -> Value {
    constraint("kubernetes.io/hostname", domains)
}

fn over_zones(domains: i64) -> Value {
    constraint("topology.kubernetes.io/zone", Some(domains))
}

fn constraint(key: &str, domains: Option<i64>) -> Value {
    let mut constraint = json!({
        "topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": { "matchLabels": { "app": "x" } }, "matchLabelKeys": ["pod-template-hash"],
    });
    if let Some(domains) = domains {
        constraint["whenUnsatisfiable"] = json!("DoNotSchedule");
        constraint["minDomains"] = json!(domains);
    }
    constraint
}

/// spec 51 §6.2, second table; scenarios 17, 18, 20, 21
#[test]
fn constraints_depend_on_failure_tolerance_and_zones() {
    let soft = || over_nodes(None);
    let hard = || over_nodes(Some(2));
    let table = [
        // FTT, zones, constraints
        (None, None, json!([soft()])),
        (None, Some("a"), json!([soft()])),
        (None, Some("a,a"), json!([soft()])),
        (None, Some("a,b"), json!([soft(), over_zones(2)])),
        (None, Some("a,b,c"), json!([soft(), over_zones(2)])),
        (Some(""), None, json!([soft()])),
        (Some(""), Some("a"), json!([soft()])),
        (Some(""), Some("a,b"), json!([soft()])),
        (Some("node"), None, json!([hard()])),
        (Some("node"), Some("a,b"), json!([hard()])),
        (Some("unknown"), Some("a,b"), json!([hard()])),
        (Some("zone"), None, json!([hard()])),
        (Some("zone"), Some("a"), json!([hard()])),
        (Some("zone"), Some("a,b"), json!([hard(), over_zones(2)])),
        (Some("zone"), Some("a,b,c"), json!([hard(), over_zones(2)])),
    ];

    for (tolerance, zones, expected) in table {
        let made = constraints(&cluster(tolerance, zones), &deployment("", 2));

        assert_eq!(made, expected, "{tolerance:?}, {zones:?}");
    }
}

/// spec 51 §6.1 M, scenarios 19, 24
#[test]
fn min_domains_is_bounded_by_the_largest_number_of_pods() {
    let table = [
        // replicas, maxReplicas, zones, over nodes, over zones
        (2, None, "a,b,c", 2, 2),
        (3, None, "a,b,c", 3, 3),
        (5, None, "a,b,c", 3, 3),
        (5, None, "a,b,c,d", 3, 4),
        (5, None, "a,b", 3, 2),
        (2, Some(6), "a,b,c", 3, 3),
        (2, Some(2), "a,b,c", 2, 2),
        (2, Some(1), "a,b,c", 2, 2),
        (2, Some(0), "a,b,c", 2, 2),
    ];

    for (replicas, most, zones, nodes, domains) in table {
        let view = cluster(Some("zone"), Some(zones));
        let view = most.into_iter().fold(view, scaled);

        let made = constraints(&view, &deployment("", replicas));

        assert_eq!(made, json!([over_nodes(Some(nodes)), over_zones(domains)]), "{replicas}, {most:?}, {zones}");
    }
}

/// spec 51 §2.2, scenarios 22, 24
#[test]
fn host_spread_annotation_makes_the_spread_over_nodes_hard() {
    let table =
        [("true", true), ("1", true), ("T", true), ("false", false), ("yes", false), (" true", false), ("", false)];

    for (annotation, is_hard) in table {
        let object = with_annotation(deployment("", 2), HOST_SPREAD, annotation);

        assert_eq!(constraints(&plain(), &object), json!([over_nodes(is_hard.then_some(2))]), "{annotation:?}");
    }
    let object = with_annotation(deployment("", 2), HOST_SPREAD, "true");
    assert_eq!(constraints(&scaled(plain(), 6), &object), json!([over_nodes(Some(3))]));
    assert_eq!(constraints(&scaled(plain(), 1), &object), json!([over_nodes(Some(2))]));
}

/// spec 51 §9, "The host-spread annotation on the namespace has no effect", nor has that of the Pods
#[test]
fn host_spread_annotation_elsewhere_has_no_effect() {
    let mut object = deployment("", 2);
    object["spec"]["template"]["metadata"]["annotations"] = json!({ HOST_SPREAD: "true" });

    assert_eq!(constraints(&annotated([(HOST_SPREAD, "true")]), &object), json!([over_nodes(None)]));
}

/// spec 51 scenario 23, decision 4, §9 R8
#[test]
fn single_node_makes_the_spread_over_nodes_soft() {
    let table = [(0, Some(2)), (1, None), (2, Some(2)), (100, Some(2))];

    for (nodes, domains) in table {
        let by_annotation = with_annotation(deployment("", 2), HOST_SPREAD, "true");
        assert_eq!(constraints(&plain().nodes(nodes), &by_annotation), json!([over_nodes(domains)]), "{nodes} nodes");

        let by_tolerance = constraints(&cluster(Some("zone"), Some("a,b")).nodes(nodes), &deployment("", 2));
        assert_eq!(by_tolerance, json!([over_nodes(domains), over_zones(2)]), "{nodes} nodes");
    }
}

/// spec 51 §6.2, scenario 25, §9 R5
#[test]
fn constraints_over_nodes_and_zones_are_replaced_and_others_kept() {
    let object = with_pods(
        deployment("", 2),
        "
topologySpreadConstraints:
- {topologyKey: kubernetes.io/hostname, maxSkew: 9}
- {topologyKey: rack, maxSkew: 2, labelSelector: {matchLabels: {app: x}}, future: 1}
- {topologyKey: topology.kubernetes.io/zone, maxSkew: 3}
- {topologyKey: room, maxSkew: 3, labelSelector: {}}
",
    );

    let made = constraints(&plain(), &object);

    let mut expected = self::object(
        "
- {topologyKey: rack, maxSkew: 2, labelSelector: {matchLabels: {app: x}}, matchLabelKeys: [pod-template-hash], future: 1}
- {topologyKey: room, maxSkew: 3, labelSelector: {}, matchLabelKeys: [pod-template-hash]}
",
    );
    expected.as_array_mut().unwrap().push(over_nodes(None));
    assert_eq!(made, expected);
}

/// spec 51 §6.2 first sentence, §6.3, scenarios 7, 26
#[test]
fn constraints_of_a_single_pod_only_get_the_revision_key() {
    for replicas in [0, 1] {
        let object = with_pods(
            deployment("", replicas),
            "topologySpreadConstraints: [{topologyKey: kubernetes.io/hostname, maxSkew: 9, labelSelector: {}}]",
        );

        let made = constraints(&cluster(Some("zone"), Some("a,b")), &object);

        let expected = "[{topologyKey: kubernetes.io/hostname, maxSkew: 9, labelSelector: {}, matchLabelKeys: [pod-template-hash]}]";
        assert_eq!(made, self::object(expected), "{replicas} replicas");
        assert_eq!(constraints(&plain(), &deployment("server", 0)), Value::Null);
        assert_eq!(constraints(&plain(), &deployment("", 1)), Value::Null);
    }
}

/// spec 51 §6.1 N, §9 "N is read after replica mutation"
#[test]
fn spread_uses_the_number_of_replicas_after_the_change() {
    let control_plane = cluster(Some(""), None);

    assert_eq!(constraints(&plain(), &deployment("server", 1)), json!([over_nodes(None)]));
    assert_eq!(constraints(&control_plane, &deployment("controller", 2)), Value::Null);
}

/// spec 51 §6.1 SELECTOR, §6.3, §9 R4, scenario 27
#[test]
fn stateful_set_spread_uses_its_selector_and_no_revision_key() {
    let mut object = with_pods(
        stateful_set("", 2),
        "topologySpreadConstraints: [{topologyKey: rack, maxSkew: 1, labelSelector: {matchLabels: {app: x}}}]",
    );
    object["spec"]["template"]["metadata"]["labels"] = json!({ "app": "x", "rev": "2" });
    object["spec"]["selector"] = json!({
        "matchLabels": { "app": "x" }, "matchExpressions": [{ "key": "old", "operator": "DoesNotExist" }],
    });

    let made = constraints(&plain(), &object);

    let rack = json!({ "topologyKey": "rack", "maxSkew": 1, "labelSelector": { "matchLabels": { "app": "x" } } });
    let host = json!({
        "topologyKey": "kubernetes.io/hostname", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": object["spec"]["selector"],
    });
    assert_eq!(made, json!([rack, host]));
}

/// spec 51 §6.1 SELECTOR, §9 last trap
#[test]
fn deployment_spread_selects_by_the_labels_of_its_pods() {
    let table = [
        (json!({ "app": "x", "rev": "2" }), json!({ "matchLabels": { "app": "x", "rev": "2" } })),
        (json!({}), json!({})),
        (json!(null), json!({})),
    ];

    for (labels, expected) in table {
        let mut object = deployment("", 2);
        object["spec"]["selector"] = json!({ "matchLabels": { "app": "y" } });
        object["spec"]["template"]["metadata"]["labels"] = labels;

        let made = constraints(&plain(), &object);

        assert_eq!(made[0]["labelSelector"], expected);
        assert_eq!(made[0]["matchLabelKeys"], json!(["pod-template-hash"]));
    }
}

/// spec 51 §6.3 and §9 DEV, scenario 28, "better" 9
#[test]
fn revision_key_is_added_unless_redundant_or_invalid() {
    let table = [
        // selector and keys before, keys after
        ("labelSelector: {}", "[pod-template-hash]"),
        ("labelSelector: {matchLabels: {a: b}}, matchLabelKeys: []", "[pod-template-hash]"),
        ("labelSelector: {matchLabels: {a: b}}, matchLabelKeys: null", "[pod-template-hash]"),
        ("labelSelector: {matchLabels: {a: b}}, matchLabelKeys: [tier]", "[tier, pod-template-hash]"),
        (
            "labelSelector: {matchLabels: {a: b}}, matchLabelKeys: [pod-template-hash, tier]",
            "[pod-template-hash, tier]",
        ),
        ("maxSkew: 1", "null"),
        ("labelSelector: null", "null"),
        ("labelSelector: null, matchLabelKeys: [tier]", "[tier]"),
        ("labelSelector: {matchLabels: {pod-template-hash: x}}", "null"),
        ("labelSelector: {matchExpressions: [{key: pod-template-hash, operator: Exists}]}", "null"),
        ("labelSelector: {matchExpressions: [{key: tier, operator: Exists}]}", "[pod-template-hash]"),
    ];

    for (before, after) in table {
        let pods = format!("topologySpreadConstraints: [{{topologyKey: rack, {before}}}]");

        let made = constraints(&plain(), &with_pods(deployment("", 1), &pods));

        assert_eq!(made[0]["matchLabelKeys"], self::object(after), "{before}");
        assert_eq!(made[0].get("matchLabelKeys").is_none(), after == "null", "{before}");
    }
}

/// The same for the selector that this webhook adds: the Pods' labels contain a hash.
#[test]
fn revision_hash_in_the_labels_of_the_pods_makes_no_invalid_constraint() {
    let mut object = deployment("", 2);
    object["spec"]["template"]["metadata"]["labels"] = json!({ "pod-template-hash": "x" });

    let made = constraints(&plain(), &object);

    assert_eq!(made[0].get("matchLabelKeys"), None);
}

/// spec 51 §8, "Reverting"
#[test]
fn constraints_stay_when_the_workload_is_scaled_down() {
    let mut spread = mutated(&cluster(Some("zone"), Some("a,b")), &deployment("", 2));
    spread["spec"]["replicas"] = json!(1);

    assert_eq!(mutated(&plain(), &spread), spread);
}

/// spec 51 §6.5
#[test]
fn deployment_is_changed_as_in_the_example() {
    let before = object(
        "
kind: Deployment
metadata: {name: web, labels: {high-availability-config.resources.gardener.cloud/type: server}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, tier: front}}
    spec:
      containers: [{name: web, image: r/web}]
      topologySpreadConstraints:
      - {topologyKey: rack, maxSkew: 2, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: web}}}
",
    );
    let after = object(
        "
spec:
  replicas: 2
  template:
    spec:
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
            - matchExpressions:
              - {key: topology.kubernetes.io/zone, operator: In, values: [eu-1a, eu-1b, eu-1c]}
      topologySpreadConstraints:
      - {topologyKey: rack, maxSkew: 2, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: web}}, matchLabelKeys: [pod-template-hash]}
      - topologyKey: kubernetes.io/hostname
        maxSkew: 1
        minDomains: 2
        whenUnsatisfiable: DoNotSchedule
        labelSelector: {matchLabels: {app: web, tier: front}}
        matchLabelKeys: [pod-template-hash]
      - topologyKey: topology.kubernetes.io/zone
        maxSkew: 1
        minDomains: 2
        whenUnsatisfiable: DoNotSchedule
        labelSelector: {matchLabels: {app: web, tier: front}}
        matchLabelKeys: [pod-template-hash]
      tolerations:
      - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 60}
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 60}
",
    );
    let config = HighAvailabilityConfig {
        default_not_ready_toleration_seconds: Some(60),
        default_unreachable_toleration_seconds: Some(60),
    };

    let made = mutated_with(config, &cluster(Some("zone"), Some("eu-1c,eu-1a,eu-1b")), &before);

    assert_eq!(made, overlaid(before, after));
}

/// spec 51 §8, last table: the annotations of deployers and their effects
#[test]
fn annotations_of_deployers_have_the_expected_effect() {
    let pinned = |zones: &[&str]| json!([{ "matchExpressions": [{ "key": "topology.kubernetes.io/zone", "operator": "In", "values": zones }] }]);
    let soft = || over_nodes(None);
    let hard = || over_nodes(Some(2));
    let table = [
        ("system components", cluster(None, Some("a,b,c")), [2, 2], Value::Null, json!([soft(), over_zones(2)])),
        (
            "istio ingress gateway",
            annotated([(ZONES, "a,b"), (ZONE_PINNING, "true")]),
            [2, 2],
            pinned(&["a", "b"]),
            json!([soft(), over_zones(2)]),
        ),
        ("control plane", cluster(Some(""), Some("a")), [1, 2], pinned(&["a"]), json!([soft()])),
        ("control plane, node", cluster(Some("node"), Some("a")), [2, 2], pinned(&["a"]), json!([hard()])),
        (
            "control plane, zone",
            cluster(Some("zone"), Some("a,b,c")),
            [2, 2],
            pinned(&["a", "b", "c"]),
            json!([hard(), over_zones(2)]),
        ),
    ];

    for (who, view, [controllers, servers], affinity, spread) in table {
        let server = deployment("server", 1);

        assert_eq!(replicas(&view, &deployment("controller", 1)), controllers, "{who}");
        assert_eq!(replicas(&view, &server), servers, "{who}");
        assert_eq!(terms(&view, &server), affinity, "{who}");
        assert_eq!(constraints(&view, &server), spread, "{who}");
    }
}

use super::*;
use crate::webhooks::view::Lookup;

fn denied(text: &str) -> Result<Mutation, Failure> {
    Err(Failure::Denied(text.to_owned()))
}

fn read_failed(read: Read, text: &str) -> Result<Mutation, Failure> {
    Err(Failure::ReadFailed { read, message: text.to_owned() })
}

/// spec 51 scenario 33: the other tests run the webhook on its own results, too.
#[test]
fn own_result_of_the_webhook_stays_unchanged() {
    let view = scaled(cluster(Some("zone"), Some("b,a")), 4);
    let config = HighAvailabilityConfig {
        default_not_ready_toleration_seconds: Some(60),
        default_unreachable_toleration_seconds: Some(60),
    };

    let once = mutated_with(config, &view, &deployment("server", 1));
    let twice = mutated_with(config, &view, &once);

    assert_ne!(once, deployment("server", 1));
    assert_eq!(twice, once);
}

/// spec 51 scenario 34
#[test]
fn unknown_fields_survive() {
    let mut object = with_pods(
        deployment("server", 1),
        "
future: {a: [1, null]}
affinity: {future: 1, nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{future: 2}]}}}
tolerations: [{key: a, future: 3}]
topologySpreadConstraints: [{topologyKey: rack, labelSelector: {future: 4}, future: 5}]
",
    );
    object["future"] = json!(null);
    object["metadata"]["future"] = json!(6);
    object["spec"]["future"] = json!([7]);
    object["spec"]["template"]["future"] = json!(8);
    let config = HighAvailabilityConfig {
        default_not_ready_toleration_seconds: Some(60),
        default_unreachable_toleration_seconds: Some(60),
    };

    let made = mutated_with(config, &cluster(Some("zone"), Some("a,b")), &object);

    for pointer in [
        "/future",
        "/metadata",
        "/spec/future",
        "/spec/template/future",
        "/spec/template/metadata",
        "/spec/template/spec/future",
        "/spec/template/spec/affinity/future",
        "/spec/template/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/future",
        "/spec/template/spec/tolerations/0",
        "/spec/template/spec/topologySpreadConstraints/0/labelSelector",
        "/spec/template/spec/topologySpreadConstraints/0/future",
    ] {
        assert_eq!(made.pointer(pointer), object.pointer(pointer), "{pointer}");
        assert!(made.pointer(pointer).is_some(), "{pointer}");
    }
}

/// spec 51 scenario 35
#[test]
fn missing_namespace_is_an_error() {
    let view = TestView::new().nodes(3);
    for object in [deployment("", 1), autoscaler("", 1, 1)] {
        assert_eq!(
            outcome(&view, &object, "CREATE"),
            read_failed(Read::Namespace, "Namespace \"kube-system\" not found")
        );
    }
}

/// spec 51 §2.4
#[test]
fn failed_read_is_an_error_500_with_its_text() {
    let namespace = format!("Namespace {NAMESPACE}");
    let autoscaler = format!("HorizontalPodAutoscaler of {NAMESPACE} apps/v1 Deployment {NAME}");
    let table = [
        (&*namespace, Read::Namespace, ""),
        (&*autoscaler, Read::Autoscalers, "failed to list all HPAs: "),
        ("number of Nodes", Read::Nodes, "failed to list nodes: "),
    ];
    let failures = [
        (Failure::Denied("the cache is not started".into()), "the cache is not started"),
        (Failure::not_found("Node", "a"), "Node \"a\" not found"),
        (Failure::Errored { code: 504, message: "timed out".into() }, "timed out"),
    ];

    for (asked, read, prefix) in table {
        for (failure, text) in &failures {
            let view = cluster(Some("node"), None).failing(asked, failure.clone());

            let outcome = outcome(&view, &deployment("server", 1), "CREATE");

            assert_eq!(outcome, read_failed(read, &format!("{prefix}{text}")), "{asked}");
        }
    }
}

#[test]
fn request_for_a_live_read_is_passed_on() {
    let table = [
        (
            format!("Namespace {NAMESPACE}"),
            Lookup::missing(&NAMESPACES, cluster::object::NamespacedName::new("", NAMESPACE)),
        ),
        (
            format!("HorizontalPodAutoscaler of {NAMESPACE} apps/v1 Deployment {NAME} for sure"),
            Lookup::Autoscalers(NAMESPACE.into()),
        ),
    ];

    for (read, lookup) in table {
        let view = plain().failing(&read, Failure::ReadLive(lookup.clone()));

        assert_eq!(outcome(&view, &deployment("server", 5), "UPDATE"), Err(Failure::ReadLive(lookup)));
    }
}

/// spec 51, "better" 2
#[test]
fn reads_are_made_only_when_needed() {
    let namespace = format!("Namespace {NAMESPACE}");
    let autoscaler_of = |kind| format!("HorizontalPodAutoscaler of {NAMESPACE} apps/v1 {kind} {NAME}");
    let nodes = || "number of Nodes".to_owned();
    let spread = |object| with_annotation(object, HOST_SPREAD, "true");
    let table = [
        (None, autoscaler("server", 1, 1), vec![]),
        (None, deployment("server", 1), vec![autoscaler_of("Deployment")]),
        (None, stateful_set("", 9), vec![autoscaler_of("StatefulSet")]),
        (Some(""), deployment("", 2), vec![autoscaler_of("Deployment")]),
        (Some("node"), deployment("", 1), vec![autoscaler_of("Deployment")]),
        (Some("node"), deployment("", 2), vec![autoscaler_of("Deployment"), nodes()]),
        (Some("node"), deployment("server", 1), vec![autoscaler_of("Deployment"), nodes()]),
        (None, spread(deployment("", 1)), vec![autoscaler_of("Deployment")]),
        (None, spread(deployment("", 2)), vec![autoscaler_of("Deployment"), nodes()]),
    ];

    for (tolerance, object, reads) in table {
        let view = cluster(tolerance, None);

        outcome(&view, &object, "CREATE").unwrap();

        assert_eq!(view.reads(), [vec![namespace.clone()], reads].concat(), "{tolerance:?} {object}");
    }
}

/// spec 51 §3, scenario 36
#[test]
fn other_kinds_are_allowed_with_a_message() {
    let table = [
        ("apps", "ReplicaSet", Some("unexpected resource: ReplicaSet.apps")),
        ("", "Pod", Some("unexpected resource: Pod")),
        ("extensions", "Deployment", Some("unexpected resource: Deployment.extensions")),
        ("apps", "HorizontalPodAutoscaler", Some("unexpected resource: HorizontalPodAutoscaler.apps")),
        ("apps", "Deployment", None),
        ("apps", "StatefulSet", None),
        ("autoscaling", "HorizontalPodAutoscaler", None),
    ];

    for (group, kind, expected) in table {
        let before = json!({ "kind": kind, "spec": { "selector": {}, "replicas": 1 } });
        // The version is ignored.
        for version in ["v1", "v2", "v1beta1"] {
            let mut object = before.clone();
            let kind = GroupVersionKind::new(group, version, kind);
            let request = Request { kind, namespace: NAMESPACE, name: NAME, operation: "CREATE" };

            let outcome = HighAvailability(NO_TOLERATIONS).mutate(&mut object, &request, &plain());

            let expected = expected.map_or(Mutation::Done, |message| Mutation::Unexpected(message.to_owned()));
            assert_eq!((outcome, &object), (Ok(expected), &before));
        }
    }
}

/// spec 51 §3, spec 50 §2.2 row 6
#[test]
fn a_review_without_an_object_is_denied() {
    let mut object = Value::Null;
    for operation in ["CREATE", "UPDATE", "DELETE"] {
        let request = request(&deployment("", 1), operation);

        let outcome = HighAvailability(NO_TOLERATIONS).mutate(&mut object, &request, &plain());

        assert_eq!(outcome, denied("there is no content to decode"), "{operation}");
    }
}

/// spec 51 §3, spec 50 §2.2 row 7
#[test]
fn object_of_another_kind_than_the_request_is_denied() {
    let table = [
        ("apps/v1", "StatefulSet", "expected an object of apps/v1, Kind=Deployment, found apps/v1, Kind=StatefulSet"),
        ("v1", "Deployment", "expected an object of apps/v1, Kind=Deployment, found v1, Kind=Deployment"),
    ];

    for (api_version, kind, text) in table {
        let mut object = json!({ "apiVersion": api_version, "kind": kind });
        let request = request(&deployment("", 1), "CREATE");

        let outcome = HighAvailability(NO_TOLERATIONS).mutate(&mut object, &request, &plain());

        assert_eq!(outcome, denied(text));
    }
}

/// spec 51 §3: 403, where the other webhooks answer 400
#[test]
fn wrong_type_of_a_field_is_denied() {
    let template = "/spec/template/spec";
    let table = [
        ("", json!("text"), "the object: expected a map, found a string"),
        ("/kind", json!(1), "kind: expected a string, found a number"),
        ("/metadata/labels", json!(["a"]), "metadata.labels: expected a map, found a list"),
        ("/metadata/labels", json!({ "a": 1 }), "metadata.labels.a: expected a string, found a number"),
        ("/metadata", json!({ "annotations": "a" }), "metadata.annotations: expected a map, found a string"),
        ("/spec/replicas", json!("2"), "spec.replicas: expected a 32-bit integer, found a string"),
        ("/spec/replicas", json!(2.5), "spec.replicas: expected a 32-bit integer, found a number"),
        ("/spec/replicas", json!(3_000_000_000_i64), "spec.replicas: expected a 32-bit integer, found a number"),
        ("/spec/template", json!(true), "spec.template: expected a map, found a boolean"),
        (
            template,
            json!({ "affinity": { "nodeAffinity": 1 } }),
            "spec.template.spec.affinity.nodeAffinity: expected a map, found a number",
        ),
        (
            template,
            json!({ "topologySpreadConstraints": [{}, { "topologyKey": 1 }] }),
            "spec.template.spec.topologySpreadConstraints[1].topologyKey: expected a string, found a number",
        ),
        (
            template,
            json!({ "topologySpreadConstraints": [{}, { "matchLabelKeys": "a" }] }),
            "spec.template.spec.topologySpreadConstraints[1].matchLabelKeys: expected a list, found a string",
        ),
        (
            template,
            json!({ "topologySpreadConstraints": ["rack"] }),
            "spec.template.spec.topologySpreadConstraints[0]: expected a map, found a string",
        ),
        (template, json!({ "tolerations": [[]] }), "spec.template.spec.tolerations[0]: expected a map, found a list"),
    ];
    let config = HighAvailabilityConfig {
        default_not_ready_toleration_seconds: Some(60),
        default_unreachable_toleration_seconds: None,
    };

    for (pointer, value, text) in table {
        let mut object = deployment("server", 2);
        *object.pointer_mut(pointer).unwrap() = value;
        let request = request(&deployment("", 1), "CREATE");

        let outcome = HighAvailability(config).mutate(&mut object, &request, &cluster(Some("zone"), Some("a,b")));

        assert_eq!(outcome, denied(text));
    }
}

/// spec 50 §2.2 row 7: even if no step reads the field
#[test]
fn wrong_type_is_denied_where_nothing_would_change() {
    let pods = |spec| json!({ "template": { "spec": spec } });
    let terms =
        "spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    let constraints = "spec.template.spec.topologySpreadConstraints";
    let selector = |selector| pods(json!({ "topologySpreadConstraints": [{ "labelSelector": selector }] }));
    let table = [
        (json!({ "selector": [] }), "spec.selector: expected a map, found a list".to_owned()),
        // Copied into the constraints of a StatefulSet, where the next review would deny it.
        (
            json!({ "selector": { "matchLabels": [] } }),
            "spec.selector.matchLabels: expected a map, found a list".to_owned(),
        ),
        (
            json!({ "selector": { "matchExpressions": [{ "key": 1 }] } }),
            "spec.selector.matchExpressions[0].key: expected a string, found a number".to_owned(),
        ),
        (
            json!({ "template": { "metadata": { "labels": 1 } } }),
            "spec.template.metadata.labels: expected a map, found a number".to_owned(),
        ),
        (
            pods(json!({ "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution":
                { "nodeSelectorTerms": {} } } } })),
            format!("{terms}: expected a list, found a map"),
        ),
        (
            pods(json!({ "tolerations": [{ "effect": 1 }] })),
            "spec.template.spec.tolerations[0].effect: expected a string, found a number".to_owned(),
        ),
        (pods(json!({ "topologySpreadConstraints": {} })), format!("{constraints}: expected a list, found a map")),
        (
            selector(json!({ "matchLabels": 1 })),
            format!("{constraints}[0].labelSelector.matchLabels: expected a map, found a number"),
        ),
        (
            selector(json!({ "matchExpressions": [{ "key": 1 }] })),
            format!("{constraints}[0].labelSelector.matchExpressions[0].key: expected a string, found a number"),
        ),
    ];

    for kind in ["Deployment", "StatefulSet"] {
        for (spec, text) in &table {
            let object = json!({ "apiVersion": "apps/v1", "kind": kind, "spec": spec });

            assert_eq!(outcome(&plain(), &object, "CREATE"), denied(text), "{kind}");
        }
    }
}

/// spec 50 §2.2 row 7
#[test]
fn wrong_type_of_a_field_of_an_autoscaler_is_denied() {
    let table = [
        ("spec", json!([]), "spec: expected a map, found a list"),
        ("spec", json!({ "minReplicas": "1" }), "spec.minReplicas: expected a 32-bit integer, found a string"),
        (
            "spec",
            json!({ "minReplicas": -3_000_000_000_i64 }),
            "spec.minReplicas: expected a 32-bit integer, found a number",
        ),
        (
            "spec",
            json!({ "maxReplicas": 2_147_483_648_i64 }),
            "spec.maxReplicas: expected a 32-bit integer, found a number",
        ),
        ("metadata", json!({ "labels": [] }), "metadata.labels: expected a map, found a list"),
    ];

    for (field, value, text) in table {
        let mut object = autoscaler("", 1, 1);
        object[field] = value;

        assert_eq!(outcome(&plain(), &object, "CREATE"), denied(text));
    }
}

/// The same in two nested lists.
#[test]
fn wrong_type_of_a_requirement_is_denied() {
    let object = with_pods(
        deployment("", 1),
        "{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{}, {matchExpressions: [{key: 1}]}]}}}}",
    );

    let outcome = outcome(&cluster(Some("zone"), Some("a")), &object, "CREATE");

    let terms =
        "spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    assert_eq!(outcome, denied(&format!("{terms}[1].matchExpressions[0].key: expected a string, found a number")));
}

/// spec 51 §3, last row, "better" 8
#[test]
fn a_stateful_set_without_a_selector_is_denied() {
    for selector in [None, Some(Value::Null)] {
        let mut object = stateful_set("server", 1);
        object["spec"].as_object_mut().unwrap().remove("selector");
        object["spec"].as_object_mut().unwrap().extend(selector.map(|selector| ("selector".to_owned(), selector)));

        assert_eq!(outcome(&plain(), &object, "CREATE"), denied("spec.selector: Required value"));
    }
}

/// spec 51 §8, "Objects being deleted", "UPDATE without spec change"
#[test]
fn operation_and_deletion_make_no_difference() {
    let mut object = deployment("server", 1);
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");

    assert_eq!(replicas(&plain(), &object), 2);
    for operation in ["CREATE", "UPDATE", "DELETE"] {
        assert_eq!(outcome(&plain(), &object, operation), Ok(Mutation::Done));
    }
}

/// spec 50 §1, §2.4; spec 51 §3
#[test]
fn webhook_checks_kinds_and_deletions_itself() {
    let webhook = HighAvailability(NO_TOLERATIONS);

    assert_eq!(PATH, "/webhooks/high-availability-config");
    assert_eq!(webhook.takes(), None);
    assert!(webhook.sees_everything());
}

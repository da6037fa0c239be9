use super::*;

/// spec 51 §4.0, second table; scenarios 1, 2, 9
#[test]
fn replicas_depend_on_type_and_failure_tolerance() {
    let table = [
        //  type        absent  empty  node  zone  unknown
        ("controller", [2, 1, 2, 2, 2]),
        ("server", [2, 2, 2, 2, 2]),
        ("banana", [2, 2, 2, 2, 2]),
        ("Controller", [2, 2, 2, 2, 2]),
    ];
    let columns = [None, Some(""), Some("node"), Some("zone"), Some("region")];

    for (component, expected) in table {
        for (tolerance, expected) in columns.into_iter().zip(expected) {
            for before in [1, 5] {
                let made = [deployment(component, before), stateful_set(component, before)]
                    .map(|object| replicas(&cluster(tolerance, None), &object));

                assert_eq!(made, [expected; 2], "{component}, {tolerance:?}, before {before}");
            }
        }
    }
}

/// spec 51 §4.0 row 1, §9 R9, scenario 7
#[test]
fn replicas_of_zero_stay() {
    let hibernated = with_annotation(deployment("server", 0), REPLICAS, "four");
    let mut absent = deployment("server", 0);
    absent["spec"].as_object_mut().unwrap().remove("replicas");
    let mut null = deployment("server", 0);
    null["spec"]["replicas"] = Value::Null;

    for object in [hibernated, absent, null] {
        assert_eq!(mutated(&cluster(Some("zone"), None), &object), object);
    }
}

/// spec 51 §4.0 row 2, scenarios 3, 11
#[test]
fn replicas_without_a_type_stay() {
    let view = cluster(Some("node"), None);
    for annotation in ["5", "four"] {
        assert_eq!(replicas(&view, &with_annotation(deployment("", 1), REPLICAS, annotation)), 1);
        let mut object = with_annotation(autoscaler("", 1, 1), REPLICAS, annotation);
        assert_eq!(mutated(&view, &object), object);
        object["metadata"]["labels"][TYPE] = json!("");
        assert_eq!(mutated(&view, &object), object);
    }
}

/// spec 51 §9, "The type label on the pod template has no effect"
#[test]
fn type_label_of_the_pods_has_no_effect() {
    let mut object = deployment("", 1);
    object["spec"]["template"]["metadata"]["labels"][TYPE] = json!("server");

    assert_eq!(replicas(&plain(), &object), 1);
}

/// spec 51 §4.1, scenarios 4, 5
#[test]
fn replicas_are_set_to_the_computed_number_but_not_lowered_under_an_autoscaler() {
    let table = [
        // computed, scaled, before, after
        (false, false, 1, 1),
        (false, true, 5, 5),
        (true, false, 1, 2),
        (true, false, 5, 2),
        (true, true, 1, 2),
        (true, true, 2, 2),
        (true, true, 5, 5),
    ];

    for (is_computed, is_scaled, before, after) in table {
        let view = if is_scaled { scaled(plain(), 9) } else { plain() };
        let object = deployment(if is_computed { "server" } else { "" }, before);

        assert_eq!(replicas(&view, &object), after, "computed {is_computed}, scaled {is_scaled}, before {before}");
    }
}

/// spec 51 scenario 6 and §2.3: all of the target is compared
#[test]
fn autoscaler_of_another_target_does_not_count() {
    let table = [
        (NAMESPACE, "apps/v1", "Deployment", NAME, 5),
        (NAMESPACE, "apps/v1beta1", "Deployment", NAME, 2),
        (NAMESPACE, "apps/v1", "StatefulSet", NAME, 2),
        (NAMESPACE, "apps/v1", "Deployment", "other", 2),
        ("other", "apps/v1", "Deployment", NAME, 2),
    ];

    for (namespace, api_version, kind, name, expected) in table {
        let view = plain().autoscaler(&Scaled { namespace, api_version, kind, name }, 9);

        let made = replicas(&view, &deployment("server", 5));

        assert_eq!(made, expected, "{namespace} {api_version} {kind} {name}");
    }
}

/// spec 51 §9, "`request.name` is empty for `generateName` creations"
#[test]
fn autoscaler_is_not_read_for_a_workload_without_a_name() {
    let scaled = Scaled { namespace: NAMESPACE, api_version: "apps/v1", kind: "Deployment", name: "" };
    let view = plain().autoscaler(&scaled, 9);
    let mut object = deployment("server", 5);
    let request = Request { name: "", ..request(&object, "CREATE") };

    HighAvailability(NO_TOLERATIONS).mutate(&mut object, &request, &view).unwrap();

    assert_eq!(object["spec"]["replicas"], 2);
}

/// spec 51 §4.0 rows 3 and 4, scenario 8
#[test]
fn replicas_annotation_overrides_the_computed_number() {
    let table = [
        ("4", 4),
        ("+4", 4),
        ("004", 4),
        ("0", 0),
        ("-3", -3),
        ("", 1), // like an absent annotation
        ("2147483647", 2_147_483_647),
    ];

    for (annotation, expected) in table {
        let object = with_annotation(deployment("controller", 7), REPLICAS, annotation);

        assert_eq!(replicas(&cluster(Some(""), None), &object), expected, "{annotation:?}");
    }
}

/// spec 51 §3, scenario 8, "better" 7
#[test]
fn replicas_annotation_that_is_not_a_number_is_denied() {
    let syntax = |quoted: &str| format!("strconv.Atoi: parsing {quoted}: invalid syntax");
    let range = |number: &str| format!("annotation {REPLICAS}: {number} is out of the range of 32-bit integers");
    let table = [
        ("four", syntax(r#""four""#)),
        (" 4", syntax(r#"" 4""#)),
        ("4.0", syntax(r#""4.0""#)),
        ("0x4", syntax(r#""0x4""#)),
        ("1_000", syntax(r#""1_000""#)),
        ("+", syntax(r#""+""#)),
        ("--4", syntax(r#""--4""#)),
        ("٤", syntax("\"٤\"")),
        ("\"4\"\n", syntax(r#""\"4\"\n""#)),
        ("9999999999999999999h", syntax(r#""9999999999999999999h""#)),
        ("9223372036854775808", "strconv.Atoi: parsing \"9223372036854775808\": value out of range".to_owned()),
        ("-9223372036854775809", "strconv.Atoi: parsing \"-9223372036854775809\": value out of range".to_owned()),
        ("4294967298", range("4294967298")),
        ("2147483648", range("2147483648")),
        ("-2147483649", range("-2147483649")),
    ];

    for (annotation, expected) in table {
        for object in [deployment("server", 1), stateful_set("server", 1), autoscaler("server", 1, 1)] {
            let object = with_annotation(object, REPLICAS, annotation);

            assert_eq!(outcome(&plain(), &object, "CREATE"), Err(Failure::Denied(expected.clone())), "{annotation:?}");
        }
    }
}

/// spec 51 §4.2, scenarios 10 and 11; "better" 10
#[test]
fn autoscaler_keeps_at_least_the_computed_number_of_replicas() {
    let table = [
        //   type     annotation   before    after
        ("controller", "", (1, 1), (2, 2)),
        ("controller", "", (12, 16), (12, 16)),
        ("controller", "", (1, 5), (2, 5)),
        ("controller", "", (2, 2), (2, 2)),
        ("server", "6", (1, 4), (6, 6)),
        ("server", "6", (6, 4), (6, 6)),
        ("server", "6", (8, 4), (8, 8)), // Kubernetes refuses it otherwise
        ("server", "1", (8, 9), (8, 9)),
        ("server", "0", (1, 1), (1, 1)),
        ("server", "", (0, 1), (0, 1)),
        ("", "6", (1, 1), (1, 1)),
    ];

    for (component, annotation, before, after) in table {
        let object = with_annotation(autoscaler(component, before.0, before.1), REPLICAS, annotation);

        let made = mutated(&cluster(Some("zone"), Some("a,b")), &object);

        let expected = with_annotation(autoscaler(component, after.0, after.1), REPLICAS, annotation);
        assert_eq!(made, expected, "{component} {annotation:?} {before:?}");
    }
}

/// spec 51 §4.0 row 1 for an autoscaler: 1 is the API server's default and is filled in earlier
#[test]
fn autoscaler_without_a_minimum_stays() {
    let mut object = autoscaler("server", 1, 1);
    object["spec"].as_object_mut().unwrap().remove("minReplicas");

    assert_eq!(mutated(&plain(), &object), object);
}

/// spec 51 §4.2, the example
#[test]
fn autoscaler_is_changed_as_in_the_example() {
    let before = object(
        "
kind: HorizontalPodAutoscaler
metadata: {name: web, labels: {high-availability-config.resources.gardener.cloud/type: server}}
spec: {minReplicas: 1, maxReplicas: 1}
",
    );
    let after = object("spec: {minReplicas: 2, maxReplicas: 2}");

    assert_eq!(mutated(&cluster(Some("zone"), None), &before), overlaid(before, after));
}

/// spec 51, "better" 5: a store that lags must not scale a workload down
#[test]
fn autoscaler_is_read_for_sure_before_an_update_lowers_the_replicas() {
    let table = [
        ("CREATE", "server", 5, ""),
        ("UPDATE", "server", 1, ""),
        ("UPDATE", "server", 2, ""),
        ("UPDATE", "", 5, ""),
        ("UPDATE", "server", 5, " for sure"),
    ];

    for (operation, component, replicas, expected) in table {
        let view = plain();

        outcome(&view, &deployment(component, replicas), operation).unwrap();

        let read = format!("HorizontalPodAutoscaler of {NAMESPACE} apps/v1 Deployment {NAME}{expected}");
        assert_eq!(view.reads()[1], read, "{operation} {component} {replicas}");
    }
}

use super::*;

fn seconds(not_ready: Option<i64>, unreachable: Option<i64>) -> HighAvailabilityConfig {
    HighAvailabilityConfig {
        default_not_ready_toleration_seconds: not_ready,
        default_unreachable_toleration_seconds: unreachable,
    }
}

fn toleration(key: &str, seconds: i64) -> Value {
    json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds })
}

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// spec 51 §7, scenarios 29, 32
#[test]
fn configured_tolerations_are_added_in_this_order() {
    let table = [
        (None, None, Value::Null),
        (Some(60), Some(30), json!([toleration(NOT_READY, 60), toleration(UNREACHABLE, 30)])),
        (Some(60), None, json!([toleration(NOT_READY, 60)])),
        (None, Some(0), json!([toleration(UNREACHABLE, 0)])),
    ];

    for (not_ready, unreachable, expected) in table {
        let config = seconds(not_ready, unreachable);
        // Independent of everything else (spec 51 §7, first sentence).
        for object in [deployment("", 0), deployment("server", 1), stateful_set("controller", 3)] {
            for view in [plain(), cluster(Some("zone"), Some("a,b"))] {
                assert_eq!(tolerations(config, &view, &object), expected, "{config:?}");
            }
        }
    }
}

/// spec 51 §7, the table; scenarios 30, 31
#[test]
fn toleration_of_the_same_key_for_evictions_is_enough() {
    let table = [
        ("{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}", true),
        ("{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute}", true),
        ("{key: node.kubernetes.io/not-ready, value: x, effect: NoExecute}", true),
        ("{key: node.kubernetes.io/not-ready, operator: Exists}", true),
        ("{key: node.kubernetes.io/not-ready, operator: Exists, effect: ''}", true),
        ("{key: node.kubernetes.io/not-ready, operator: Exists, effect: null}", true),
        ("{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoSchedule}", false),
        ("{key: node.kubernetes.io/not-ready, operator: Exists, effect: PreferNoSchedule}", false),
        ("{key: node.kubernetes.io/unreachable, operator: Exists}", false),
        ("{key: NOT-ready, operator: Exists}", false),
        ("{operator: Exists}", false),
        ("{operator: Exists, key: '', effect: NoExecute}", false),
        ("null", false),
    ];

    for (existing, is_enough) in table {
        let object = with_pods(deployment("", 1), &format!("{{tolerations: [{existing}]}}"));

        let made = tolerations(seconds(Some(60), None), &plain(), &object);

        let mut expected = vec![self::object(existing)];
        expected.extend((!is_enough).then(|| toleration(NOT_READY, 60)));
        assert_eq!(made, json!(expected), "{existing}");
    }
}

/// spec 51 scenario 31
#[test]
fn toleration_of_everything_is_not_enough() {
    let object = with_pods(deployment("", 1), "{tolerations: [{operator: Exists}]}");

    let made = tolerations(seconds(Some(60), Some(30)), &plain(), &object);

    assert_eq!(made, json!([{ "operator": "Exists" }, toleration(NOT_READY, 60), toleration(UNREACHABLE, 30)]));
}

/// spec 51 §3: autoscalers have no Pods
#[test]
fn autoscaler_gets_no_tolerations() {
    let object = autoscaler("server", 2, 3);

    assert_eq!(mutated_with(seconds(Some(60), Some(30)), &plain(), &object), object);
}

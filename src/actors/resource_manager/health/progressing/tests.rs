//! The table of spec 20 §14.

use serde_json::{Value, json};

use super::*;

fn of(group: &str, version: &str, kind: &str, object: &Value) -> Result<Option<Quota>, Trouble> {
    check(&GroupVersionKind::new(group, version, kind), object)
}

fn expect(check: &Result<Option<Quota>, Trouble>, text: Option<&str>, case: &Value) {
    match text {
        None => assert!(check.is_ok(), "{check:?}: {case}"),
        Some(text) => assert_eq!(*check, Err(Trouble::Bad(text.to_owned())), "{case}"),
    }
}

/// spec 20 trap 15: a Deployment without a progress deadline is in a roll-out for ever.
#[test]
fn deployments() {
    let condition = |status: &str, reason: &str| json!([{"type": "Progressing", "status": status, "reason": reason, "message": "in the middle"}]);
    for (observed, conditions, text) in [
        (2, condition("True", "NewReplicaSetAvailable"), None),
        (1, condition("True", "NewReplicaSetAvailable"), Some("observed generation outdated (1/2)")),
        (2, json!([]), Some(r#"condition "Progressing" is missing"#)),
        (2, condition("True", "ReplicaSetUpdated"), Some("in the middle")),
        (2, condition("False", "NewReplicaSetAvailable"), Some("in the middle")),
        (2, condition("Unknown", "DeploymentPaused"), Some("in the middle")),
        (2, json!([{"type": "Progressing", "status": "False"}]), Some("")),
    ] {
        let object = json!({"metadata": {"generation": 2}, "spec": {"replicas": 2},
            "status": {"observedGeneration": observed, "conditions": conditions}});

        let check = of("apps", "v1", "Deployment", &object);

        expect(&check, text, &object);
        assert_eq!(check.ok().flatten().map(|quota| quota.replicas), text.is_none().then_some(2));
    }
}

/// spec 20 scenario 15, trap 16.
#[test]
fn stateful_sets() {
    for (observed, replicas, updated, text) in [
        (1, json!(3), 3, Some("observed generation outdated (1/2)")),
        (2, json!(null), 0, Some("0 of 1 replica(s) have been updated")),
        (2, json!(3), 1, Some("1 of 3 replica(s) have been updated")),
        (2, json!(3), 3, None),
        (2, json!(0), 0, None),
    ] {
        let object = json!({"metadata": {"generation": 2}, "spec": {"replicas": replicas},
            "status": {"observedGeneration": observed, "updatedReplicas": updated}});

        expect(&of("apps", "v1", "StatefulSet", &object), text, &object);
    }
}

/// spec 20 trap 16.
#[test]
fn daemon_sets() {
    for (observed, desired, updated, text) in [
        (1, 3, 3, Some("observed generation outdated (1/2)")),
        (2, 3, 0, Some("0 of 3 replica(s) have been updated")),
        (2, 3, 3, None),
        (2, 0, 0, None),
    ] {
        let object = json!({"metadata": {"generation": 2}, "status": {"observedGeneration": observed,
            "desiredNumberScheduled": desired, "updatedNumberScheduled": updated}});

        expect(&of("apps", "v1", "DaemonSet", &object), text, &object);
    }
}

#[test]
fn prometheuses_and_alertmanagers() {
    let reconciled = |status: &str, generation: i64| json!([{"type": "Reconciled", "status": status, "reason": "R", "message": "m", "observedGeneration": generation}]);
    let failed = r#"condition "Reconciled" has invalid status False (expected True) due to R: m"#;
    for (conditions, replicas, updated, text) in [
        (json!([]), json!(1), 1, Some(r#"condition "Reconciled" is missing"#)),
        (reconciled("True", 3), json!(1), 1, Some("observed generation outdated (3/4)")),
        (reconciled("False", 4), json!(1), 1, Some(failed)),
        (reconciled("True", 4), json!(2), 1, Some("1 of 2 replica(s) have been updated")),
        (reconciled("True", 4), json!(null), 0, Some("0 of 1 replica(s) have been updated")),
        (reconciled("True", 4), json!(2), 2, None),
    ] {
        let object = json!({"metadata": {"generation": 4}, "spec": {"replicas": replicas},
            "status": {"conditions": conditions, "updatedReplicas": updated}});

        for kind in ["Prometheus", "Alertmanager"] {
            expect(&of("monitoring.coreos.com", "v1", kind, &object), text, &object);
        }
    }
}

#[test]
fn certificates_and_issuers() {
    for (status, text) in [
        (json!({"observedGeneration": 1, "state": "Ready"}), Some("observed generation outdated (1/2)")),
        (json!(null), Some("observed generation outdated (0/2)")),
        (json!({"observedGeneration": 2, "state": "Error"}), None),
    ] {
        let object = json!({"metadata": {"generation": 2}, "status": status});

        for kind in ["Certificate", "Issuer"] {
            expect(&of("cert.gardener.cloud", "v1alpha1", kind, &object), text, &object);
        }
    }
}

#[test]
fn other_kinds_are_never_in_a_roll_out() {
    let object = json!({"metadata": {"generation": 2}, "status": {"conditions": "none"}});
    for (group, version, kind) in [
        ("apps", "v1", "ReplicaSet"),
        ("", "v1", "Pod"),
        ("cert-manager.io", "v1", "Certificate"),
        ("monitoring.coreos.com", "v1", "ServiceMonitor"),
    ] {
        assert_eq!(of(group, version, kind, &object), Ok(None), "{kind}");
    }
}

//! The table of spec 20 §11.2.

use serde_json::{Value, json};

use super::*;
use crate::actors::resource_manager::health::fields::{Trouble, bad};

fn of(group: &str, version: &str, kind: &str, object: Value) -> Check {
    check(&GroupVersionKind::new(group, version, kind), &object)
}

fn expect(check: &Check, text: &str, case: &Value) {
    let expected = if text.is_empty() { Ok(()) } else { bad(text) };
    assert_eq!(*check, expected, "{case}");
}

fn condition(kind: &str, status: &str) -> Value {
    json!({"type": kind, "status": status, "reason": "R", "message": "m"})
}

/// spec 20 scenario 9.
#[test]
fn definitions() {
    let names = condition("NamesAccepted", "True");
    let established = condition("Established", "True");
    for (conditions, text) in [
        (json!([]), r#"condition "NamesAccepted" is missing"#),
        (
            json!([condition("NamesAccepted", "False")]),
            r#"condition "NamesAccepted" has invalid status False (expected True) due to R: m"#,
        ),
        (json!([names]), r#"condition "Established" is missing"#),
        (
            json!([names, condition("Established", "False")]),
            r#"condition "Established" has invalid status False (expected True) due to R: m"#,
        ),
        (json!([established, names]), ""),
        (json!([established, names, condition("Terminating", "False")]), ""),
        (
            json!([established, names, condition("Terminating", "True")]),
            r#"condition "Terminating" has invalid status True (expected False) due to R: m"#,
        ),
    ] {
        let object = json!({"status": {"conditions": conditions}});
        for version in ["v1", "v1beta1"] {
            expect(&of("apiextensions.k8s.io", version, "CustomResourceDefinition", object.clone()), text, &object);
        }
    }
}

/// spec 20 scenarios 13 and 14.
#[test]
fn daemon_sets() {
    let rolling = |max: Value| json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": max}});
    let tolerance = "too many unavailable pods found";
    for (strategy, [desired, current, updated, unavailable, misscheduled], text) in [
        (rolling(json!(1)), [0, 0, 0, 0, 0], ""),
        (rolling(json!("25%")), [10, 10, 4, 2, 0], ""),
        (
            rolling(json!("25%")),
            [10, 10, 4, 3, 0],
            "too many unavailable pods found (3/10, only max. 2 unavailable pods allowed)",
        ),
        (
            json!({"type": "OnDelete"}),
            [10, 10, 4, 1, 0],
            &format!("{tolerance} (1/10, only max. 0 unavailable pods allowed)"),
        ),
        (
            json!({"type": "OnDelete", "rollingUpdate": {"maxUnavailable": 3}}),
            [10, 10, 4, 1, 0],
            &format!("{tolerance} (1/10, only max. 0 unavailable pods allowed)"),
        ),
        (json!({}), [10, 10, 4, 1, 0], &format!("{tolerance} (1/10, only max. 0 unavailable pods allowed)")),
        (
            json!({"type": "RollingUpdate"}),
            [10, 10, 4, 1, 0],
            &format!("{tolerance} (1/10, only max. 0 unavailable pods allowed)"),
        ),
        (rolling(json!("x")), [10, 10, 4, 1, 0], &format!("{tolerance} (1/10, only max. 0 unavailable pods allowed)")),
        (rolling(json!("3")), [10, 10, 4, 1, 0], &format!("{tolerance} (1/10, only max. 0 unavailable pods allowed)")),
        (rolling(json!(3)), [10, 10, 4, 3, 0], ""),
        (rolling(json!("50%")), [10, 10, 10, 1, 0], &format!("{tolerance} (1/10)")),
        (rolling(json!("50%")), [10, 9, 10, 0, 0], "not enough scheduled pods (9/10)"),
        (rolling(json!("50%")), [10, 10, 10, 0, 2], "misscheduled pods found (2)"),
        (rolling(json!("50%")), [10, 12, 10, 0, 0], ""),
    ] {
        let object = json!({"spec": {"updateStrategy": strategy}, "status": {
            "desiredNumberScheduled": desired, "currentNumberScheduled": current, "updatedNumberScheduled": updated,
            "numberUnavailable": unavailable, "numberMisscheduled": misscheduled, "numberReady": 0}});

        expect(&of("apps", "v1", "DaemonSet", object.clone()), text, &object);
    }
}

/// spec 20 scenario 8, trap 15.
#[test]
fn deployments() {
    let available = condition("Available", "True");
    for (conditions, text) in [
        (json!([]), r#"condition "Available" is missing"#),
        (
            json!([{"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable", "message": "m"}]),
            r#"condition "Available" has invalid status False (expected True) due to MinimumReplicasUnavailable: m"#,
        ),
        (json!([available]), ""),
        (json!([available, condition("Progressing", "True")]), ""),
        (
            json!([available, condition("Progressing", "Unknown")]),
            r#"condition "Progressing" has invalid status Unknown (expected True) due to R: m"#,
        ),
        (json!([available, condition("ReplicaFailure", "False")]), ""),
        (
            json!([available, condition("ReplicaFailure", "True")]),
            r#"condition "ReplicaFailure" has invalid status True (expected False) due to R: m"#,
        ),
    ] {
        let object = json!({"spec": {"replicas": 7}, "status": {"conditions": conditions}});

        expect(&of("apps", "v1", "Deployment", object.clone()), text, &object);
    }
}

#[test]
fn jobs() {
    for (conditions, text) in [
        (json!([]), ""),
        (json!([condition("Complete", "False"), condition("Failed", "False")]), ""),
        (
            json!([condition("Failed", "True")]),
            r#"condition "Failed" has invalid status True (expected False) due to R: m"#,
        ),
    ] {
        let object = json!({"status": {"conditions": conditions}});

        expect(&of("batch", "v1", "Job", object.clone()), text, &object);
    }
}

#[test]
fn pods() {
    let invalid = |phase| format!(r#"pod is in invalid phase {phase} (expected one of ["Running" "Succeeded"])"#);
    for (status, text) in [
        (json!({"phase": "Running"}), String::new()),
        (json!({"phase": "Succeeded"}), String::new()),
        (json!({"phase": "Pending"}), invalid("\"Pending\"")),
        (json!({"phase": "Failed"}), invalid("\"Failed\"")),
        (json!({"phase": "Unknown"}), invalid("\"Unknown\"")),
        (json!({}), invalid("\"\"")),
    ] {
        let object = json!({ "status": status });

        expect(&of("", "v1", "Pod", object.clone()), &text, &object);
    }
}

/// spec 20 scenario 16.
#[test]
fn replica_sets_and_replication_controllers() {
    for (group, kind) in [("apps", "ReplicaSet"), ("", "ReplicationController")] {
        let lacking = format!("{kind} does not have minimum availability");
        for (spec, status, text) in [
            (json!({}), json!({"observedGeneration": 3}), ""),
            (json!({"replicas": 2}), json!({"observedGeneration": 3, "readyReplicas": 2}), ""),
            (json!({"replicas": 2}), json!({"observedGeneration": 3, "readyReplicas": 1}), &lacking),
            (json!({"replicas": 0}), json!({"observedGeneration": 4}), ""),
            (json!({"replicas": 0}), json!({"observedGeneration": 2}), "observed generation outdated (2/3)"),
            (json!({"replicas": 1}), json!({"observedGeneration": 3}), &lacking),
        ] {
            let object = json!({"metadata": {"generation": 3}, "spec": spec, "status": status});

            expect(&of(group, "v1", kind, object.clone()), text, &object);
        }
    }
}

#[test]
fn services() {
    let missing = "service is missing ingress status";
    for (kind, balancer, text) in [
        ("ClusterIP", json!(null), ""),
        ("ExternalName", json!({}), ""),
        ("LoadBalancer", json!(null), missing),
        ("LoadBalancer", json!({"ingress": []}), missing),
        ("LoadBalancer", json!({"ingress": [{}]}), ""),
    ] {
        let object = json!({"spec": {"type": kind}, "status": {"loadBalancer": balancer}});

        expect(&of("", "v1", "Service", object.clone()), text, &object);
    }
}

/// spec 20 scenario 15.
#[test]
fn stateful_sets() {
    for (replicas, ready, text) in [
        (json!(null), 0, "not enough ready replicas (0/1)"),
        (json!(null), 1, ""),
        (json!(3), 2, "not enough ready replicas (2/3)"),
        (json!(3), 4, ""),
        (json!(0), 0, ""),
    ] {
        let object = json!({"spec": {"replicas": replicas}, "status": {"readyReplicas": ready}});

        expect(&of("apps", "v1", "StatefulSet", object.clone()), text, &object);
    }
}

/// spec 20 scenario 18.
#[test]
fn prometheuses_and_alertmanagers() {
    let available = |status: &str, generation: i64| json!([{"type": "Available", "status": status, "reason": "R", "message": "m", "observedGeneration": generation}]);
    let degraded = r#"condition "Available" has invalid status Degraded (expected True) due to R: m"#;
    for (conditions, replicas, available, text) in [
        (json!([]), json!(1), 1, r#"condition "Available" is missing"#),
        (available("True", 3), json!(1), 1, "observed generation outdated (3/4)"),
        (available("Degraded", 3), json!(1), 1, "observed generation outdated (3/4)"),
        (available("Degraded", 4), json!(1), 1, degraded),
        (available("True", 4), json!(2), 1, "not enough available replicas (1/2)"),
        (available("True", 4), json!(null), 0, "not enough available replicas (0/1)"),
        (available("True", 5), json!(null), 1, ""),
    ] {
        let object = json!({"metadata": {"generation": 4}, "spec": {"replicas": replicas},
            "status": {"conditions": conditions, "availableReplicas": available}});

        for kind in ["Prometheus", "Alertmanager"] {
            expect(&of("monitoring.coreos.com", "v1", kind, object.clone()), text, &object);
        }
    }
}

/// spec 20 scenario 20, trap 12.
#[test]
fn vertical_pod_autoscalers() {
    let unsupported = r#"condition "ConfigUnsupported" has invalid status True (expected False) due to R: m"#;
    for (conditions, text) in [
        (json!(null), ""),
        (json!([condition("ConfigUnsupported", "False")]), ""),
        (json!([condition("ConfigUnsupported", "True")]), unsupported),
    ] {
        let object =
            json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1, "conditions": conditions}});

        expect(&of("autoscaling.k8s.io", "v1", "VerticalPodAutoscaler", object.clone()), text, &object);
    }
}

/// spec 20 scenario 19.
#[test]
fn certificates() {
    let not_ready = r#"condition "Ready" has invalid status False (expected True) due to R: m"#;
    for (state, conditions, text) in [
        ("Pending", json!([]), r#"certificate state is "Pending" ("Ready" expected)"#),
        ("Ready", json!([]), ""),
        ("Ready", json!([condition("Ready", "True")]), ""),
        ("Pending", json!([condition("Ready", "False")]), not_ready),
    ] {
        let object = json!({"status": {"state": state, "conditions": conditions}});

        expect(&of("cert.gardener.cloud", "v1alpha1", "Certificate", object.clone()), text, &object);
    }
}

#[test]
fn issuers() {
    for (status, text) in [
        (json!({"state": "Ready"}), ""),
        (json!({"state": "Error"}), r#"issuer state is "Error" ("Ready" expected)"#),
        (json!({}), r#"issuer state is "" ("Ready" expected)"#),
    ] {
        let object = json!({ "status": status });

        expect(&of("cert.gardener.cloud", "v1alpha1", "Issuer", object.clone()), text, &object);
    }
}

/// Counts are compared as wide integers (spec 20 trap 20), and *outdated* means less than (§11.1).
#[test]
fn generations_and_counts_are_compared_in_full() {
    let kinds = [("apps", "DaemonSet"), ("apps", "Deployment"), ("apps", "ReplicaSet"), ("apps", "StatefulSet")];
    for (group, kind) in kinds {
        let object = json!({"metadata": {"generation": 4_294_967_297_i64}, "status": {"observedGeneration": 1}});

        expect(&of(group, "v1", kind, object.clone()), "observed generation outdated (1/4294967297)", &object);
    }
}

/// spec 20 §11.1, scenario 21.
#[test]
fn kinds_and_versions_without_rules_are_fine_whatever_they_say() {
    let broken = json!({"metadata": {"generation": 9}, "spec": {"type": "LoadBalancer", "replicas": 3},
        "status": {"phase": "Failed", "state": "Error", "conditions": "none"}});
    for (group, version, kind) in [
        ("apps", "v1beta2", "Deployment"),
        ("batch", "v1beta1", "Job"),
        ("batch", "v1", "CronJob"),
        ("", "v1", "ConfigMap"),
        ("", "v1", "Node"),
        ("", "v1", "PodList"),
        ("apiregistration.k8s.io", "v1", "APIService"),
        ("cert-manager.io", "v1", "Certificate"),
        ("cert-manager.io", "v1alpha1", "Issuer"),
        ("machine.sapcloud.io", "v1alpha1", "MachineDeployment"),
        ("operator.victoriametrics.com", "v1", "VLSingle"),
        ("resources.gardener.cloud", "v1alpha1", "ManagedResource"),
        ("monitoring.coreos.com", "v1", "PrometheusRule"),
        ("autoscaling.k8s.io", "v1beta2", "VerticalPodAutoscaler"),
    ] {
        assert_eq!(of(group, version, kind, broken.clone()), Ok(()), "{kind}");
    }
}

/// spec 20 scenario 40.
#[test]
fn status_that_cannot_be_read_is_an_error_and_no_verdict() {
    let object = json!({"status": {"conditions": "none"}});

    let check = of("monitoring.coreos.com", "v1", "Prometheus", object);

    assert_eq!(check, Err(Trouble::Unreadable("status.conditions: expected a list, found a string".to_owned())));
}

/// spec 20 §11.1: the version must match.
#[test]
fn checked_versions_are_those_with_rules() {
    for (group, version, kind, checked) in [
        ("apps", "v1", "Deployment", true),
        ("apps", "v1beta2", "Deployment", false),
        ("apiextensions.k8s.io", "v1beta1", "CustomResourceDefinition", true),
        ("cert.gardener.cloud", "v1alpha1", "Issuer", true),
        ("", "v1", "ConfigMap", false),
    ] {
        assert_eq!(is_checked(&GroupVersionKind::new(group, version, kind)), checked, "{group}/{version} {kind}");
    }
}

#[test]
fn watched_version_has_rules() {
    for (group, kind, version) in [
        ("apps", "Deployment", Some("v1")),
        ("cert.gardener.cloud", "Issuer", Some("v1alpha1")),
        ("apiextensions.k8s.io", "CustomResourceDefinition", Some("v1")),
        ("", "ConfigMap", None),
    ] {
        assert_eq!(checked_version(&GroupKind::new(group, kind)), version, "{kind}");
    }
}

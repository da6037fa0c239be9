use serde_json::{Value, json};

use super::{
    super::{
        replica::{Replica, ReplicaManagedSeed, ReplicaShoot, ReplicaStatus, is_protected, is_ready_seed, ordinal_of},
        set::ManagedSeedSet,
        status::{PendingReason, PendingReplica, SetStatus},
        templates::{managed_seed, shoot},
    },
    now, pending,
};
use crate::actors::controller_manager::shoot_status_label::rules::ShootStatus;

const DELETED: &str = "2026-08-21T12:00:00Z";

/// spec 86 §5.2, trap T-10: an operation counts at its generation only.
#[test]
fn replica_status_of_a_shoot_follows_its_last_operation() {
    let status = |kind: &str, state: &str, observed: i64, deleted: Option<&str>| {
        ReplicaShoot::of(&json!({
            "metadata": { "generation": 2, "deletionTimestamp": deleted },
            "status": { "observedGeneration": observed, "lastOperation": { "type": kind, "state": state } },
        }))
        .status
    };
    for kind in ["Create", "Reconcile"] {
        for (state, alive) in [
            ("Succeeded", ReplicaStatus::ShootReconciled),
            ("Failed", ReplicaStatus::ShootReconcileFailed),
            ("Processing", ReplicaStatus::ShootReconciling),
            ("Error", ReplicaStatus::ShootReconciling),
        ] {
            assert_eq!(status(kind, state, 2, None), alive, "{kind} {state}");
            assert_eq!(status(kind, state, 1, None), ReplicaStatus::ShootReconciling, "{kind} {state}");
            assert_eq!(status(kind, state, 2, Some(DELETED)), ReplicaStatus::ShootDeleting, "{kind} {state}");
        }
    }
    for kind in ["Restore", "Migrate", "Delete", "LiveMigrate", "Odd"] {
        for state in ["Succeeded", "Failed"] {
            assert_eq!(status(kind, state, 2, None), ReplicaStatus::ShootReconciling, "{kind} {state}");
        }
    }
    assert_eq!(status("Delete", "Failed", 2, Some(DELETED)), ReplicaStatus::ShootDeleteFailed);
    assert_eq!(status("Delete", "Failed", 1, Some(DELETED)), ReplicaStatus::ShootDeleting);
    assert_eq!(ReplicaShoot::of(&json!({})).status, ReplicaStatus::ShootReconciling);
}

/// spec 86 §5.2, trap T-9: the Shoot is not looked at any more.
#[test]
fn replica_status_is_that_of_its_managed_seed_if_there_is_one() {
    let managed_seed = |observed: i64, registered: &str, deleted: Option<&str>| {
        let conditions =
            json!([{ "type": "Other", "status": "False" }, { "type": "SeedRegistered", "status": registered }]);
        ReplicaManagedSeed::of(&json!({
            "metadata": { "generation": 1, "deletionTimestamp": deleted },
            "status": { "observedGeneration": observed, "conditions": conditions },
        }))
    };
    for (managed_seed, expected) in [
        (managed_seed(1, "True", None), ReplicaStatus::ManagedSeedRegistered),
        (managed_seed(0, "True", None), ReplicaStatus::ManagedSeedPreparing),
        (managed_seed(1, "False", None), ReplicaStatus::ManagedSeedPreparing),
        (managed_seed(1, "True", Some(DELETED)), ReplicaStatus::ManagedSeedDeleting),
    ] {
        let failed =
            ReplicaShoot::of(&json!({ "status": { "lastOperation": { "type": "Create", "state": "Failed" } } }));
        assert_eq!(Replica::new("m-0", &failed, Some(managed_seed), true, false).status, expected);
    }
}

/// spec 86 §5.3, scenario 5
#[test]
fn seed_is_ready_with_its_conditions_and_at_its_generation() {
    let all = [("GardenletReady", "True"), ("SeedSystemComponentsHealthy", "True")];
    let is_ready = |conditions: &[(&str, &str)], observed: i64, deleted: Option<&str>| {
        let conditions: Vec<_> =
            conditions.iter().map(|(kind, status)| json!({ "type": kind, "status": status })).collect();
        is_ready_seed(&json!({
            "metadata": { "generation": 3, "deletionTimestamp": deleted },
            "status": { "observedGeneration": observed, "conditions": conditions },
        }))
    };
    let with = |kind, status| [all[0], all[1], (kind, status)];

    assert!(is_ready(&all, 3, None) && is_ready(&with("BackupBucketsReady", "True"), 3, None));
    assert!(is_ready(&with("ExtensionsReady", "False"), 3, None));
    assert!(!is_ready(&all, 2, None) && !is_ready(&all, 3, Some(DELETED)) && !is_ready(&all[1..], 3, None));
    for status in ["False", "Unknown", "Progressing", ""] {
        assert!(!is_ready(&with("BackupBucketsReady", status), 3, None));
        assert!(!is_ready(&[all[0], ("SeedSystemComponentsHealthy", status)], 3, None));
    }
    assert!(!is_ready_seed(&json!({})));
}

/// spec 86 §5.4, scenario 37
#[test]
fn shoot_health_of_an_unknown_value_is_unknown() {
    for (label, expected) in [
        (json!("healthy"), ShootStatus::Healthy),
        (json!("progressing"), ShootStatus::Progressing),
        (json!("unknown"), ShootStatus::Unknown),
        (json!("unhealthy"), ShootStatus::Unhealthy),
        (json!("weird"), ShootStatus::Unknown),
        (json!(""), ShootStatus::Unknown),
        (json!(null), ShootStatus::Progressing),
    ] {
        let shoot = json!({ "metadata": { "labels": { "shoot.gardener.cloud/status": label } } });
        assert_eq!(ReplicaShoot::of(&shoot).health, expected, "{label}");
    }
}

/// spec 86 D-2
#[test]
fn protection_ends_with_the_value_false_only() {
    let object = |value: Value| json!({ "metadata": { "annotations": { "seedmanagement.gardener.cloud/protect-from-deletion": value } } });
    for value in [json!("true"), json!(""), json!("False"), json!("no"), json!(5)] {
        assert!(is_protected(&object(value.clone())), "{value}");
    }
    assert!(!is_protected(&object(json!("false"))) && !is_protected(&json!({})));
}

/// spec 86 §5.1 rule 5
#[test]
fn ordinal_is_the_number_after_the_last_hyphen() {
    let table = [
        ("m-0", Some(0)),
        ("m-007", Some(7)),
        ("a-b-12", Some(12)),
        ("-3", Some(3)),
        ("m-2147483647", Some(2_147_483_647)),
        ("m-2147483648", None),
        ("m-+1", None),
        ("m--1", Some(1)),
        ("m-", None),
        ("m-1a", None),
        ("7", None),
    ];
    for (name, expected) in table {
        assert_eq!(ordinal_of(name), expected, "{name}");
    }
}

/// spec 86 DEV-13
#[test]
fn pending_replica_has_the_name_of_its_set() {
    let is_of = |name: &str| pending(name, PendingReason::ShootDeleting, None).is_of("m");

    assert!(is_of("m-0") && is_of("m-12"));
    for foreign in ["x", "x-0", "m", "m-", "m-x", "m--1", "m-1-2", "mm-1", "m-99999999999"] {
        assert!(!is_of(foreign), "{foreign}");
    }
}

fn set(spec: Value) -> Value {
    json!({ "metadata": { "name": "m", "namespace": "garden", "uid": "u", "generation": 2 }, "spec": spec })
}

fn shoot_with(labels: Value, controller: Option<&str>) -> ReplicaShoot {
    let owners: Vec<_> =
        controller.iter().map(|uid| json!({ "uid": uid, "controller": true, "kind": "ManagedSeedSet" })).collect();
    ReplicaShoot::of(&json!({ "metadata": { "labels": labels, "ownerReferences": owners } }))
}

/// spec 86 §5.1, DEV-7, DEV-16, scenario 36
#[test]
fn managed_seed_set_selects_shoots_that_nobody_else_controls() {
    let labelled = set(json!({ "selector": { "matchLabels": { "set": "m" } } }));
    let mut empty = set(json!({ "selector": { "matchLabels": {} } }));
    let invalid = set(json!({ "selector": { "matchExpressions": [{ "key": "a", "operator": "Has" }] } }));
    let selects = |set: &Value, label: &str, controller: Option<&str>| {
        ManagedSeedSet::of(set).selects(&shoot_with(json!({ "set": label }), controller))
    };

    assert!(selects(&labelled, "m", None) && selects(&labelled, "m", Some("u")));
    assert!(!selects(&labelled, "m", Some("other")) && !selects(&labelled, "x", Some("u")));
    for set in [&empty, &invalid, &set(json!({}))] {
        assert!(!selects(set, "m", None) && !selects(set, "m", Some("u")), "{set}");
    }
    empty["metadata"]["deletionTimestamp"] = json!(DELETED);
    assert!(selects(&empty, "m", Some("u")) && !selects(&empty, "m", None) && !selects(&empty, "m", Some("v")));
}

/// spec 86 DEV-11, DEV-16, scenario 7
#[test]
fn managed_seed_set_without_a_clear_target_has_none() {
    let selector = json!({ "matchLabels": { "set": "m" } });
    let target = |replicas: Value, selector: Value| {
        ManagedSeedSet::of(&set(json!({ "replicas": replicas, "selector": selector }))).target()
    };

    assert_eq!(target(json!(null), selector.clone()), Ok(1));
    assert_eq!(target(json!(0), selector.clone()), Ok(0));
    assert_eq!(target(json!(3), selector.clone()), Ok(3));
    for odd in [json!(-1), json!("2"), json!(1.5), json!([])] {
        assert!(target(odd, selector.clone()).unwrap_err().starts_with("spec.replicas is not"));
    }
    for empty in [json!(null), json!({}), json!({ "matchLabels": null })] {
        assert_eq!(target(json!(1), empty), Err("empty selector is invalid for ManagedSeedSet".to_owned()));
    }
    assert!(target(json!(1), json!(5)).unwrap_err().starts_with("spec.selector is invalid: "));
    let mut deleted = set(json!({ "replicas": -1, "selector": selector }));
    deleted["metadata"]["deletionTimestamp"] = json!(DELETED);
    assert_eq!(ManagedSeedSet::of(&deleted).target(), Ok(0));
}

/// spec 86 §7: its own status is no news.
#[test]
fn managed_seed_set_wakes_for_its_spec_its_deletion_and_its_finalizer() {
    let old = set(json!({ "replicas": 1 }));
    let changed = |change: fn(&mut Value)| {
        let mut new = old.clone();
        change(&mut new);
        ManagedSeedSet::of(&new).has_changed_since(&ManagedSeedSet::of(&old))
    };

    assert!(changed(|set| set["metadata"]["generation"] = json!(3)));
    assert!(changed(|set| set["metadata"]["deletionTimestamp"] = json!(DELETED)));
    assert!(changed(|set| set["metadata"]["finalizers"] = json!(["gardener"])));
    assert!(!changed(|set| set["metadata"]["labels"] = json!({ "a": "b" })));
    assert!(!changed(|set| set["status"] = json!({ "replicas": 1, "pendingReplica": { "name": "m-0" } })));
}

/// spec 86 §6.7
#[test]
fn set_status_is_written_where_it_differs() {
    let waiting = PendingReplica::new("m-1", PendingReason::ShootReconciling, None, now());
    let wanted = SetStatus {
        observed_generation: 3,
        replicas: Some(2),
        ready_replicas: 1,
        next_replica_number: 2,
        pending: Some(waiting),
    };
    let written = json!({ "status": {
        "observedGeneration": 3, "replicas": 2, "readyReplicas": 1, "nextReplicaNumber": 2,
        "pendingReplica": {
            "name": "m-1", "reason": "ShootReconciling", "since": "2026-08-21T17:55:55Z", "retries": null,
        },
    } });

    assert_eq!(wanted.patch("m", &SetStatus::default()), Some(written.clone()));
    assert_eq!(SetStatus::of(&written), wanted);
    assert_eq!(wanted.patch("m", &wanted), None);
    let idle = SetStatus { ready_replicas: 0, pending: None, next_replica_number: 1, ..wanted.clone() };
    let expected = json!({ "status": { "readyReplicas": null, "pendingReplica": null } });
    assert_eq!(idle.patch("m", &wanted), Some(expected), "the next number does not shrink");
    let first = SetStatus { observed_generation: 1, ..SetStatus::default() };
    let expected = json!({ "status": { "observedGeneration": 1, "replicas": 0 } });
    assert_eq!(first.patch("m", &SetStatus::default()), Some(expected));
    let foreign = SetStatus { pending: Some(pending("x", PendingReason::ShootDeleting, None)), ..wanted.clone() };
    assert_eq!(foreign.patch("m", &wanted), Some(json!({ "status": { "pendingReplica": null } })));
}

/// spec 86 §6.1, trap T-14
#[test]
fn pending_replica_keeps_its_time_while_nothing_else_changes() {
    let known = pending("m-0", PendingReason::ShootReconciling, Some(1));
    let mut status = SetStatus { pending: Some(known.clone()), ..SetStatus::default() };

    status.wait_for(PendingReplica::new("m-0", PendingReason::ShootReconciling, Some(1), now()));
    assert_eq!(status.pending, Some(known));
    for other in [
        PendingReplica::new("m-0", PendingReason::ShootReconciling, None, now()),
        PendingReplica::new("m-0", PendingReason::ShootDeleting, None, now()),
        PendingReplica::new("m-1", PendingReason::ShootDeleting, None, now()),
    ] {
        status.wait_for(other.clone());
        assert_eq!(status.pending, Some(other));
    }
}

fn templates() -> Value {
    set(json!({
        "shootTemplate": {
            "metadata": { "name": "n", "finalizers": ["f"], "labels": { "set": "m" }, "annotations": { "a": "s" } },
            "spec": { "dns": { "domain": "replica-name.replica-name.ex.com" }, "region": "replica-name" },
        },
        "template": {
            "metadata": { "labels": { "set": "m" } },
            "spec": {
                "shoot": { "name": "other" },
                "gardenlet": { "deployment": { "replicaCount": 1 }, "config": {
                    "kind": "GardenletConfiguration",
                    "seedConfig": { "spec": { "ingress": { "domain": "replica-name.in.ex.com" } } },
                } },
            },
        },
    }))
}

/// spec 86 §6.3, §6.4, DEV-3, trap T-11
#[test]
fn replica_objects_are_made_of_the_templates() {
    let set = templates();
    let owner = json!({
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1", "kind": "ManagedSeedSet", "name": "m", "uid": "u",
        "controller": true, "blockOwnerDeletion": true,
    });
    let expected = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
        "metadata": {
            "name": "m-7", "namespace": "garden", "labels": { "set": "m" }, "annotations": { "a": "s" },
            "ownerReferences": [owner],
        },
        "spec": { "dns": { "domain": "m-7.m-7.ex.com" }, "region": "replica-name" },
    });
    assert_eq!(shoot(&set, "m-7"), expected);
    let expected = json!({
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1", "kind": "ManagedSeed",
        "metadata": { "name": "m-7", "namespace": "garden", "labels": { "set": "m" }, "ownerReferences": [owner] },
        "spec": {
            "shoot": { "name": "m-7" },
            "gardenlet": { "deployment": { "replicaCount": 1 }, "config": {
                "kind": "GardenletConfiguration",
                "seedConfig": { "spec": { "ingress": { "domain": "m-7.in.ex.com" } } },
            } },
        },
    });
    assert_eq!(managed_seed(&set, "m-7"), Ok(expected));
    assert_eq!(set, templates());
}

/// spec 86 §6.4
#[test]
fn managed_seed_without_parts_of_its_configuration_is_created() {
    for (field, value) in [
        ("/spec/template/spec/gardenlet/config/seedConfig", json!(null)),
        ("/spec/template/spec/gardenlet/config", json!(null)),
        ("/spec/template/spec/gardenlet", json!(null)),
        ("/spec/template", json!(null)),
        ("/spec/template/spec/gardenlet/config/seedConfig/spec/ingress/domain", json!(5)),
    ] {
        let mut set = templates();
        *set.pointer_mut(field).unwrap() = value;
        assert_eq!(managed_seed(&set, "m-0").unwrap()["spec"]["shoot"]["name"], "m-0", "{field}");
    }
    for (field, error) in [("config", ".config"), ("config/seedConfig", ".config.seedConfig")] {
        let mut set = templates();
        *set.pointer_mut(&format!("/spec/template/spec/gardenlet/{field}")).unwrap() = json!("x");
        let expected = format!("spec.template.spec.gardenlet{error} is not an object");
        assert_eq!(managed_seed(&set, "m-0"), Err(expected));
    }
}

/// A tenant, or a server that knows other fields, may write anything at any place.
#[test]
fn managed_seed_sets_and_replicas_of_any_shape_are_read() {
    let odd = [json!(null), json!(true), json!(-1), json!("x"), json!([]), json!({}), json!([[null, 7]])];
    for field in ["metadata", "spec", "status"] {
        for value in &odd {
            let object = json!({ field: value });
            let (set, shoot) = (ManagedSeedSet::of(&object), ReplicaShoot::of(&object));

            assert!(!set.selects(&shoot) && set.target().is_err(), "{object}");
            assert!(managed_seed(&object, "m-0").is_ok() && !is_ready_seed(&object), "{object}");
            assert_eq!(ReplicaManagedSeed::of(&object).status, ReplicaStatus::ManagedSeedPreparing, "{object}");
        }
    }
}

//! Maintenances as a whole (spec 84 C.4, C.9 to C.13).

use cluster::object::annotation;

use super::*;
use crate::actors::controller_manager::shoot_maintenance::{
    operation::{OPERATION, TASKS},
    update::TOO_MUCH_WORK,
};

const DEPLOY: &str = "deployInfrastructure,deployDNSRecordInternal,deployDNSRecordExternal,deployDNSRecordIngress";

fn plain(more: Value) -> Value {
    shoot("1.30.1", json!([pool("w", "1.0.0", json!({}))]), more)
}

fn fixed() -> Value {
    profile("1.30.1", json!([{ "version": "1.0.0" }]), "major")
}

fn rotations(period: &str) -> Value {
    let every = json!({ "rotationPeriod": period });
    let credentials = json!({ "sshKeypair": every, "observability": every, "etcdEncryptionKey": every });
    json!({ "spec": { "maintenance": { "autoRotation": { "credentials": credentials } } } })
}

/// spec 84 C-17, C-19, C.13, scenarios 26, 28, 29 and 36
#[test]
fn maintenance_without_changes_asks_for_a_reconciliation_with_tasks() {
    for (shoot, operation) in [
        (plain(json!({})), Some("reconcile")),
        (plain(json!({ "status": { "lastOperation": null } })), None),
        (json!({ "spec": { "kubernetes": { "version": "1.30.1" } } }), None),
    ] {
        let plan = maintained(&shoot, &fixed());
        let applied = plan.applied(&shoot);
        assert!(!plan.results.is_changed());
        assert_eq!(annotation(&applied, TASKS), Some(&*format!("{DEPLOY},restartControlPlanePods")));
        assert_eq!((annotation(&applied, OPERATION), &applied["spec"]), (operation, &shoot["spec"]));
        assert_eq!(annotation(&plan.tried(&shoot), TASKS), None);
    }
}

/// spec 84 C-17, C.13, scenario 30
#[test]
fn maintenance_reports_the_operations_that_it_starts() {
    let shoot = plain(
        json!({ "metadata": { "annotations": { "maintenance.gardener.cloud/operation": "rotate-ssh-keypair" } } }),
    );
    let plan = maintained(&shoot, &fixed());
    assert_eq!(description(&plan), format!("{GOOD}Added \"rotate-ssh-keypair;reconcile\" operation annotation"));
}

/// spec 84 C.9, C.13, scenarios 71, 72 and 73
#[test]
fn maintenance_starts_rotations_that_are_due() {
    let plan = maintained(&plain(rotations("24h")), &fixed());
    let keys = ["rotate-ssh-keypair", "rotate-observability-credentials", "rotate-etcd-encryption-key"];
    let value = format!("reconcile;{}", keys.join(";"));
    let reported = keys.map(|key| description(&plan).find(&format!("Credentials \"{key}\": ")).unwrap());
    assert!(reported.is_sorted());
    assert_eq!(annotation(&plan.applied(&plain(json!({}))), OPERATION), Some(&*value));
    assert!(description(&plan).ends_with(&format!("Added \"{value}\" operation annotation")));

    let busy = json!({ "status": { "credentials": { "rotation": { "etcdEncryptionKey": { "phase": "Prepared" } } } } });
    let etcd = json!({ "spec": { "maintenance": { "autoRotation": { "credentials": { "etcdEncryptionKey": { "rotationPeriod": "24h" } } } } } });
    let plan = maintained(&plain(merge(busy, etcd.clone())), &fixed());
    let text = "Credentials \"rotate-etcd-encryption-key\": Automatic rotation ";
    assert_eq!(
        description(&plan),
        format!(
            "(0/1) maintenance operations successful. {text}failed. Reason for update: ETCD encryption key rotation is already in progress"
        )
    );
    assert_eq!(
        plan.results.texts().failure_reason,
        format!("{text}failure due to: Could not start ETCD encryption key rotation")
    );

    let asked = json!({ "metadata": { "annotations": { "maintenance.gardener.cloud/operation": "rotate-etcd-encryption-key-start" } } });
    let shoot = plain(merge(asked, etcd));
    let plan = maintained(&shoot, &fixed());
    assert_eq!(plan.results.credentials.len(), 1);
    assert_eq!(annotation(&plan.applied(&shoot), OPERATION), Some("rotate-etcd-encryption-key-start;reconcile"));

    for state in [json!({ "state": "Failed" }), Value::Null] {
        let plan =
            maintained(&plain(merge(rotations("24h"), json!({ "status": { "lastOperation": state } }))), &fixed());
        assert!(!plan.results.is_changed(), "{state}");
    }
}

/// spec 84 K4, C.10.1, scenario 51
#[test]
fn maintenance_waits_for_the_binding_that_it_needs() {
    let shoot = shoot("1.33.1", json!([]), json!({ "spec": { "secretBindingName": "sb" } }));
    let profile = profile("1.33.1 expired, 1.34.0", json!([]), "major");

    assert_eq!(maintained(&shoot, &profile).secret_binding.as_deref(), Some("sb"));
    let migration = Ok("cb".to_owned());
    let plan = maintained_with(&shoot, &profile, SETTINGS, Some(&migration), None);
    assert_eq!((plan.secret_binding, &plan.spec["credentialsBindingName"]), (None, &json!("cb")));
    assert_eq!(plan.spec.get("secretBindingName"), None);
    let same = super::profile("1.33.1", json!([]), "major");
    assert_eq!(maintained(&shoot, &same).secret_binding, None);
}

/// spec 84 C.4, C.13: the order of the texts
#[test]
fn maintenance_texts_follow_the_order_of_the_rules() {
    let more = json!({ "spec": { "addons": { "nginxIngress": { "enabled": true } },
        "kubernetes": { "kubeAPIServer": { "featureGates": { "CSIMigrationRBD": true } },
            "kubeControllerManager": { "podEvictionTimeout": "2m" } } } });
    let shoot = shoot("1.32.1", json!([]), more);
    let profile = profile("1.32.1 expired, 1.33.0", json!([]), "major");
    let settings = MaintenanceSettings { disables_nginx: true, ..SETTINGS };
    let plan = maintained_with(&shoot, &profile, settings, None, None);

    let starts = [".spec.kubernetes.kubeControllerManager", "Removed feature gates from", ".spec.addons.nginxIngress"];
    assert_eq!(plan.results.operations.len(), 3);
    assert!(plan.results.operations.iter().zip(starts).all(|(text, start)| text.starts_with(start)));
    assert_eq!(plan.spec["addons"]["nginxIngress"]["enabled"], json!(false));
}

/// spec 84 §4: absent objects have defaults
#[test]
fn maintenance_assumes_the_defaults_of_absent_fields() {
    let mut shoot = plain(json!({}));
    let newer = || profile("1.30.1, 1.30.2", json!([{ "version": "1.0.0" }, { "version": "1.0.1" }]), "major");
    let updated = |shoot: &Value| {
        let plan = maintained(shoot, &newer());
        (version_of(&plan) != "1.30.1", images_of(&plan) != ["1.0.0"])
    };
    assert_eq!(updated(&shoot), (false, false));
    shoot["spec"]["maintenance"]["autoUpdate"] = json!({});
    assert_eq!(updated(&shoot), (false, true));
    shoot["spec"]["maintenance"] = Value::Null;
    assert_eq!(updated(&shoot), (true, true));
}

/// spec 84 C.4
#[test]
fn maintenance_needs_a_readable_version() {
    let profile = MaintenanceProfile::default();
    for shoot in [
        json!(null),
        json!({}),
        json!([]),
        json!({ "spec": { "kubernetes": { "version": 5 } } }),
        json!({ "spec": [] }),
    ] {
        let input = MaintenanceInput {
            shoot: &shoot,
            profile: &profile,
            settings: SETTINGS,
            now: now(),
            migration: None,
            image_refusal: None,
        };
        assert!(plan(&input).is_err(), "{shoot}");
    }
}

#[test]
fn maintenance_of_any_shape_is_computed() {
    for spec in [
        json!({ "provider": [] }),
        json!({ "provider": { "workers": [null, 5, [], {}, { "machine": { "image": [] } }, { "kubernetes": [], "cri": 5 }] } }),
        json!({ "provider": { "workers": [{ "machine": { "type": "m", "image": { "name": "os", "version": "odd" } } }] } }),
        json!({ "maintenance": [], "dns": 5, "addons": [], "hibernation": "yes" }),
        json!({ "maintenance": { "autoRotation": { "credentials": [] }, "autoUpdate": 7 } }),
    ] {
        let shoot =
            merge(json!({ "spec": { "kubernetes": { "version": "1.30.1" } }, "status": [] }), json!({ "spec": spec }));
        let plan = maintained(&shoot, &fixed());
        plan.applied(&shoot);
    }
}

#[test]
fn maintenance_of_a_hostile_shoot_ends_soon() {
    let versions: Vec<_> = (0..20_000).map(|patch| json!({ "version": format!("1.0.{patch}") })).collect();
    let pools: Vec<_> = (0..10_000)
        .map(|at| pool("w", &format!("1.0.0+{at}"), json!({ "kubernetes": { "version": format!("1.30.1+{at}") } })))
        .collect();
    let mut profile = profile("1.30.1", versions.clone().into(), "major");
    profile["kubernetes"]["versions"] = versions.into();
    let shoot = shoot("1.30.1", pools.into(), automatic(true, true));

    let plan = maintained(&shoot, &profile);

    assert!(plan.remarks.iter().any(|remark| remark.detail.contains("too many worker pools")));
}

#[test]
fn maintenance_counts_all_that_it_compares_as_work() {
    let runtimes: Vec<_> = (0..50).map(|at| json!({ "type": format!("r{at}") })).collect();
    let version = |patch: usize| {
        json!({ "version": format!("1.0.{patch}"), "architectures": ["amd64"],
            "capabilityFlavors": vec![json!({ "c": ["x"] }); 100], "kubeletVersionConstraint": "> 1.20, < 2",
            "lifecycle": [{ "classification": "preview" }, { "classification": "supported", "startTime": day(-1) }],
            "cri": [{ "name": "containerd", "containerRuntimes": runtimes }] })
    };
    let mut profile = profile("1.30.1", (0..100).map(version).collect::<Vec<_>>().into(), "major");
    profile["machineCapabilities"] = json!([{ "name": "c", "values": ["x", "y"] }]);
    let repeated = vec![json!({ "type": "r0" }); 1_000];
    let pools = vec![pool("w", "1.0.0", json!({ "cri": { "containerRuntimes": repeated } })); 100];
    let shoot = shoot("1.30.1", pools.into(), automatic(true, true));

    let plan = maintained(&shoot, &profile);

    // A flavor counts with its capability and its value.
    let of_version = 1 + 2 + 100 * (1 + 1 + 1) + 50 + 2;
    let of_pool = 100 * of_version + 1 + 2;
    let affordable = 500_000 / of_pool;
    assert_eq!(images_of(&plan).into_iter().filter(|image| *image == "1.0.99").count(), affordable);
    assert_eq!(errors(&plan), vec![TOO_MUCH_WORK; 100 - affordable]);
}

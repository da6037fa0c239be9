//! The maintenance of Shoots: what holds for every Shoot and CloudProfile (spec 84 C).

use gardener_resource_manager::actors::controller_manager::shoot_maintenance::{
    operation::RestartSettings,
    plan::{MaintenanceInput, MaintenancePlan, MaintenanceSettings, plan},
    profile::MaintenanceProfile,
    version::SemanticVersion,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::json_value;

/// More runs than a list has versions.
const RUNS: usize = 20;

fn version() -> impl Strategy<Value = String> {
    let (minor, patch) = (29..38_u8, 0..4_u8);
    (
        minor,
        patch,
        prop_oneof![8 => Just(""), 1 => Just("-rc.1"), 1 => Just("+b")],
        prop_oneof![9 => Just(""), 1 => Just("v")],
    )
        .prop_map(|(minor, patch, end, start)| format!("{start}1.{minor}.{patch}{end}"))
}

fn image_version() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..3_u8, 0..3_u8, 0..3_u8).prop_map(|(a, b, c)| format!("{a}.{b}.{c}")),
        Just("1".into()),
        Just("odd".into())
    ]
}

fn offered(version: impl Strategy<Value = String>) -> impl Strategy<Value = Vec<Value>> {
    let class = prop::sample::select(vec![
        "supported",
        "supported",
        "deprecated",
        "preview",
        "expired",
        "expired",
        "unavailable",
    ]);
    let entry = (version, class).prop_map(|(version, class)| json!({ "version": version, "classification": class }));
    prop::collection::vec(entry, 0..10)
}

fn profile() -> impl Strategy<Value = Value> {
    let strategy = prop_oneof![Just("patch"), Just("minor"), Just("major"), Just("")];
    (offered(version()), offered(image_version()), strategy).prop_map(|(kubernetes, images, strategy)| {
        json!({ "kubernetes": { "versions": kubernetes }, "machineTypes": [{ "name": "m" }],
            "machineImages": [{ "name": "os", "updateStrategy": strategy, "versions": images }] })
    })
}

fn pool() -> impl Strategy<Value = Value> {
    let gates =
        prop_oneof![Just(json!({})), Just(json!({ "AllBeta": true, "Foo": true })), Just(json!({ "AppArmor": true }))];
    (prop::option::of(version()), image_version(), gates).prop_map(|(version, image, gates)| {
        json!({ "name": "w", "machine": { "type": "m", "image": { "name": "os", "version": image } },
            "kubernetes": { "version": version, "kubelet": { "featureGates": gates } } })
    })
}

fn shoot() -> impl Strategy<Value = Value> {
    let state =
        prop_oneof![Just(Value::Null), Just(json!({ "state": "Failed" })), Just(json!({ "state": "Succeeded" }))];
    let annotations = prop_oneof![
        Just(json!({})),
        Just(json!({ "gardener.cloud/operation": "maintain" })),
        Just(
            json!({ "maintenance.gardener.cloud/operation": "rotate-ssh-keypair", "shoot.gardener.cloud/tasks": "x" })
        ),
    ];
    (version(), prop::collection::vec(pool(), 0..4), any::<[bool; 2]>(), state, annotations).prop_map(
        |(version, pools, automatic, state, annotations)| {
            json!({
                "metadata": { "name": "s", "namespace": "ns", "annotations": annotations, "creationTimestamp": "2020-01-01T00:00:00Z" },
                "spec": {
                    "addons": { "nginxIngress": { "enabled": true } },
                    "cloudProfileName": "cp",
                    "dns": { "providers": [{ "secretName": "s" }] },
                    "kubernetes": { "version": version, "kubeControllerManager": { "podEvictionTimeout": "2m" },
                        "kubeAPIServer": { "enableAnonymousAuthentication": false, "admissionPlugins": [{ "name": "PersistentVolumeLabel" }],
                            "featureGates": { "AppArmor": true, "WatchBookmark": false } },
                        "kubeScheduler": { "kubeMaxPDVols": "3" } },
                    "maintenance": { "autoUpdate": { "kubernetesVersion": automatic[0], "machineImageVersion": automatic[1] },
                        "autoRotation": { "credentials": { "observability": {} } } },
                    "provider": { "workers": pools },
                    "secretBindingName": "sb",
                },
                "status": { "lastOperation": state },
            })
        },
    )
}

fn maintained(shoot: &Value, profile: &Value) -> MaintenancePlan {
    let profile = MaintenanceProfile::of(profile);
    let restarts = RestartSettings { control_plane: true, core_addons: true };
    let settings = MaintenanceSettings { restarts, disables_nginx: true };
    let now = "2026-08-21T12:00:00Z".parse().expect("a time");
    let migration = Ok("cb".to_owned());
    let input =
        MaintenanceInput { shoot, profile: &profile, settings, now, migration: Some(&migration), image_refusal: None };
    plan(&input).expect("the version of the control plane is readable")
}

/// Returns the versions of the control plane, of the pools, and of their images.
fn versions(spec: &Value) -> Vec<Option<String>> {
    let text = |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let pools = spec["provider"]["workers"].as_array().into_iter().flatten();
    let of_pool = |pool: &Value| [text(pool, "/kubernetes/version"), text(pool, "/machine/image/version")];
    std::iter::once(text(spec, "/kubernetes/version")).chain(pools.flat_map(of_pool)).collect()
}

fn read(version: &str) -> Option<SemanticVersion> {
    SemanticVersion::parse(version)
}

proptest! {
    /// spec 84 C.4: at one instant the maintenance of its own result ends
    #[test]
    fn shoot_maintenance_comes_to_rest(shoot in shoot(), profile in profile()) {
        let mut shoot = shoot;
        for _ in 0..RUNS {
            shoot = maintained(&shoot, &profile).applied(&shoot);
        }
        let plan = maintained(&shoot, &profile);

        prop_assert_eq!(&plan.spec, &shoot["spec"]);
        prop_assert_eq!(&plan.applied(&shoot)["metadata"], &shoot["metadata"]);
        let results = &plan.results;
        let versions = results.control_plane.iter().chain(results.kubernetes.iter().chain(&results.images).map(|(_, result)| result));
        prop_assert!(versions.into_iter().all(|result| !result.is_successful));
        prop_assert!(results.operations.iter().all(|text| text.starts_with("Added ")), "{:?}", results.operations);
    }

    /// spec 84 C.6.3, C.8
    #[test]
    fn shoot_maintenance_only_raises_versions_to_those_of_the_profile(shoot in shoot(), profile in profile()) {
        let plan = maintained(&shoot, &profile);
        let offered = |list: &Value| -> Vec<_> { list.as_array().into_iter().flatten().filter_map(|entry| read(entry["version"].as_str()?)).collect() };
        let mut allowed = offered(&profile["kubernetes"]["versions"]);
        allowed.extend(offered(&profile["machineImages"][0]["versions"]));
        allowed.extend(read(plan.spec["kubernetes"]["version"].as_str().unwrap_or_default()));

        for (old, new) in versions(&shoot["spec"]).into_iter().zip(versions(&plan.spec)) {
            if old != new {
                let new = new.and_then(|new| read(&new)).expect("a new version is readable");
                let old = old.and_then(|old| read(&old)).expect("an old version is readable");
                prop_assert!(new > old && allowed.contains(&new), "{old} {new}");
            }
        }
    }

    /// spec 84 C.13
    #[test]
    fn shoot_maintenance_has_a_text_for_each_change(shoot in shoot(), profile in profile()) {
        let plan = maintained(&shoot, &profile);
        let description = plan.results.texts().description;

        prop_assert_eq!(plan.results.is_changed(), description != "All maintenance operations successful.");
        let (old, new) = (&shoot["spec"], &plan.spec);
        let changed_versions = versions(old).into_iter().zip(versions(new)).filter(|(old, new)| old != new).count();
        prop_assert_eq!(plan.results.all().filter(|result| result.is_successful && result.description.starts_with("Updated ")).count(), changed_versions);
        for (field, text) in [
            ("/kubernetes/kubeControllerManager/podEvictionTimeout", "podEvictionTimeout is set to nil"),
            ("/kubernetes/kubeAPIServer/enableAnonymousAuthentication", "enableAnonymousAuthentication was removed"),
            ("/kubernetes/kubeAPIServer/featureGates", "\"spec.kubernetes.kubeAPIServer.featureGates\""),
            ("/kubernetes/kubeAPIServer/admissionPlugins", "\"spec.kubernetes.kubeAPIServer.admissionPlugins\""),
            ("/kubernetes/kubeScheduler/kubeMaxPDVols", "kubeMaxPDVols was removed"),
            ("/dns/providers/0/secretName", ".spec.dns.providers[0].secretName was removed"),
            ("/secretBindingName", ".spec.secretBindingName was migrated"),
            ("/addons", ".spec.addons"),
        ] {
            prop_assert_eq!(old.pointer(field) != new.pointer(field), description.contains(text), "{}: {}", field, description);
        }
    }

    /// Fields of any type neither panic nor get lost.
    #[test]
    fn shoot_maintenance_survives_any_json(spec in json_value(), status in json_value(), pool in json_value(), profile in json_value()) {
        let mut spec = if spec.is_object() { spec } else { json!({ "a": spec }) };
        spec["kubernetes"] = json!({ "version": "1.30.1", "kubelet": pool, "kubeAPIServer": { "featureGates": pool, "admissionPlugins": [pool] } });
        spec["provider"] = json!({ "workers": [pool, { "machine": pool, "kubernetes": pool }] });
        spec["maintenance"] = pool.clone();
        let shoot = json!({ "metadata": { "annotations": pool }, "spec": spec, "status": status });
        let profiles = [profile.clone(), json!({ "kubernetes": profile, "machineImages": [profile], "machineTypes": [profile], "machineCapabilities": profile })];

        for profile in profiles {
            let plan = maintained(&shoot, &profile);
            prop_assert_eq!(plan.spec.get("a"), spec.get("a"));
            plan.applied(&shoot);
        }
    }
}

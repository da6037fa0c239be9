//! Maintenances as the specification tells them: a Shoot and a CloudProfile, and what becomes of them.

mod images;
mod kubernetes;
mod whole;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::{
    changes::BindingMigration,
    operation::RestartSettings,
    plan::{MaintenanceInput, MaintenancePlan, MaintenanceSettings, plan},
    profile::MaintenanceProfile,
    update::RemarkLevel,
};

const AUTOMATIC: &str = "Automatic update of Kubernetes version configured";
const EXPIRED: &str = "Kubernetes version expired - force update required";
const ABSENT: &str = "Version does not exist in CloudProfile";
const GOOD: &str = "All maintenance operations successful. ";

const SETTINGS: MaintenanceSettings = MaintenanceSettings {
    restarts: RestartSettings { control_plane: true, core_addons: false },
    disables_nginx: false,
};

fn now() -> Timestamp {
    "2026-08-21T12:00:00Z".parse().unwrap()
}

fn day(day: i64) -> String {
    (now() + SignedDuration::from_hours(24 * day)).to_string()
}

/// Merges maps at any depth.
fn merge(mut one: Value, other: Value) -> Value {
    match (&mut one, other) {
        (Value::Object(fields), Value::Object(others)) => {
            for (name, value) in others {
                let known = fields.remove(&name).unwrap_or(Value::Object(Map::new()));
                fields.insert(name, merge(known, value));
            }
            one
        }
        (_, other) => other,
    }
}

/// Versions of a CloudProfile: `1.30.1, 1.30.5 expired, 1.31.0 preview`.
fn entries(text: &str) -> Vec<Value> {
    let of_kind = |kind: &str| match kind {
        "" => json!({}),
        "expired" => json!({ "expirationDate": day(-1) }),
        "later" => json!({ "expirationDate": day(1) }),
        "staged" => {
            json!({ "lifecycle": [{ "classification": "preview" }, { "classification": "supported", "startTime": day(-1) },
            { "classification": "expired", "startTime": day(1) }] })
        }
        "unavailable" => json!({ "lifecycle": [{ "classification": "preview", "startTime": day(1) }] }),
        kind => json!({ "classification": kind }),
    };
    let entry = |text: &str| {
        let (version, kind) = text.split_once(' ').unwrap_or((text, ""));
        merge(json!({ "version": version }), of_kind(kind))
    };
    text.split(", ").filter(|text| !text.is_empty()).map(entry).collect()
}

/// A CloudProfile with these versions of Kubernetes and of image `os`, and machine type `m`.
fn profile(kubernetes: &str, images: Value, strategy: &str) -> Value {
    json!({ "kubernetes": { "versions": entries(kubernetes) }, "machineTypes": [{ "name": "m" }],
        "machineImages": [{ "name": "os", "updateStrategy": strategy, "versions": images }] })
}

fn pool(name: &str, image: &str, more: Value) -> Value {
    merge(json!({ "name": name, "machine": { "type": "m", "image": { "name": "os", "version": image } } }), more)
}

/// A Shoot that has been reconciled, without automatic updates.
fn shoot(version: &str, pools: Value, more: Value) -> Value {
    let shoot = json!({
        "metadata": { "namespace": "garden-p1", "name": "s1", "annotations": { "gardener.cloud/operation": "maintain" },
            "creationTimestamp": day(-2) },
        "spec": { "cloudProfile": { "name": "cp" }, "kubernetes": { "version": version }, "provider": { "workers": pools },
            "maintenance": { "autoUpdate": { "kubernetesVersion": false, "machineImageVersion": false } } },
        "status": { "lastOperation": { "state": "Succeeded" } },
    });
    merge(shoot, more)
}

fn automatic(kubernetes: bool, images: bool) -> Value {
    json!({ "spec": { "maintenance": { "autoUpdate": { "kubernetesVersion": kubernetes, "machineImageVersion": images } } } })
}

fn maintained_with(
    shoot: &Value,
    profile: &Value,
    settings: MaintenanceSettings,
    migration: Option<&BindingMigration>,
    image_refusal: Option<&str>,
) -> MaintenancePlan {
    let profile = MaintenanceProfile::of(profile);
    plan(&MaintenanceInput { shoot, profile: &profile, settings, now: now(), migration, image_refusal }).unwrap()
}

fn maintained(shoot: &Value, profile: &Value) -> MaintenancePlan {
    maintained_with(shoot, profile, SETTINGS, None, None)
}

fn version_of(plan: &MaintenancePlan) -> &str {
    plan.spec["kubernetes"]["version"].as_str().unwrap()
}

fn images_of(plan: &MaintenancePlan) -> Vec<&str> {
    let workers = plan.spec["provider"]["workers"].as_array().unwrap();
    workers.iter().map(|worker| worker["machine"]["image"]["version"].as_str().unwrap()).collect()
}

fn description(plan: &MaintenancePlan) -> String {
    plan.results.texts().description
}

fn errors(plan: &MaintenancePlan) -> Vec<&str> {
    let errors = plan.remarks.iter().filter(|remark| remark.level == RemarkLevel::Error);
    errors.map(|remark| remark.detail.as_str()).collect()
}

//! What a maintenance changes (spec 84 C.4): the central function. Pure: the time is an argument, what it would log is a
//! part of its result.

use std::collections::{BTreeMap, BTreeSet};

use cluster::object::field_mut;
use jiff::Timestamp;
use serde_json::Value;

use super::{
    changes::{BindingMigration, VersionStep, adapt, disable_nginx, secret_binding_to_migrate},
    gates::remove_unsupported,
    images::ImageMaintenance,
    kubernetes::{self, VersionUpdate},
    operation::{AnnotationChanges, RestartSettings, operation_changes, starts_operations, task_changes},
    profile::{KubeletConstraint, MaintenanceProfile, OfferedImageVersion, profile_of_shoot},
    report::MaintenanceResults,
    rotation::due_rotations,
    target::OfferedVersion,
    update::{Remark, RemarkLevel, TOO_MUCH_WORK, UpdateResult, WorkBudget},
    version::SemanticVersion,
};
use crate::actors::controller_manager::fields::{list, text};

/// What the configuration says about maintenances (spec 84 §1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaintenanceSettings {
    /// Which components are restarted.
    pub restarts: RestartSettings,
    /// The gate `DisableNginxIngressInShoot`.
    pub disables_nginx: bool,
}

/// Everything that a maintenance depends on.
#[derive(Debug, Clone, Copy)]
pub struct MaintenanceInput<'a> {
    /// The Shoot as the server has it.
    pub shoot: &'a Value,
    /// The versions of its CloudProfile.
    pub profile: &'a MaintenanceProfile,
    /// What the configuration says.
    pub settings: MaintenanceSettings,
    /// The time of the maintenance.
    pub now: Timestamp,
    /// What came of the replacement of the SecretBinding; `None`: it was not tried yet (spec 84 K4).
    pub migration: Option<&'a BindingMigration>,
    /// Why new machine images must not be written; `None`: they may be (spec 84 "better" 7).
    pub image_refusal: Option<&'a str>,
}

/// What a maintenance changes, and what it says about that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaintenancePlan {
    /// The new spec of the Shoot.
    pub spec: Value,
    /// Changes of annotations with operations (spec 84 C-17).
    pub annotations: AnnotationChanges,
    /// What came of the parts.
    pub results: MaintenanceResults,
    /// The name of the SecretBinding that must be replaced, if that was not tried yet: the plan is incomplete then.
    pub secret_binding: Option<String>,
    /// Lines for the log.
    pub remarks: Vec<Remark>,
    restarts: RestartSettings,
}

/// The Kubernetes version of a Shoot cannot be read (spec 84 C.4).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("could not read spec.kubernetes.version: Invalid Semantic Version")]
pub struct UnreadableVersion;

/// Computes the maintenance of a Shoot (spec 84 C.4). Fails if the version of the control plane cannot be read.
pub fn plan(input: &MaintenanceInput<'_>) -> Result<MaintenancePlan, UnreadableVersion> {
    let MaintenanceInput { shoot, profile, settings, now, .. } = *input;
    let old_version = text(shoot, "/spec/kubernetes/version");
    let old = SemanticVersion::parse(old_version).ok_or(UnreadableVersion)?;
    let mut spec = shoot.get("spec").cloned().unwrap_or_default();
    let mut results = MaintenanceResults::default();
    let mut remarks = Vec::new();
    let mut budget = WorkBudget::new();

    remark_unreadable(input, &mut remarks);
    results.images = update_images(input, &mut spec, &mut budget, &mut remarks);
    let is_automatic = is_automatic(shoot, "kubernetesVersion");
    match kubernetes::update(&profile.kubernetes, old_version, is_automatic, None, now) {
        VersionUpdate::None => {}
        VersionUpdate::To(version, result) => {
            remarks.push(Remark::new(RemarkLevel::Info, KUBERNETES_UPDATED, "", &result.description));
            set_version(&mut spec, version);
            results.control_plane = Some(result);
        }
        VersionUpdate::Failed(result) => {
            remarks.push(Remark::new(RemarkLevel::Error, KUBERNETES_FAILED, "", &result.description));
            results.control_plane = Some(result);
        }
    }
    // The target was read when it was chosen, so it is a version.
    let new = SemanticVersion::parse(text(&spec, "/kubernetes/version")).unwrap_or_else(|| old.clone());
    if starts_operations(shoot) {
        results.credentials = due_rotations(shoot, now);
    }
    let step = VersionStep { old: &old, new: &new };
    let secret_binding = secret_binding_to_migrate(&spec, step).filter(|_| input.migration.is_none());
    let secret_binding = secret_binding.map(str::to_owned);
    adapt(&mut spec, step, input.migration, &mut results.operations);
    results.kubernetes = update_pools(input, &mut spec, is_automatic, &new, &mut budget, &mut remarks);
    remove_unsupported(&mut spec, &mut results.operations, &mut remarks);
    let rotations = results.credentials.iter().filter(|(_, result)| result.is_successful).map(|(key, _)| *key);
    let (annotations, text) = operation_changes(shoot, rotations);
    results.operations.extend(text);
    if settings.disables_nginx {
        disable_nginx(&mut spec, &mut results.operations);
    }
    Ok(MaintenancePlan { spec, annotations, results, secret_binding, remarks, restarts: settings.restarts })
}

const KUBERNETES_UPDATED: &str = "Kubernetes version will be updated";
const KUBERNETES_FAILED: &str = "Failed to maintain Shoot kubernetes version";
const POOL_FAILED: &str = "Could not maintain Kubernetes version for worker pool";

impl MaintenancePlan {
    /// Returns the object for the dry run: the new spec, and the operations (spec 84 C-21).
    pub fn tried(&self, shoot: &Value) -> Value {
        let mut shoot = shoot.clone();
        self.annotations.apply_to(&mut shoot);
        if let Some(fields) = shoot.as_object_mut() {
            fields.insert("spec".to_owned(), self.spec.clone());
        }
        shoot
    }

    /// Returns the object that is written: as [`Self::tried`], and the tasks (spec 84 C-23). `shoot` has the newest
    /// annotations.
    pub fn applied(&self, shoot: &Value) -> Value {
        let mut tried = self.tried(shoot);
        task_changes(&tried, self.restarts).apply_to(&mut tried);
        tried
    }
}

/// Returns whether versions are updated automatically. Without the whole object they are, as images are without the field
/// (spec 84 §4).
fn is_automatic(shoot: &Value, field: &str) -> bool {
    let settings = shoot.pointer("/spec/maintenance/autoUpdate").filter(|settings| !settings.is_null());
    let Some(settings) = settings else { return true };
    settings.get(field).and_then(Value::as_bool).unwrap_or(field == "machineImageVersion")
}

fn set_version(holder: &mut Value, version: String) {
    *field_mut(holder, &["kubernetes", "version"]) = version.into();
}

fn workers(spec: &mut Value) -> impl Iterator<Item = &mut Value> {
    spec.pointer_mut("/provider/workers").and_then(Value::as_array_mut).into_iter().flatten()
}

/// Updates the machine images of all pools, with the versions before the maintenance (spec 84 C.7).
fn update_images(
    input: &MaintenanceInput<'_>,
    spec: &mut Value,
    budget: &mut WorkBudget,
    remarks: &mut Vec<Remark>,
) -> Vec<(String, UpdateResult)> {
    let profile_name = profile_of_shoot(input.shoot).map(|(_, name)| name.name).unwrap_or_default();
    let images = ImageMaintenance {
        profile: input.profile,
        profile_name: &profile_name,
        control_plane: text(input.shoot, "/spec/kubernetes/version"),
        is_automatic: is_automatic(input.shoot, "machineImageVersion"),
        refusal: input.image_refusal,
        now: input.now,
    };
    let updated = workers(spec).filter_map(|worker| {
        let result = images.update(worker, budget, remarks)?;
        Some((text(worker, "/name").to_owned(), result))
    });
    updated.collect()
}

/// Updates the versions of the pools that have one of their own, after their control plane (spec 84 C.8).
fn update_pools(
    input: &MaintenanceInput<'_>,
    spec: &mut Value,
    is_automatic: bool,
    control_plane: &SemanticVersion,
    budget: &mut WorkBudget,
    remarks: &mut Vec<Remark>,
) -> Vec<(String, UpdateResult)> {
    let offers = &input.profile.kubernetes;
    let mut update = |worker: &mut Value| {
        let pool = text(worker, "/name").to_owned();
        let current = text(worker, "/kubernetes/version").to_owned();
        if current.is_empty() {
            return None;
        }
        if budget.take(input.profile.kubernetes_work).is_none() {
            remarks.push(Remark::new(RemarkLevel::Error, POOL_FAILED, &pool, TOO_MUCH_WORK));
            return None;
        }
        match kubernetes::update(offers, &current, is_automatic, Some(control_plane), input.now) {
            VersionUpdate::None => None,
            VersionUpdate::To(version, result) => {
                remarks.push(Remark::new(RemarkLevel::Info, KUBERNETES_UPDATED, &pool, &result.description));
                set_version(worker, version);
                Some((pool, result))
            }
            VersionUpdate::Failed(result) => {
                remarks.push(Remark::new(RemarkLevel::Error, POOL_FAILED, &pool, &result.description));
                Some((pool, result))
            }
        }
    };
    workers(spec).filter_map(&mut update).collect()
}

/// Remarks that versions of the CloudProfile are no targets because their texts, or their constraints on kubelets, cannot be
/// read (spec 84 C-10, C.7.1).
fn remark_unreadable(input: &MaintenanceInput<'_>, remarks: &mut Vec<Remark>) {
    let names: BTreeSet<_> =
        list(input.shoot, "/spec/provider/workers").map(|worker| text(worker, "/machine/image/name")).collect();
    // Several names may be the same image in another case.
    let images: BTreeMap<_, _> =
        names.into_iter().filter_map(|name| input.profile.image(name)).map(|image| (&*image.name, image)).collect();
    let versions = || images.values().copied().flat_map(|image| &image.versions);
    let offers = input.profile.kubernetes.iter().chain(versions().map(|version| &version.offer));
    let message = "Skipping versions of the CloudProfile that are no semantic versions";
    remarks.extend(skipped(message, offers.filter(|offer| offer.number().is_none())));
    let has_odd_constraint = |version: &&OfferedImageVersion| version.kubelet == KubeletConstraint::Unreadable;
    let message = "Skipping versions of machine images whose kubeletVersionConstraint cannot be read";
    remarks.extend(skipped(message, versions().filter(has_odd_constraint).map(|version| &version.offer)));
}

/// Returns the remark about versions that are no targets: how many, and the first. `None` if there are none.
fn skipped<'a>(message: &'static str, mut versions: impl Iterator<Item = &'a OfferedVersion>) -> Option<Remark> {
    let first = versions.next()?;
    Some(Remark::new(RemarkLevel::Warning, message, &(1 + versions.count()).to_string(), first.text()))
}

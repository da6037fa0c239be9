//! OperatingSystemConfig (spec 62 §7). `containerd.rs`: registries and plugins; `files.rs`: units and files.

mod containerd;
mod files;

use serde::Deserialize;

use self::{
    containerd::Containerd,
    files::{File, Unit, check_duplicates, check_files, check_units},
};
use super::rules::{ExtensionKind, Object, Rules, SPEC, STATUS, TYPE, immutable, immutable_text, one_of, required};
use crate::api::meta::field::{
    Errors, Loose, Opaque,
    shapes::{List, Part, Text},
};

const PROVISION: &str = "provision";
const PURPOSES: [&str; 2] = [PROVISION, "reconcile"];
const CGROUP_DRIVERS: [&str; 2] = ["cgroupfs", "systemd"];

pub(super) struct OperatingSystemConfig;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct OperatingSystemConfigSpec<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    class: Option<Text<'a>>,
    provider_config: Option<Opaque<'a>>,
    purpose: Text<'a>,
    cri_config: Option<Part<CriConfig<'a>>>,
    units: List<Part<Unit<'a>>>,
    files: List<Part<File<'a>>>,
    in_place_updates: Option<Loose<'a>>,
}

/// Fields that an extension adds. Their rules also apply when the spec changes; the status itself may change.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct OperatingSystemConfigStatus<'a> {
    #[serde(borrow)]
    extension_units: List<Part<Unit<'a>>>,
    extension_files: List<Part<File<'a>>>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CriConfig<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    cgroup_driver: Option<Text<'a>>,
    containerd: Option<Part<Containerd<'a>>>,
}

impl Rules for OperatingSystemConfig {
    type Spec<'a> = OperatingSystemConfigSpec<'a>;
    type Status<'a> = OperatingSystemConfigStatus<'a>;

    const KIND: ExtensionKind =
        ExtensionKind::new("OperatingSystemConfig", "operatingsystemconfigs", "operatingsystemconfig");
    const READS_STATUS: bool = true;

    fn check(object: &Object<'_, Self>, errors: &mut Errors) {
        let (spec, status) = (&object.spec, &object.status);
        check_purpose(&spec.purpose, errors);
        if let Some(config) = &spec.cri_config {
            check_container_runtime(config, &spec.purpose, errors);
        }
        let (files, more_files) = (SPEC.child("files"), STATUS.child("extensionFiles"));
        let all = || spec.files.iter().chain(status.extension_files.iter());
        let paths = all().map(|file| file.path()).collect();
        check_units(&SPEC.child("units"), &spec.units, &paths, errors);
        check_files(&files, &spec.files, errors);
        check_units(&STATUS.child("extensionUnits"), &status.extension_units, &paths, errors);
        check_files(&more_files, &status.extension_files, errors);
        check_duplicates([(&files, &spec.files), (&more_files, &status.extension_files)], errors);
    }

    fn check_update<'a>(new: &Object<'a, Self>, old: &Object<'a, Self>, errors: &mut Errors) {
        immutable_text(&TYPE, &new.spec.r#type, &old.spec.r#type, errors);
        immutable(&SPEC.child("purpose"), &new.spec.purpose, &old.spec.purpose, errors);
    }
}

/// Rules 1 and 2.
fn check_purpose(purpose: &Text<'_>, errors: &mut Errors) {
    let path = SPEC.child("purpose");
    required(&path, purpose, errors);
    if !purpose.is_empty() {
        one_of(&path, purpose, &PURPOSES, errors);
    }
}

/// Rules 3 to 13.
fn check_container_runtime(config: &CriConfig<'_>, purpose: &str, errors: &mut Errors) {
    let path = SPEC.child("criConfig");
    if let Some(driver) = &config.cgroup_driver {
        one_of(&path.child("cgroupDriver"), driver, &CGROUP_DRIVERS, errors);
    }
    let Some(containerd) = &config.containerd else { return };
    let path = path.child("containerd");
    if purpose == PROVISION {
        let detail = "containerd config is not allowed for OperatingSystemConfig with purpose 'provision'";
        return errors.forbidden(&path, detail);
    }
    containerd.check(&path, errors);
}

//! What a maintenance reads of a CloudProfile (spec 84 §1.3, "better" 11): read once per version of the object. Pure.

use std::collections::{BTreeMap, BTreeSet};

use cluster::object::{self, NamespacedName};
use serde_json::Value;

use super::{
    constraint::VersionConstraint,
    target::OfferedVersion,
    version::{NormalizedVersion, normalized},
};
use crate::actors::controller_manager::fields::{list, text};

/// A set of texts.
pub(super) type Names = BTreeSet<Box<str>>;
/// Values by the name of the capability.
pub(super) type Capabilities = BTreeMap<Box<str>, Names>;

/// What a maintenance reads of a CloudProfile, or of the profile that a NamespacedCloudProfile publishes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MaintenanceProfile {
    pub(super) kubernetes: Vec<OfferedVersion>,
    /// How much work it is to look at all versions of Kubernetes.
    pub(super) kubernetes_work: usize,
    images: Vec<OfferedImage>,
    /// The first image of each name in lower case (spec 84 C-15).
    images_by_name: BTreeMap<String, usize>,
    /// The capabilities of each machine type. The first one of a name counts.
    pub(super) machine_types: BTreeMap<Box<str>, Capabilities>,
    /// The definitions of capabilities: all values of each.
    pub(super) definitions: Capabilities,
    /// The definitions and their values: as much work is each look at a pool.
    pub(super) definition_work: usize,
}

/// A machine image of a CloudProfile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OfferedImage {
    pub(super) name: String,
    /// As in the profile; `major` if it is absent.
    pub(super) strategy: String,
    pub(super) versions: Vec<OfferedImageVersion>,
    /// How much work it is to look at all versions for a pool: the number of all that is compared.
    pub(super) work: usize,
}

/// A version of a machine image, and to which pools it fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OfferedImageVersion {
    pub(super) offer: OfferedVersion,
    /// `None`: those of the definition of the capability `architecture`.
    pub(super) architectures: Option<Names>,
    pub(super) flavors: Vec<Capabilities>,
    /// Container runtimes by the name of the interface.
    pub(super) interfaces: BTreeMap<Box<str>, Names>,
    pub(super) kubelet: KubeletConstraint,
    /// In-place updates lead to it from this version on. `None`: they do not.
    pub(super) in_place_from: Option<NormalizedVersion>,
    pub(super) supports_in_place: bool,
}

/// Which kubelets an image version allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KubeletConstraint {
    /// All.
    Absent,
    /// None: the constraint cannot be read.
    Unreadable,
    /// Those that satisfy it.
    Given(VersionConstraint),
}

/// The capability that names architectures.
pub(super) const ARCHITECTURE: &str = "architecture";

impl MaintenanceProfile {
    /// Reads the profile: `spec` of a CloudProfile, `status.cloudProfileSpec` of a NamespacedCloudProfile (spec 84 C-7).
    pub fn of(profile: &Value) -> Self {
        let mut definitions = Capabilities::new();
        for definition in list(profile, "/machineCapabilities") {
            let values = names(definition, "/values");
            definitions.entry(text(definition, "/name").into()).or_insert(values);
        }
        let images: Vec<_> =
            list(profile, "/machineImages").map(|image| OfferedImage::of(image, &definitions)).collect();
        let mut images_by_name = BTreeMap::new();
        for (at, image) in images.iter().enumerate() {
            images_by_name.entry(image.name.to_lowercase()).or_insert(at);
        }
        let mut machine_types = BTreeMap::new();
        for machine in list(profile, "/machineTypes") {
            let capabilities = || capabilities(machine.get("capabilities").unwrap_or(&Value::Null));
            machine_types.entry(text(machine, "/name").into()).or_insert_with(capabilities);
        }
        let kubernetes: Vec<_> = list(profile, "/kubernetes/versions").map(OfferedVersion::of).collect();
        let kubernetes_work = kubernetes.iter().map(OfferedVersion::work).sum();
        let definition_work = work_of(&definitions);
        Self { kubernetes, kubernetes_work, images, images_by_name, machine_types, definitions, definition_work }
    }

    /// Returns the image of a name in any case.
    pub(super) fn image(&self, name: &str) -> Option<&OfferedImage> {
        self.images_by_name.get(&name.to_lowercase()).and_then(|at| self.images.get(*at))
    }

    /// Returns the values of the capability `architecture`.
    pub(super) fn architectures(&self) -> Option<&Names> {
        self.definitions.get(ARCHITECTURE)
    }
}

impl OfferedImage {
    fn of(image: &Value, definitions: &Capabilities) -> Self {
        let strategy = Some(text(image, "/updateStrategy")).filter(|strategy| !strategy.is_empty());
        let versions: Vec<_> =
            list(image, "/versions").map(|version| OfferedImageVersion::of(version, definitions)).collect();
        Self {
            name: text(image, "/name").to_owned(),
            strategy: strategy.unwrap_or("major").to_owned(),
            work: versions.iter().map(OfferedImageVersion::work).sum(),
            versions,
        }
    }
}

impl OfferedImageVersion {
    fn of(version: &Value, definitions: &Capabilities) -> Self {
        let flavors: Vec<_> = list(version, "/capabilityFlavors").map(capabilities).collect();
        let of_flavors: Names =
            flavors.iter().filter_map(|flavor| flavor.get(ARCHITECTURE)).flatten().cloned().collect();
        let own = names(version, "/architectures");
        let architectures = match (of_flavors.is_empty(), own.is_empty()) {
            (false, _) => Some(of_flavors),
            (true, _) if flavors.is_empty() && definitions.get(ARCHITECTURE).is_some_and(|all| !all.is_empty()) => None,
            (true, true) if definitions.is_empty() => Some(Names::from(["amd64".into()])),
            (true, _) => Some(own),
        };
        let constraint = text(version, "/kubeletVersionConstraint");
        let kubelet = match (constraint, VersionConstraint::parse(constraint)) {
            ("", _) => KubeletConstraint::Absent,
            (_, None) => KubeletConstraint::Unreadable,
            (_, Some(constraint)) => KubeletConstraint::Given(constraint),
        };
        Self {
            offer: OfferedVersion::of(version),
            architectures,
            flavors,
            interfaces: interfaces(version),
            kubelet,
            in_place_from: normalized(text(version, "/inPlaceUpdates/minVersionForUpdate")),
            supports_in_place: version.pointer("/inPlaceUpdates/supported").and_then(Value::as_bool).unwrap_or(false),
        }
    }

    /// Returns how much work it is to look at it for a pool.
    fn work(&self) -> usize {
        let flavors: usize = self.flavors.iter().map(|flavor| 1 + work_of(flavor)).sum();
        let runtimes: usize = self.interfaces.values().map(Names::len).sum();
        let terms = match &self.kubelet {
            KubeletConstraint::Absent | KubeletConstraint::Unreadable => 0,
            KubeletConstraint::Given(constraint) => constraint.terms(),
        };
        self.offer.work() + flavors + runtimes + terms
    }
}

/// Returns the number of capabilities and their values.
fn work_of(capabilities: &Capabilities) -> usize {
    capabilities.values().map(|values| 1 + values.len()).sum()
}

/// The first interface of a name counts. Without any it is `containerd` (spec 84 §4).
fn interfaces(version: &Value) -> BTreeMap<Box<str>, Names> {
    let mut interfaces = BTreeMap::new();
    for interface in list(version, "/cri") {
        let runtimes = list(interface, "/containerRuntimes").map(|runtime| text(runtime, "/type").into());
        interfaces.entry(text(interface, "/name").into()).or_insert_with(|| runtimes.collect());
    }
    let is_absent = version.get("cri").is_none_or(Value::is_null);
    if is_absent {
        interfaces.insert("containerd".into(), Names::new());
    }
    interfaces
}

fn capabilities(value: &Value) -> Capabilities {
    let fields = value.as_object().into_iter().flatten();
    let values =
        |values: &Value| values.as_array().into_iter().flatten().filter_map(Value::as_str).map(Box::from).collect();
    fields.map(|(name, list)| (name.as_str().into(), values(list))).collect()
}

fn names(value: &Value, pointer: &str) -> Names {
    list(value, pointer).filter_map(Value::as_str).map(Box::from).collect()
}

/// The kind of a CloudProfile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileKind {
    /// CloudProfile.
    Cluster,
    /// NamespacedCloudProfile.
    Namespaced,
}

/// The CloudProfile of a Shoot cannot be determined (spec 84 C-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("could not determine cloudprofile from shoot")]
pub struct UnknownProfile;

/// Returns the CloudProfile to which a Shoot refers. `None`: it cannot be determined (spec 84 C-6, C-7).
pub fn profile_of_shoot(shoot: &Value) -> Option<(ProfileKind, NamespacedName)> {
    let of = |kind: &str, name: &str| match kind {
        "" | "CloudProfile" => Some((ProfileKind::Cluster, NamespacedName::new("", name))),
        "NamespacedCloudProfile" => {
            Some((ProfileKind::Namespaced, NamespacedName::new(object::namespace(shoot), name)))
        }
        _ => None,
    };
    let newer = shoot.pointer("/spec/cloudProfile").filter(|reference| !reference.is_null());
    let found = match newer {
        Some(reference) => of(text(reference, "/kind"), text(reference, "/name")),
        None => of("", text(shoot, "/spec/cloudProfileName")),
    };
    found.filter(|(_, name)| !name.name.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// spec 84 C-6, C-7
    #[test]
    fn profile_of_a_shoot_is_the_newer_reference_or_the_older() {
        let named = |kind, namespace: &str, name: &str| Some((kind, NamespacedName::new(namespace, name)));
        for (spec, expected) in [
            (json!({ "cloudProfile": { "name": "a" }, "cloudProfileName": "b" }), named(ProfileKind::Cluster, "", "a")),
            (json!({ "cloudProfile": { "name": "a", "kind": "" } }), named(ProfileKind::Cluster, "", "a")),
            (json!({ "cloudProfile": { "name": "a", "kind": "CloudProfile" } }), named(ProfileKind::Cluster, "", "a")),
            (
                json!({ "cloudProfile": { "name": "a", "kind": "NamespacedCloudProfile" } }),
                named(ProfileKind::Namespaced, "ns", "a"),
            ),
            (json!({ "cloudProfileName": "b" }), named(ProfileKind::Cluster, "", "b")),
            (json!({ "cloudProfile": null, "cloudProfileName": "b" }), named(ProfileKind::Cluster, "", "b")),
            (json!({ "cloudProfile": { "name": "a", "kind": "Other" }, "cloudProfileName": "b" }), None),
            (json!({ "cloudProfile": {}, "cloudProfileName": "b" }), None),
            (json!({ "cloudProfileName": "" }), None),
            (json!(null), None),
        ] {
            let shoot = json!({ "metadata": { "namespace": "ns" }, "spec": spec });
            assert_eq!(profile_of_shoot(&shoot), expected, "{shoot}");
        }
    }

    #[test]
    fn profile_of_any_shape_is_read() {
        for odd in [
            json!(null),
            json!([]),
            json!({ "kubernetes": [], "machineImages": {}, "machineTypes": 5, "machineCapabilities": "x" }),
            json!({ "machineImages": [null, 5, { "versions": [null, { "cri": 5, "capabilityFlavors": [[], 5] }] }],
                "machineTypes": [null, { "capabilities": [] }], "machineCapabilities": [null, { "values": {} }] }),
        ] {
            let profile = MaintenanceProfile::of(&odd);
            assert!(profile.kubernetes.is_empty(), "{odd}");
        }
    }
}

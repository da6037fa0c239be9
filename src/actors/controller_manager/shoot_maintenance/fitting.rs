//! Which versions of a machine image fit a worker pool (spec 84 C.7, F1 to F5). Pure.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    profile::{Capabilities, KubeletConstraint, MaintenanceProfile, Names, OfferedImageVersion},
    version::{NormalizedVersion, SemanticVersion, normalized},
};
use crate::actors::controller_manager::fields::{list, text};

/// What counts of a worker pool.
pub(super) struct PoolNeeds<'a> {
    architecture: &'a str,
    interface: &'a str,
    /// Each once: a Shoot may repeat one as often as it likes.
    runtimes: BTreeSet<&'a str>,
    kubelet: Option<SemanticVersion>,
    /// The present version of the image.
    current: &'a str,
    /// `None`: the pool is rolled. Otherwise the present version without its pre-release, if it can be read.
    in_place: Option<Option<NormalizedVersion>>,
    machine: MachineNeeds<'a>,
}

/// What flavors of an image must have for a machine type (F2).
struct MachineNeeds<'a> {
    machine: &'a Capabilities,
    definitions: &'a Capabilities,
    /// The definitions whose values the machine type excludes: a flavor must name a value of its own.
    excluded: Vec<&'a str>,
}

impl<'a> PoolNeeds<'a> {
    /// Reads a pool. `machine` has the capabilities of its machine type, `kubelet` is its version before the maintenance.
    pub(super) fn of(
        worker: &'a Value,
        profile: &'a MaintenanceProfile,
        machine: &'a Capabilities,
        kubelet: &str,
    ) -> Self {
        let current = text(worker, "/machine/image/version");
        let is_in_place = matches!(text(worker, "/updateStrategy"), "AutoInPlaceUpdate" | "ManualInPlaceUpdate");
        Self {
            architecture: or(text(worker, "/machine/architecture"), "amd64"),
            interface: or(text(worker, "/cri/name"), "containerd"),
            runtimes: list(worker, "/cri/containerRuntimes").map(|runtime| text(runtime, "/type")).collect(),
            kubelet: SemanticVersion::parse(kubelet),
            current,
            in_place: is_in_place.then(|| normalized(current)),
            machine: MachineNeeds::of(machine, &profile.definitions),
        }
    }

    /// Returns true if a version of the image passes all filters.
    pub(super) fn are_met_by(&self, version: &OfferedImageVersion, architectures: Option<&Names>) -> bool {
        let has_architecture = || {
            let own = version.architectures.as_ref().or(architectures);
            own.is_some_and(|own| own.contains(self.architecture))
        };
        let is_compatible =
            || version.flavors.is_empty() || version.flavors.iter().any(|flavor| self.machine.are_met_by(flavor));
        let has_runtimes = || {
            let runtimes = version.interfaces.get(self.interface);
            runtimes.is_some_and(|offered| self.runtimes.iter().all(|runtime| offered.contains(*runtime)))
        };
        let allows_kubelet = || match &version.kubelet {
            KubeletConstraint::Absent => true,
            KubeletConstraint::Unreadable => false,
            KubeletConstraint::Given(constraint) => {
                self.kubelet.as_ref().is_some_and(|kubelet| constraint.is_met_by(kubelet))
            }
        };
        has_architecture() && is_compatible() && has_runtimes() && allows_kubelet() && self.can_be_reached(version)
    }

    /// F5: in-place updates lead only to versions that allow them from the present one.
    fn can_be_reached(&self, version: &OfferedImageVersion) -> bool {
        let Some(current) = self.in_place else { return true };
        let is_current = version.offer.text() == self.current;
        let is_allowed = || match (version.in_place_from, current) {
            (Some(from), Some(current)) => from <= current,
            (None, _) | (_, None) => false,
        };
        version.supports_in_place && (is_current || is_allowed())
    }
}

impl<'a> MachineNeeds<'a> {
    fn of(machine: &'a Capabilities, definitions: &'a Capabilities) -> Self {
        let excluded = definitions.iter().filter(|(name, values)| !meet(machine.get(*name).unwrap_or(values), values));
        Self { machine, definitions, excluded: excluded.map(|(name, _)| &**name).collect() }
    }

    /// Returns true if, for every definition, the values of the flavor and of the machine type have one in common.
    /// Absent values stand for all of the definition. The work grows with the flavor, not with the definitions.
    fn are_met_by(&self, flavor: &Capabilities) -> bool {
        let meets = |name: &str, values: &Names| {
            let defined = self.definitions.get(name);
            defined.is_none_or(|defined| meet(self.machine.get(name).unwrap_or(defined), values))
        };
        self.definitions.is_empty()
            || self.excluded.len() <= flavor.len()
                && self.excluded.iter().all(|name| flavor.contains_key(*name))
                && flavor.iter().all(|(name, values)| meets(name, values))
    }
}

/// Returns true if two sets have an entry in common.
fn meet(one: &Names, other: &Names) -> bool {
    let (few, many) = if one.len() < other.len() { (one, other) } else { (other, one) };
    few.iter().any(|name| many.contains(name))
}

fn or<'a>(text: &'a str, default: &'a str) -> &'a str {
    if text.is_empty() { default } else { text }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the versions of image `os` that fit a pool with kubelet 1.26.0.
    fn fitting(profile: &Value, worker: &Value) -> Vec<String> {
        let profile = MaintenanceProfile::of(profile);
        let machine = profile.machine_types.get("m").cloned().unwrap_or_default();
        let needs = PoolNeeds::of(worker, &profile, &machine, "1.26.0");
        let image = profile.image("OS").unwrap();
        let fits = |version: &&OfferedImageVersion| needs.are_met_by(version, profile.architectures());
        image.versions.iter().filter(fits).map(|version| version.offer.text().to_owned()).collect()
    }

    fn worker(more: Value) -> Value {
        let mut worker =
            json!({ "name": "w", "machine": { "type": "m", "image": { "name": "os", "version": "1.0.0" } } });
        for (field, value) in more.as_object().unwrap() {
            worker[field] = value.clone();
        }
        worker
    }

    fn profile(versions: Value) -> Value {
        json!({ "machineImages": [{ "name": "os", "versions": versions }], "machineTypes": [{ "name": "m" }] })
    }

    /// spec 84 C.7 F1, scenario 61; §4
    #[test]
    fn image_fits_by_architecture() {
        let profile = profile(json!([{ "version": "1", "architectures": ["arm64"] }, { "version": "2" },
            { "version": "3", "architectures": ["arm64", "amd64"] }, { "version": "4", "architectures": [] }]));
        let arm = json!({ "architecture": "arm64", "image": { "version": "1.0.0" } });

        assert_eq!(fitting(&profile, &worker(json!({}))), ["2", "3", "4"]);
        assert_eq!(fitting(&profile, &worker(json!({ "machine": arm }))), ["1", "3"]);
    }

    /// spec 84 C.7 F1, F2, scenario 66
    #[test]
    fn image_fits_by_capabilities() {
        let capabilities = |machine: Value, versions: Value| {
            json!({ "machineImages": [{ "name": "os", "versions": versions }],
                "machineTypes": [{ "name": "m", "capabilities": machine }],
                "machineCapabilities": [{ "name": "architecture", "values": ["amd64", "arm64"] },
                    { "name": "hyper", "values": ["one", "two"] }, { "name": "none", "values": ["x"] }] })
        };
        let versions = json!([
            { "version": "1", "capabilityFlavors": [{ "architecture": ["amd64"], "hyper": ["two"] }, { "architecture": ["arm64"], "hyper": ["one"] }] },
            { "version": "2", "capabilityFlavors": [{ "architecture": ["arm64"], "hyper": ["one"] }, { "architecture": ["amd64"] }] },
            { "version": "3" },
            { "version": "4", "capabilityFlavors": [{ "hyper": ["one"] }], "architectures": ["amd64"] },
            { "version": "5", "capabilityFlavors": [{ "architecture": ["amd64"], "hyper": ["three"], "unknown": [] }] },
            { "version": "6", "capabilityFlavors": [{ "hyper": ["one"] }] },
        ]);
        for (machine, expected) in [
            (json!({ "architecture": ["amd64"], "hyper": ["one"] }), ["2", "3", "4"].as_slice()),
            (json!({}), &["1", "2", "3", "4"]),
            (json!({ "hyper": ["three"] }), &["3", "5"]),
            (json!({ "none": ["y"] }), &["3"]),
        ] {
            assert_eq!(
                fitting(&capabilities(machine.clone(), versions.clone()), &worker(json!({}))),
                expected,
                "{machine}"
            );
        }
    }

    /// spec 84 C.7 F3, scenario 62; §4
    #[test]
    fn image_fits_by_container_runtimes() {
        let profile = profile(json!([{ "version": "1", "cri": [{ "name": "other" }] }, { "version": "2" },
            { "version": "3", "cri": [{ "name": "containerd", "containerRuntimes": [{ "type": "gvisor" }, { "type": "kata" }] }] },
            { "version": "4", "cri": [] }]));
        let gvisor = json!({ "cri": { "name": "containerd", "containerRuntimes": [{ "type": "gvisor" }] } });

        assert_eq!(fitting(&profile, &worker(json!({}))), ["2", "3"]);
        assert_eq!(fitting(&profile, &worker(gvisor)), ["3"]);
        assert_eq!(fitting(&profile, &worker(json!({ "cri": { "name": "other" } }))), ["1"]);
    }

    /// spec 84 C.7 F4, scenario 63
    #[test]
    fn image_fits_by_kubelet() {
        let profile = profile(json!([{ "version": "1", "kubeletVersionConstraint": "< 1.26" }, { "version": "2" },
            { "version": "3", "kubeletVersionConstraint": ">= 1.26" }, { "version": "4", "kubeletVersionConstraint": "odd" }]));

        assert_eq!(fitting(&profile, &worker(json!({}))), ["2", "3"]);
    }

    /// spec 84 C.7 F5, scenario 65
    #[test]
    fn image_fits_by_in_place_updates() {
        let in_place = |version: &str, updates: Value| json!({ "version": version, "inPlaceUpdates": updates });
        let profile = profile(json!([
            in_place("1.0.0", json!({ "supported": true })),
            in_place("1.1.0", json!({ "supported": true, "minVersionForUpdate": "1.0.0" })),
            in_place("1.2.0", json!({ "supported": true, "minVersionForUpdate": "1.1.0" })),
            in_place("1.3.0", json!({ "supported": true })),
            in_place("1.4.0", json!({ "minVersionForUpdate": "1.0.0" })),
            { "version": "1.5.0" },
        ]));

        for strategy in ["AutoInPlaceUpdate", "ManualInPlaceUpdate"] {
            assert_eq!(fitting(&profile, &worker(json!({ "updateStrategy": strategy }))), ["1.0.0", "1.1.0"]);
        }
        assert_eq!(fitting(&profile, &worker(json!({ "updateStrategy": "AutoRollingUpdate" }))).len(), 6);
    }
}

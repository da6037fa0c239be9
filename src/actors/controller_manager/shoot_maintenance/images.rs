//! The maintenance of the machine images of worker pools (spec 84 C.7). Pure.

use cluster::object::field_mut;
use jiff::Timestamp;
use kit::quote::{cut, quoted};
use serde_json::{Value, json};

use super::{
    fitting::PoolNeeds,
    profile::{MaintenanceProfile, OfferedImage, OfferedImageVersion},
    target::{OfferedVersion, Stage, UpdateStrategy, target},
    update::{Remark, RemarkLevel, TOO_MUCH_WORK, UpdateNeed, UpdateResult, WorkBudget},
};
use crate::actors::controller_manager::fields::text;

const FAILED: &str = "Failed to maintain Shoot machine images";

/// What all pools of a Shoot have in common.
pub(super) struct ImageMaintenance<'a> {
    pub(super) profile: &'a MaintenanceProfile,
    /// Name of the CloudProfile, for texts.
    pub(super) profile_name: &'a str,
    /// Version of the control plane before the maintenance.
    pub(super) control_plane: &'a str,
    /// `spec.maintenance.autoUpdate.machineImageVersion`
    pub(super) is_automatic: bool,
    /// Why a new image must not be written: the API server refused the update with it (spec 84 "better" 7).
    pub(super) refusal: Option<&'a str>,
    pub(super) now: Timestamp,
}

impl ImageMaintenance<'_> {
    /// Updates the image of a pool. Returns `None` if there is nothing to do (spec 84 C.7).
    pub(super) fn update(
        &self,
        worker: &mut Value,
        budget: &mut WorkBudget,
        remarks: &mut Vec<Remark>,
    ) -> Option<UpdateResult> {
        let pool = text(worker, "/name").to_owned();
        let current = text(worker, "/machine/image/version").to_owned();
        if current.is_empty() {
            let message = "Skipping worker pool because it has no machine image version";
            remarks.push(Remark::new(RemarkLevel::Debug, message, &pool, ""));
            return None;
        }
        let decided = self.decide(worker, &current, budget);
        let (image, need, found) = match decided {
            Ok(decision) => decision?,
            Err(error) => {
                remarks.push(Remark::new(RemarkLevel::Error, FAILED, &pool, &error));
                return None;
            }
        };
        let quoted_image = quoted(&image.name);
        let failed = |cause: &str| UpdateResult {
            description: format!("failed to update machine image {quoted_image}: {cause}"),
            reason: need.reason.clone(),
            is_successful: false,
        };
        match (found, self.refusal) {
            (Ok(None), _) => None,
            (Ok(Some(_)), Some(refusal)) => Some(failed(&cut(refusal))),
            (Ok(Some(new)), None) => {
                let change = format!("{quoted_image} from {} to {}", quoted(&current), quoted(&new));
                remarks.push(Remark::new(RemarkLevel::Info, "MachineImage will be updated", &pool, &change));
                *field_mut(worker, &["machine", "image", "version"]) = json!(new);
                let description = format!("Updated machine image {change}");
                Some(UpdateResult { description, reason: need.reason.clone(), is_successful: true })
            }
            (Err(error), _) => {
                remarks.push(Remark::new(RemarkLevel::Error, "Maintenance of machine image failed", &pool, &error));
                Some(failed(&error))
            }
        }
    }

    /// Returns the image, why it is updated, and to what. `None`: it is not updated. Fails if the CloudProfile does not
    /// know the machine type or the image (spec 84 C-14 to C-16).
    #[allow(clippy::type_complexity, reason = "it has one caller")]
    fn decide(
        &self,
        worker: &Value,
        current: &str,
        budget: &mut WorkBudget,
    ) -> Result<Option<(&OfferedImage, UpdateNeed, Result<Option<String>, String>)>, String> {
        let machine_type = text(worker, "/machine/type");
        let machine = self.profile.machine_types.get(machine_type).ok_or_else(|| {
            let pool = quoted(text(worker, "/name"));
            format!("machine type {} of worker {pool} does not exist in cloudprofile", quoted(machine_type))
        })?;
        let name = text(worker, "/machine/image/name");
        let image = self.profile.image(name).ok_or_else(|| {
            format!(
                "failure while determining the default machine image in the CloudProfile: no machineImage with name {} \
                 (specified in shoot) could be found in the cloudProfile {}",
                quoted(name),
                quoted(self.profile_name)
            )
        })?;
        budget.take(image.work + self.profile.definition_work).ok_or_else(|| TOO_MUCH_WORK.to_owned())?;

        let own = text(worker, "/kubernetes/version");
        let kubelet = if own.is_empty() { self.control_plane } else { own };
        let needs = PoolNeeds::of(worker, self.profile, machine, kubelet);
        let fits = |version: &&OfferedImageVersion| needs.are_met_by(version, self.profile.architectures());
        let fitting: Vec<_> = image.versions.iter().filter(fits).map(|version| &version.offer).collect();

        let Some(need) = self.need(&fitting, name, current, image) else { return Ok(None) };
        let strategy = match image.strategy.as_str() {
            "patch" => UpdateStrategy::Patch,
            "minor" => UpdateStrategy::Minor,
            _ => UpdateStrategy::Major,
        };
        let found = target(fitting.into_iter(), current, strategy, need.is_forced, self.now);
        let found = found.map(|new| new.map(str::to_owned)).map_err(|error| {
            format!(
                "failed to determine the target version for maintenance of machine image {} with strategy {}: {}",
                quoted(&image.name),
                quoted(&image.strategy),
                error.text(current, &image.name)
            )
        });
        Ok(Some((image, need, found)))
    }

    /// Returns why an image is updated; `None` if it is not (spec 84 C.7).
    fn need(&self, fitting: &[&OfferedVersion], name: &str, current: &str, image: &OfferedImage) -> Option<UpdateNeed> {
        let known = fitting.iter().find(|version| version.text() == current && image.name == name);
        let by_strategy = |reason: &str| format!("{reason} (image update strategy: {})", image.strategy);
        let (is_forced, reason) = match known {
            None => (true, "Version does not exist in CloudProfile".to_owned()),
            Some(version) if version.stage(self.now) == Stage::Expired => {
                (true, by_strategy("Machine image version expired - force update required"))
            }
            Some(_) if self.is_automatic => {
                (false, by_strategy("Automatic update of the machine image version is configured"))
            }
            Some(_) => return None,
        };
        Some(UpdateNeed { is_forced, reason })
    }
}

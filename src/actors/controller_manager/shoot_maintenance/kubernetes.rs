//! The maintenance of Kubernetes versions, of the control plane and of worker pools (spec 84 C.8). Pure.

use jiff::Timestamp;
use kit::quote::quoted;

use super::{
    target::{OfferedVersion, Stage, UpdateStrategy, target},
    update::{UpdateNeed, UpdateResult},
    version::{SemanticVersion, normalized},
};

/// What becomes of a Kubernetes version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum VersionUpdate {
    /// There is nothing to do.
    None,
    /// The version that will be written.
    To(String, UpdateResult),
    /// There is no target.
    Failed(UpdateResult),
}

/// Decides on a Kubernetes version. A pool must not get beyond `limit`, the version of its control plane after this
/// maintenance (spec 84 C.8). A limit that is not above the present version leaves nothing to do.
pub(super) fn update(
    offers: &[OfferedVersion],
    current: &str,
    is_automatic: bool,
    limit: Option<&SemanticVersion>,
    now: Timestamp,
) -> VersionUpdate {
    let Some(need) = need(offers, current, is_automatic, now) else { return VersionUpdate::None };
    let new = match target(offers.iter(), current, UpdateStrategy::Kubernetes, need.is_forced, now) {
        Ok(Some(new)) => new,
        Ok(None) => return VersionUpdate::None,
        Err(error) => {
            let cause = error.text(current, "");
            let description = format!("could not determine higher suitable version than {}: {cause}", quoted(current));
            return VersionUpdate::Failed(UpdateResult { description, reason: need.reason, is_successful: false });
        }
    };
    let new = match limit {
        None => new.to_owned(),
        Some(limit) => {
            let bounded = SemanticVersion::parse(new).map_or_else(|| limit.clone(), |new| new.min(limit.clone()));
            if SemanticVersion::parse(current).is_some_and(|current| bounded <= current) {
                return VersionUpdate::None;
            }
            bounded.to_string()
        }
    };
    let description = format!("Updated Kubernetes version from {} to {}", quoted(current), quoted(&new));
    VersionUpdate::To(new, UpdateResult { description, reason: need.reason, is_successful: true })
}

/// Returns why a version is updated; `None` if it is not. The first entry of its numbers counts.
fn need(offers: &[OfferedVersion], current: &str, is_automatic: bool, now: Timestamp) -> Option<UpdateNeed> {
    let numbers = normalized(current);
    let is_current = |offer: &&OfferedVersion| numbers.is_some() && normalized(offer.text()) == numbers;
    let (is_forced, reason) = match offers.iter().find(is_current) {
        None => (true, "Version does not exist in CloudProfile"),
        Some(offer) if offer.stage(now) == Stage::Expired => {
            (true, "Kubernetes version expired - force update required")
        }
        Some(_) if is_automatic => (false, "Automatic update of Kubernetes version configured"),
        Some(_) => return None,
    };
    Some(UpdateNeed { is_forced, reason: reason.to_owned() })
}

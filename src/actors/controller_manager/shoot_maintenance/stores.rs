//! What is cached of Shoots and CloudProfiles.

use std::sync::Arc;

use cluster::{CachedFields, Context, Predicate, Watch, WatchOptions, object, object::NamespacedName};
use jiff::Timestamp;
use kit::{Failure, SyncRequirement, hash_of, quote::cut};
use serde_json::Value;

use super::{
    operation::asks_for_maintenance,
    plan::UnreadableVersion,
    profile::{MaintenanceProfile, ProfileKind, UnknownProfile, profile_of_shoot},
    version::SemanticVersion,
    window::MaintenanceWindow,
};
use crate::{
    actors::controller_manager::{context::GardenContext, fields::text},
    api::kinds,
};

/// What decides when a Shoot is maintained (spec 84 C.1, C.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MaintenanceTrigger {
    /// Somebody asks for it now.
    pub(super) is_asked: bool,
    pub(super) is_deleting: bool,
    pub(super) window: MaintenanceWindow,
    /// Hash of the window as it is written.
    written_window: u64,
    /// Its CloudProfile; `None`: it cannot be determined.
    profile: Option<(ProfileKind, NamespacedName)>,
    has_version: bool,
}

impl MaintenanceTrigger {
    pub(super) fn of(shoot: &Value) -> Self {
        let written = shoot.pointer("/spec/maintenance/timeWindow").unwrap_or(&Value::Null);
        Self {
            is_asked: asks_for_maintenance(shoot),
            is_deleting: object::deletion_timestamp(shoot).is_some(),
            window: MaintenanceWindow::of(shoot),
            written_window: hash_of(&written.to_string()),
            profile: profile_of_shoot(shoot),
            has_version: SemanticVersion::parse(text(shoot, "/spec/kubernetes/version")).is_some(),
        }
    }

    /// Returns true if the Shoot is maintained at a time (spec 84 C.3).
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.is_asked || self.window.contains(now)
    }

    /// Returns true if the Shoot must be looked at when it changes into `new` (spec 84 C.1).
    fn concerns_maintenance_unlike(&self, new: &Self) -> bool {
        (new.is_asked && !self.is_asked) || self.written_window != new.written_window
    }
}

type ProfileWatch = Watch<CachedFields<Arc<MaintenanceProfile>>>;

/// The caches. A CloudProfile is read once per version (spec 84 "better" 11).
pub(super) struct Stores {
    pub(super) shoots: Watch<CachedFields<MaintenanceTrigger>>,
    profiles: ProfileWatch,
    namespaced_profiles: ProfileWatch,
}

impl Stores {
    pub(super) fn open(ctx: &GardenContext) -> Self {
        let read = |profile: Option<&Value>| Arc::new(MaintenanceProfile::of(profile.unwrap_or(&Value::Null)));
        let watches = &ctx.garden.watches;
        let namespaced = move |profile: &Value| read(profile.pointer("/status/cloudProfileSpec"));
        Self {
            shoots: watches.open(WatchOptions::fields(kinds::SHOOT, MaintenanceTrigger::of)),
            profiles: watches
                .open(WatchOptions::fields(kinds::CLOUD_PROFILE, move |profile| read(profile.get("spec")))),
            namespaced_profiles: watches.open(WatchOptions::fields(kinds::NAMESPACED_CLOUD_PROFILE, namespaced)),
        }
    }

    /// Selects the changes of Shoots after which one is looked at (spec 84 C.1).
    pub(super) fn changes() -> Predicate<CachedFields<MaintenanceTrigger>> {
        Predicate::differing(|old: &CachedFields<MaintenanceTrigger>, new| {
            old.fields.concerns_maintenance_unlike(&new.fields)
        })
    }

    pub(super) fn requirements(&self) -> [SyncRequirement; 3] {
        [self.shoots.sync_requirement(), self.profiles.sync_requirement(), self.namespaced_profiles.sync_requirement()]
    }

    /// Returns the versions of a Shoot's CloudProfile. Fails if it cannot be determined or does not exist, or if the
    /// version of the Shoot cannot be read (spec 84 C.4, C.5).
    pub(super) async fn profile_of(
        &self,
        context: &Context,
        shoot: &MaintenanceTrigger,
    ) -> Result<Arc<MaintenanceProfile>, Failure> {
        let Some((kind, name)) = &shoot.profile else {
            return Err(Failure::new(UnknownProfile.to_string()));
        };
        let watch = match kind {
            ProfileKind::Cluster => &self.profiles,
            ProfileKind::Namespaced => &self.namespaced_profiles,
        };
        let known = match watch.known(name) {
            Some(known) => known,
            None => read_live(watch, context, name).await?,
        };
        let profile = known.map(|profile| profile.fields).ok_or_else(|| {
            let resource = watch.resource();
            Failure::new(format!("{}.{} \"{}\" not found", resource.plural, resource.group, cut(&name.name)))
        })?;
        if shoot.has_version { Ok(profile) } else { Err(Failure::new(UnreadableVersion.to_string())) }
    }
}

async fn read_live(
    watch: &ProfileWatch,
    context: &Context,
    name: &NamespacedName,
) -> Result<Option<CachedFields<Arc<MaintenanceProfile>>>, Failure> {
    let live = watch.read_live(context, name).await;
    live.map_err(|error| Failure::new(format!("could not get {} {name}: {error}", watch.resource().kind)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// spec 84 C.1
    #[test]
    fn shoot_is_looked_at_when_it_asks_or_its_window_moves() {
        let of = |operation: &str, begin: Value| {
            MaintenanceTrigger::of(&json!({ "metadata": { "annotations": { "gardener.cloud/operation": operation } },
                "spec": { "maintenance": { "timeWindow": { "begin": begin, "end": "230000+0000" } } } }))
        };
        let evening = || json!("220000+0000");
        for (old, new, expected) in [
            (of("", evening()), of("maintain", evening()), true),
            (of("foo", evening()), of("foo; maintain ", evening()), true),
            (of("maintain", evening()), of("maintain;foo", evening()), false),
            (of("maintain", evening()), of("", evening()), false),
            (of("", evening()), of("reconcile", evening()), false),
            (of("", evening()), of("", json!("210000+0000")), true),
            (of("", json!("odd")), of("", json!("odder")), true),
            (of("", json!("230000+0100")), of("", evening()), true),
            (MaintenanceTrigger::of(&json!(null)), MaintenanceTrigger::of(&json!({ "spec": [] })), false),
        ] {
            assert_eq!(old.concerns_maintenance_unlike(&new), expected, "{old:?} {new:?}");
        }
    }
}

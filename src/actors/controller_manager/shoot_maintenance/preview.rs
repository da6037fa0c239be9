//! What the next maintenance of a Shoot would do, from objects in files. Pure.

use cluster::{
    difference,
    object::{self, NamespacedName},
};
use jiff::Timestamp;
use serde_json::Value;

use super::{
    binding::{check_existing, first_matching, migrated, migrated_name},
    changes::BindingMigration,
    operation::asks_for_maintenance,
    plan::{MaintenanceInput, MaintenancePlan, MaintenanceSettings, UnreadableVersion, plan},
    profile::{MaintenanceProfile, ProfileKind, UnknownProfile, profile_of_shoot},
    window::MaintenanceWindow,
};
use crate::{actors::controller_manager::fields::text, api::kinds};

/// What a maintenance would do.
#[derive(Debug, Clone, PartialEq)]
pub struct MaintenancePreview {
    /// The plan.
    pub plan: MaintenancePlan,
    /// The merge patch that has the effect of the plan on the Shoot; `None`: nothing changes.
    pub patch: Option<Value>,
    /// The CredentialsBinding that would be created (spec 84 C.10.1).
    pub created: Option<Value>,
    /// The effective window.
    pub window: MaintenanceWindow,
    /// It takes place at this time: in the window, or because somebody asks for it. Never for a Shoot in deletion.
    pub is_due: bool,
    /// What could not be seen, as sentences.
    pub unseen: Vec<String>,
}

/// Why the maintenance of a Shoot cannot be computed: the controller fails, too.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PreviewError {
    /// The Shoot does not say which CloudProfile it has.
    #[error(transparent)]
    Profile(#[from] UnknownProfile),
    /// The Shoot has no Kubernetes version.
    #[error(transparent)]
    Version(#[from] UnreadableVersion),
}

/// Computes the maintenance of a Shoot at a time. `given` is a CloudProfile or NamespacedCloudProfile, which stands for that of
/// the Shoot; `objects` are the bindings that are known. Fails as the controller does (spec 84 C.4, C-6).
pub fn preview(
    shoot: &Value,
    given: &Value,
    objects: &[Value],
    settings: MaintenanceSettings,
    now: Timestamp,
) -> Result<MaintenancePreview, PreviewError> {
    let expected = profile_of_shoot(shoot).ok_or(UnknownProfile)?;
    let profile = &profile_in(given);
    let input = MaintenanceInput { shoot, profile, settings, now, migration: None, image_refusal: None };
    let mut computed = plan(&input)?;
    let mut unseen = vec!["whether the API server accepts the new Shoot".to_owned()];
    unseen.extend(profile_unseen(&expected, given));
    let mut created = None;
    if let Some(secret_binding) = &computed.secret_binding {
        let name = NamespacedName::new(object::namespace(shoot), secret_binding.as_str());
        match objects.iter().find(|object| is(object, &kinds::SECRET_BINDING.kind, &name)) {
            None => unseen.push(format!("SecretBinding {name}: what takes its place is not known")),
            Some(old) => {
                let (migration, new) = migrate(shoot, old, objects);
                created = new;
                unseen.push(format!("CredentialsBindings of namespace {} that are not given", name.namespace));
                computed = plan(&MaintenanceInput { migration: Some(&migration), ..input })?;
            }
        }
    }
    let window = MaintenanceWindow::of(shoot);
    let is_deleting = object::deletion_timestamp(shoot).is_some();
    Ok(MaintenancePreview {
        patch: difference(shoot, &computed.applied(shoot)),
        plan: computed,
        created,
        window,
        is_due: !is_deleting && (window.contains(now) || asks_for_maintenance(shoot)),
        unseen,
    })
}

/// Reads a CloudProfile or NamespacedCloudProfile (spec 84 C-7).
fn profile_in(given: &Value) -> MaintenanceProfile {
    let is_namespaced = *text(given, "/kind") == *kinds::NAMESPACED_CLOUD_PROFILE.kind;
    let content = if is_namespaced { "/status/cloudProfileSpec" } else { "/spec" };
    MaintenanceProfile::of(given.pointer(content).unwrap_or(&Value::Null))
}

/// Returns the sentence about a CloudProfile that is not that of the Shoot.
fn profile_unseen((kind, name): &(ProfileKind, NamespacedName), given: &Value) -> Option<String> {
    let expected = match kind {
        ProfileKind::Cluster => kinds::CLOUD_PROFILE.kind,
        ProfileKind::Namespaced => kinds::NAMESPACED_CLOUD_PROFILE.kind,
    };
    let (given_kind, given_name) = (text(given, "/kind"), NamespacedName::of(given));
    let is_it = *given_kind == *expected && given_name.name == name.name;
    (!is_it).then(|| format!("{expected} {name} of the Shoot: {given_kind} {given_name} was given in its place"))
}

/// The steps of the real replacement on the given objects. Also returns what would be created.
fn migrate(shoot: &Value, old: &Value, objects: &[Value]) -> (BindingMigration, Option<Value>) {
    let new_name = migrated_name(&NamespacedName::of(old));
    let kind = &*kinds::CREDENTIALS_BINDING.kind;
    if let Some(existing) = objects.iter().find(|object| is(object, kind, &new_name)) {
        return (check_existing(old, existing).map(|()| new_name.name), None);
    }
    let of_namespace =
        |object: &&Value| text(object, "/kind") == kind && object::namespace(object) == new_name.namespace;
    if let Some(found) = first_matching(old, objects.iter().filter(of_namespace)) {
        return (Ok(found.to_owned()), None);
    }
    (Ok(new_name.name), Some(migrated(old, text(shoot, "/spec/provider/type"))))
}

fn is(object: &Value, kind: &str, name: &NamespacedName) -> bool {
    text(object, "/kind") == kind && NamespacedName::of(object) == *name
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::actors::controller_manager::shoot_maintenance::operation::RestartSettings;

    const SETTINGS: MaintenanceSettings = MaintenanceSettings {
        restarts: RestartSettings { control_plane: true, core_addons: false },
        disables_nginx: false,
    };

    /// spec 84 C.10.1, scenarios 51 and 52
    #[test]
    fn preview_says_what_it_could_not_see() {
        let named = |kind: &str, name: &str| json!({ "kind": kind, "metadata": { "namespace": "ns", "name": name } });
        let secret = json!({ "name": "s", "namespace": "ns" });
        let mut old = named("SecretBinding", "sb");
        old["secretRef"] = secret.clone();
        let mut own = named("CredentialsBinding", "own");
        own["credentialsRef"] = json!({ "apiVersion": "v1", "kind": "Secret", "name": "s", "namespace": "ns" });
        let shoot = json!({ "metadata": { "namespace": "ns", "name": "s1" },
            "spec": { "cloudProfileName": "cp", "kubernetes": { "version": "1.33.1" }, "secretBindingName": "sb" } });
        let spec = json!({ "kubernetes": { "versions": [{ "version": "1.34.0" }] } });
        let profile = json!({ "kind": "CloudProfile", "metadata": { "name": "cp" }, "spec": spec });
        let shown = |objects: &[Value]| preview(&shoot, &profile, objects, SETTINGS, Timestamp::UNIX_EPOCH).unwrap();

        let unknown = shown(&[]);
        assert_eq!((unknown.unseen.len(), unknown.created, unknown.is_due), (2, None, true));
        assert_eq!(unknown.plan.secret_binding.as_deref(), Some("sb"));
        let created = shown(&[old.clone()]);
        assert_eq!(created.patch.unwrap()["spec"]["credentialsBindingName"], "force-migrated-sb");
        assert_eq!(created.created.unwrap()["kind"], "CredentialsBinding");
        let found = shown(&[own, old]);
        assert_eq!((&found.patch.unwrap()["spec"]["credentialsBindingName"], found.created), (&json!("own"), None));
    }

    /// spec 84 C-6, C-7
    #[test]
    fn preview_says_if_the_profile_is_not_that_of_the_shoot() {
        let shoot = |spec: Value| {
            let mut shoot = json!({ "metadata": { "namespace": "ns", "name": "s1" }, "spec": spec });
            shoot["spec"]["kubernetes"] = json!({ "version": "1.33.1" });
            shoot
        };
        let given = |kind: &str, name: &str| {
            let content = json!({ "kubernetes": { "versions": [{ "version": "1.33.1" }, { "version": "1.33.2" }] } });
            json!({ "kind": kind, "metadata": { "name": name }, "spec": content, "status": { "cloudProfileSpec": content } })
        };
        let own = json!({ "cloudProfile": { "kind": "NamespacedCloudProfile", "name": "cp" } });
        for (spec, profile, expected) in [
            (json!({ "cloudProfileName": "cp" }), given("CloudProfile", "cp"), None),
            (own.clone(), given("NamespacedCloudProfile", "cp"), None),
            (
                json!({ "cloudProfileName": "cp" }),
                given("CloudProfile", "other"),
                Some("CloudProfile cp of the Shoot: CloudProfile other was given in its place"),
            ),
            (
                own,
                given("CloudProfile", "cp"),
                Some("NamespacedCloudProfile ns/cp of the Shoot: CloudProfile cp was given in its place"),
            ),
        ] {
            let shown = preview(&shoot(spec), &profile, &[], SETTINGS, Timestamp::UNIX_EPOCH).unwrap();
            assert_eq!(shown.unseen.get(1).map(String::as_str), expected);
            assert_eq!(shown.plan.spec["kubernetes"]["version"], "1.33.2");
        }
        for spec in [json!({}), json!({ "cloudProfile": { "kind": "Other", "name": "cp" } })] {
            let failed = preview(&shoot(spec), &given("CloudProfile", "cp"), &[], SETTINGS, Timestamp::UNIX_EPOCH);
            assert_eq!(failed.unwrap_err().to_string(), "could not determine cloudprofile from shoot");
        }
    }
}

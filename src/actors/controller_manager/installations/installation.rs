//! What is kept of a ControllerInstallation. Pure.

use std::sync::Arc;

use cluster::{CachedFields, object, object::NamespacedName};
use jiff::Timestamp;
use serde_json::Value;

use super::registration::POD_SECURITY;
use crate::actors::controller_manager::fields::{list, text, time};

/// The label of an installation that only the Seed of a self-hosted Shoot needs. Its presence counts.
pub const MARK: &str = "seed-ref-name";
/// The label with the hash of the Seed.
pub const SEED_HASH: &str = "seed-spec-hash";
/// The label with the hash of the Shoot.
pub const SHOOT_HASH: &str = "shoot-spec-hash";
/// The label with the hash of the registration.
pub const REGISTRATION_HASH: &str = "registration-spec-hash";
/// The label with the hash of the deployment.
pub const DEPLOYMENT_HASH: &str = "deployment-hash";

/// The labels that this program writes.
pub(super) const LABELS: [&str; 5] = [MARK, SEED_HASH, SHOOT_HASH, REGISTRATION_HASH, DEPLOYMENT_HASH];

/// An installation at a version.
pub type CachedInstallation = CachedFields<Arc<InstallationFacts>>;

/// What counts of an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallationFacts {
    /// `spec.registrationRef.name`.
    pub registration: Box<str>,
    /// `spec.seedRef.name`; `None` without a reference.
    pub seed: Option<Box<str>>,
    /// `spec.shootRef`; `None` without a reference.
    pub shoot: Option<NamespacedName>,
    /// gardenlet reports that it is required.
    pub is_required: bool,
    /// It is being deleted.
    pub is_deleting: bool,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// `spec` as JSON: compact, because there may be ten thousand installations.
    spec: Box<str>,
    /// The values of [`LABELS`].
    labels: [Option<Box<str>>; 5],
    /// The annotation [`POD_SECURITY`].
    pub pod_security: Option<Box<str>>,
}

impl InstallationFacts {
    /// Reads an installation of any shape.
    pub fn of(installation: &Value) -> Self {
        let name = |pointer| Some(text(installation, pointer)).filter(|name| !name.is_empty());
        let shoot = name("/spec/shootRef/name")
            .map(|shoot| NamespacedName::new(text(installation, "/spec/shootRef/namespace"), shoot));
        let is_required =
            |condition: &Value| text(condition, "/type") == "Required" && text(condition, "/status") == "True";
        Self {
            registration: text(installation, "/spec/registrationRef/name").into(),
            seed: name("/spec/seedRef/name").map(Box::from),
            shoot,
            is_required: list(installation, "/status/conditions").any(is_required),
            is_deleting: object::deletion_timestamp(installation).is_some(),
            created: time(installation, "/metadata/creationTimestamp"),
            spec: installation.get("spec").unwrap_or(&Value::Null).to_string().into(),
            labels: LABELS.map(|key| object::label(installation, key).map(Box::from)),
            pod_security: object::annotation(installation, POD_SECURITY).map(Box::from),
        }
    }

    /// Returns `spec`.
    pub fn spec(&self) -> Value {
        serde_json::from_str(&self.spec).unwrap_or_default()
    }

    /// Returns the value of one of [`LABELS`].
    pub fn label(&self, key: &str) -> Option<&str> {
        let place = LABELS.iter().position(|label| *label == key)?;
        self.labels.get(place)?.as_deref()
    }

    /// Returns true if only the Seed of a self-hosted Shoot needs it.
    pub fn is_marked(&self) -> bool {
        self.label(MARK).is_some()
    }

    /// Returns true if it belongs to the controller of self-hosted Shoots.
    pub fn is_owned_by_shoot(&self) -> bool {
        self.shoot.is_some() && !self.is_marked()
    }
}

//! Library for programs that make ManagedResources: names, packing, reconciling, deleting, waiting (spec 10 §19). It
//! does not need the controller. Pure parts:
//! * [`registry`]: objects → the data of a Secret, with the same bytes each time; [`yaml`] writes the documents.
//! * [`unique`]: names of immutable Secrets and ConfigMaps; [`references`]: annotations that keep these alive.
//! * [`extract`]: a Secret → its objects, with the controller's own decoder.
//! * [`health`]: reads the conditions of a ManagedResource.
//!
//! Parts that send requests to the source cluster, with a [`kube::Client`] of the caller:
//! * [`secret`], [`managed_resource`]: builders that create or update one object.
//! * [`bundle`]: Secret and ManagedResource together: create, update, delete, read.
//! * [`wait`]: waits until a ManagedResource is healthy, or gone.
//!
//! Requests are not repeated: a conflict is an error, and the caller reconciles again. Errors hold names and texts of
//! the API server, never the content of Secrets.
//!
//! # A whole producer
//!
//! ```no_run
//! use std::{collections::BTreeMap, time::Duration};
//!
//! use gardener_resource_manager::producer::{Parts, Registry, bundle, wait};
//! use k8s_openapi::api::core::v1::ConfigMap;
//!
//! # async fn produce(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let mut settings = ConfigMap::default();
//! settings.metadata.name = Some("settings".to_owned());
//! settings.metadata.namespace = Some("kube-system".to_owned());
//! settings.data = Some(BTreeMap::from([("level".to_owned(), "info".to_owned())]));
//!
//! let mut registry = Registry::default();
//! registry.add(&settings)?;
//! let parts = Parts::for_seed("garden", "settings", false, &BTreeMap::new(), registry.data());
//! bundle::create(&client, &parts).await?;
//! wait::until_healthy(&client, "garden", "settings", Duration::from_secs(120)).await?;
//!
//! bundle::delete(&client, "garden", "settings", true).await?;
//! wait::until_deleted(&client, "garden", "settings", Duration::from_secs(300)).await?;
//! # Ok(())
//! # }
//! ```

use std::time::Duration;

pub mod bundle;
mod error;
pub mod extract;
pub mod health;
pub(crate) mod indentation;
pub mod managed_resource;
pub mod references;
pub mod registry;
mod requests;
pub mod secret;
pub mod unique;
pub mod wait;
pub mod yaml;

#[cfg(test)]
#[cfg(feature = "sim")]
mod tests;

pub use bundle::Parts;
pub use error::{ProducerError, ReconcileError};
pub use managed_resource::ManagedResourceBuilder;
pub use registry::Registry;
pub use secret::SecretBuilder;

/// The controller's decoder: library and commands read Secrets exactly as the controller does.
pub use crate::actors::resource_manager::bundle::decode;

/// Prefix of the names of Secrets that are made for a ManagedResource (spec 10 §19.1).
pub const SECRET_NAME_PREFIX: &str = "managedresource-";
/// Label of a ManagedResource: the part of Gardener that made it.
pub const ORIGIN_LABEL: &str = "origin";
/// Value of [`ORIGIN_LABEL`]: gardenlet and what runs in it.
pub const ORIGIN_GARDENER: &str = "gardener";
/// Value of [`ORIGIN_LABEL`]: gardener-operator.
pub const ORIGIN_GARDENER_OPERATOR: &str = "gardener-operator";
/// Label for the objects of a shoot: the shoot's clean-up leaves these objects alone.
pub const SHOOT_NO_CLEANUP: &str = "shoot.gardener.cloud/no-cleanup";
/// Label of a ManagedResource: its role.
pub const GARDENER_ROLE: &str = "gardener.cloud/role";
/// Value of [`GARDENER_ROLE`] for parts of a seed itself.
pub const ROLE_SEED_SYSTEM_COMPONENT: &str = "seed-system-component";
/// Class of ManagedResources whose objects are in the seed.
pub const CLASS_SEED: &str = "seed";
/// Prefix of namespaces that hold a shoot's control plane.
pub const SHOOT_NAMESPACE_PREFIX: &str = "shoot-";
/// Pause between reads of a wait that has no watch.
pub const POLL_INTERVAL: Duration = Duration::from_secs(2);

//! What is known without asking an API server.
//!
//! Of the clusters, from watches:
//!
//! * [`snapshot`]: ManagedResources, as compact bytes
//! * [`secrets`]: which bundle needs which Secret, and what version it has
//! * [`objects`]: the objects of all bundles: who is interested in which, and what watches know of them
//! * [`object_record`]: what is remembered of such an object, in a few bytes
//! * `autoscalers`: which objects a HorizontalPodAutoscaler scales
//!
//! Of our own work:
//!
//! * [`memory`]: what the actor of a bundle remembers between passes. All of it can be lost
//! * `bodies`: bodies last answered: they save the GET before a PUT

mod autoscalers;
mod bodies;
mod memory;
mod object_record;
mod objects;
mod secrets;
mod snapshot;

pub(super) use autoscalers::{Autoscalers, ScalingListener};
pub(super) use memory::{Fingerprint, Fingerprints, Memory};
pub(super) use object_record::{ObjectRecord, hash_of_intent};
pub(super) use objects::{
    Drift, DriftListener, Evidence, HealthListener, IsCustom, ManagedObjects, News, ObjectsRevision, Standing,
};
pub(super) use secrets::{SecretRecord, Secrets};
pub(super) use snapshot::{BundleRecord, Head, Snapshot, hash_of_references};

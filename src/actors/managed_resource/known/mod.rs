//! What is known without asking an API server.
//!
//! Of the clusters, from watches:
//!
//! * [`snapshot`]: ManagedResources, as compact bytes
//! * [`secrets`]: which bundle needs which Secret, and what version it has
//! * [`objects`]: the objects of all bundles: who is interested in which, and what watches know of them
//! * [`object_record`]: what is remembered of such an object, in a few bytes
//! * `named`: which labels and annotations of an object count
//! * `autoscalers`: which objects a HorizontalPodAutoscaler scales
//! * `lingering`: autoscalers that are gone, and count for a while all the same
//! * `pods`: the Pods that Deployments are counted by, one watch for all
//! * `admission`: which kinds webhooks and policies may change
//!
//! Of our own work:
//!
//! * [`memory`]: what the actor of a bundle remembers between passes. All of it can be lost
//! * `damping`: how often what drifts again and again is repaired
//! * `revalidation`: when an object is sent again because mutating admission may answer otherwise
//! * `claims`: the state of a start over many bundles
//! * `health_registry`: which bundles are judged at all, and which objects were found gone
//! * `bodies`: bodies last answered: they save the GET before a PUT

mod admission;
mod autoscalers;
mod bodies;
mod cached_bundle;
mod cached_object;
mod drift_backoff;
mod health_registry;
mod initial_sync;
mod lingering;
mod memory;
mod named;
mod objects;
mod pods;
mod revalidation;
mod secrets;

pub(super) use admission::{Admission, MatchedKinds};
pub(super) use autoscalers::{Autoscalers, ScalingListener};
pub(super) use cached_bundle::{BundleSummary, CachedBundle, ParsedBundle};
pub(super) use cached_object::{CachedObject, Content, hash_of_intent};
pub(super) use health_registry::HealthRegistry;
pub(super) use initial_sync::{InitialSync, InitialSyncStep, WantedBy, WantedKind, WantedObject};
pub(super) use memory::{Applied, FailedObject, Fingerprint, Fingerprints, Memory};
pub(super) use named::Named;
pub(super) use objects::{
    Drift, DriftListener, Evidence, HealthListener, IsCustom, ManagedObjects, News, ObjectsRevision, Standing,
};
pub(super) use pods::{Counted, Pods, PodsListener};
pub(super) use revalidation::{Revalidation, SETTLING, SPREAD, millis};
pub(super) use secrets::{CachedSecret, Secrets};

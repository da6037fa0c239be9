//! What is known without asking an API server. Of the clusters, from watches:
//! * [`cached_bundle`]: ManagedResources, as compact JSON
//! * [`secrets`]: the versions of Secrets, and their data when it is needed
//! * [`objects`]: the objects of all ManagedResources: which ManagedResource owns which, and what watches know of them
//! * [`cached_object`]: what is cached of such an object, in a few bytes
//! * `named`: which labels and annotations of an object count
//! * `autoscalers`: which objects a HorizontalPodAutoscaler scales
//! * `lingering`: autoscalers that are gone and still count for a while
//! * `pods`: the Pods that are counted for Deployments, one watch for all
//! * `shared_texts`: texts that many objects have in common
//! * `admission`: which kinds webhooks and policies may change
//!
//! Of our own work:
//! * [`memory`]: what the actor of a ManagedResource remembers between reconciles. All of it may be lost
//! * `updates`: which updates of objects repeat, for the log
//! * `revalidation`: when an object is sent again because mutating admission may answer differently
//! * `initial_sync`: the state of the initial sync
//! * `health_registry`: which ManagedResources are judged, and which objects were found gone
//! * `bodies`: bodies of last answers, which save the GET before a PUT

mod admission;
mod autoscalers;
mod bodies;
mod cached_bundle;
mod cached_object;
mod health_registry;
mod initial_sync;
mod lingering;
mod memory;
mod named;
mod objects;
mod pods;
mod revalidation;
mod secrets;
mod shared_texts;
mod updates;

pub(super) use admission::{Admission, MatchedKinds};
pub(super) use autoscalers::{Autoscalers, ScalingListener};
pub(super) use cached_bundle::{CachedManagedResource, ManagedResourceSummary, ParsedManagedResource};
pub(super) use cached_object::{CachedObject, Content, hash_of_intent};
pub(super) use health_registry::HealthRegistry;
pub(super) use initial_sync::{InitialSync, InitialSyncStep, WantedBy, WantedKind, WantedObject};
pub(super) use memory::{Applied, Fingerprint, Fingerprints, Memory};
pub(super) use named::Named;
pub(super) use objects::{
    Drift, DriftListener, Glance, HealthListener, ManagedObjects, News, ObjectsRevision, Standing,
};
pub(super) use pods::{Counted, Pods, PodsListener};
pub(super) use revalidation::{ADMISSION_LAG, Revalidation, SPREAD, millis};
pub(super) use secrets::{CachedSecret, Secrets};
pub(super) use shared_texts::SharedTexts;

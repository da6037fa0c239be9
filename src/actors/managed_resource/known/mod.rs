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

pub(super) mod autoscalers;
pub(super) mod bodies;
pub mod memory;
pub mod object_record;
pub mod objects;
pub mod secrets;
pub mod snapshot;

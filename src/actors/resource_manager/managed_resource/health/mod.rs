//! The reconcilers `health` and `health-progressing` of a ManagedResource's actor (spec 20): they keep the conditions
//! `ResourcesHealthy` and `ResourcesProgressing` as the objects of the target cluster are. An object is judged where
//! the watch delivers it (`known/objects.rs` calls the pure functions of [`actors::health`](crate::actors::resource_manager::health)),
//! and only the verdict is cached. A change of a verdict wakes the owners of the object. Their reconcile walks over the
//! verdicts and writes, through the status cell, if users would see something new.
//! * [`reconcile`]: one reconcile, from whether to judge to the write. **Start reading here**
//! * [`run`]: what its steps share
//! * [`idle`]: the idle check that ends a period in which nothing happened
//! * [`survey`]: the walk over the objects of a ManagedResource
//! * [`hold`]: what is not written yet during a repair conflict
//! * [`service`]: the Events about a Service without an address
//! * [`memory`]: what a reconciler remembers

mod hold;
mod idle;
mod memory;
mod reconcile;
mod run;
mod service;
mod survey;

pub(super) use memory::{HealthMemory, LiveReads, Seen};
pub(super) use reconcile::run;
pub(super) use run::HealthReconciler;

//! The duties `health` and `health-progressing` of a bundle's actor (spec 20): they keep the conditions
//! `ResourcesHealthy` and `ResourcesProgressing` as the objects of the target cluster are.
//!
//! An object is judged where the watch delivers it (`known/objects.rs` calls the pure functions of
//! [`actors::health`](crate::actors::health)), and only the verdict is kept. A change of a verdict wakes the bundles that hold
//! the object; their pass walks over verdicts and writes, through the status cell, if what readers see has changed.
//!
//! * [`pass`]: one pass, from whether to judge to the write. **Start reading here**
//! * [`run`]: what its steps share
//! * [`rest`]: the look that ends a period in which nothing happened
//! * [`survey`]: the walk over the objects of a bundle
//! * [`hold`]: what is not written yet while an object is fought over
//! * [`service`]: the Events about a Service without an address
//! * [`memory`]: what a duty remembers

mod hold;
mod idle;
mod memory;
mod reconcile;
mod run;
mod service;
mod survey;

pub(super) use memory::HealthMemory;
pub(super) use reconcile::run;
pub(super) use run::HealthReconciler;

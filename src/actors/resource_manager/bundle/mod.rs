//! The manifests of a ManagedResource as plain values: what the controller, the library for producers and the commands
//! share. Pure functions on raw [`serde_json::Value`], so that unknown fields survive (spec 10 §11.6). In the order of a
//! reconcile:
//! * [`decode`]: from the data of Secrets to manifests
//! * [`plan`]: manifests and old references → what is applied, pruned and released; with [`normalise`] (real namespaces)
//!   and [`identity`] (keys, display strings, equivalent kinds, the index of the old references)
//! * [`checksum`]: whether the manifests changed
//! * [`order`]: the order of the objects
//! * [`merge`]: manifest and live object → the object to send; with [`inject`] (labels) and [`hpa`] (autoscaled objects)
//! * `changed_paths`: what an update changed, for the log
//! * [`up_to_date`]: whether that object must be sent; with [`quantity`](crate::api::meta::quantity) (equal amounts)

pub(crate) mod changed_paths;
pub mod checksum;
pub mod decode;
pub mod hpa;
pub mod identity;
pub mod inject;
pub mod merge;
pub mod normalise;
pub mod order;
pub mod plan;
pub mod up_to_date;

//! Bundles as plain values: what the controller, the library for producers and the commands share.
//!
//! Pure functions, each in a file of its own; objects are raw [`serde_json::Value`], so that unknown fields survive
//! (spec 10 §11.6). In the order of a pass:
//!
//! * [`decode`]: from the data of Secrets to manifests
//! * [`plan`]: manifests and old references → what is applied, removed and released; with [`normalise`] (the namespace a
//!   manifest really has) and [`identity`] (keys, display strings, equivalent kinds, the index of the old references)
//! * [`checksum`]: tells whether the manifests changed
//! * [`order`]: which objects come before which others
//! * [`merge`]: manifest and live object → the object to send; with [`inject`] (the labels every object of a bundle gets)
//!   and [`hpa`] (which objects an autoscaler scales)
//! * [`settled`]: whether that object needs to be sent at all; with [`quantity`](crate::api::quantity) (equal amounts in other words)

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

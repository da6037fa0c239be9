//! The ManagedResource controller (spec 10): keeps the objects of a target cluster as the bundles describe them.
//!
//! The pure steps of a pass, in their order. Nothing in them reads a clock, sends a request or knows an actor; values come
//! in, values go out, and objects are raw [`serde_json::Value`] so that unknown fields survive (spec 10 §11.6).
//!
//! * [`trigger`]: which events start a pass, and what the pass does first
//! * [`decode`], [`checksum`]: from the data of Secrets to manifests, and whether they changed
//! * [`normalise`]: the namespace a manifest really has, given the scope of its kind
//! * [`identity`]: the key of an object, its display string, equivalent kinds, the index of the old references
//! * [`plan`]: documents and old references → what is applied, removed and released. **Start reading here**
//! * [`order`]: which objects come before which others
//! * [`inject`]: the labels every object of a bundle gets
//! * [`hpa`]: which objects are scaled by an autoscaler
//! * [`merge`]: manifest and live object → the object to send
//! * [`settled`]: whether that object needs to be sent at all ([`quantity`]: equal amounts in other words)
//! * [`fingerprint`]: what is remembered of an object, in a few bytes
//! * [`status`]: what is reported in each situation

pub mod checksum;
pub mod decode;
pub mod fingerprint;
pub mod hpa;
pub mod identity;
pub mod inject;
mod local;
pub mod merge;
pub mod normalise;
pub mod order;
pub mod plan;
pub mod quantity;
pub mod settled;
pub mod status;
pub mod trigger;

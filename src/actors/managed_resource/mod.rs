//! The managedresource controller: keeps the objects of the target cluster as the manifests of a bundle describe them (spec 10).
//!
//! One file per step of a pass, each a pure function on plain values:
//!
//! * [`trigger`]: which events start a pass, and what the pass does first.
//! * [`decode`]: from the data of Secrets to manifests.
//! * [`checksum`]: tells whether the manifests changed.
//! * [`status`]: what is reported in each situation.
//!
//! Start reading at [`trigger::entry`].

pub mod checksum;
pub mod decode;
pub mod status;
pub mod trigger;

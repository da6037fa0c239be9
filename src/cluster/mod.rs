//! A cluster as this program sees it.
//!
//! `kubeconfig.rs` decides how each cluster is reached and which kubeconfigs are acceptable; pure.

pub mod kubeconfig;

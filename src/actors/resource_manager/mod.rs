//! The controllers of gardener-resource-manager.
//! * `controllers`: the list of all; `controller_context`: what all controllers get: the two clusters and the environment
//! * `figures`: their own metrics
//! * [`managed_resource`]: ManagedResources and their health; `health`: how an object is judged, pure; [`bundle`]: from
//!   the bytes of a bundle to objects, pure
//! * [`csr_approver`]: CertificateSigningRequests. The smallest controller, explained in `docs/adding-a-controller.md`
//! * [`garbage_collector`]: immutable Secrets and ConfigMaps that are not referred to any more
//! * [`token_invalidator`]: static tokens of ServiceAccounts that want none
//! * [`token_requestor`]: tokens of the target in Secrets of the source
//! * [`network_policy`]: which clients may reach the pods of a Service
//! * [`istio_cluster_configuration`]: EnvoyFilters for gateways of Istio
//! * [`node`]: taints, delays of node agents, workloads that depend on the number of nodes

pub mod bundle;
pub mod controller_context;
pub mod controllers;
pub mod csr_approver;
pub mod figures;
pub mod garbage_collector;
pub(crate) mod health;
pub mod istio_cluster_configuration;
pub mod managed_resource;
pub mod network_policy;
pub mod node;
pub mod token_invalidator;
pub mod token_requestor;

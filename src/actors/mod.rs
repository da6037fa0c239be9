//! The actors: one folder per controller, and the tree that starts them. They are built on the crate [`kit`].
//! * `controller_registration`: a controller as the process sees it (**start here**); `controllers`: the list of all
//! * `controller_context`: what all controllers get: the two clusters, their watches, Events, and the environment
//! * `texts`: lists of texts in messages
//! * `root`: opens the watches of all controllers, starts their actors in the leader, stops them
//! * [`managed_resource`]: ManagedResources and their health; `health`: how an object is judged, pure
//! * [`csr_approver`]: CertificateSigningRequests. The smallest controller, explained in `docs/adding-a-controller.md`
//! * [`garbage_collector`]: immutable Secrets and ConfigMaps that are not referred to any more
//! * [`token_invalidator`]: static tokens of ServiceAccounts that want none
//! * [`token_requestor`]: tokens of the target in Secrets of the source
//! * [`network_policy`]: which clients may reach the pods of a Service
//! * [`istio_cluster_configuration`]: EnvoyFilters for gateways of Istio
//! * [`node`]: taints, delays of node agents, workloads that depend on the number of nodes
//! * [`leader`]: the election on a Lease. It is no controller, because it decides when controllers start

pub mod controller_context;
pub mod controller_registration;
pub mod controllers;
pub mod csr_approver;
pub mod garbage_collector;
mod health;
pub mod istio_cluster_configuration;
pub mod leader;
pub mod managed_resource;
pub mod network_policy;
pub mod node;
pub mod root;
mod texts;
pub mod token_invalidator;
pub mod token_requestor;

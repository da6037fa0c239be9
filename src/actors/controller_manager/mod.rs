//! The controllers of gardener-controller-manager.
//! * `controllers`: the list of all; `context`: what all controllers get: the garden cluster and the environment
//! * [`guards`]: a kind in use keeps its finalizer; one table entry per kind in the files of the controllers
//! * [`references`]: Secrets, ConfigMaps and WorkloadIdentities that others refer to, and those others
//! * [`cloud_profile`], [`namespaced_cloud_profile`], [`controller_deployment`], [`quota`], [`exposure_class`]: guards, a
//!   controller each; the first two also compute a status
//! * [`bindings`]: both kinds of bindings, with their credentials and Quotas; [`secret_binding`], [`credentials_binding`]:
//!   how they are guarded
//! * [`bastion`], [`csr`], [`event`], [`gardenlet_lifecycle`]: a controller each
//! * [`project`]: Namespaces, default ResourceQuotas and RBAC objects of Projects; [`project_resource_quota`],
//!   [`project_activity`], [`project_stale`]: a controller each, of Projects
//! * [`shoot_maintenance`]: updates, rotations and tasks in the time window of a Shoot
//! * [`seed`]: conditions of Seeds, their Namespaces, and copies of shared Secrets
//! * [`shoot_record`]: the Shoots as their controllers see them. [`shoot_conditions`], [`shoot_quota`], [`shoot_retry`],
//!   [`shoot_status_label`], [`shoot_migration`]: a controller each, of Shoots; [`shoot_state_finalizer`]: of ShootStates
//! * [`shoot_hibernation`]: a controller of Shoots
//! * [`managed_seed_set`]: ManagedSeeds and their Shoots in a stable number
//! * [`installations`]: which extensions are installed on which Seeds and self-hosted Shoots; finalizers of registrations,
//!   Seeds and Shoots; [`extension_cluster_roles`]: bindings for the ServiceAccounts of extensions
//! * [`referrers`]: the rules of guards, references and bindings in one table, for the command `referrers`
//! * [`figures`]: the metrics of the controllers; [`held`]: objects in deletion as metrics; `rows`: the same objects on
//!   the dashboard
//! * [`fields`]: reads of foreign JSON; `project_namespace`: the namespace of a Project; `deletion_confirmation`: annotations
//!   of objects that are deleted; [`owner_references`], [`rbac`]: objects that controllers make

pub mod bastion;
pub mod bindings;
pub mod cloud_profile;
pub mod context;
pub mod controller_deployment;
pub mod controllers;
pub mod credentials_binding;
pub mod csr;
mod deletion_confirmation;
pub mod event;
pub mod exposure_class;
pub mod extension_cluster_roles;
pub mod fields;
pub mod figures;
pub mod gardenlet_lifecycle;
pub mod guards;
pub mod held;
pub mod installations;
pub mod managed_seed_set;
pub mod namespaced_cloud_profile;
pub mod owner_references;
pub mod project;
pub mod project_activity;
mod project_namespace;
pub mod project_resource_quota;
pub mod project_stale;
pub mod quota;
pub mod rbac;
pub mod references;
pub mod referrers;
mod rows;
pub mod secret_binding;
pub mod seed;
pub mod shoot_conditions;
pub mod shoot_hibernation;
pub mod shoot_maintenance;
pub mod shoot_migration;
pub mod shoot_quota;
pub mod shoot_record;
pub mod shoot_retry;
pub mod shoot_state_finalizer;
pub mod shoot_status_label;

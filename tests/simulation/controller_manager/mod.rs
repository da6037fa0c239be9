//! gardener-controller-manager on the simulated API server. Start reading at `garden::Garden`.

mod bastions;
mod bindings;
mod bindings_faults;
mod cloud_profiles;
mod events;
mod garden;
mod gardenlet_certificates;
mod gardenlets;
mod guard_faults;
mod guard_requests;
mod guards;
mod hostile;
mod operators;
mod project_activity;
mod project_resource_quotas;
mod project_stale;
mod project_stale_faults;
mod project_stale_lives;
mod references;
mod seed_checks;
mod seed_references;
mod seed_secrets;
mod seed_secrets_faults;
mod unserved_kinds;

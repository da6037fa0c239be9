//! The whole program on the simulated API server, on virtual time.
//!
//! `world` sets the scene: a simulator with the ManagedResource definition, and the program as one process that can stop,
//! crash and start again. `builder` makes certificate signing requests, as for the approver's own tests. The other modules
//! are what happens in it.

mod api_server_starts;
mod autoscaling;
mod bad_input;
mod broken_group;
#[path = "../../src/actors/csr_approver/tests/builder.rs"]
mod builder;
mod certificates;
mod common_path;
mod conditions;
mod controller_fields;
mod creation;
mod deep_nesting;
mod deletion;
mod drift_backoff;
mod faults;
mod garbage;
mod health;
mod health_faults;
mod health_objects;
mod health_requests;
mod idle_periods;
mod initial_sync;
mod interference;
mod invalidation;
mod istio;
mod large_status;
mod late_answers;
mod leftover_fields;
mod list_manifests;
mod log_capture;
mod malformed_answers;
mod merge_rules;
mod missed_deletions;
mod nodes;
mod objects;
mod outages;
mod owners;
mod policies;
mod pruning;
mod random;
mod refused_requests;
mod repair_conflicts;
mod reproducibility;
mod revalidation;
mod rights;
mod stale_cache;
mod starvation;
mod state;
mod tokens;
mod watch_scopes;
mod watch_streams;
mod watches;
mod world;

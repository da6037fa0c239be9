//! The whole program on the simulated API server, on virtual time.
//!
//! `world` sets the scene: a simulator with the ManagedResource definition, and the program as one process that can stop,
//! crash and start again. `builder` makes certificate signing requests, as for the approver's own tests. The other modules
//! are what happens in it.

mod answers;
mod api_server_starts;
mod autoscaling;
mod bad_input;
mod broken_group;
#[path = "../../src/actors/csr_approver/tests/builder.rs"]
mod builder;
mod certificates;
mod conditions;
mod creation;
mod deep;
mod deletion;
mod doubt;
mod faults;
mod fights;
mod filled_in;
mod garbage;
mod ghosts;
mod health;
mod health_faults;
mod health_objects;
mod health_requests;
mod invalidation;
mod istio;
mod large_status;
mod leftovers;
mod lists;
mod logged;
mod merge_rules;
mod neighbours;
mod nodes;
mod nonsense;
mod objects;
mod outages;
mod owners;
mod policies;
mod random;
mod refused;
mod removal;
mod rests;
mod revalidation;
mod rights;
mod scenarios;
mod scopes;
mod spin;
mod starts;
mod starvation;
mod state;
mod streams;
mod tokens;
mod traces;
mod watches;
mod world;

//! The whole program on the simulated API server, on virtual time.
//!
//! `world` sets the scene: a simulator with the ManagedResource definition, and the program as one process that can stop,
//! crash and start again. The other modules are what happens in it.

mod answers;
mod conditions;
mod faults;
mod owners;
mod random;
mod removal;
mod scenarios;
mod scopes;
mod spin;
mod starts;
mod starvation;
mod state;
mod traces;
mod watches;
mod world;

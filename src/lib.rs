//! The library of two programs.
//! * gardener-resource-manager applies bundles of manifests, stored in a *source* cluster, to a *target* cluster, and
//!   keeps the objects in sync. A `ManagedResource` names the Secrets that hold its bundle. One cluster may be both
//!   source and target.
//! * gardener-controller-manager looks after Gardener's resources in one cluster, the *garden*. It has guards of objects
//!   in use, reference protection, other small controllers, and those of Seeds. Those of Projects and Shoots are missing.
//!
//! Each is an actor system:
//! * A controller has one supervised actor for each object it looks after, for example one for each ManagedResource.
//! * Informers follow the API servers, with one list-watch stream per kind. A watch keeps what its reader needs in a
//!   store, then runs the reader's event handlers, which enqueue keys.
//! * Decisions are pure functions of plain values. Clock, randomness and I/O stay outside.
//! * Everything is visible (dashboard, metrics) and can be replayed (one thread, virtual time, a simulated API server).
//!
//! # The picture of gardener-resource-manager
//! ```text
//!  source API server                                    target API server
//!        │ ManagedResources, Secrets (metadata), Machines          │ managed objects (metadata where it is enough), Nodes, …
//!  ┌─────▼─────┐                                             ┌─────▼─────┐
//!  │ informers │  list and watch: one stream per kind        │ informers │
//!  └─────┬─────┘                                             └─────┬─────┘
//!   ┌────▼────┐  one per reader: a store that any             ┌────▼────┐
//!   │ watches │  thread may read, indexes, event handlers     │ watches │
//!   └────┬────┘                                               └────┬────┘
//!        │       event handler(old, new) → key, reason, priority   │
//!   ┌────▼─────────────────────────────────────────────────────────▼────┐
//!   │ work queue   one entry per key: why it is due, priority, timers   │  one for each running controller;
//!   └────┬──────────────────────────────────────────────────────────────┘  survives panics of its actors
//!        │ nudge: at most one, and empty; the reasons stay in the queue entry
//!   ┌────▼─────────┐  one reconcile at a time, with one of `concurrentSyncs` permits
//!   │ object actor │  a ManagedResource: read → decode → plan → prune → release → merge, apply → status
//!   └────┬─────────┘                                        (pure steps, one file each)
//!        │ requests
//!   ┌────▼────┐
//!   │ cluster │  write fence (leader?) → request scheduler (rate, writes in flight, fairness) → HTTP exchange
//!   └─────────┘
//!
//!   leader election opens the write fence with each renewal; probes, /metrics and /dashboard read shared cells
//! ```
//! Three rules carry most of the weight:
//! 1. *A wake is state, not a message.* It cannot be lost, pile up or overtake its store. A wake during a reconcile
//!    leads to exactly one more reconcile.
//! 2. *Only a fresh store is evidence.* What no live watch confirms is read from the API server before a decision.
//! 3. *Forgotten state is read again.* Memory between reconciles saves requests. Losing it costs requests only.
//!
//! # Where to start reading
//! `docs/architecture.md` has the list of all folders. Good first files:
//! * What the programs are: [`programs`]. How a program starts and ends: [`process`], from `run.rs` on.
//! * What happens for a ManagedResource: [`actors::resource_manager::managed_resource`], from `reconcile.rs` on.
//! * A small controller as an example: [`actors::resource_manager::csr_approver`], with `docs/adding-a-controller.md`.
//! * All controllers: [`actors::resource_manager::controllers`] and [`actors::controller_manager::controllers`]. All
//!   webhooks: [`webhooks::registry`].
//! * How actors, wakes and timers work: [`kit`].
//! * How a request gets to an API server: [`cluster`].
//! * What an operator sees: [`process::dashboard`], [`process::logging`] and `docs/operations.md`.
//!
//! Citations such as `spec 10 §12.7` name a chapter and section of the behaviour specification
//! (`docs/spec/00-README.md`), and `decision 14` a row of its table of decisions; `facts §4` is in `docs/facts.md`,
//! `fault 7` in `docs/faults.md`. `docs/compatibility.md` lists where the Go program behaves otherwise.

/// Compiles and runs the example of the page.
#[cfg(doctest)]
#[doc = include_str!("../docs/adding-a-controller.md")]
struct AddingAController;

pub mod actors;
pub mod api;
pub mod cli;
pub mod commands;
#[cfg(feature = "sim")]
pub mod demo;
pub mod jsonpath;
pub mod producer;
pub mod programs;
mod rights;
pub mod webhooks;

//! gardener-resource-manager keeps the objects of a *target* cluster as bundles of manifests in a *source* cluster describe
//! them. A bundle is a `ManagedResource` and the Secrets it names. Both clusters may be one.
//!
//! It is an actor system:
//!
//! * a controller is a module, and each object it looks after, a bundle for instance, has one supervised actor of its own;
//! * feeds follow the API servers, one for each kind. A watch keeps what its reader needs in a store, then tells who should
//!   look;
//! * what decides is pure: plain values in, plain values out. Clock, randomness and I/O stay outside;
//! * everything can be seen (dashboard, metrics) and replayed (one thread, virtual time, an in-memory API server).
//!
//! # The picture
//!
//! ```text
//!  source API server                                        target API server
//!        │ ManagedResources, Secrets (metadata), Machines          │ managed objects (metadata where it is enough), Nodes, …
//!   ┌────▼────┐                                               ┌────▼────┐
//!   │  feeds  │  list and watch: one stream per kind          │  feeds  │
//!   └────┬────┘                                               └────┬────┘
//!   ┌────▼────┐  one for each reader: a store that any        ┌────▼────┐
//!   │ watches │  thread may read, indexes, filters            │ watches │
//!   └────┬────┘                                               └────┬────┘
//!        │              filter(old, new) → key, cause, lane        │
//!   ┌────▼─────────────────────────────────────────────────────────▼────┐
//!   │ supervisor   one slot per key: why it is due, how urgent, timers  │  one for each module that runs;
//!   └────┬──────────────────────────────────────────────────────────────┘  survives its actors' panics
//!        │ nudge: at most one, and empty; the reasons stay in the slot
//!   ┌────▼─────────┐  one pass at a time, with one of `concurrentSyncs` permits
//!   │ object actor │  a bundle: read → decode → plan → clean up → release → merge, apply → status
//!   └────┬─────────┘                                        (pure steps, one file each)
//!        │ requests
//!   ┌────▼────┐
//!   │ cluster │  fence (may we write?) → gate (rate, writes in flight, turns) → one HTTP exchange
//!   └─────────┘
//!
//!   leader election opens the fence with each renewal; probes, /metrics and /dashboard read shared cells
//! ```
//!
//! Three rules carry most of the weight:
//!
//! 1. *A wake is state, not a message.* It cannot be lost, pile up or overtake its store. A wake during a pass leads to
//!    exactly one more.
//! 2. *Only a fresh store is evidence.* What no watch vouches for is read live before anything is decided on it.
//! 3. *What is forgotten is read again.* Memory between passes saves requests; losing it costs requests, never objects.
//!
//! # Layout
//!
//! In `src/`:
//!
//! * `main.rs`: the program: parse, then hand over to `process/`, `commands/` or `demo/`.
//! * `api/`: the outside contract: types, constants, conditions, component configuration. No I/O.
//! * `cli/`: flags, environment, and how they meet the configuration file.
//! * `commands/`: `pack`, `unpack`, `validate`, `diff`, for authors of bundles; `get`, for people on duty.
//! * `bundle/`: bundles as plain values: what the controller, producers and commands share. Pure.
//! * `producer/`: the library for programs that make bundles.
//! * `actors/`: the controllers, each a module: `managed_resource/` (bundles, in rooms along the way of the data, with
//!   `health/`, judging objects), `csr_approver/` (certificates of nodes), `token_invalidator/` and `token_requestor/` (tokens),
//!   `garbage_collector/`, `network_policy/` (who may reach Services), `istio_cluster_configuration/`. `modules.rs` lists them,
//!   `root.rs` starts and stops them on the ground of `ground.rs`, `leader/` (the election) says when.
//! * `http/`: the three HTTP servers: connections, limits, the end; probes.
//! * `metrics/`: one registry of counters; all parts of the process hold typed handles of it.
//! * `dashboard/`: the page that shows every actor, and the routes of page, metrics and probes.
//! * `logging/`: records as JSON or text on stderr.
//! * `profiling/`: CPU and heap profiles of the running process.
//! * `traces/`: spans for a collector of OpenTelemetry.
//! * `process/`: from options to a running tree of actors, and back to an exit code.
//! * `demo/`: the demonstration (feature `sim`): a story told step by step, with the program at work in it.
//! * `webhooks/`: what API servers ask about objects before they store them, and about users before they let them.
//!
//! In `crates/`, the layers below, none of which knows what is above it:
//!
//! * `kit/`: the runtime of the actors: supervisor, slots, timers, permits, census, clock. Nothing of Kubernetes.
//! * `cluster/`: a cluster as this program sees it: clients, discovery, feeds, watches and stores, writes, gate, fence, Events.
//! * `sim/`: an in-memory Kubernetes API (feature `sim`) for tests and the demonstration.
//!
//! In `tests/`:
//!
//! * `contract/`: what this program relies on, one table of API behaviour against `sim` and against a real API server.
//! * `simulation/`: the whole program on `sim`, in virtual time.
//! * `e2e/`: the built binary against the real control plane (feature `e2e`).
//! * `controlplane/`, `support/`: how that control plane is built and started.
//! * `demo.rs`: the demonstration, as the built binary shows it.
//! * `commands.rs`: pack, unpack, validate, diff and get, as the built binary does them.
//! * `docs.rs`: what README and `docs/` name exists.
//! * `conformance/`: black-box cases for any binary of a gardener-resource-manager, in Python.
//! * `checks/`: what holds for any input of decoder, merge, plan, mutating and validating webhooks.
//! * `properties/`: the checks on generated values.
//! * `fuzz_corpora.rs`: the checks on the files of `fuzz/corpus/`.
//!
//! # Where to start reading
//!
//! * How the program starts and ends: [`process`], from `run.rs` on.
//! * What the program does to a bundle: [`actors::managed_resource`], from `reconcile.rs` on.
//! * What a controller is, by a small one: [`actors::csr_approver`], with `docs/adding-a-controller.md`.
//! * Which controllers there are: [`actors::module`]. Which webhooks: [`webhooks::registry`].
//! * How actors, wakes and timers work: [`kit`].
//! * How a request gets to an API server: [`cluster`].
//! * What an operator sees: [`dashboard`], [`logging`] and `docs/operations.md`.
//!
//! Citations such as `spec 10 §12.7` name a chapter and section of the behaviour specification (`docs/spec/00-README.md`), and
//! `decision 14` a row of its table of decisions; `facts §4` is in `docs/facts.md`, `fault 7` in `docs/faults.md`.
//! `docs/compatibility.md` lists where the Go program behaves otherwise.

/// The example of the page is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/adding-a-controller.md")]
struct AddingAController;

pub mod actors;
pub mod api;
pub mod bundle;
pub mod cli;
pub mod commands;
pub mod dashboard;
#[cfg(feature = "sim")]
pub mod demo;
pub mod http;
pub mod logging;
pub mod metrics;
pub mod process;
pub mod producer;
pub(crate) mod profiling;
pub mod traces;
pub mod webhooks;

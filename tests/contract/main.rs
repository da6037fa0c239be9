//! The contract with the Kubernetes API: what this program relies on, as one table. Each row states one behaviour of
//! the API as a sentence, and shows it with raw requests. The same rows run against
//! * the simulator, a fresh one per row and in virtual time (plain `cargo test`): every simulation test relies on it;
//! * a real etcd, kube-apiserver and kube-controller-manager (`cargo test --features e2e`): a release may change them.
//!
//! All rows run; failing rows are listed with what was expected and what came. `CONTRACT=<text>` runs only the rows
//! whose sentence or module contains the text. Start reading at [`table`]; `row.rs` has the runner, `api.rs` the
//! requests, `kinds.rs` the differences between kinds. Each row cites its source, `facts §n` or `architecture §n`.

mod api;
mod bodies;
mod controllers;
mod create;
mod defaults;
mod definitions;
mod delete;
mod discovery;
mod expect;
mod kinds;
mod leases_events;
mod managed_fields;
mod namespaces;
mod patch;
mod read;
mod reviews;
mod row;
mod status;
#[cfg(feature = "e2e")]
#[path = "../support/mod.rs"]
mod support;
mod update;
mod validation;
mod watch;
mod writes;

use row::Row;

fn table() -> Vec<(&'static str, Vec<Row>)> {
    vec![
        ("create", create::rows()),
        ("validation", validation::rows()),
        ("defaults", defaults::rows()),
        ("read", read::rows()),
        ("watch", watch::rows()),
        ("update", update::rows()),
        ("status", status::rows()),
        ("patch", patch::rows()),
        ("writes", writes::rows()),
        ("managed_fields", managed_fields::rows()),
        ("delete", delete::rows()),
        ("namespaces", namespaces::rows()),
        ("kinds", kinds::rows()),
        ("definitions", definitions::rows()),
        ("discovery", discovery::rows()),
        ("reviews", reviews::rows()),
        ("leases_events", leases_events::rows()),
        ("controllers", controllers::rows()),
    ]
}

#[cfg(feature = "sim")]
#[test]
fn contract_holds_on_the_simulator() {
    row::simulated::run(table());
}

#[cfg(feature = "e2e")]
#[test]
fn contract_holds_on_a_real_control_plane() {
    row::real::run(table());
}

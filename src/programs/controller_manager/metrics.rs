//! The reference of all metrics of this program.

use process::{Program as _, metrics};

use super::ControllerManager;
use crate::actors::controller_manager::figures;

const INTRO: &str = "# Metrics of gardener-controller-manager

Generated from the declarations in `crates/process/src/metrics/declared.rs` and
`src/actors/controller_manager/figures.rs`; a test compares this file with them.

`GET /metrics` on the metrics server (`server.metrics`, port 2719) answers in Prometheus' text format. The series
of a controller or a request scheduler exist with value 0 as soon as it starts. `name` and `controller` of work queues are the
same. `priority` is `high` (a user or an event waits for it) or `low` (initial lists, periods). Metrics of objects exist while
the process leads.
";

/// Returns the text of `docs/reference/controller-manager-metrics.md`.
pub fn reference() -> String {
    metrics::reference(INTRO, ControllerManager::METRICS.prefix, figures::declared())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec 80 §14: the page is generated; on failure the test prints the expected text.
    #[test]
    fn documentation_lists_every_metric_of_the_controller_manager() {
        let expected = reference();

        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/controller-manager-metrics.md");
        let actual = std::fs::read_to_string(path).unwrap_or_default();

        assert!(actual == expected, "docs/reference/controller-manager-metrics.md must be:\n{expected}");
    }
}

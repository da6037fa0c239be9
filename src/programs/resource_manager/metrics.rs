//! The reference of all metrics of this program.

use process::{Program as _, metrics};

use super::ResourceManager;
use crate::{actors::resource_manager::figures, webhooks::server};

const INTRO: &str = "# Metrics

Generated from the declarations in `crates/process/src/metrics/declared.rs`, `src/webhooks/server/metrics.rs` and
`src/actors/resource_manager/figures.rs`; a test compares this file with them.

`GET /metrics` on the metrics server (`server.metrics`, port 8080) answers in Prometheus' text format. The series
of a controller, a webhook or a request scheduler exist with value 0 as soon as it starts. `name` and `controller` of work
queues are the same. `priority` is `high` (a user or an event waits for it) or `low` (initial lists, periods).
";

/// Returns the text of `docs/reference/metrics.md`.
pub fn reference() -> String {
    let own = [server::metrics::declared(), figures::declared()].concat();
    metrics::reference(INTRO, ResourceManager::METRICS.prefix, &own)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `docs/reference/metrics.md` is generated; on failure the test prints the expected text.
    #[test]
    fn documentation_lists_every_metric() {
        let expected = reference();

        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/metrics.md");
        let actual = std::fs::read_to_string(path).unwrap_or_default();

        assert!(actual == expected, "docs/reference/metrics.md must be:\n{expected}");
    }
}

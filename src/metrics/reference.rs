use std::fmt::Write;

use super::declared::{ALL, MetricKind};

/// The text of `docs/reference/metrics.md`.
pub fn reference() -> String {
    let mut text = String::from(
        "# Metrics\n\n\
         Generated from `src/metrics/declared.rs`; a test compares this file with it.\n\n\
         `GET /metrics` on the metrics server (`server.metrics`, port 8080) answers in Prometheus' text format. The series\n\
         of a controller, a webhook or a request scheduler exist with value 0 as soon as it starts. `name` and `controller` of work\n\
         queues are the same. `priority` is `high` (a user or an event waits for it) or `low` (initial lists, periods).\n\n\
         | Metric | Type | Labels | Unit | Meaning |\n|---|---|---|---|---|\n",
    );
    for declaration in ALL {
        let kind = match declaration.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram(_) => "histogram",
        };
        let labels: Vec<String> = declaration.labels.iter().map(|label| format!("`{label}`")).collect();
        let labels = if labels.is_empty() { "–".to_owned() } else { labels.join(", ") };
        // Writing into a String cannot fail.
        let _ = writeln!(
            text,
            "| `{}` | {kind} | {labels} | {} | {} |",
            declaration.name,
            declaration.unit,
            declaration.help.replace('<', "&lt;")
        );
    }

    text.push_str("\nUpper bounds of the histograms (`+Inf` follows):\n\n");
    for declaration in ALL {
        if let MetricKind::Histogram(bounds) = declaration.kind {
            let bounds: Vec<String> = bounds.iter().map(|bound| format!("{bound}")).collect();
            let _ = writeln!(text, "* `{}`: {}", declaration.name, bounds.join(", "));
        }
    }
    text
}

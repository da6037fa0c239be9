use std::fmt::Write;

use super::declared::{ALL, Declaration, MetricKind};

/// Renders `intro` and a table of all metrics of a program: `own`, and those of every program.
pub fn reference(intro: &str, prefix: &str, own: &[&Declaration]) -> String {
    let all = || ALL.iter().chain(own);
    let mut text = format!("{intro}\n| Metric | Type | Labels | Unit | Meaning |\n|---|---|---|---|---|\n");
    for declaration in all() {
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
            declaration.name.full(prefix),
            declaration.unit,
            declaration.help.replace('<', "&lt;")
        );
    }

    text.push_str("\nUpper bounds of the histograms (`+Inf` follows):\n\n");
    for declaration in all() {
        if let MetricKind::Histogram(bounds) = declaration.kind {
            let bounds: Vec<String> = bounds.iter().map(|bound| format!("{bound}")).collect();
            let _ = writeln!(text, "* `{}`: {}", declaration.name.full(prefix), bounds.join(", "));
        }
    }
    text
}

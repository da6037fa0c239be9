//! `webhook list`: the webhooks with their paths.

use serde_json::{Value, json};

use super::{
    CommandError, Said,
    columns::{lines, plain},
    input::Source,
    review::configured,
};
use crate::{cli::DataFormat, producer::yaml, webhooks::registry};

const HEADINGS: [&str; 3] = ["PATH", "KIND", "KEY"];

/// Lists the webhooks that a configuration enables, or all of them.
pub(super) fn list(config: Option<&Source>, output: Option<DataFormat>) -> Result<Said, CommandError> {
    let mut webhooks = configured(config)?;
    if config.is_none() {
        webhooks.node_agent_authorizer.enabled = true;
    }
    let mutating: Vec<&str> = registry::mutating(&webhooks).iter().map(|entry| entry.path).collect();
    let validating: Vec<&str> = registry::validating(&webhooks).iter().map(|entry| entry.path).collect();
    let kind = |path: &str| match (mutating.contains(&path), validating.contains(&path)) {
        (true, _) => "mutating",
        (_, true) => "validating",
        _ => "authorizing",
    };
    let rows: Vec<[&str; 3]> =
        registry::enabled(&webhooks).iter().map(|entry| [entry.path, kind(entry.path), entry.key]).collect();
    let nothing = config.filter(|_| rows.is_empty());
    let remarks = nothing.map(|config| format!("{} enables no webhook", config.name)).into_iter().collect();
    let out = match output {
        None => {
            let all = [HEADINGS].into_iter().chain(rows);
            lines(&all.map(|row| row.map(plain).to_vec()).collect::<Vec<_>>(), "", false)
        }
        Some(format) => {
            let entry = |[path, kind, key]: &[&str; 3]| json!({"path": path, "kind": kind, "key": key});
            let entries: Value = rows.iter().map(entry).collect();
            match format {
                DataFormat::Json => format!("{entries:#}\n"),
                DataFormat::Yaml => yaml::document(&entries),
            }
        }
    };
    Ok(Said { out, remarks, ..Said::default() })
}

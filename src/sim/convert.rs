//! One object, several versions.
//!
//! Versions of a custom kind differ in `apiVersion` only (conversion `None`), and so do most built-in ones as far as they
//! are served. Events are one store behind two groups with different field names.

use serde_json::Value;

use super::{kinds::Kind, status::Failure};

/// Core field and its name in `events.k8s.io`.
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// A stored value in the version of `kind`; `None` where only `apiVersion` differs, if anything does.
pub(super) fn to_version(kind: &Kind, value: &Value) -> Result<Option<Value>, Failure> {
    let stored = value["apiVersion"].as_str().unwrap_or_default();
    if stored == kind.api_version() || kind.custom {
        return Ok(None);
    }
    match (kind.plural.as_str(), kind.group.as_str(), stored) {
        ("events", "events.k8s.io", _) => Ok(Some(rename(kind, value, |core, new| (core, new)))),
        ("events", "", _) => Ok(Some(rename(kind, value, |core, new| (new, core)))),
        ("horizontalpodautoscalers", ..) => {
            Err(Failure::not_simulated("conversion between versions of HorizontalPodAutoscaler"))
        }
        _ => Ok(None),
    }
}

fn rename<'a>(kind: &Kind, value: &Value, names: fn(&'a str, &'a str) -> (&'a str, &'a str)) -> Value {
    let mut value = value.clone();
    if let Some(fields) = value.as_object_mut() {
        for (core, new) in EVENT_FIELDS {
            let (from, to) = names(core, new);
            if let Some(content) = fields.remove(from) {
                fields.insert(to.into(), content);
            }
        }
        fields.insert("apiVersion".into(), kind.api_version().into());
    }
    value
}

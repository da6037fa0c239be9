//! Conversion of an object between versions. Custom kinds (conversion `None`) and most built-in kinds differ in
//! `apiVersion` only. Events are one store behind two groups with different field names.

mod autoscaler;

use serde_json::Value;

use super::{kinds::ServedKind, status::Failure};

/// Core field → its name in `events.k8s.io`.
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Returns a stored value in the version of `kind`, or `None` if at most `apiVersion` differs.
pub(super) fn to_version(kind: &ServedKind, value: &Value) -> Result<Option<Value>, Failure> {
    let stored = value["apiVersion"].as_str().unwrap_or_default();
    if stored == kind.api_version() || kind.custom {
        return Ok(None);
    }
    match (kind.plural.as_str(), kind.group.as_str(), stored) {
        ("events", "events.k8s.io", _) => Ok(Some(rename(kind, value, |core, new| (core, new)))),
        ("events", "", _) => Ok(Some(rename(kind, value, |core, new| (new, core)))),
        ("horizontalpodautoscalers", _, "autoscaling/v1") => autoscaler::to_new(value).map(Some),
        ("horizontalpodautoscalers", ..) => autoscaler::to_old(value).map(Some),
        _ => Ok(None),
    }
}

fn rename<'a>(kind: &ServedKind, value: &Value, names: fn(&'a str, &'a str) -> (&'a str, &'a str)) -> Value {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::built_in;

    fn kind(group: &str, version: &str, plural: &str) -> ServedKind {
        let wanted = |kind: &ServedKind| kind.group == group && kind.version == version && kind.plural == plural;
        built_in().into_iter().find(wanted).unwrap()
    }

    #[test]
    fn events_have_two_groups() {
        let core = json!({"apiVersion": "v1", "kind": "Event", "message": "m", "involvedObject": {"name": "a"}});

        let new = to_version(&kind("events.k8s.io", "v1", "events"), &core).unwrap().unwrap();

        assert_eq!(
            new,
            json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "note": "m", "regarding": {"name": "a"}})
        );
        assert_eq!(to_version(&kind("", "v1", "events"), &new).unwrap().unwrap(), core);
    }
}

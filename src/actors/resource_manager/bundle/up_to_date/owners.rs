//! Fields of a live object that other managers own, from its `managedFields`.

use serde_json::{Map, Value};

use super::equal;

/// The fields that other managers own at one position of the live object: the branches of `fieldsV1` trees that lead to
/// it. A tree is a map with the keys `f:<field>`, `k:<keys of a list item as JSON>`, `v:<value of a list item as
/// JSON>`, `i:<index>`, and `.` for the position itself. An empty map owns everything below it.
#[derive(Debug, Clone, Default)]
pub(super) struct ForeignFields<'a> {
    branches: Vec<&'a Map<String, Value>>,
    /// The object does not tell: any field may have another owner.
    unknown: bool,
}

/// Returns true if `own_manager` was the last to change the object, as far as `managedFields` tell: their times are in
/// seconds, and they do not record removed fields. True in doubt.
pub fn was_last_changed_by(live: &Value, own_manager: &str) -> bool {
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
    let entries = entries.into_iter().flatten().filter(|entry| text(entry, "subresource") != "status");
    let (own, others): (Vec<_>, Vec<_>) = entries.partition(|entry| text(entry, "manager") == own_manager);
    // All times have the same form: `2026-01-02T03:04:05Z`.
    let last = |entries: Vec<&Value>| entries.into_iter().map(|entry| text(entry, "time").to_owned()).max();
    last(own) >= last(others)
}

fn text<'a>(entry: &'a Value, field: &str) -> &'a str {
    entry.get(field).and_then(Value::as_str).unwrap_or_default()
}

impl<'a> ForeignFields<'a> {
    /// Everything except the fields of `own_manager` and the entries for the status (which a merge never changes).
    pub(super) fn of(live: &'a Value, own_manager: &str) -> Self {
        let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
        let Some(entries) = entries.filter(|entries| !entries.is_empty()) else {
            return Self { branches: Vec::new(), unknown: true };
        };
        let mut fields = Self::default();
        for entry in entries {
            // Other subresources than the status write the spec, e.g. `scale`.
            if text(entry, "manager") == own_manager || text(entry, "subresource") == "status" {
                continue;
            }
            match entry.get("fieldsV1").and_then(Value::as_object) {
                Some(tree) => fields.branches.push(tree),
                None => fields.unknown = true,
            }
        }
        fields
    }

    pub(super) fn field(&self, name: &str) -> Self {
        if self.branches.is_empty() {
            return self.clone();
        }
        let key = format!("f:{name}");
        self.descend(|branch| branch.get(&key).and_then(Value::as_object).into_iter().collect())
    }

    /// What they own in an item of the list at this position. `live` is that item.
    pub(super) fn item(&self, index: usize, live: &Value) -> Self {
        self.descend(|branch| {
            let matching = branch.iter().filter(|(key, _)| names_item(key, index, live));
            matching.filter_map(|(_, below)| below.as_object()).collect()
        })
    }

    pub(super) fn own_something(&self) -> bool {
        self.unknown || !self.branches.is_empty()
    }

    fn descend(&self, step: impl Fn(&'a Map<String, Value>) -> Vec<&'a Map<String, Value>>) -> Self {
        let below = |branch: &&'a Map<String, Value>| if branch.is_empty() { vec![*branch] } else { step(branch) };
        Self { branches: self.branches.iter().flat_map(below).collect(), unknown: self.unknown }
    }
}

/// Returns true if a key of a `fieldsV1` tree names this list item. An unreadable key names every item, to be safe.
fn names_item(key: &str, index: usize, live: &Value) -> bool {
    let Some((form, text)) = key.split_once(':') else { return false };
    match form {
        "k" => match serde_json::from_str(text) {
            Ok(Value::Object(keys)) => {
                keys.iter().all(|(key, value)| live.get(key).is_some_and(|live| equal(live, value)))
            }
            _ => true,
        },
        "v" => serde_json::from_str(text).map_or(true, |value: Value| equal(&value, live)),
        "i" => text.parse().map_or(true, |named: usize| named == index),
        _ => false,
    }
}

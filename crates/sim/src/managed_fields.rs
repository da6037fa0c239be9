//! `metadata.managedFields`: who wrote which field last (facts §10). `field_set.rs` holds sets of fields and their JSON
//! form, `difference.rs` finds the fields that a write changed.

mod difference;
mod field_set;

use serde_json::{Value, json};

use self::{difference::Difference, field_set::FieldSet};

struct ManagedFieldsEntry {
    header: Value,
    fields: FieldSet,
}

/// Writes `metadata.managedFields` of `new`: the writer gets the fields that differ from `old`, defaults included;
/// removed fields leave all entries. Objects without entries, or sent with an empty list, stay without.
pub(super) fn record(old: Option<&Value>, new: &mut Value, manager: &str, subresource: &str, time: &str) {
    let sent = take_entries(new).filter(|_| subresource.is_empty());
    if sent.as_deref().is_some_and(is_reset) {
        return;
    }
    let live = old.map(|old| old["metadata"]["managedFields"].as_array().cloned().unwrap_or_default());
    if live.as_ref().is_some_and(Vec::is_empty) {
        return;
    }
    let present = sent.or(live).unwrap_or_default(); // a new object may bring its entries
    let mut entries: Vec<ManagedFieldsEntry> = present.into_iter().map(ManagedFieldsEntry::parse).collect();
    let difference = Difference::of(old, new, subresource);

    let api_version = new["apiVersion"].as_str().unwrap_or_default().to_owned();
    let header = header(manager, subresource, &api_version, time);
    let own = entries.iter().position(|entry| entry.is_of(&header));
    for (index, entry) in entries.iter_mut().enumerate() {
        entry.fields.subtract(&difference.removed);
        if Some(index) != own {
            entry.fields.subtract(&difference.written);
        }
    }
    if !difference.written.is_empty() {
        let mut fields = difference.written;
        if let Some(own) = own {
            fields.add(&entries.remove(own).fields);
        }
        entries.push(ManagedFieldsEntry { header, fields });
    }
    entries.retain(|entry| !entry.fields.is_empty());
    entries.sort_by_key(ManagedFieldsEntry::order);
    if !entries.is_empty() {
        new["metadata"]["managedFields"] = entries.into_iter().map(ManagedFieldsEntry::into_json).collect();
    }
}

fn take_entries(object: &mut Value) -> Option<Vec<Value>> {
    match object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")? {
        Value::Array(entries) => Some(entries),
        _ => None,
    }
}

fn is_reset(entries: &[Value]) -> bool {
    entries.iter().all(|entry| entry.as_object().is_none_or(serde_json::Map::is_empty))
}

fn header(manager: &str, subresource: &str, api_version: &str, time: &str) -> Value {
    let mut header = json!({
        "manager": manager,
        "operation": "Update",
        "apiVersion": api_version,
        "time": time,
        "fieldsType": "FieldsV1",
    });
    if !subresource.is_empty() {
        header["subresource"] = subresource.into();
    }
    header
}

impl ManagedFieldsEntry {
    fn parse(mut entry: Value) -> Self {
        let fields = entry.as_object_mut().and_then(|entry| entry.remove("fieldsV1")).unwrap_or_default();
        Self { header: entry, fields: FieldSet::parse(&fields) }
    }

    fn is_of(&self, header: &Value) -> bool {
        ["manager", "operation", "apiVersion", "subresource"]
            .into_iter()
            .all(|field| self.header.get(field) == header.get(field))
    }

    /// By time, then by name: the newest entry is last.
    fn order(&self) -> [String; 5] {
        ["operation", "time", "manager", "apiVersion", "subresource"]
            .map(|field| self.header[field].as_str().unwrap_or_default().to_owned())
    }

    fn into_json(mut self) -> Value {
        self.header["fieldsV1"] = self.fields.to_json();
        self.header
    }
}

#[cfg(test)]
mod tests;

//! The end state of a run: the objects of the cluster, without what may differ from run to run.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use serde_json::{Map, Value};
use sim::Sim;

/// Fields that count writes, or that tell an object from an earlier one of the same name.
const VOLATILE: [&str; 6] =
    ["uid", "resourceVersion", "managedFields", "generation", "observedGeneration", "creationTimestamp"];

/// Objects as JSON, by `apiVersion kind namespace/name`. A generated name is only its beginning here, so several objects may
/// have one key.
pub(super) type EndState = BTreeMap<String, Vec<String>>;

/// Returns the present state of the cluster. `<time>` and `<uid>` stand for all times and uids. CustomResourceDefinitions are
/// left out, and Events unless they count.
pub(super) fn end_state(sim: &Sim, with_events: bool, blur: fn(&mut Value)) -> EndState {
    let mut objects = sim.all_objects();
    objects.retain(|object| {
        let kind = object["kind"].as_str().unwrap_or_default();
        kind != "CustomResourceDefinition" && (with_events || kind != "Event")
    });
    let names: Vec<_> = objects.iter().filter_map(generated_name).collect();
    let mut state = EndState::new();
    for mut object in objects {
        blur(&mut object);
        normalize(&mut object, &names);
        let field = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (version, kind) = (field("/apiVersion"), field("/kind"));
        let place = format!("{version} {kind} {}/{}", field("/metadata/namespace"), field("/metadata/name"));
        state.entry(place).or_default().push(object.to_string());
    }
    state.values_mut().for_each(|texts| texts.sort());
    state
}

/// Returns the objects that differ, for people.
pub(super) fn differences(expected: &EndState, found: &EndState) -> String {
    let places: BTreeSet<_> = expected.keys().chain(found.keys()).collect();
    let show = |texts: Option<&Vec<String>>| texts.map_or_else(|| "nothing".to_owned(), |texts| texts.join("\n    "));
    let mut all = String::new();
    for place in places {
        let (before, after) = (expected.get(place), found.get(place));
        if before != after {
            let written = writeln!(all, "{place}\n  expected\n    {}\n  found\n    {}", show(before), show(after));
            written.expect("a String takes any text");
        }
    }
    all
}

/// Returns the name of an object and what stands for it, if the server chose the letters at its end.
fn generated_name(object: &Value) -> Option<(String, String)> {
    let stem = object["metadata"]["generateName"].as_str()?;
    let name = object["metadata"]["name"].as_str()?;
    Some((name.to_owned(), format!("{stem}*")))
}

fn normalize(value: &mut Value, names: &[(String, String)]) {
    match value {
        Value::Object(fields) => normalize_fields(fields, names),
        Value::Array(values) => values.iter_mut().for_each(|value| normalize(value, names)),
        Value::String(text) => *text = normalize_text(text, names),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn normalize_fields(fields: &mut Map<String, Value>, names: &[(String, String)]) {
    fields.retain(|field, _| !VOLATILE.contains(&field.as_str()));
    fields.values_mut().for_each(|value| normalize(value, names));
    // The order of entries depends on which came first.
    for list in ["conditions", "constraints"] {
        if let Some(entries) = fields.get_mut(list).and_then(Value::as_array_mut) {
            entries.sort_by_key(|entry| entry["type"].as_str().unwrap_or_default().to_owned());
        }
    }
    if let Some(finalizers) = fields.get_mut("finalizers").and_then(Value::as_array_mut) {
        finalizers.sort_by_key(Value::to_string);
    }
}

fn normalize_text(text: &str, names: &[(String, String)]) -> String {
    if text.len() >= 20 && text.parse::<jiff::Timestamp>().is_ok() {
        return "<time>".to_owned();
    }
    if is_uid(text) {
        return "<uid>".to_owned();
    }
    names.iter().fold(text.to_owned(), |text, (name, stem)| match text.contains(name.as_str()) {
        true => text.replace(name.as_str(), stem),
        false => text,
    })
}

fn is_uid(text: &str) -> bool {
    let lengths: Vec<_> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

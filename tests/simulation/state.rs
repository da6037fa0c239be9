//! The content of the simulated cluster, without the parts that may differ from run to run.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::world::World;

/// Objects by `resource namespace/name`, without uids, versions, times and `managedFields`.
pub(crate) type State = BTreeMap<String, Value>;

/// The state of the cluster without Events, which do not belong to the final state.
pub(crate) fn state(world: &World) -> State {
    let objects = world.sim.all_objects().into_iter().filter(|object| object["kind"] != "Event");
    objects.map(|object| (name(&object), essence(object))).collect()
}

pub(crate) fn differences(expected: &State, found: &State) -> String {
    let names: std::collections::BTreeSet<_> = expected.keys().chain(found.keys()).collect();
    let differing = names.into_iter().filter(|name| expected.get(*name) != found.get(*name));
    let show = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), Value::to_string);
    differing
        .map(|name| format!("{name}\n  expected {}\n  found    {}\n", show(expected.get(name)), show(found.get(name))))
        .collect()
}

fn name(object: &Value) -> String {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    format!("{} {} {}/{}", text("/apiVersion"), text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
}

fn essence(mut object: Value) -> Value {
    const VARIABLE: [&str; 5] = ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"];
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| !VARIABLE.contains(&field.as_str()));
    }
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("observedGeneration");
    }
    if let Some(conditions) = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
        for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
            condition.retain(|field, _| !field.starts_with("last"));
        }
        // Their order depends on which came first.
        conditions.sort_by_key(|condition| condition["type"].as_str().unwrap_or_default().to_owned());
    }
    object
}

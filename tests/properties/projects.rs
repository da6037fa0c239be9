//! Projects: what their RBAC objects grant, and which Namespaces they take (spec 82 A.4, A.7).

mod grants;
mod namespaces;

use serde_json::{Value, json};

/// RFC 7386 §2
fn merged(mut object: Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    if !object.is_object() {
        object = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            object.as_object_mut().expect("a generated object is a map").remove(key);
        } else {
            object[key] = merged(object[key].take(), value);
        }
    }
    object
}

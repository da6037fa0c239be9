//! RFC 6902, as far as webhooks use it (spec 50 §2.5), implemented independently as an API server applies a patch.

use serde_json::Value;

pub(super) fn applied(value: &Value, patch: &Value) -> Value {
    let mut made = value.clone();
    for step in patch.as_array().expect("a patch is a list") {
        let text = |field: &str| step[field].as_str().unwrap_or_else(|| panic!("{field} of {step}"));
        apply(&mut made, text("op"), text("path"), step.get("value"));
    }
    made
}

fn apply(value: &mut Value, operation: &str, path: &str, new: Option<&Value>) {
    let place = |text: &str| text.parse::<usize>().unwrap_or_else(|_| panic!("{path}: no position in a list"));
    let Some((above, last)) = path.rsplit_once('/') else {
        assert_eq!((path, operation), ("", "replace"));
        *value = new.expect("a value").clone();
        return;
    };
    let above = value.pointer_mut(above).unwrap_or_else(|| panic!("{path}: the parent is missing"));
    let field = last.replace("~1", "/").replace("~0", "~");
    match (above, operation, new) {
        (Value::Object(fields), "add", Some(new)) => assert_eq!(fields.insert(field, new.clone()), None, "{path}"),
        (Value::Object(fields), "remove", None) => assert!(fields.remove(&field).is_some(), "{path}"),
        (Value::Object(fields), "replace", Some(new)) => *fields.get_mut(&field).expect(path) = new.clone(),
        (Value::Array(items), "add", Some(new)) => items.insert(place(last), new.clone()),
        (Value::Array(items), "remove", None) => drop(items.remove(place(last))),
        (Value::Array(items), "replace", Some(new)) => items[place(last)] = new.clone(),
        (above, ..) => panic!("{operation} at {path} of {above}"),
    }
}

//! JSON patches (RFC 6902), with the server's one difference: `replace` of a missing field adds it.

use json_patch::PatchOperation;
use serde_json::Value;

use super::super::status::Failure;

pub(super) fn apply(value: &mut Value, operations: &[Value]) -> Result<(), Failure> {
    for operation in operations {
        let operation = adding_if_missing(value, operation.clone());
        let operation: PatchOperation =
            serde_json::from_value(operation).map_err(|_| Failure::patch_does_not_apply())?;
        json_patch::patch(value, &[operation]).map_err(|_| Failure::patch_does_not_apply())?;
    }
    Ok(())
}

/// Turns a `replace` of a missing field into an `add`. List indexes must exist.
fn adding_if_missing(value: &Value, mut operation: Value) -> Value {
    let path = operation["path"].as_str().unwrap_or_default();
    let parent = path.rsplit_once('/').and_then(|(parent, _)| value.pointer(parent));
    if operation["op"] == "replace" && value.pointer(path).is_none() && parent.is_some_and(Value::is_object) {
        operation["op"] = "add".into();
    }
    operation
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operations_change_the_object_in_their_order() {
        let mut value = json!({"data": {"a": "1"}, "list": [1]});
        let operations = [
            json!({"op": "test", "path": "/data/a", "value": "1"}),
            json!({"op": "replace", "path": "/data/b", "value": "2"}),
            json!({"op": "add", "path": "/list/-", "value": 2}),
            json!({"op": "remove", "path": "/data/a"}),
        ];

        apply(&mut value, &operations).unwrap();

        assert_eq!(value, json!({"data": {"b": "2"}, "list": [1, 2]}));
    }

    #[test]
    fn an_operation_that_fails_fails_the_patch() {
        let table = [
            json!({"op": "test", "path": "/data/a", "value": "2"}),
            json!({"op": "remove", "path": "/data/x"}),
            json!({"op": "add", "path": "/no/x", "value": 1}),
            json!({"op": "replace", "path": "/no/x", "value": 1}),
            json!({"op": "replace", "path": "/list/4", "value": 1}),
            json!({"op": "paint", "path": "/data/a"}),
            json!(3),
        ];
        for operation in table {
            let mut value = json!({"data": {"a": "1"}, "list": [1]});

            let outcome = apply(&mut value, std::slice::from_ref(&operation));

            assert_eq!(outcome, Err(Failure::patch_does_not_apply()), "{operation}");
        }
    }
}

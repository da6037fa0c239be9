use serde_json::Value;

pub(super) fn apply(value: &mut Value, patch: &Value) {
    json_patch::merge(value, patch);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_replaced_and_null_removes_them() {
        let mut value = json!({"metadata": {"labels": {"a": "b", "c": "d"}}, "list": [1, 2]});

        apply(&mut value, &json!({"metadata": {"labels": {"a": null, "e": "f"}}, "list": [3], "new": {"x": null}}));

        assert_eq!(value, json!({"metadata": {"labels": {"c": "d", "e": "f"}}, "list": [3], "new": {}}));
    }
}

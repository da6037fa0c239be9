use serde_json::Value;

pub(crate) fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(count).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

pub(crate) fn nth<'a>(value: &'a mut Value, before: &mut usize) -> Option<&'a mut Value> {
    if *before == 0 {
        return Some(value);
    }
    *before -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| nth(item, before)),
        Value::Object(fields) => fields.values_mut().find_map(|value| nth(value, before)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

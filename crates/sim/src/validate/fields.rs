use serde_json::Value;

use super::Cause;

pub(super) fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

pub(super) fn require(value: &Value, field: &str, path: &str, causes: &mut Vec<Cause>) {
    if value[field].is_null() || value[field] == "" {
        causes.push(Cause::required(path, ""));
    }
}

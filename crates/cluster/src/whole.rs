//! Checks that an answer is the requested object (fault 31).

use serde_json::Value;

use super::ApiError;

/// Returns the object, or fails, which says nothing of it, unless it has a map `metadata` and is not a `Status`.
pub(super) fn whole(object: Value) -> Result<Value, ApiError> {
    let is_status = object["kind"] == "Status" && object["apiVersion"] == "v1";
    if object["metadata"].is_object() && !is_status {
        return Ok(object);
    }
    Err(ApiError::Decode(if is_status { "it is a Status, not an object" } else { "it is not an object" }.into()))
}

/// As [`whole`], with this name (any if empty). A list fails: it would be an empty object, e.g. a Secret without data.
pub(super) fn named(object: Value, name: &str) -> Result<Value, ApiError> {
    let object = whole(object)?;
    let answered = object["metadata"]["name"].as_str().unwrap_or_default();
    if answered.is_empty() || (!name.is_empty() && answered != name) {
        return Err(ApiError::Decode("it is not the requested object".into()));
    }
    Ok(object)
}

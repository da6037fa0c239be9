//! Whether what a server answers with is the object that was meant (fault 31).

use serde_json::Value;

use super::ApiError;

/// An object as all of them are: a map with the map `metadata`, and not a word of the server about something else.
///
/// # Errors
/// If it is none. That says nothing of the object that was meant.
pub(super) fn whole(object: Value) -> Result<Value, ApiError> {
    let is_status = object["kind"] == "Status" && object["apiVersion"] == "v1";
    if object["metadata"].is_object() && !is_status {
        return Ok(object);
    }
    Err(ApiError::Decode(if is_status { "it is a Status, not an object" } else { "it is not an object" }.into()))
}

/// The object of this name; of any name if it is empty. A list is none, and would be an empty object: a Secret without data.
///
/// # Errors
/// As for [`whole`].
pub(super) fn named(object: Value, name: &str) -> Result<Value, ApiError> {
    let object = whole(object)?;
    let answered = object["metadata"]["name"].as_str().unwrap_or_default();
    if answered.is_empty() || (!name.is_empty() && answered != name) {
        return Err(ApiError::Decode("it is not the requested object".into()));
    }
    Ok(object)
}

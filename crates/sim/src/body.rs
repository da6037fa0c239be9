//! Request bodies: from bytes to an object of the right kind with tidy metadata (facts §1).

use kit::json;
use serde_json::{Map, Value};

use super::{kinds::ServedKind, request::Request, status::Failure, typed};

pub(super) const LARGEST_BODY: usize = 3_145_728;

/// The known fields of `metadata`; [`tidy`] drops all others.
const METADATA_FIELDS: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

pub(super) type Decoded = (Value, Vec<String>); // a decoded object, and the warnings for its sender

pub(super) fn decode(kind: &ServedKind, request: &Request) -> Result<Decoded, Failure> {
    match request.info.content_type.as_str() {
        "" | "application/json" => {}
        "application/yaml" | "application/vnd.kubernetes.protobuf" | "application/cbor" => {
            return Err(Failure::not_simulated("request bodies other than JSON"));
        }
        _ => return Err(Failure::unknown_body_format(kind)),
    }
    let parsed: Result<Value, _> = json::from_slice(&request.body);
    let mut value = match parsed {
        Ok(value @ Value::Object(_)) => value,
        Ok(_) => return Err(Failure::unrecognized(kind, "couldn't get version/kind; the body is no JSON object")),
        Err(error) => {
            return Err(Failure::unrecognized(kind, &format!("couldn't get version/kind; json parse error: {error}")));
        }
    };
    check_type(kind, &mut value)?;
    let refuse = |text: String| Failure::cannot_be_handled(kind, &text);
    let unknown = typed::prune(kind, &mut value).map_err(refuse)?;
    check_shape(kind, &value).map_err(refuse)?;
    let warnings =
        settle_unknown(request, &unknown).map_err(|text| refuse(format!("strict decoding error: {text}")))?;
    tidy(&mut value);
    Ok((value, warnings))
}

pub(super) fn settle_patched(kind: &ServedKind, request: &Request, mut value: Value) -> Result<Decoded, Failure> {
    if value["kind"] != kind.kind.as_str() || value["apiVersion"] != kind.api_version() {
        return Err(Failure::patched_to_another_type());
    }
    let refuse = |text: String| Failure::patch_result(&text);
    let unknown = typed::prune(kind, &mut value).map_err(refuse)?;
    check_shape(kind, &value).map_err(refuse)?;
    let warnings =
        settle_unknown(request, &unknown).map_err(|text| refuse(format!("strict decoding error: {text}")))?;
    tidy(&mut value);
    Ok((value, warnings))
}

/// Handles unknown fields by `fieldValidation`: ignores them, returns a warning for each, or fails.
fn settle_unknown(request: &Request, unknown: &[String]) -> Result<Vec<String>, String> {
    let texts: Vec<String> = unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
    match request.query.get("fieldValidation") {
        Some("Ignore") => Ok(Vec::new()),
        Some("Strict") if !texts.is_empty() => Err(texts.join(", ")),
        _ => Ok(texts),
    }
}

fn check_type(kind: &ServedKind, value: &mut Value) -> Result<(), Failure> {
    let api_version = value["apiVersion"].as_str().unwrap_or_default().to_owned();
    let name = value["kind"].as_str().unwrap_or_default().to_owned();
    if kind.custom {
        if name.is_empty() {
            return Err(Failure::unrecognized(kind, "Object 'Kind' is missing in the body"));
        }
        if api_version != kind.api_version() {
            return Err(Failure::bad_request(&format!(
                "the API version in the data ({api_version}) does not match the expected API version ({})",
                kind.api_version()
            )));
        }
        if name != kind.kind {
            return Err(Failure::wrong_custom_kind(
                kind,
                value["metadata"]["name"].as_str().unwrap_or_default(),
                &name,
            ));
        }
    } else if (!name.is_empty() && name != kind.kind) || (!api_version.is_empty() && api_version != kind.api_version())
    {
        let version = api_version.split('/').next_back().unwrap_or_default();
        return Err(Failure::bad_request(&format!(
            "{name} in version \"{version}\" cannot be handled as a {}: converting ({api_version}, Kind={name}) is not possible",
            kind.kind
        )));
    }
    value["apiVersion"] = kind.api_version().into();
    value["kind"] = kind.kind.clone().into();
    Ok(())
}

/// Checks only the parts that each kind has; the simulator does not know the types of all fields.
pub(super) fn check_shape(kind: &ServedKind, value: &Value) -> Result<(), String> {
    let parts: &[&str] = if kind.custom { &["metadata"] } else { &["metadata", "spec", "status"] };
    let lists = ["finalizers", "ownerReferences", "managedFields"].map(|field| (field, &value["metadata"][field]));
    let maps = ["labels", "annotations"].map(|field| (field, &value["metadata"][field]));
    let wrong_part = parts.iter().find(|part| !value[**part].is_object() && !value[**part].is_null());
    let wrong_list = lists.iter().find(|(_, list)| !list.is_array() && !list.is_null());
    let wrong_map = maps.iter().find(|(_, map)| {
        !map.is_null()
            && !map.as_object().is_some_and(|map| map.values().all(|text| text.is_string() || text.is_null()))
    });
    let field = match (wrong_part, wrong_list, wrong_map) {
        (Some(part), ..) => (*part).to_owned(),
        (_, Some((field, _)), _) | (_, _, Some((field, _))) => format!("metadata.{field}"),
        (None, None, None) => return Ok(()),
    };
    Err(format!("json: cannot unmarshal the value of {field} into its Go type"))
}

/// Drops unknown, null and empty fields of `metadata`, as typed metadata does.
pub(super) fn tidy(value: &mut Value) {
    if !value["metadata"].is_object() {
        value["metadata"] = Value::Object(Map::new());
    }
    if let Some(metadata) = value["metadata"].as_object_mut() {
        metadata.retain(|field, content| {
            let empty = match &*content {
                Value::Null => true,
                Value::String(text) => text.is_empty(),
                Value::Object(map) => map.is_empty(),
                // An empty list of managed fields asks the server to forget them.
                Value::Array(list) => list.is_empty() && field != "managedFields",
                Value::Bool(_) | Value::Number(_) => false,
            };
            METADATA_FIELDS.contains(&field.as_str()) && !empty
        });
    }
}

pub(super) fn metadata(value: &mut Value) -> &mut Map<String, Value> {
    if !value["metadata"].is_object() {
        value["metadata"] = Value::Object(Map::new());
    }
    match &mut value["metadata"] {
        Value::Object(metadata) => metadata,
        _ => unreachable!("it was just made an object"),
    }
}

pub(super) fn settle_namespace(kind: &ServedKind, value: &mut Value, namespace: &str) -> Result<(), Failure> {
    let metadata = metadata(value);
    if !kind.namespaced {
        metadata.remove("namespace");
        return Ok(());
    }
    match metadata.get("namespace").and_then(Value::as_str) {
        Some(other) if other != namespace => Err(Failure::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )),
        _ => {
            metadata.insert("namespace".into(), namespace.into());
            Ok(())
        }
    }
}

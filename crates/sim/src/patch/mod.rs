//! PATCH bodies (facts §5): merge patches (RFC 7386), JSON patches (RFC 6902), strategic ones; no apply patches.

mod json;
mod merge;
mod strategic;

use kit::json as deep_json;
use serde_json::Value;

use super::{kinds::ServedKind, status::Failure};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Patch {
    Merge(Value),
    /// The operations, not checked yet.
    Json(Vec<Value>),
    Strategic(Value),
}

impl Patch {
    /// `content_type` is a media type without parameters.
    pub(super) fn parse(kind: &ServedKind, content_type: &str, body: &[u8]) -> Result<Self, Failure> {
        match content_type {
            "application/merge-patch+json" => Ok(Self::Merge(object(body)?)),
            "application/json-patch+json" => match decode(body)? {
                Value::Array(operations) => Ok(Self::Json(operations)),
                _ => Err(bad("json: cannot unmarshal object into Go value of type jsonpatch.Patch")),
            },
            "application/strategic-merge-patch+json" if kind.custom => Err(Failure::unknown_custom_patch()),
            "application/strategic-merge-patch+json" => Ok(Self::Strategic(object(body)?)),
            "application/apply-patch+yaml" | "application/apply-patch+cbor" => {
                Err(Failure::not_simulated("server-side apply"))
            }
            _ => Err(Failure::unsupported_media_type()),
        }
    }

    pub(super) fn apply(&self, kind: &ServedKind, live: &Value) -> Result<Value, Failure> {
        let mut value = live.clone();
        match self {
            Self::Merge(patch) => merge::apply(&mut value, patch),
            Self::Json(operations) => json::apply(&mut value, operations)?,
            Self::Strategic(patch) => strategic::apply(&kind.kind, &mut value, patch)?,
        }
        if value.is_object() { Ok(value) } else { Err(Failure::patch_result("the result is no JSON object")) }
    }
}

fn decode(body: &[u8]) -> Result<Value, Failure> {
    deep_json::from_slice(body).map_err(|error| bad(&error.to_string()))
}

fn object(body: &[u8]) -> Result<Value, Failure> {
    match decode(body)? {
        value @ Value::Object(_) => Ok(value),
        _ => Err(bad("json: the patch is no JSON object")),
    }
}

fn bad(text: &str) -> Failure {
    Failure::bad_request(&format!("error decoding patch: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    #[test]
    fn patch_bodies_and_types_that_do_not_fit_are_refused() {
        let built_in = kinds::built_in().into_iter().find(|kind| kind.plural == "configmaps").unwrap();
        let custom = ServedKind { custom: true, ..built_in.clone() };
        let table = [
            (&built_in, "application/merge-patch+json", "[]", 400),
            (&built_in, "application/merge-patch+json", "{", 400),
            (&built_in, "application/json-patch+json", "{}", 400),
            (&custom, "application/strategic-merge-patch+json", "{}", 415),
            (&built_in, "application/json", "{}", 415),
            (&built_in, "application/apply-patch+yaml", "{}", 501),
        ];
        for (kind, content_type, body, code) in table {
            let failure = Patch::parse(kind, content_type, body.as_bytes()).unwrap_err();

            assert_eq!(failure.code, code, "{content_type} {body}");
        }
    }
}

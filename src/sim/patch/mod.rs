//! stand-in
use super::{kinds::Kind, status::Failure};
use serde_json::Value;
pub(super) enum Patch {
    Merge(Value),
    Json(json_patch::Patch),
}
impl Patch {
    pub(super) fn parse(_: &Kind, content_type: &str, body: &[u8]) -> Result<Self, Failure> {
        let bad = |e: serde_json::Error| Failure::bad_request(&format!("error decoding patch: {e}"));
        match content_type {
            "application/merge-patch+json" => Ok(Self::Merge(serde_json::from_slice(body).map_err(bad)?)),
            "application/json-patch+json" => Ok(Self::Json(serde_json::from_slice(body).map_err(bad)?)),
            "application/apply-patch+yaml" | "application/strategic-merge-patch+json" => {
                Err(Failure::not_simulated("this patch type"))
            }
            _ => Err(Failure::unsupported_media_type()),
        }
    }
    pub(super) fn apply(&self, _: &Kind, live: &Value) -> Result<Value, Failure> {
        let mut value = live.clone();
        match self {
            Self::Merge(patch) => json_patch::merge(&mut value, patch),
            Self::Json(patch) => json_patch::patch(&mut value, patch).map_err(|_| Failure::patch_does_not_apply())?,
        }
        Ok(value)
    }
}

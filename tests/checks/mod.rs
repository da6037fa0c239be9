//! What holds for any input of what is pure: the steps of a pass (decode, plan, merge) and the webhooks.
//!
//! Each check takes one input and panics if a property is broken. Three things call them: `tests/properties.rs` with
//! generated values, `tests/fuzz_corpora.rs` with the files of `fuzz/corpus/`, and the targets in `fuzz/`, which search for
//! inputs that reach code nothing has reached before.
//!
//! * [`decode`]: bytes of a data key. Bounds, errors without content, one object in two languages.
//! * [`plan`]: manifests and old references. Nothing that is wanted is removed, nothing is forgotten.
//! * [`merge`]: manifest and live object. Idempotence, and no field lost or made up.
//! * [`mutate`]: any object and a cluster. Idempotence, no change where a webhook has no business, bounds, and the patch.
//! * [`review`]: bytes of a request to a webhook. What is read, what is answered, texts without content, bounds.
//! * [`validate`]: objects for validating webhooks. One answer, bounds, texts without content, what may not make a difference.

#![allow(unreachable_pub, reason = "for the fuzz targets these modules are part of a library")]

pub mod decode;
mod fields;
pub mod merge;
pub mod mutate;
mod patch;
pub mod plan;
pub mod review;
pub mod validate;

use gardener_resource_manager::{
    api::object::GroupVersionKind,
    bundle::decode::{Decoder, Limits, SecretData},
};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The objects of an input of [`merge`], [`mutate`] or [`plan`], which is a stream like that of a data key. `None` if some of it is no
/// object; that is no finding, the decoder has a check of its own.
pub fn objects(input: &[u8]) -> Option<Vec<Value>> {
    let data = [("k".to_owned(), input.to_owned())].into();
    let secret = SecretData { namespace: "ns", name: "secret", data: &data };
    // The threads of fuzzers and of the test harness have small stacks.
    let limits = Limits { depth: 100, ..Limits::default() };
    Decoder::new([secret], limits).map(|item| item.ok().map(|document| document.manifest)).collect()
}

/// The first object as settings, and the others.
fn settings_and_objects<S: DeserializeOwned>(input: &[u8]) -> Result<(S, impl Iterator<Item = Value>), String> {
    let mut objects = objects(input).ok_or("no stream of objects")?.into_iter();
    let settings = serde_json::from_value(objects.next().ok_or("no settings")?).map_err(|error| error.to_string())?;
    Ok((settings, objects))
}

/// What an object says it is; what is missing or no text is empty.
fn kind_of(object: &Value) -> GroupVersionKind {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    GroupVersionKind::from_api_version(text("apiVersion"), text("kind"))
}

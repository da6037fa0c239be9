//! Properties that hold for every input of the pure code: decode, plan and merge of a reconcile, and the webhooks. Each
//! check takes one input and panics if a property is broken. Three callers: `tests/properties` with generated values,
//! `tests/fuzz_corpora.rs` with `fuzz/corpus/`, and the targets in `fuzz/`, which search for new code paths.
//! * [`decode`]: bytes of a data key. Bounds, errors without content, the same object from JSON and YAML.
//! * [`plan`]: manifests and old references. No wanted object is pruned, no reference is forgotten.
//! * [`merge`]: manifest and live object. Idempotence; no field is lost or invented.
//! * [`mutate`]: an object and a cluster. Idempotence, no change outside of a webhook's task, bounds, and the patch.
//! * [`review`]: bytes of a request to a webhook. What is read and answered, texts without content, bounds.
//! * [`validate`]: objects for validating webhooks. One answer, bounds, texts without content, irrelevant fields.

#![allow(unreachable_pub, reason = "for the fuzz targets these modules are part of a library")]

pub mod decode;
mod fields;
pub mod merge;
pub mod mutate;
mod patch;
pub mod plan;
pub mod review;
pub mod validate;

use cluster::object::GroupVersionKind;
use gardener_resource_manager::actors::resource_manager::bundle::decode::{Decoder, Limits, SecretData};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Returns the objects of a stream, the input of [`merge`], [`mutate`] and [`plan`]. `None` if a document is no object.
pub fn objects(input: &[u8]) -> Option<Vec<Value>> {
    let data = [("k".to_owned(), input.to_owned())].into();
    let secret = SecretData { namespace: "ns", name: "secret", data: &data };
    // The threads of fuzzers and of the test harness have small stacks.
    let limits = Limits { depth: 100, ..Limits::default() };
    Decoder::new([secret], limits).map(|item| item.ok().map(|document| document.manifest)).collect()
}

fn settings_and_objects<S: DeserializeOwned>(input: &[u8]) -> Result<(S, impl Iterator<Item = Value>), String> {
    let mut objects = objects(input).ok_or("no stream of objects")?.into_iter();
    let settings = serde_json::from_value(objects.next().ok_or("no settings")?).map_err(|error| error.to_string())?;
    Ok((settings, objects))
}

fn kind_of(object: &Value) -> GroupVersionKind {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    GroupVersionKind::from_api_version(text("apiVersion"), text("kind"))
}

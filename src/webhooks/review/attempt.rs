//! One attempt of a webhook at a review.

use cluster::object::GroupVersionKind;
use serde_json::Value;

use super::{
    Review, ReviewVerdict,
    patch::{Operation, difference},
};
use crate::webhooks::{
    mutating::{Mutation, Mutator, Request},
    panics::caught,
    view::{Failure, Lookup, View},
};

/// Row 6 of spec 50 §2.2.
const NO_CONTENT: &str = "there is no content to decode";

/// Runs a webhook on a review; a panic is a verdict too. Fails with what must be read live before the next attempt.
pub fn attempt(mutator: &dyn Mutator, review: &Review, view: &dyn View) -> Result<ReviewVerdict, Lookup> {
    match caught(|| judge(mutator, review, view)) {
        Ok(Ok(verdict)) => Ok(verdict),
        Ok(Err(Failure::ReadLive(lookup))) => Err(lookup),
        Ok(Err(Failure::Denied(message))) => Ok(ReviewVerdict::Denied(message)),
        Ok(Err(Failure::Status(status))) => Ok(ReviewVerdict::Status(status)),
        Ok(Err(Failure::ReadFailed { read, message })) => Ok(ReviewVerdict::ReadFailed { read, message }),
        Ok(Err(Failure::Errored { code, message })) => Ok(ReviewVerdict::Errored { code, message }),
        Err(panic) => Ok(ReviewVerdict::Panicked(panic)),
    }
}

fn judge(mutator: &dyn Mutator, review: &Review, view: &dyn View) -> Result<ReviewVerdict, Failure> {
    let before = match &review.object {
        object if mutator.sees_everything() => object.as_ref().unwrap_or(&Value::Null),
        _ if review.operation == "DELETE" => return Ok(ReviewVerdict::Allowed),
        object => decoded(mutator, object.as_ref())?,
    };
    let request = Request {
        kind: review.kind.clone(),
        namespace: &review.namespace,
        name: &review.name,
        operation: &review.operation,
    };
    let mut after = before.clone();
    match mutator.mutate(&mut after, &request, view)? {
        Mutation::Unexpected(message) => Ok(ReviewVerdict::Unexpected(message)),
        Mutation::Done => Ok(verdict_of(&difference(before, &after))),
    }
}

fn verdict_of(operations: &[Operation<'_>]) -> ReviewVerdict {
    if operations.is_empty() {
        return ReviewVerdict::Allowed;
    }
    match serde_json::to_vec(operations) {
        Ok(patch) => ReviewVerdict::Patched(patch),
        Err(error) => ReviewVerdict::Errored { code: 500, message: format!("cannot encode the patch: {error}") },
    }
}

/// Rows 6 and 7 of spec 50 §2.2.
fn decoded<'a>(mutator: &dyn Mutator, object: Option<&'a Value>) -> Result<&'a Value, Failure> {
    let errored = |message| Failure::Errored { code: 400, message };
    let object = object.ok_or_else(|| errored(NO_CONTENT.to_owned()))?;
    check_kind(mutator, object).map_err(errored)?;
    Ok(object)
}

/// Row 7 of spec 50 §2.2. An object without kind counts as the kind that the webhook takes. The version does not
/// matter, because no field that webhooks read depends on it.
fn check_kind(mutator: &dyn Mutator, object: &Value) -> Result<(), String> {
    if !object.is_object() {
        return Err("the object is not a map".to_owned());
    }
    let Some((group, kind)) = mutator.takes() else { return Ok(()) };
    let text = |field| object.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let (api_version, found) = (text("apiVersion"), text("kind"));
    let of_group = api_version.is_none_or(|text| GroupVersionKind::from_api_version(text, "").group == group);
    if of_group && found.is_none_or(|found| found == kind) {
        return Ok(());
    }
    let group = if group.is_empty() { "core" } else { group };
    let (api_version, found) = (api_version.unwrap_or_default(), found.unwrap_or_default());
    Err(format!("unable to decode {api_version}, Kind={found} as a {kind} of the group {group}"))
}

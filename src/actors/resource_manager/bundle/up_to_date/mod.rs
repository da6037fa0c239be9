//! Whether a merged object needs to be sent (spec 10 §11.3.3, architecture §6 "Up to date"). [`differs`] compares
//! strictly, as the specification says; nearly every object with defaults from the API server differs. [`up_to_date`]
//! ignores defaults, so that a restart does not send every object again. [`must_be_sent`] combines both. [`expected`] returns the result of sending it,
//! for `diff`.

mod expected;
mod owners;

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Number, Value};

use self::owners::ForeignFields;
pub use self::{expected::expected, owners::was_last_changed_by};
use super::identity;
use crate::api::meta::quantity;

/// Fields that hold amounts of resources, in kinds of the API server itself.
const AMOUNT_MAPS: [&str; 5] = ["requests", "limits", "capacity", "hard", "podFixed"];
/// The same, in a `LimitRange` only: elsewhere these names mean other things.
const LIMIT_RANGE_MAPS: [&str; 5] = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];
const AMOUNTS: [&str; 3] = ["sizeLimit", "divisor", "averageValue"];

/// Fields beside the body: metadata is compared separately, and a merge keeps the status.
const BESIDE_THE_BODY: [&str; 2] = ["metadata", "status"];

#[derive(Clone, Copy)]
struct Comparison {
    /// The API server rewrites amounts in these kinds. Custom objects keep their text.
    amounts: bool,
    limit_range: bool,
}

#[derive(Clone, Copy)]
enum Holder<'a> {
    Object,
    Field(&'a str),
    List,
}

/// Returns true if the merged object must be sent. `knows_defaults` says whether further fields of our own manager count
/// as defaults (see [`up_to_date`]). It is called if the objects differ.
pub fn must_be_sent(merged: &Value, live: &Value, own_manager: &str, knows_defaults: impl FnOnce() -> bool) -> bool {
    differs(merged, live) && !(knows_defaults() && up_to_date(merged, live, own_manager))
}

/// Returns true if two objects differ in the sense of spec 10 §11.3: then the merged one is sent. Numbers are compared
/// by value. `null`, an empty map and an empty list are equal; an absent field equals none of them.
pub fn differs(merged: &Value, live: &Value) -> bool {
    !equal(merged, live)
}

/// Returns true if sending the merged object would change nothing: the live object has each of its fields, and each
/// further live field is a default or was allocated by the API server, because `managedFields` name no *other* manager
/// than `own_manager` as its owner. Further fields of our own count as defaults; a field that the manifest *no longer*
/// has looks the same. So the answer is valid only while the manifest is the last one applied with success. The caller
/// knows that from the status (checksum, generation, `ResourcesApplied`) or from its memory of the object. Labels,
/// annotations, owner references and all other metadata must be equal, since a merge starts from the live ones. The
/// status is ignored: a merge never changes it. In doubt the answer is false: to send an up-to-date object does no
/// harm.
pub fn up_to_date(merged: &Value, live: &Value, own_manager: &str) -> bool {
    let (Some(merged_fields), Some(live_fields)) = (merged.as_object(), live.as_object()) else { return false };
    let (comparison, merged_fields) = Comparison::of(merged, merged_fields, live_fields);
    equal(&merged["metadata"], &live["metadata"])
        && comparison.covers_map(&merged_fields, live_fields, &ForeignFields::of(live, own_manager), Holder::Object)
}

/// Deep equality: `null`, the empty map and the empty list are equal, and numbers are compared by value.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Null, other) | (other, Value::Null) => is_empty(other),
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Number(a), Value::Number(b)) => same_number(a, b),
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        _ => false,
    }
}

/// Returns true for values that the API server treats like an absent field.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// By value: `1` and `1.0` are the same, and integers are compared exactly.
pub(super) fn same_number(a: &Number, b: &Number) -> bool {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => a == b,
        (Some(integer), None) => b.as_f64().is_some_and(|float| is_integer(float, integer)),
        (None, Some(integer)) => a.as_f64().is_some_and(|float| is_integer(float, integer)),
        (None, None) => a.as_f64() == b.as_f64(),
    }
}

fn is_integer(float: f64, integer: i128) -> bool {
    float.fract() == 0.0 && float as i128 == integer
}

/// The fields of a merged Secret as the API server stores them: `stringData` overlays `data`, and is not returned.
/// Returns `None` if there is nothing to resolve.
fn without_string_data(merged: &Map<String, Value>, live: &Map<String, Value>) -> Option<Map<String, Value>> {
    let string_data = merged.get("stringData")?.as_object()?;
    if live.contains_key("stringData") {
        return None;
    }
    let mut resolved = merged.clone();
    resolved.remove("stringData");
    let mut data = merged.get("data").and_then(Value::as_object).cloned().unwrap_or_default();
    for (key, text) in string_data {
        data.insert(key.clone(), Value::String(STANDARD.encode(text.as_str()?)));
    }
    if !data.is_empty() {
        resolved.insert("data".to_owned(), Value::Object(data));
    }
    Some(resolved)
}

impl Comparison {
    /// Also returns the fields of the merged object as they are compared.
    fn of<'a>(
        merged: &Value,
        merged_fields: &'a Map<String, Value>,
        live_fields: &Map<String, Value>,
    ) -> (Self, Cow<'a, Map<String, Value>>) {
        let gvk = identity::gvk_of(merged);
        let is_core = |kind: &str| gvk.group.is_empty() && gvk.kind == kind;
        let comparison = Self {
            amounts: identity::is_built_in_group(&gvk.group) && gvk.kind != "CustomResourceDefinition",
            limit_range: is_core("LimitRange"),
        };
        let resolved = if is_core("Secret") { without_string_data(merged_fields, live_fields) } else { None };
        (comparison, resolved.map_or(Cow::Borrowed(merged_fields), Cow::Owned))
    }

    /// Returns true if live has each merged field, and no other manager owns the rest of live.
    fn covers_map(
        self,
        merged: &Map<String, Value>,
        live: &Map<String, Value>,
        foreign: &ForeignFields<'_>,
        holder: Holder<'_>,
    ) -> bool {
        let amounts = matches!(holder, Holder::Field(field) if self.holds_amounts(field));
        let is_compared = |(name, value): &(&String, &Value)| {
            // A null asks for nothing: what the API server fills in there is a default like any other.
            !(value.is_null() || matches!(holder, Holder::Object) && BESIDE_THE_BODY.contains(&name.as_str()))
        };
        let merged_are_covered = merged.iter().filter(is_compared).all(|(name, value)| {
            let Some(live) = live.get(name) else { return false };
            (amounts || self.is_amount(name)) && quantity::same_amount(value, live)
                || self.covers(value, live, &foreign.field(name), Holder::Field(name))
        });
        let is_further = |(name, value): &(&String, &Value)| match merged.get(*name) {
            Some(merged) => merged.is_null() && !is_empty(value),
            None => true,
        };
        let mut further = live.iter().filter(is_compared).filter(is_further);
        merged_are_covered && further.all(|(name, _)| !foreign.field(name).own_something())
    }

    fn covers(self, merged: &Value, live: &Value, foreign: &ForeignFields<'_>, holder: Holder<'_>) -> bool {
        match (merged, live) {
            (Value::Object(merged), Value::Object(live)) => self.covers_map(merged, live, foreign, holder),
            (Value::Array(merged), Value::Array(live)) => {
                let mut items = merged.iter().zip(live).enumerate();
                merged.len() == live.len()
                    && items.all(|(index, (merged, live))| {
                        self.covers(merged, live, &foreign.item(index, live), Holder::List)
                    })
            }
            _ => equal(merged, live),
        }
    }

    fn holds_amounts(self, field: &str) -> bool {
        self.amounts && AMOUNT_MAPS.contains(&field) || self.limit_range && LIMIT_RANGE_MAPS.contains(&field)
    }

    fn is_amount(self, field: &str) -> bool {
        self.amounts && AMOUNTS.contains(&field)
    }
}

#[cfg(test)]
mod tests;

//! Whether a merged object needs to be sent (spec 10 §11.3.3, architecture §6 "Settled").
//!
//! Two answers to that question. [`differs`] compares strictly, as the specification says; it calls nearly every
//! object different that the API server has given defaults. [`settled`] looks through defaults: it is what keeps a
//! restart from sending every object once more.
//!
//! [`expected`] tells what would come out of it, for `diff`.

mod expected;
mod owners;

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Number, Value};

use self::owners::ForeignFields;
pub use self::{expected::expected, owners::was_last_changed_by};
use super::identity;
use crate::api::quantity;

/// Fields that hold amounts of resources, in the kinds the API server itself serves.
const AMOUNT_MAPS: [&str; 5] = ["requests", "limits", "capacity", "hard", "podFixed"];
/// The same in a `LimitRange` only: elsewhere these names mean anything.
const LIMIT_RANGE_MAPS: [&str; 5] = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];
/// Fields that are one amount.
const AMOUNTS: [&str; 3] = ["sizeLimit", "divisor", "averageValue"];

/// Fields of an object that are no part of its body: metadata is compared for itself, and a merge keeps the status.
const BESIDE_THE_BODY: [&str; 2] = ["metadata", "status"];

/// Compares merged with live, knowing where amounts are written.
#[derive(Clone, Copy)]
struct Comparison {
    /// The API server rewrites amounts in these kinds. Custom objects keep the text they were given.
    amounts: bool,
    limit_range: bool,
}

/// What a map is the value of.
#[derive(Clone, Copy)]
enum Holder<'a> {
    /// The object itself.
    Object,
    /// A field of that name.
    Field(&'a str),
    /// A list.
    List,
}

/// Whether two objects differ in the sense of spec 10 §11.3: then the merged one is sent.
///
/// Numbers are compared by value. `null`, an empty map and an empty list are equal; an absent field equals none of
/// them.
pub fn differs(merged: &Value, live: &Value) -> bool {
    !equal(merged, live)
}

/// Whether sending the merged object would change nothing.
///
/// It would not if each of its fields is so in the live object, and each further field of the live object is either a
/// default or was allocated by the API server: no *other* manager than `own_manager` owns it, as the live object's
/// `managedFields` say. Further fields of our own are taken for defaults; a field that the manifest *no longer* has
/// looks the same. So the answer is good only while the manifest is the one that was last attempted, with success, which
/// the caller knows from the status (checksum, generation, `ResourcesApplied`) or from what it remembers of the object.
///
/// Labels, annotations, owner references and all other metadata must be equal, since a merge starts from the live
/// ones. The status is passed over: a merge never changes it. On any doubt the answer is no: to send an object that is
/// settled does no harm.
pub fn up_to_date(merged: &Value, live: &Value, own_manager: &str) -> bool {
    let (Some(merged_fields), Some(live_fields)) = (merged.as_object(), live.as_object()) else { return false };
    let (comparison, merged_fields) = Comparison::of(merged, merged_fields, live_fields);
    equal(&merged["metadata"], &live["metadata"])
        && comparison.covers_map(&merged_fields, live_fields, &ForeignFields::of(live, own_manager), Holder::Object)
}

/// Deep equality with `null`, the empty map and the empty list as one, and numbers by value.
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

fn is_empty(value: &Value) -> bool {
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
/// `None` if there is nothing to resolve.
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
    /// With the fields of the merged object as they are compared.
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

    /// Each merged field is so in live, and the rest of live is nobody else's.
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

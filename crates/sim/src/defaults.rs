//! Defaults: what the server fills in or rewrites before it stores an object (facts §9), one file per family of kinds.

mod allocations;
mod pod;
mod quantity;
mod service;
mod shape;
mod simple;
mod status;
mod workload;

use serde_json::{Map, Value};

pub(super) use self::{allocations::Allocations, quantity::numbers_to_texts};
use super::{kinds::ServedKind, schema, status::Failure};

/// Completes an object before it is stored; `old` is its stored state. A failed call takes no addresses or ports.
pub(super) fn apply(
    kind: &ServedKind,
    new: &mut Value,
    old: Option<&Value>,
    allocations: &mut Allocations,
) -> Result<(), Failure> {
    if kind.custom {
        if let Some(schema) = &kind.schema {
            schema::prune(schema, new);
            schema::fill(schema, new);
        }
        return Ok(());
    }
    shape::tidy(kind, new);
    match kind.resource() {
        ("", "pods") => pod::pod(new, old.is_none()),
        ("", "podtemplates") => pod::template(child(new, "template")),
        ("", "services") => service::apply(kind, new, old, allocations)?,
        ("" | "apps" | "batch", _) if workload::apply(kind, new, old) => {}
        _ => simple::apply(kind, new, old),
    }
    if old.is_none() {
        status::initialize(kind, new);
    }
    Ok(())
}

fn child<'v>(value: &'v mut Value, field: &str) -> &'v mut Value {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let child = &mut value[field];
    if !child.is_object() {
        *child = Value::Object(Map::new());
    }
    child
}

fn fill(value: &mut Value, field: &str, default: impl Into<Value>) {
    if let Value::Object(fields) = value
        && fields.get(field).is_none_or(Value::is_null)
    {
        fields.insert(field.into(), default.into());
    }
}

fn items<'v>(value: &'v mut Value, field: &str) -> impl Iterator<Item = &'v mut Value> {
    let items = value.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten();
    items.filter(|item| item.is_object())
}

fn remove(value: &mut Value, field: &str) {
    if let Value::Object(fields) = value {
        fields.remove(field);
    }
}

fn empty() -> Value {
    Value::Object(Map::new())
}

#[cfg(test)]
mod tests;

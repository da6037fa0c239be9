use anyhow::{Result, bail};
use serde_json::Value;

pub(crate) fn equal(what: &str, got: &Value, expected: &Value) -> Result<()> {
    if got == expected {
        return Ok(());
    }
    bail!("{what}\n    expected {expected}\n    got      {got}")
}

pub(crate) fn includes(what: &str, got: &Value, expected: &Value) -> Result<()> {
    if contains(got, expected) {
        return Ok(());
    }
    bail!("{what}\n    expected at least {expected}\n    got               {got}")
}

pub(crate) fn absent(got: &Value, pointer: &str) -> Result<()> {
    match got.pointer(pointer) {
        None => Ok(()),
        Some(value) => bail!("{pointer}\n    expected to be absent\n    got      {value}"),
    }
}

pub(crate) fn holds(condition: bool, what: &str, got: &Value) -> Result<()> {
    if condition {
        return Ok(());
    }
    bail!("{what}\n    got      {got}")
}

fn contains(got: &Value, expected: &Value) -> bool {
    match (got, expected) {
        (Value::Object(got), Value::Object(expected)) => {
            expected.iter().all(|(key, value)| got.get(key).is_some_and(|got| contains(got, value)))
        }
        (Value::Array(got), Value::Array(expected)) => {
            got.len() == expected.len() && got.iter().zip(expected).all(|(got, expected)| contains(got, expected))
        }
        _ => got == expected,
    }
}

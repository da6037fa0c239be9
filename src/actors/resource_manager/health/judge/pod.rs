use kit::quote::quoted;
use serde_json::Value;

use crate::actors::resource_manager::health::fields::{Check, bad, text};

pub(super) fn check(object: &Value) -> Check {
    let phase = text(object, "status.phase")?;
    if matches!(phase, "Running" | "Succeeded") {
        return Ok(());
    }
    bad(format!("pod is in invalid phase {} (expected one of [\"Running\" \"Succeeded\"])", quoted(phase)))
}

use kit::quote::quoted;
use serde_json::Value;

use crate::actors::resource_manager::health::fields::{Check, bad, may_be, text};

pub(super) fn of_certificate(object: &Value) -> Check {
    may_be(object, "Ready", "True")?;
    is_ready(object, "certificate")
}

pub(super) fn of_issuer(object: &Value) -> Check {
    is_ready(object, "issuer")
}

fn is_ready(object: &Value, name: &str) -> Check {
    match text(object, "status.state")? {
        "Ready" => Ok(()),
        state => bad(format!("{name} state is {} (\"Ready\" expected)", quoted(state))),
    }
}

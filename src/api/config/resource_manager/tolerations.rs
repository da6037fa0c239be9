//! Rules of tolerations (spec 70 §4.1).

use kit::quote::quoted;
use process::config::{FieldError, json};

use super::Toleration;
use crate::api::meta::field::formats;

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const OPERATORS: [&str; 2] = ["Equal", "Exists"];

const EXISTS_WITHOUT_KEY: &str =
    "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
const NO_EXECUTE: &str = "effect must be 'NoExecute' when `tolerationSeconds` is set";
const EXISTS_WITHOUT_VALUE: &str = "value must be empty when `operator` is 'Exists'";

pub(super) fn validate(errors: &mut Vec<FieldError>, path: &str, toleration: &Toleration) {
    let Toleration { key, operator, value, effect, toleration_seconds } = toleration;
    let (operator_path, effect_path) = (format!("{path}.operator"), format!("{path}.effect"));

    if !key.is_empty() {
        let texts = formats::qualified_name(key).into_iter();
        errors.extend(texts.map(|text| FieldError::invalid(format!("{path}.key"), quoted(key), text)));
    } else if operator != "Exists" {
        errors.push(FieldError::invalid(&operator_path, quoted(operator), EXISTS_WITHOUT_KEY));
    }
    if toleration_seconds.is_some() && effect != "NoExecute" {
        errors.push(FieldError::invalid(&effect_path, quoted(effect), NO_EXECUTE));
    }
    match operator.as_str() {
        "" | "Equal" => {
            let texts = formats::label_value(value);
            if !texts.is_empty() {
                errors.push(FieldError::invalid(&operator_path, quoted(value), texts.join(";")));
            }
        }
        // Shows the whole toleration: fields in the order of the API, without empty ones.
        "Exists" if !value.is_empty() => {
            errors.push(FieldError::invalid(&operator_path, json(toleration), EXISTS_WITHOUT_VALUE));
        }
        "Exists" => {}
        _ => errors.push(FieldError::unsupported(&operator_path, operator, &OPERATORS)),
    }
    if !effect.is_empty() && !EFFECTS.contains(&effect.as_str()) {
        errors.push(FieldError::unsupported(&effect_path, effect, &EFFECTS));
    }
}

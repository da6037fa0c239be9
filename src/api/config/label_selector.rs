//! Rules of label selectors (spec 80 §5.1).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kit::quote::quoted;
use process::config::FieldError;

use crate::api::meta::field::formats;

const VALUES_REQUIRED: &str = "must be specified when `operator` is 'In' or 'NotIn'";
const VALUES_FORBIDDEN: &str = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";

/// Adds an error for each broken rule of the selector at `path`.
pub(super) fn validate(errors: &mut Vec<FieldError>, path: &str, selector: &LabelSelector) {
    for (key, value) in selector.match_labels.iter().flatten() {
        invalid(errors, &format!("{path}.matchLabels"), key, formats::qualified_name(key));
        invalid(errors, &format!("{path}.matchLabels"), value, formats::label_value(value));
    }
    for (index, expression) in selector.match_expressions.iter().flatten().enumerate() {
        let path = format!("{path}.matchExpressions[{index}]");
        let values = expression.values.as_deref().unwrap_or_default();
        match expression.operator.as_str() {
            "In" | "NotIn" if values.is_empty() => {
                errors.push(FieldError::required(format!("{path}.values"), VALUES_REQUIRED));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                errors.push(FieldError::forbidden(format!("{path}.values"), VALUES_FORBIDDEN));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                let detail = "not a valid selector operator";
                errors.push(FieldError::invalid(format!("{path}.operator"), quoted(other), detail));
            }
        }
        invalid(errors, &format!("{path}.key"), &expression.key, formats::qualified_name(&expression.key));
        for (index, value) in values.iter().enumerate() {
            invalid(errors, &format!("{path}.values[{index}]"), value, formats::label_value(value));
        }
    }
}

fn invalid(errors: &mut Vec<FieldError>, path: &str, value: &str, texts: Vec<String>) {
    errors.extend(texts.into_iter().map(|text| FieldError::invalid(path, quoted(value), text)));
}

//! Which PersistentVolumeClaims are deleted with a StatefulSet (spec 10 §13.3).

use std::collections::BTreeSet;

use serde_json::Value;
use thiserror::Error;

use crate::actors::resource_manager::bundle::identity;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum SelectorError {
    #[error("the selector of the StatefulSet is empty")]
    Empty,
    /// A requirement is unreadable. Without it, the selector would select more.
    #[error("cannot read the requirement for {key:?} in the selector of the StatefulSet")]
    Requirement {
        /// Label key; may be empty.
        key: String,
    },
}

/// Returns the label selector, as a query parameter, of the claims to delete before the object: a StatefulSet with
/// volume claim templates. Returns `None` for all other objects. Deviation: the full selector is used, with its
/// `matchExpressions`, and an empty selector is refused. Upstream deletes every claim of the namespace then.
pub(crate) fn claims_to_delete(live: &Value) -> Result<Option<String>, SelectorError> {
    let gvk = identity::gvk_of(live);
    let is_stateful_set = gvk.kind == "StatefulSet" && matches!(gvk.group.as_str(), "apps" | "extensions");
    let templates = live.pointer("/spec/volumeClaimTemplates").and_then(Value::as_array);
    if !is_stateful_set || templates.is_none_or(Vec::is_empty) {
        return Ok(None);
    }
    label_selector(live.pointer("/spec/selector").unwrap_or(&Value::Null)).map(Some)
}

pub(crate) fn not_listed(error: &str) -> String {
    not_cleaned(&format!("could not list PVCs of StatefulSet: {error}"))
}

pub(crate) fn not_cleaned(error: &str) -> String {
    format!("failed cleaning up PersistentVolumeClaims of StatefulSet: {error}")
}

fn label_selector(selector: &Value) -> Result<String, SelectorError> {
    let mut terms = BTreeSet::new();
    for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
        let value = value.as_str().ok_or_else(|| SelectorError::Requirement { key: key.clone() })?;
        terms.insert((key.clone(), format!("{key}={value}")));
    }
    for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let (key, text) = requirement_of(expression)?;
        terms.insert((key.to_owned(), text));
    }
    if terms.is_empty() {
        return Err(SelectorError::Empty);
    }
    Ok(terms.into_iter().map(|(_, term)| term).collect::<Vec<_>>().join(","))
}

fn requirement_of(expression: &Value) -> Result<(&str, String), SelectorError> {
    let text = |field| expression.get(field).and_then(Value::as_str).unwrap_or_default();
    let key = text("key");
    let error = || SelectorError::Requirement { key: key.to_owned() };
    let values = expression.get("values").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let values: Option<BTreeSet<&str>> = values.iter().map(Value::as_str).collect();
    let values: Vec<&str> = values.ok_or_else(error)?.into_iter().collect();

    let term = match (text("operator"), values.is_empty()) {
        _ if key.is_empty() => return Err(error()),
        ("In", false) => format!("{key} in ({})", values.join(",")),
        ("NotIn", false) => format!("{key} notin ({})", values.join(",")),
        ("Exists", true) => key.to_owned(),
        ("DoesNotExist", true) => format!("!{key}"),
        _ => return Err(error()),
    };
    Ok((key, term))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stateful_set(selector: Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": {"selector": selector, "volumeClaimTemplates": [{}]}})
    }

    /// spec 10 §13.3, scenario 27
    #[test]
    fn volume_claims_are_selected_by_the_full_selector() {
        let table = [
            (json!({"matchLabels": {"b": "2", "a": "1"}}), "a=1,b=2"),
            (json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["y", "x"]}]}), "a in (x,y)"),
            (
                json!({"matchLabels": {"z": ""}, "matchExpressions": [
                    {"key": "d", "operator": "DoesNotExist"}, {"key": "e", "operator": "Exists", "values": []},
                    {"key": "n", "operator": "NotIn", "values": ["x"]}]}),
                "!d,e,n notin (x),z=",
            ),
        ];

        for (selector, query) in table {
            assert_eq!(claims_to_delete(&stateful_set(selector)), Ok(Some(query.to_owned())));
        }
    }

    /// spec 10 §13.3, scenario 27
    #[test]
    fn volume_claims_selector_that_could_select_too_much_is_refused() {
        let requirement = |key: &str| SelectorError::Requirement { key: key.to_owned() };
        let table = [
            (json!({}), SelectorError::Empty),
            (json!(null), SelectorError::Empty),
            (json!({"matchLabels": {}, "matchExpressions": []}), SelectorError::Empty),
            (json!({"matchLabels": {"a": 1}}), requirement("a")),
            (json!({"matchExpressions": [{"key": "a", "operator": "Near", "values": ["x"]}]}), requirement("a")),
            (json!({"matchExpressions": [{"key": "a", "operator": "In"}]}), requirement("a")),
            (json!({"matchExpressions": [{"key": "a", "operator": "In", "values": [1]}]}), requirement("a")),
            (json!({"matchExpressions": [{"operator": "Exists"}]}), requirement("")),
        ];

        for (selector, error) in table {
            assert_eq!(claims_to_delete(&stateful_set(selector.clone())), Err(error), "{selector}");
        }
    }

    /// spec 10 §13.3
    #[test]
    fn volume_claims_belong_to_stateful_sets_with_templates_only() {
        let mut without_templates = stateful_set(json!({"matchLabels": {"a": "1"}}));
        without_templates["spec"]["volumeClaimTemplates"] = json!([]);
        let mut deployment = stateful_set(json!({"matchLabels": {"a": "1"}}));
        deployment["kind"] = json!("Deployment");
        let mut custom = stateful_set(json!({"matchLabels": {"a": "1"}}));
        custom["apiVersion"] = json!("g.io/v1");

        for object in [without_templates, deployment, custom] {
            assert_eq!(claims_to_delete(&object), Ok(None));
        }
    }

    #[test]
    fn volume_claims_errors_name_the_step() {
        assert_eq!(
            not_listed("boom"),
            "failed cleaning up PersistentVolumeClaims of StatefulSet: could not list PVCs of StatefulSet: boom"
        );
        assert_eq!(
            not_cleaned(&SelectorError::Empty.to_string()),
            "failed cleaning up PersistentVolumeClaims of StatefulSet: the selector of the StatefulSet is empty"
        );
    }
}

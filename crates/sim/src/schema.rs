//! Structural schemas of custom kinds: pruning, defaults, validation (facts §7). Patterns, formats and CEL are ignored.

use serde_json::{Map, Value};

use super::status::Cause;

const TYPE_AND_METADATA: [&str; 3] = ["apiVersion", "kind", "metadata"]; // fields that no schema needs to name

pub(super) fn prune(schema: &Value, object: &mut Value) {
    prune_value(schema, object, true);
}

fn prune_value(schema: &Value, value: &mut Value, is_resource: bool) {
    match value {
        Value::Object(fields) => {
            let keeps_unknown = schema["x-kubernetes-preserve-unknown-fields"] == true;
            fields.retain(|field, value| {
                if is_resource && TYPE_AND_METADATA.contains(&field.as_str()) {
                    return true;
                }
                match field_schema(schema, field) {
                    Some(schema) => {
                        prune_value(schema, value, schema["x-kubernetes-embedded-resource"] == true);
                        true
                    }
                    None => keeps_unknown || schema["additionalProperties"] == true,
                }
            });
        }
        Value::Array(items) => {
            let schema = &schema["items"];
            for item in items {
                prune_value(schema, item, schema["x-kubernetes-embedded-resource"] == true);
            }
        }
        _ => {}
    }
}

/// The schema of a field: its own, or that of all additional fields.
fn field_schema<'s>(schema: &'s Value, field: &str) -> Option<&'s Value> {
    let own = schema["properties"].get(field);
    own.or_else(|| schema.get("additionalProperties").filter(|additional| additional.is_object()))
}

/// Sets defaults. Null counts as missing where it is not allowed.
pub(super) fn fill(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|field, value| {
                !value.is_null() || schema["properties"].get(field).is_none_or(|schema| schema["nullable"] == true)
            });
            for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
                if let Some(default) = schema.get("default")
                    && !fields.contains_key(field)
                {
                    fields.insert(field.clone(), default.clone());
                }
            }
            for (field, value) in fields {
                if let Some(schema) = field_schema(schema, field) {
                    fill(schema, value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(&schema["items"], item)),
        _ => {}
    }
}

pub(super) fn validate(schema: &Value, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    validate_value(schema, object, "", &mut causes);
    causes
}

fn validate_value(schema: &Value, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    if value.is_null() && schema["nullable"] == true {
        return;
    }
    if let Some(wanted) = wrong_type(schema, value) {
        let name = Value::from(type_name(value)); // the name of the type replaces the value
        let text = format!("{path} in body must be of type {wanted}: {name}");
        causes.push(Cause::type_invalid(path, &name, &text));
        return;
    }
    if let Some(Value::Array(allowed)) = schema.get("enum")
        && !allowed.contains(value)
    {
        let texts: Vec<&str> = allowed.iter().filter_map(Value::as_str).collect();
        causes.push(Cause::not_supported(path, value, &texts));
    }
    match value {
        Value::String(text) => validate_text(schema, text, path, causes),
        Value::Number(_) => validate_number(schema, value, path, causes),
        Value::Array(items) => {
            validate_count(schema, ["minItems", "maxItems"], "items", items.len(), path, causes);
            for (index, item) in items.iter().enumerate() {
                validate_value(&schema["items"], item, &format!("{path}[{index}]"), causes);
            }
        }
        Value::Object(fields) => {
            validate_count(schema, ["minProperties", "maxProperties"], "properties", fields.len(), path, causes);
            validate_fields(schema, fields, path, causes);
        }
        Value::Null | Value::Bool(_) => {}
    }
}

fn validate_fields(schema: &Value, fields: &Map<String, Value>, path: &str, causes: &mut Vec<Cause>) {
    let below = |field: &str| if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") };
    for field in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(field) {
            causes.push(Cause::required(&below(field), ""));
        }
    }
    for (field, value) in fields {
        let is_own = schema["properties"].get(field).is_some();
        if path.is_empty() && TYPE_AND_METADATA.contains(&field.as_str()) {
            continue;
        }
        if let Some(schema) = field_schema(schema, field) {
            let path = if is_own { below(field) } else { format!("{path}.{field}") };
            validate_value(schema, value, &path, causes);
        }
    }
}

fn wrong_type<'s>(schema: &'s Value, value: &Value) -> Option<&'s str> {
    if schema["x-kubernetes-int-or-string"] == true {
        return if value.is_string() || is_integer(value) { None } else { Some("integer or string") };
    }
    let wanted = schema["type"].as_str().filter(|wanted| !wanted.is_empty())?;
    let fits = match wanted {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => is_integer(value),
        "number" => value.is_number(),
        _ => true,
    };
    if fits { None } else { Some(wanted) }
}

fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if is_integer(value) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn validate_text(schema: &Value, text: &str, path: &str, causes: &mut Vec<Cause>) {
    let length = text.chars().count() as u64;
    if let Some(most) = schema["maxLength"].as_u64().filter(|most| length > *most) {
        causes.push(Cause::too_long(path, most));
    }
    if let Some(least) = schema["minLength"].as_u64().filter(|least| length < *least) {
        let finding = format!("{path} in body should be at least {least} chars long");
        causes.push(Cause::invalid(path, &text.into(), &finding));
    }
}

fn validate_number(schema: &Value, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    let number = value.as_f64().unwrap_or_default();
    for (field, exclusive, words) in [
        ("minimum", "exclusiveMinimum", ["greater than", "greater than or equal to"]),
        ("maximum", "exclusiveMaximum", ["less than", "less than or equal to"]),
    ] {
        let Some(bound) = schema[field].as_f64() else { continue };
        let is_exclusive = schema[exclusive] == true;
        let beyond = if field == "minimum" { number < bound } else { number > bound };
        if beyond || (is_exclusive && schema[field].as_f64() == value.as_f64()) {
            let words = words[usize::from(!is_exclusive)];
            let text = format!("{path} in body should be {words} {}", schema[field]);
            causes.push(Cause::invalid(path, value, &text));
        }
    }
}

fn validate_count(
    schema: &Value,
    [least, most]: [&str; 2],
    noun: &str,
    count: usize,
    path: &str,
    causes: &mut Vec<Cause>,
) {
    let count = count as u64;
    if let Some(least) = schema[least].as_u64().filter(|least| count < *least) {
        let text = format!("{path} in body should have at least {least} {noun}");
        causes.push(Cause::invalid(path, &count.into(), &text));
    }
    if let Some(most) = schema[most].as_u64().filter(|most| count > *most) {
        causes.push(Cause::too_many(path, count, most));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "required": ["spec"], "properties": {"spec": {"type": "object", "required": ["r"], "properties": {
            "a": {"type": "string", "maxLength": 3},
            "n": {"type": "integer", "minimum": 1, "default": 5},
            "e": {"type": "string", "enum": ["a", "b"]},
            "r": {"type": "boolean", "nullable": true},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"p": {"type": "integer", "default": 1}}}},
        }}}})
    }

    #[test]
    fn unknown_fields_are_pruned_and_missing_ones_get_their_default() {
        let mut object = json!({
            "apiVersion": "g/v1", "kind": "T", "metadata": {"name": "a"}, "other": 1,
            "spec": {"r": null, "n": null, "x": 1, "free": {"y": 1}, "map": {"k": "v"}, "list": [{"q": 1}]},
        });

        prune(&schema(), &mut object);
        fill(&schema(), &mut object);

        assert_eq!(
            object,
            json!({
                "apiVersion": "g/v1", "kind": "T", "metadata": {"name": "a"},
                "spec": {"r": null, "n": 5, "free": {"y": 1}, "map": {"k": "v"}, "list": [{"p": 1}]},
            })
        );
        assert_eq!(validate(&schema(), &object), Vec::new());
    }

    /// The table of facts §7.
    #[test]
    fn findings_have_the_servers_words() {
        let table = [
            (
                json!({"r": true, "n": "x"}),
                Cause::type_invalid("spec.n", &"string".into(), "spec.n in body must be of type integer: \"string\""),
            ),
            (json!({"r": true, "a": "long"}), Cause::too_long("spec.a", 3)),
            (json!({"r": true, "e": "c"}), Cause::not_supported("spec.e", &"c".into(), &["a", "b"])),
            (json!({}), Cause::required("spec.r", "")),
            (
                json!({"r": true, "n": 0}),
                Cause::invalid("spec.n", &0.into(), "spec.n in body should be greater than or equal to 1"),
            ),
            (
                json!({"r": true, "list": [{"p": "x"}]}),
                Cause::type_invalid(
                    "spec.list[0].p",
                    &"string".into(),
                    "spec.list[0].p in body must be of type integer: \"string\"",
                ),
            ),
        ];
        for (spec, cause) in table {
            assert_eq!(validate(&schema(), &json!({"spec": spec})), vec![cause]);
        }
    }
}

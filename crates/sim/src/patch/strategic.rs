//! Strategic merge patches: merge patches that merge some lists item by item.

use serde_json::{Map, Value};

use super::super::{
    lists::{ListType, list_type},
    status::Failure,
};

const DIRECTIVE: &str = "$patch"; // what to do with its object or item: `merge` (as without it), `replace` or `delete`
const ORDER: &str = "$setElementOrder/"; // prefix of a list's name: the new order of its items, which is ignored here
const DELETION: &str = "$deleteFromPrimitiveList/"; // prefix of a list's name: values to remove
const RETAINED: &str = "$retainKeys"; // fields to keep; others are removed

pub(super) fn apply(kind: &str, value: &mut Value, patch: &Value) -> Result<(), Failure> {
    merge(kind, &mut Vec::new(), value, patch)
}

fn merge<'p>(kind: &str, path: &mut Vec<&'p str>, value: &mut Value, patch: &'p Value) -> Result<(), Failure> {
    let Value::Object(patch) = patch else {
        *value = patch.clone();
        return Ok(());
    };
    match patch.get(DIRECTIVE).and_then(Value::as_str) {
        None | Some("merge") => {}
        Some("replace") => {
            let fields = patch.iter().filter(|(field, _)| *field != DIRECTIVE);
            *value = Value::Object(fields.map(|(field, content)| (field.clone(), content.clone())).collect());
            return Ok(());
        }
        Some("delete") => {
            *value = Value::Object(Map::new());
            return Ok(());
        }
        Some(other) => return Err(Failure::internal(&format!("unknown patch type found: {other}"))),
    }
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Value::Object(fields) = value else { return Ok(()) };
    if let Some(Value::Array(retained)) = patch.get(RETAINED) {
        fields.retain(|field, _| retained.iter().any(|name| name == field.as_str()));
    }
    for (field, content) in patch {
        if field == DIRECTIVE || field == RETAINED || field.starts_with(ORDER) {
            continue;
        }
        if let Some(list) = field.strip_prefix(DELETION) {
            remove_values(fields, list, content);
            continue;
        }
        if content.is_null() {
            fields.remove(field);
            continue;
        }
        path.push(field);
        let present = fields.entry(field.clone()).or_insert(Value::Null);
        match content {
            Value::Array(items) => merge_list(kind, path, present, items)?,
            _ => merge(kind, path, present, content)?,
        }
        path.pop();
    }
    Ok(())
}

fn remove_values(fields: &mut Map<String, Value>, list: &str, values: &Value) {
    let Some(Value::Array(present)) = fields.get_mut(list) else { return };
    let unwanted = values.as_array().map(Vec::as_slice).unwrap_or_default();
    present.retain(|value| !unwanted.contains(value));
    if present.is_empty() {
        fields.remove(list);
    }
}

fn merge_list<'p>(kind: &str, path: &mut Vec<&'p str>, present: &mut Value, items: &'p [Value]) -> Result<(), Failure> {
    let key = match list_type(kind, path) {
        ListType::Atomic => {
            *present = items.to_vec().into();
            return Ok(());
        }
        ListType::Set => {
            merge_set(present, items);
            return Ok(());
        }
        ListType::Map(keys) => keys.first().copied().unwrap_or_default(),
    };
    // A lone directive replaces the list.
    if items.iter().any(|item| item[DIRECTIVE] == "replace") {
        *present = items.iter().filter(|item| item.get(DIRECTIVE).is_none()).cloned().collect();
        return Ok(());
    }
    if !present.is_array() {
        *present = Value::Array(Vec::new());
    }
    let Value::Array(present) = present else { return Ok(()) };
    for item in items {
        let Some(wanted) = item.get(key) else {
            return Err(Failure::internal(&format!("map: {item} does not contain declared merge key: {key}")));
        };
        if item[DIRECTIVE] == "delete" {
            present.retain(|other| other.get(key) != Some(wanted));
            continue;
        }
        match present.iter_mut().find(|other| other.get(key) == Some(wanted)) {
            Some(found) => merge(kind, path, found, item)?,
            None => {
                let mut new = Value::Null;
                merge(kind, path, &mut new, item)?;
                present.push(new);
            }
        }
    }
    Ok(())
}

/// New values of the patch come first.
fn merge_set(present: &mut Value, values: &[Value]) {
    let old = present.as_array().cloned().unwrap_or_default();
    let new = values.iter().filter(|value| !old.contains(value)).cloned();
    *present = new.chain(old.iter().cloned()).collect();
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patched(kind: &str, mut value: Value, patch: &Value) -> Value {
        apply(kind, &mut value, patch).unwrap();
        value
    }

    #[test]
    fn ports_of_a_service_are_merged_by_their_number() {
        let service = json!({"spec": {"ports": [{"port": 80, "name": "a"}, {"port": 90}], "externalIPs": ["1.1.1.1"]}});
        let patch = json!({"spec": {
            "ports": [{"port": 80, "nodePort": 30001}, {"port": 90, "$patch": "delete"}, {"port": 70}],
            "externalIPs": ["2.2.2.2"],
            "$setElementOrder/ports": [{"port": 70}, {"port": 80}],
        }});

        assert_eq!(
            patched("Service", service, &patch),
            json!({"spec": {
                "ports": [{"port": 80, "name": "a", "nodePort": 30001}, {"port": 70}],
                "externalIPs": ["2.2.2.2"],
            }})
        );
    }

    /// The table of facts §5.
    #[test]
    fn finalizers_are_a_set_with_new_ones_first() {
        let object = json!({"metadata": {"finalizers": ["a/b", "c/d"]}});

        assert_eq!(
            patched("ConfigMap", object.clone(), &json!({"metadata": {"finalizers": ["e/f", "a/b"]}})),
            json!({"metadata": {"finalizers": ["e/f", "a/b", "c/d"]}})
        );
        assert_eq!(
            patched("ConfigMap", object, &json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/b"]}})),
            json!({"metadata": {"finalizers": ["c/d"]}})
        );
    }

    #[test]
    fn directives_replace_objects_and_lists() {
        let pod = json!({"spec": {"containers": [{"name": "a", "image": "x"}], "nodeSelector": {"a": "b"}}});
        let patch = json!({"spec": {
            "containers": [{"$patch": "replace"}, {"name": "z"}],
            "nodeSelector": {"$patch": "replace", "c": "d"},
        }});

        assert_eq!(
            patched("Pod", pod.clone(), &patch),
            json!({"spec": {"containers": [{"name": "z"}], "nodeSelector": {"c": "d"}}})
        );
        assert_eq!(
            patched("Pod", pod, &json!({"spec": {"containers": [{"name": "a", "image": null}], "nodeSelector": null}})),
            json!({"spec": {"containers": [{"name": "a"}]}})
        );
    }
}

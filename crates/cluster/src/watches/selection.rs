//! Whether an informer selects an object, as far as this is known without the server.

use serde_json::Value;

use super::informer::InformerKey;
use crate::object;

impl InformerKey {
    /// Returns whether the selectors match an object; `None` for selectors with other operators than `=`, `!=` and
    /// existence of labels, and for other fields than name and namespace.
    pub(super) fn selects(&self, object: &Value) -> Option<bool> {
        let labels = terms(self.label_selector.as_deref()).map(|term| has_label(object, term));
        let fields = terms(self.field_selector.as_deref()).map(|term| has_field(object, term));
        let results: Vec<_> = labels.chain(fields).collect();
        match results.contains(&Some(false)) {
            true => Some(false),
            false => results.into_iter().collect::<Option<Vec<_>>>().map(|_| true),
        }
    }
}

fn terms(selector: Option<&str>) -> impl Iterator<Item = &str> {
    selector.into_iter().flat_map(|selector| selector.split(',')).map(str::trim).filter(|term| !term.is_empty())
}

fn has_label(object: &Value, term: &str) -> Option<bool> {
    if let Some((key, value)) = term.split_once("!=") {
        return Some(object::label(object, key.trim()) != Some(value.trim()));
    }
    if term.contains(['!', '(', ')', ' ']) {
        return None;
    }
    Some(match term.split_once('=') {
        Some((key, value)) => object::label(object, key) == Some(value.trim_start_matches('=')),
        None => object::label(object, term).is_some(),
    })
}

fn has_field(object: &Value, term: &str) -> Option<bool> {
    match term.split_once('=')? {
        ("metadata.name", name) => Some(object::name(object) == name.trim_start_matches('=')),
        ("metadata.namespace", namespace) => Some(object::namespace(object) == namespace.trim_start_matches('=')),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::config_maps;

    #[test]
    fn selection_is_known_for_equality_inequality_and_existence() {
        let object = json!({"metadata": {"name": "a", "labels": {"l": "1", "m": "2"}}});
        let table = [
            (None, None, Some(true)),
            (Some("l=1"), None, Some(true)),
            (Some("l==1, m"), None, Some(true)),
            (Some("l=2"), None, Some(false)),
            (Some("l,n"), None, Some(false)),
            (Some("l!=2"), None, Some(true)),
            (Some("n!=2, l"), None, Some(true)),
            (Some("l,l != 1"), None, Some(false)),
            (Some("!n"), None, None),
            (Some("l in (1, 2)"), None, None),
            (Some("!n,l=2"), None, Some(false)),
            (None, Some("metadata.name=a"), Some(true)),
            (None, Some("metadata.name=b"), Some(false)),
            (None, Some("spec.nodeName=a"), None),
        ];
        for (labels, fields, expected) in table {
            let key = InformerKey {
                resource: config_maps(),
                label_selector: labels.map(str::to_owned),
                field_selector: fields.map(str::to_owned),
                home: Vec::new(),
            };

            assert_eq!(key.selects(&object), expected, "{labels:?} {fields:?}");
        }
    }
}

//! Objects as YAML, with the same text for the same object (spec 10 §19.4). `serde-saphyr` sorts keys by bytes and
//! quotes strings that some dialect reads as something else. Names of immutable Secrets depend on this text: a version
//! of `serde-saphyr` that writes another text would rename all of them. The tests below would fail.

use serde_json::Value;

/// Returns one document. It ends with a newline and begins without a separator.
/// ```
/// use gardener_resource_manager::producer::yaml;
///
/// let text = yaml::document(&serde_json::json!({"kind": "ConfigMap", "data": {"enabled": "yes", "level": "info"}}));
///
/// assert_eq!(text, "data:\n  enabled: \"yes\"\n  level: info\nkind: ConfigMap\n");
/// ```
pub fn document(value: &Value) -> String {
    // Long lines are not folded: folded lines are hard to search.
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    serde_saphyr::to_string_with_options(value, options).expect("a tree of JSON has nothing that YAML has not")
}

/// Returns several documents, separated by `---`.
pub fn stream<'a>(values: impl IntoIterator<Item = &'a Value>) -> String {
    let documents: Vec<String> = values.into_iter().map(document).collect();
    join(documents.iter().map(String::as_str))
}

pub(super) fn join<'a>(documents: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for document in documents {
        if !text.is_empty() {
            text.push_str("---\n");
        }
        text.push_str(document);
        if !document.ends_with('\n') {
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::actors::resource_manager::bundle::decode::{self, SecretData};

    fn read_back(text: &str) -> Value {
        let data = BTreeMap::from([("k".to_owned(), text.as_bytes().to_vec())]);
        let decoded = decode::decode([SecretData { namespace: "", name: "", data: &data }]);
        assert!(decoded.errors.is_empty(), "{:?}\n{text}", decoded.errors);
        decoded.documents.into_iter().next().map(|document| document.manifest).unwrap_or_default()
    }

    #[test]
    fn yaml_layout_is_pinned() {
        let value = json!({
            "kind": "Example", "apiVersion": "g.io/v1",
            "metadata": {"name": "a", "annotations": {"on": "off", "1": "0777", "empty": ""}},
            "spec": {
                "list": [{"name": "x", "args": ["--a=b", "- c"]}, ["nested", ["deep"]], [], {}, null, 1.5, -2, true],
                "image": "registry.io/a:v1.2", "time": "2026-01-01", "script": "#!/bin/sh\n\nexec\ta  b\n",
                "short": "no end\nof line", "odd": " leading", "control": "a\u{7}b\u{2028}", "percent": "50%",
            },
        });

        let expected = r##"apiVersion: g.io/v1
kind: Example
metadata:
  annotations:
    "1": "0777"
    empty: ""
    "on": "off"
  name: a
spec:
  control: "a\ab\L"
  image: registry.io/a:v1.2
  list:
  - args:
    - --a=b
    - "- c"
    name: x
  - - nested
    - - deep
  - []
  - {}
  - null
  - 1.5
  - -2
  - true
  odd: " leading"
  percent: 50%
  script: |
    #!/bin/sh

    exec	a  b
  short: |-
    no end
    of line
  time: "2026-01-01"
"##;
        assert_eq!(document(&value), expected);
        assert_eq!(read_back(expected), value);
    }

    #[test]
    fn yaml_with_a_long_key_is_read_back() {
        let key = "k".repeat(3000);
        let value = json!({"a": {key.as_str(): [1, {"b": "c"}]}, "z": {key.as_str(): {"x": "y"}, "b": 1}});

        assert_eq!(read_back(&document(&value)), value);
    }

    #[test]
    fn yaml_of_the_deepest_object_is_read_back() {
        kit::testing::on_a_large_stack(|| {
            let mut value = json!("deep");
            for level in 0..9_990 {
                value = if level % 2 == 0 { json!({ "a": value }) } else { json!([value]) };
            }
            let (value, text) = (json!({ "value": value }), document(&json!({ "value": value })));

            assert!(text.trim_end().ends_with("deep"));
            drop(value);
        });
    }

    #[test]
    fn yaml_documents_are_separated_but_not_ended_by_dashes() {
        assert_eq!(stream([&json!({"a": 1}), &json!({"b": 2})]), "a: 1\n---\nb: 2\n");
        assert_eq!(join(["a: 1", "b: 2\n"]), "a: 1\n---\nb: 2\n");
    }

    fn values() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            any::<String>(),
            "[ \t\n:#\\-?|>'\"{}\\[\\],&*!%@`a-z0-9.~=]{0,12}",
            "(?i)y|yes|n|no|true|false|on|off|null|~|t|f|<<|=|\\.inf|\\.nan|1e3|0x1f|0o7|1_000|12:30:45",
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-1000.0..1000.0f64)
                .prop_filter("whole numbers become integers", |f| f.fract() != 0.0)
                .prop_map(Value::from),
            text.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map(text.clone(), inner, 0..5)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn yaml_is_read_back_by_the_controllers_decoder(value in values()) {
            let object = json!({"value": value});

            let text = document(&object);

            prop_assert!(!text.contains(|character: char| character.is_control() && !matches!(character, '\n' | '\t')));
            prop_assert_eq!(read_back(&text), object, "{}", text);
        }
    }
}

//! Objects as YAML, with the same text for the same object (spec 10 §19.4). `serde-saphyr` sorts keys by bytes and
//! quotes strings that some dialect reads as something else. Names of immutable Secrets depend on this text: a version
//! of `serde-saphyr` that writes another text would rename all of them. The tests below would fail.

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_saphyr::{FlowMap, FlowSeq};

use super::indentation;

pub(super) const SEPARATOR: &str = "---\n";

/// Returns one document. It ends with a newline and begins without a separator. Lists and maps whose indentation would be
/// much larger than their content are on one line (`[a, {b: c}]`).
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
    let text = match indentation::levels(value) {
        None => serde_saphyr::to_string_with_options(value, options),
        Some(levels) => serde_saphyr::to_string_with_options(&Indented { value, levels }, options),
    };
    text.expect("a tree of JSON has nothing that YAML has not")
}

/// Returns several documents, separated by `---`.
pub fn stream<'a>(values: impl IntoIterator<Item = &'a Value>) -> String {
    join(values.into_iter().map(document))
}

pub(super) fn join(documents: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut text = String::new();
    for document in documents {
        let document = document.as_ref();
        if !text.is_empty() {
            text.push_str(SEPARATOR);
        }
        text.push_str(document);
        if !document.ends_with('\n') {
            text.push('\n');
        }
    }
    text
}

/// A value with this many indented levels of lists and maps. Deeper lists and maps are on one line.
struct Indented<'a> {
    value: &'a Value,
    levels: usize,
}

impl Serialize for Indented<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { value, levels } = *self;
        let inner = |value| Indented { value, levels: levels - 1 };
        match value {
            Value::Array(_) if levels == 0 => FlowSeq(value).serialize(serializer),
            Value::Object(_) if levels == 0 => FlowMap(value).serialize(serializer),
            Value::Array(items) => serializer.collect_seq(items.iter().map(inner)),
            Value::Object(fields) => serializer.collect_map(fields.iter().map(|(key, value)| (key, inner(value)))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.serialize(serializer),
        }
    }
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
            let value = json!({ "value": value });

            let text = document(&value);

            assert_eq!(read_back(&text), value);
            assert!(text.len() < 400_000, "{}", text.len());
        });
    }

    #[test]
    fn yaml_of_deep_and_wide_lists_is_hardly_larger_than_their_json() {
        kit::testing::on_a_large_stack(|| {
            let bottom = json!(vec![json!({"key": "a: b\nc", ("k".repeat(2000)): [1, "- x"]}); 1_000]);
            let value = (0..1_000).fold(bottom, |value, _| Value::Array(vec![value]));
            let value = json!({ "value": value });

            let text = document(&value);

            let size = value.to_string().len();
            assert!(text.len() < 6 * size + (64 << 10), "{} {size}", text.len());
            assert_eq!(read_back(&text), value);
        });
    }

    #[test]
    fn yaml_of_usual_objects_is_the_same_without_a_bound_of_levels() {
        let value = json!({"a": [{"b": ["c\nd", {}], "e": []}, [[1]]], "f": {"g": {"h": null}}});
        let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };

        let text = serde_saphyr::to_string_with_options(&Indented { value: &value, levels: 9 }, options).unwrap();

        assert_eq!(document(&value), text);
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

        #[test]
        fn yaml_on_one_line_is_read_back_by_the_controllers_decoder(value in values(), levels in 1..4_usize) {
            let object = json!({"value": value});
            let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };

            let text = serde_saphyr::to_string_with_options(&Indented { value: &object, levels }, options).unwrap();

            prop_assert!(!text.contains(|character: char| character.is_control() && !matches!(character, '\n' | '\t')));
            prop_assert_eq!(read_back(&text), object, "{}", text);
        }
    }
}

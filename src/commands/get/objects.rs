//! Prints whole objects as JSON or YAML, one after the other: a list is never in memory as a whole.

use serde_json::Value;

use crate::{commands::report::indented_json, producer::yaml};

const INDENT: &[u8] = b"    ";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Yaml,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Documents,
    List,
}

pub(super) struct Objects {
    format: Format,
    shape: Shape,
    written: usize,
}

impl Objects {
    pub(super) fn new(format: Format, shape: Shape) -> Self {
        Self { format, shape, written: 0 }
    }

    pub(super) fn written(&self) -> usize {
        self.written
    }

    pub(super) fn next(&mut self, object: Value) -> String {
        let first = self.written == 0;
        self.written += 1;
        match (self.shape, self.format) {
            (Shape::Documents, Format::Json) => json(&object) + "\n",
            (Shape::Documents, Format::Yaml) => {
                let separator = if first { "" } else { "---\n" };
                format!("{separator}{}", yaml::document(&object))
            }
            (Shape::List, Format::Json) => {
                let before = if first { "{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n" } else { ",\n" };
                // Strings in JSON have no line breaks.
                let lines: Vec<_> = json(&object).lines().map(|line| format!("        {line}")).collect();
                format!("{before}{}", lines.join("\n"))
            }
            (Shape::List, Format::Yaml) => {
                let before = if first { "apiVersion: v1\nitems:\n" } else { "" };
                format!("{before}{}", yaml::document(&Value::Array(vec![object])))
            }
        }
    }

    pub(super) fn end(&self) -> &'static str {
        match (self.shape, self.format, self.written == 0) {
            (Shape::Documents, _, _) => "",
            (Shape::List, Format::Json, true) => {
                "{\n    \"apiVersion\": \"v1\",\n    \"items\": [],\n    \"kind\": \"List\"\n}\n"
            }
            (Shape::List, Format::Json, false) => "\n    ],\n    \"kind\": \"List\"\n}\n",
            (Shape::List, Format::Yaml, true) => "apiVersion: v1\nitems: []\nkind: List\n",
            (Shape::List, Format::Yaml, false) => "kind: List\n",
        }
    }
}

fn json(object: &Value) -> String {
    indented_json(object, INDENT)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(format: Format, shape: Shape, objects: &[Value]) -> String {
        let mut writer = Objects::new(format, shape);
        let text: String = objects.iter().map(|object| writer.next(object.clone())).collect();
        text + writer.end()
    }

    fn objects() -> [Value; 2] {
        ["a", "b"].map(|name| json!({"kind": "K", "metadata": {"name": name}, "text": "1\n\n 2"}))
    }

    #[test]
    fn list_output_is_one_document() {
        for count in 0..=2 {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": objects()[..count]});
            let (json, yaml) = (Format::Json, Format::Yaml);

            assert_eq!(text(json, Shape::List, &objects()[..count]), super::json(&list) + "\n");
            assert_eq!(text(yaml, Shape::List, &objects()[..count]), super::yaml::document(&list));
        }
    }

    #[test]
    fn document_output_separates_objects() {
        let objects = [json!({"a": 1}), json!({"b": 2})];

        assert_eq!(text(Format::Yaml, Shape::Documents, &objects), "a: 1\n---\nb: 2\n");
        assert_eq!(text(Format::Json, Shape::Documents, &objects), "{\n    \"a\": 1\n}\n{\n    \"b\": 2\n}\n");
    }
}

//! Reports for programs: one value, or a list whose items are printed one after the other.

use serde::Serialize as _;
use serde_json::{Value, ser::PrettyFormatter};

use crate::{
    cli::ReportFormat,
    jsonpath::TooMuch,
    producer::{indentation, yaml},
};

const INDENT: &[u8] = b"  ";

/// Bytes of the items that a template needs together.
const MOST_KEPT: usize = 256 << 20;

/// A list. Only a template needs all items at once.
pub(super) struct ReportList<'f> {
    format: &'f ReportFormat,
    written: usize,
    kept: Vec<Value>,
    bytes: usize,
}

/// Prints one value. Fails if a template takes too long.
pub(super) fn whole(value: &Value, format: &ReportFormat) -> Result<String, TooMuch> {
    match format {
        ReportFormat::Json => Ok(json(value) + "\n"),
        ReportFormat::Yaml => Ok(yaml::document(value)),
        ReportFormat::JsonPath(template) => template.print(value),
    }
}

/// Prints a list that is in memory anyway.
pub(super) fn list(items: impl IntoIterator<Item = Value>, format: &ReportFormat) -> Result<String, TooMuch> {
    whole(&Value::Array(items.into_iter().collect()), format)
}

impl<'f> ReportList<'f> {
    pub(super) fn new(format: &'f ReportFormat) -> Self {
        Self { format, written: 0, kept: Vec::new(), bytes: 0 }
    }

    /// Returns the text of an item. Fails if a template would need too much memory.
    pub(super) fn next(&mut self, item: Value) -> Result<String, TooMuch> {
        let first = self.written == 0;
        self.written += 1;
        Ok(match self.format {
            ReportFormat::Json => {
                // Strings in JSON have no line breaks.
                let lines: Vec<String> = json(&item).lines().map(|line| format!("  {line}")).collect();
                format!("{}{}", if first { "[\n" } else { ",\n" }, lines.join("\n"))
            }
            ReportFormat::Yaml => yaml::document(&Value::Array(vec![item])),
            ReportFormat::JsonPath(_) => {
                self.bytes += json(&item).len();
                if self.bytes > MOST_KEPT {
                    return Err(TooMuch);
                }
                self.kept.push(item);
                String::new()
            }
        })
    }

    /// Returns the text after the last item. Fails if a template takes too long.
    pub(super) fn end(self) -> Result<String, TooMuch> {
        match self.format {
            ReportFormat::Json if self.written > 0 => Ok("\n]\n".to_owned()),
            ReportFormat::Yaml if self.written > 0 => Ok(String::new()),
            format => list(self.kept, format),
        }
    }
}

fn json(value: &Value) -> String {
    indented_json(value, INDENT)
}

/// Returns the value as JSON with a line for each of its parts, or on one line if its indentation would be much larger than
/// its content.
pub(super) fn indented_json(value: &Value, indent: &[u8]) -> String {
    if indentation::levels(value).is_some() {
        return value.to_string();
    }
    let mut text = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, PrettyFormatter::with_indent(indent));
    value.serialize(&mut serializer).unwrap_or_default();
    String::from_utf8(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn report_list_has_the_text_of_a_report_of_all_its_items() {
        for format in ["json", "yaml", "jsonpath={.[*].a}{'\\n'}", "jsonpath={range [*]}{.a},{end}"] {
            let format: ReportFormat = format.parse().unwrap();
            for count in 0..=2 {
                let items = &[json!({"a": 1, "b": [1, 2]}), json!({"a": "x\ny"})][..count];
                let mut list = ReportList::new(&format);

                let mut text: String = items.iter().map(|item| list.next(item.clone()).unwrap()).collect();
                text += &list.end().unwrap();

                assert_eq!(text, whole(&Value::from(items), &format).unwrap(), "{format:?} {count}");
            }
        }
    }

    #[test]
    fn report_of_deep_lists_is_hardly_larger_than_their_json() {
        kit::testing::on_a_large_stack(|| {
            let value = (0..3_000).fold(json!("deep"), |value, _| Value::Array(vec![value]));
            for format in ["json", "yaml"] {
                let format: ReportFormat = format.parse().unwrap();

                let text = whole(&value, &format).unwrap() + &ReportList::new(&format).next(value.clone()).unwrap();

                assert!(text.len() < 300_000, "{format:?}: {}", text.len());
            }
        });
    }
}

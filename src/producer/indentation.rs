//! How many levels of a value can be indented: indentation of nested lists and maps grows with the square of their depth,
//! so that a small object could become a huge text.

use serde_json::Value;

/// Columns of a level.
const STEP: usize = 2;
/// Indentation may be so many times larger than the value as JSON. That of usual objects is smaller than the value.
const MOST: usize = 4;
/// Bytes of indentation that each value may have.
const FREE: usize = 4 << 10;

/// Returns how many levels of lists and maps can be indented, or `None` for all of them. A writer puts deeper lists and maps
/// on one line.
pub(crate) fn levels(value: &Value) -> Option<usize> {
    let mut measured = Measured::default();
    measured.add(value, 0);
    let most = measured.size.saturating_mul(MOST).saturating_add(FREE);
    let mut indentation = 0_usize;
    let too_deep = measured.indentation.iter().position(|of_level| {
        indentation = indentation.saturating_add(*of_level);
        indentation > most
    });
    too_deep.map(|level| level.max(1))
}

#[derive(Default)]
struct Measured {
    /// Bytes of the value as JSON, about.
    size: usize,
    /// Bytes of indentation of the lines in all lists and maps of a level.
    indentation: Vec<usize>,
}

impl Measured {
    fn add(&mut self, value: &Value, level: usize) {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            // The lines of a text are one level deeper than their list or map.
            Value::String(text) => {
                let lines = text.bytes().filter(|byte| *byte == b'\n').count();
                self.size += text.len() + lines;
                self.indent(level.saturating_sub(1), lines * level * STEP);
            }
            Value::Array(items) => {
                self.indent(level, items.len() * level * STEP);
                items.iter().for_each(|item| self.add(item, level + 1));
            }
            Value::Object(fields) => {
                self.indent(level, fields.len() * level * STEP);
                for (key, value) in fields {
                    self.size += key.len() + "\"\":".len();
                    self.add(value, level + 1);
                }
            }
        }
        self.size += "1,".len();
    }

    fn indent(&mut self, level: usize, bytes: usize) {
        if self.indentation.len() <= level {
            self.indentation.resize(level + 1, 0);
        }
        self.indentation[level] += bytes;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!("deep"), |value, _| Value::Array(vec![value]))
    }

    #[test]
    fn indentation_of_usual_objects_has_no_bound() {
        let script = "set -e\n".repeat(100_000);
        let pod = json!({"spec": {"containers": [{"name": "a", "args": ["-c", script], "resources": {"limits": {"cpu": 1}}}]}});

        for value in [json!(null), json!({}), pod, nested(50), json!({"data": {"k": "\n".repeat(1_000_000)}})] {
            assert_eq!(levels(&value), None);
        }
    }

    #[test]
    fn indentation_of_deep_lists_ends_at_a_level() {
        let wide = (0..100).fold(json!(vec![1; 100_000]), |value, _| Value::Array(vec![value]));

        assert_eq!(levels(&nested(1_000)), Some(110));
        assert_eq!(levels(&wide), Some(100));
    }
}

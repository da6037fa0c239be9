//! The difference of two JSON values as an RFC 6902 patch (spec 50 §2.5): only `add`, `remove` and `replace`.
//!
//! Fields that are the same are not mentioned, so whatever a webhook does not know survives. Lists are compared from both
//! ends: what is appended is an `add`, and a change within an element is a change of its field alone.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Map, Value};

/// A step of a patch.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Operation<'a> {
    /// Puts a value where none is; into a list, before the element of that index.
    Add {
        /// JSON pointer.
        path: String,
        /// What to put there.
        value: &'a Value,
    },
    /// Takes a value away.
    Remove {
        /// JSON pointer.
        path: String,
    },
    /// Puts a value in the place of another.
    Replace {
        /// JSON pointer.
        path: String,
        /// What to put there.
        value: &'a Value,
    },
}

/// Collects steps on a walk through both values.
struct Walk<'a> {
    /// Where the walk is.
    path: String,
    steps: Vec<Operation<'a>>,
}

/// The steps that make `after` of `before`; none if they are equal.
pub fn difference<'a>(before: &Value, after: &'a Value) -> Vec<Operation<'a>> {
    let mut walk = Walk { path: String::new(), steps: Vec::new() };
    walk.value(before, after);
    walk.steps
}

// === impl Walk ===

impl<'a> Walk<'a> {
    fn value(&mut self, before: &Value, after: &'a Value) {
        match (before, after) {
            (Value::Object(before), Value::Object(after)) => self.map(before, after),
            (Value::Array(before), Value::Array(after)) => self.list(before, after),
            (before, after) if before == after => {}
            (_, value) => self.steps.push(Operation::Replace { path: self.path.clone(), value }),
        }
    }

    fn map(&mut self, before: &Map<String, Value>, after: &'a Map<String, Value>) {
        for field in before.keys().filter(|field| !after.contains_key(*field)) {
            self.at_field(field, |walk| walk.steps.push(Operation::Remove { path: walk.path.clone() }));
        }
        for (field, value) in after {
            self.at_field(field, |walk| match before.get(field) {
                Some(before) => walk.value(before, value),
                None => walk.steps.push(Operation::Add { path: walk.path.clone(), value }),
            });
        }
    }

    /// What is equal at both ends is passed over. Of what is between, elements at the same place are compared; then
    /// elements are taken away, last one first, or added.
    fn list(&mut self, before: &[Value], after: &'a [Value]) {
        let front = before.iter().zip(after).take_while(|(before, after)| before == after).count();
        let (before, after) = (&before[front..], &after[front..]);
        let back = before.iter().rev().zip(after.iter().rev()).take_while(|(before, after)| before == after).count();
        let (before, after) = (&before[..before.len() - back], &after[..after.len() - back]);
        let common = before.len().min(after.len());

        for (index, (before, after)) in before.iter().zip(after).enumerate() {
            self.at_index(front + index, |walk| walk.value(before, after));
        }
        for index in (common..before.len()).rev() {
            self.at_index(front + index, |walk| walk.steps.push(Operation::Remove { path: walk.path.clone() }));
        }
        for (index, value) in after.iter().enumerate().skip(common) {
            self.at_index(front + index, |walk| walk.steps.push(Operation::Add { path: walk.path.clone(), value }));
        }
    }

    fn at_field(&mut self, field: &str, step: impl FnOnce(&mut Self)) {
        let parent = self.path.len();
        self.path.push('/');
        for character in field.chars() {
            match character {
                '~' => self.path.push_str("~0"),
                '/' => self.path.push_str("~1"),
                other => self.path.push(other),
            }
        }
        step(self);
        self.path.truncate(parent);
    }

    fn at_index(&mut self, index: usize, step: impl FnOnce(&mut Self)) {
        let parent = self.path.len();
        // Writing into a String cannot fail.
        let _ = write!(self.path, "/{index}");
        step(self);
        self.path.truncate(parent);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patch(before: &Value, after: &Value) -> Value {
        json!(difference(before, after))
    }

    /// spec 50 §2.5
    #[test]
    fn a_patch_holds_what_differs_and_nothing_else() {
        let table = [
            (json!({"a": 1}), json!({"a": 1}), json!([])),
            (json!({"a": 1}), json!({"a": 2}), json!([{"op": "replace", "path": "/a", "value": 2}])),
            (json!({"a": 1, "b": 2}), json!({"b": 2}), json!([{"op": "remove", "path": "/a"}])),
            // rule 4
            (
                json!({"metadata": {"labels": {}}}),
                json!({"metadata": {"labels": {"a~b/c": "d"}}}),
                json!([{"op": "add", "path": "/metadata/labels/a~0b~1c", "value": "d"}]),
            ),
            // rule 5
            (
                json!({"metadata": {}}),
                json!({"metadata": {"labels": {"a": "b"}}}),
                json!([{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]),
            ),
            // rule 6
            (
                json!({"containers": [{"name": "a", "new": 1}, {"name": "b"}]}),
                json!({"containers": [{"name": "a", "new": 1, "env": []}, {"name": "b", "env": [1]}]}),
                json!([
                    {"op": "add", "path": "/containers/0/env", "value": []},
                    {"op": "add", "path": "/containers/1/env", "value": [1]},
                ]),
            ),
            (json!([1, 2]), json!([1, 2, 3]), json!([{"op": "add", "path": "/2", "value": 3}])),
            (json!([1, 2, 3]), json!([1, 3]), json!([{"op": "remove", "path": "/1"}])),
            (json!([2, 3]), json!([1, 2, 3]), json!([{"op": "add", "path": "/0", "value": 1}])),
            (
                json!([1, 2, 3]),
                json!([]),
                json!([
                    {"op": "remove", "path": "/2"}, {"op": "remove", "path": "/1"}, {"op": "remove", "path": "/0"},
                ]),
            ),
            // rule 7
            (json!({"env": null}), json!({"env": [1]}), json!([{"op": "replace", "path": "/env", "value": [1]}])),
            (json!(1), json!([]), json!([{"op": "replace", "path": "", "value": []}])),
        ];

        for (before, after, expected) in table {
            assert_eq!(patch(&before, &after), expected, "{before} to {after}");
        }
    }
}

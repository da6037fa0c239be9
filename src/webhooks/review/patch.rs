//! The difference of two JSON values as an RFC 6902 patch (spec 50 §2.5): only `add`, `remove` and `replace`. Equal
//! fields are not mentioned, so fields that a webhook does not know survive. Lists are compared from both ends: an
//! appended element is an `add`, and a change within an element changes only its field. A patch is bounded (rule 8).
//! Steps share their paths, so a long key above many steps is stored once. If the steps within a list or map would take
//! more text than the list or map itself, one step replaces it.

use std::{fmt, io, rc::Rc};

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// Extra bytes that the steps within a list or map may take beyond its own size, so that a small change stays small.
pub const FEW: usize = 1 << 10;

/// Bytes of a step, without its path and its value: `{"op":"replace","path":"","value":},`.
const STEP: usize = 36;

/// A step of a patch.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Operation<'a> {
    /// Adds a field, or inserts an element before the one at that index.
    Add {
        /// The position.
        path: Path<'a>,
        /// The new value.
        value: &'a Value,
    },
    /// Removes a value.
    Remove {
        /// The position.
        path: Path<'a>,
    },
    /// Replaces a value.
    Replace {
        /// The position.
        path: Path<'a>,
        /// The new value.
        value: &'a Value,
    },
}

/// A position in a value, written as a JSON pointer. Paths share their common beginning.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Path<'a>(Option<Rc<Level<'a>>>);

#[derive(Debug, PartialEq)]
struct Level<'a> {
    above: Path<'a>,
    segment: Segment<'a>,
    size: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Segment<'a> {
    Field(&'a str),
    Index(usize),
}

#[derive(Default)]
struct Walk<'a> {
    place: Vec<Segment<'a>>,
    /// The paths from the root to the current position, as far as they are in use.
    paths: Vec<Path<'a>>,
    steps: Vec<Operation<'a>>,
    size: usize,
}

struct Counter {
    count: usize,
    limit: usize,
}

/// Returns the steps from `before` to `after`. Their text is at most about [`FEW`] bytes longer than `after`.
pub fn difference<'a>(before: &'a Value, after: &'a Value) -> Vec<Operation<'a>> {
    let mut walk = Walk::default();
    walk.value(before, after);
    walk.steps
}

/// Returns the bytes of a value as JSON, or `None` if they exceed `limit`.
fn size(value: &(impl Serialize + ?Sized), limit: usize) -> Option<usize> {
    if limit == 0 {
        return None; // no value has an empty text
    }
    let mut counter = Counter { count: 0, limit };
    serde_json::to_writer(&mut counter, value).ok()?;
    Some(counter.count)
}

impl<'a> Walk<'a> {
    fn value(&mut self, before: &'a Value, after: &'a Value) {
        let (steps, size) = (self.steps.len(), self.size);
        match (before, after) {
            (Value::Object(before), Value::Object(after)) => self.map(before, after),
            (Value::Array(before), Value::Array(after)) => self.list(before, after),
            (before, after) if before == after => return,
            (_, value) => return self.replace(value),
        }
        if self.steps.len() > steps && self::size(after, (self.size - size).saturating_sub(FEW)).is_some() {
            self.steps.truncate(steps);
            self.size = size;
            self.replace(after);
        }
    }

    /// Maps and lists are not compared as a whole first: every level would compare everything below it again.
    fn map(&mut self, before: &'a Map<String, Value>, after: &'a Map<String, Value>) {
        for field in before.keys().filter(|field| !after.contains_key(*field)) {
            self.at(Segment::Field(field), Self::remove);
        }
        for (field, value) in after {
            match before.get(field) {
                Some(before) => self.at(Segment::Field(field), |walk| walk.value(before, value)),
                None => self.at(Segment::Field(field), |walk| walk.add(value)),
            }
        }
    }

    /// If the lengths differ, equal elements at both ends are skipped. Between them, elements at the same index are
    /// compared; then the rest is removed, last element first, or added.
    fn list(&mut self, before: &'a [Value], after: &'a [Value]) {
        let is_same = |(before, after): &(&Value, &Value)| before == after;
        let is_moved = before.len() != after.len();
        let front = if is_moved { before.iter().zip(after).take_while(is_same).count() } else { 0 };
        let (before, after) = (&before[front..], &after[front..]);
        let back = if is_moved { before.iter().rev().zip(after.iter().rev()).take_while(is_same).count() } else { 0 };
        let (before, after) = (&before[..before.len() - back], &after[..after.len() - back]);
        let common = before.len().min(after.len());

        for (index, (before, after)) in before.iter().zip(after).enumerate() {
            self.at(Segment::Index(front + index), |walk| walk.value(before, after));
        }
        for index in (common..before.len()).rev() {
            self.at(Segment::Index(front + index), Self::remove);
        }
        for (index, value) in after.iter().enumerate().skip(common) {
            self.at(Segment::Index(front + index), |walk| walk.add(value));
        }
    }

    fn add(&mut self, value: &'a Value) {
        let path = self.path();
        self.push(Operation::Add { path, value });
    }

    fn remove(&mut self) {
        let path = self.path();
        self.push(Operation::Remove { path });
    }

    fn replace(&mut self, value: &'a Value) {
        let path = self.path();
        self.push(Operation::Replace { path, value });
    }

    fn path(&mut self) -> Path<'a> {
        for segment in &self.place[self.paths.len()..] {
            let above = self.paths.last().cloned().unwrap_or_default();
            self.paths.push(above.below(*segment));
        }
        self.paths.last().cloned().unwrap_or_default()
    }

    fn push(&mut self, step: Operation<'a>) {
        let (path, value) = match &step {
            Operation::Add { path, value } | Operation::Replace { path, value } => (path, Some(*value)),
            Operation::Remove { path } => (path, None),
        };
        let value = value.and_then(|value| size(value, usize::MAX)).unwrap_or_default();
        self.size += STEP + path.size() + value;
        self.steps.push(step);
    }

    fn at(&mut self, segment: Segment<'a>, step: impl FnOnce(&mut Self)) {
        self.place.push(segment);
        step(self);
        self.place.pop();
        self.paths.truncate(self.place.len());
    }
}

impl<'a> Path<'a> {
    fn below(&self, segment: Segment<'a>) -> Self {
        Self(Some(Rc::new(Level { above: self.clone(), segment, size: self.size() + segment.size() })))
    }

    fn size(&self) -> usize {
        self.0.as_ref().map_or(0, |level| level.size)
    }
}

impl Segment<'_> {
    /// Returns its bytes within a JSON text.
    fn size(self) -> usize {
        if let Self::Field(field) = self
            && !field.bytes().any(is_escaped)
        {
            return "/".len() + field.len();
        }
        let mut text = String::new();
        self.write(&mut text);
        size(&text, usize::MAX).unwrap_or_default().saturating_sub(2) // without the quotes
    }

    /// Appends a slash and the segment as in a JSON pointer.
    fn write(self, text: &mut String) {
        text.push('/');
        match self {
            Self::Index(index) => text.push_str(&index.to_string()),
            Self::Field(field) if field.contains(['~', '/']) => {
                text.push_str(&field.replace('~', "~0").replace('/', "~1"));
            }
            Self::Field(field) => text.push_str(field),
        }
    }
}

/// Returns true if a byte of a field takes more room in a JSON pointer within a JSON text.
fn is_escaped(byte: u8) -> bool {
    matches!(byte, b'~' | b'/' | b'"' | b'\\' | ..b' ')
}

impl Path<'_> {
    fn text(&self) -> String {
        let mut text = String::with_capacity(self.size());
        self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) {
        let Some(level) = &self.0 else { return };
        level.above.write(text);
        level.segment.write(text);
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl Serialize for Path<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.count += bytes.len();
        if self.count > self.limit { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
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
    fn patch_contains_only_the_differences() {
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

    fn text(before: &Value, after: &Value) -> String {
        serde_json::to_string(&difference(before, after)).unwrap()
    }

    fn elements(count: usize, length: usize, fields: usize) -> Vec<Value> {
        let below = |element: usize| (0..fields).map(|field| (format!("{element}.{field}"), json!(0))).collect();
        let key = "~".repeat(length);
        (0..count).map(|element| json!({ &key: Value::Object(below(element)) })).collect()
    }

    /// spec 50 §2.5 rule 8
    #[test]
    fn patch_of_a_list_with_moved_elements_is_no_larger_than_the_list() {
        for (count, length, fields) in [(2, 100_000, 10_000), (10, 10_000, 2_000), (1_000, 100, 10), (10_000, 1, 1)] {
            let before = json!({ "spec": { "list": elements(count, length, fields) } });
            let mut after = before.clone();
            after["spec"]["list"].as_array_mut().unwrap().remove(0);

            let (text, most) = (text(&before, &after).len(), after.to_string().len() + FEW + 64);
            assert!(text <= most, "{count} {length} {fields}: {text} > {most}");
        }
    }

    /// spec 50 §2.5 rule 8
    #[test]
    fn patch_of_many_fields_below_one_long_key_is_no_larger_than_the_object() {
        let key = "/".repeat(100_000);
        let before = json!({ "metadata": { &key: {} } });
        let mut after = before.clone();
        after["metadata"][&key] = elements(1, 10, 10_000).remove(0);

        let (text, most) = (text(&before, &after).len(), after.to_string().len() + FEW + 64);

        assert!(text <= most, "{text} > {most}");
    }

    #[test]
    fn patch_size_is_estimated_correctly() {
        let before = json!({ "a\"\n~/\u{1}é": [1, { "b": 1, "c": 2 }], "d": {} });
        let after = json!({ "a\"\n~/\u{1}é": [2, { "b": "\u{7f}\t" }], "d": [] });
        let mut walk = Walk::default();

        walk.value(&before, &after);

        let (said, taken) = (walk.size, text(&before, &after).len());
        assert!((taken..=taken + walk.steps.len() * STEP).contains(&said), "{said} {taken}");
        assert_eq!(walk.steps.len(), 4);
    }
}

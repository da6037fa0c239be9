//! The paths at which an update changed an object, for the log. Values never appear, nor do the keys of a Secret's data.

use std::{borrow::Cow, collections::BTreeSet, fmt::Write as _};

use kit::quote::cut_after;
use serde_json::{Map, Value};

/// Most paths that are named.
const MOST: usize = 10;
/// Longest path, in characters.
const LONGEST: usize = 128;
/// What each write changes.
const BOOKKEEPING: [&str; 3] = ["managedFields", "resourceVersion", "generation"];
const SECRET: [&str; 2] = ["data", "stringData"];

/// The paths at which two states of an object differ, separated by commas; empty if they do not differ. The status and
/// what each write changes do not count.
pub(crate) fn changed_paths(before: &Value, after: &Value) -> String {
    // Other kinds of Secrets too, e.g. Gardener's InternalSecret.
    let is_secret = [before, after]
        .iter()
        .any(|object| object.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("Secret")));
    let mut paths = Paths { is_secret, found: BTreeSet::new(), more: false };
    paths.compare(&mut String::new(), Some(before), Some(after));
    let mut text = paths.found.into_iter().collect::<Vec<_>>().join(", ");
    if paths.more {
        text.push_str(", …");
    }
    text
}

struct Paths {
    is_secret: bool,
    found: BTreeSet<String>,
    more: bool,
}

impl Paths {
    fn compare(&mut self, path: &mut String, before: Option<&Value>, after: Option<&Value>) {
        if before == after {
            return;
        }
        let length = path.len();
        match (before, after) {
            (Some(Value::Object(before)), Some(Value::Object(after))) => {
                for key in keys(before, after) {
                    let is_bookkeeping = path == "metadata" && BOOKKEEPING.contains(&key);
                    if is_bookkeeping || path.is_empty() && key == "status" {
                        continue;
                    }
                    let (before, after) = (before.get(key), after.get(key));
                    if self.is_secret && path.is_empty() && SECRET.contains(&key) {
                        if before != after {
                            self.add(&format!("{key}[…]"));
                        }
                        continue;
                    }
                    let _ = write!(path, "{}{}", if length == 0 { "" } else { "." }, named(key));
                    self.compare(path, before, after);
                    path.truncate(length);
                }
            }
            (Some(Value::Array(before)), Some(Value::Array(after))) if before.len() == after.len() => {
                for (index, (before, after)) in before.iter().zip(after).enumerate() {
                    let _ = write!(path, "[{index}]");
                    self.compare(path, Some(before), Some(after));
                    path.truncate(length);
                }
            }
            _ => self.add(path),
        }
    }

    fn add(&mut self, path: &str) {
        if self.found.len() < MOST {
            self.found.insert(cut_after(LONGEST, path).into_owned());
        } else {
            self.more = true;
        }
    }
}

fn keys<'a>(before: &'a Map<String, Value>, after: &'a Map<String, Value>) -> BTreeSet<&'a str> {
    before.keys().chain(after.keys()).map(String::as_str).collect()
}

/// A key with a dot or a slash, e.g. that of an annotation, stands in brackets.
fn named(key: &str) -> Cow<'_, str> {
    if key.contains(['.', '/', '[']) { Cow::Owned(format!("[{key}]")) } else { Cow::Borrowed(key) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changed_paths_name_fields_without_values() {
        let before = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"resourceVersion": "1", "generation": 1, "annotations": {"a.io/b": "x"}},
            "data": {"k": "old", "same": "s"}, "list": [{"a": 1}, {"a": 2}], "longer": [1], "status": {"a": 1},
        });
        let after = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"resourceVersion": "2", "generation": 2, "annotations": {"a.io/b": "y"}, "managedFields": []},
            "data": {"k": "new", "same": "s", "more": ""}, "list": [{"a": 1}, {"a": 3}], "longer": [1, 2], "status": {},
        });

        let paths = changed_paths(&before, &after);

        assert_eq!(paths, "data.k, data.more, list[1].a, longer, metadata.annotations.[a.io/b]");
        assert_eq!(changed_paths(&before, &before), "");
    }

    #[test]
    fn changed_paths_do_not_name_keys_of_secrets() {
        let secret = |data: Value| json!({"apiVersion": "v1", "kind": "Secret", "data": data, "type": "Opaque"});

        let paths = changed_paths(&secret(json!({"password": "eA=="})), &secret(json!({"other": "eQ=="})));

        assert_eq!(paths, "data[…]");
        assert_eq!(
            changed_paths(
                &secret(json!({"a": "eA=="})),
                &json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque"})
            ),
            "data[…]"
        );
        let internal = |value: &str| {
            let kind = "InternalSecret";
            json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": kind, "data": {"hidden": value}})
        };
        assert_eq!(changed_paths(&internal("eA=="), &internal("eQ==")), "data[…]");
    }

    #[test]
    fn changed_paths_are_few_and_short() {
        let many = |value: u32| (0..MOST + 5).map(|key| (format!("k{key:02}"), json!(value))).collect::<Value>();
        let long = |value: u32| json!({"x".repeat(1000): value});

        let few = changed_paths(&many(1), &many(2));

        assert!(few.ends_with("k09, …") && few.starts_with("k00, k01"), "{few}");
        assert_eq!(changed_paths(&long(1), &long(2)).chars().count(), LONGEST + 1);
    }
}

//! The paths at which an update changed an object, for the log and the dashboard. Values never appear, nor do the keys
//! of a Secret's data.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    fmt::{self, Write as _},
};

use kit::quote::cut_after;
use serde_json::{Map, Value};

/// Most paths that are named.
const MOST: usize = 10;
/// Longest path, in characters.
const LONGEST: usize = 128;
/// What each write changes.
const BOOKKEEPING: [&str; 3] = ["managedFields", "resourceVersion", "generation"];
const SECRET: [&str; 2] = ["data", "stringData"];

/// The paths at which two states of an object differ, sorted, up to a bound.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ChangedPaths {
    found: BTreeSet<String>,
    more: bool,
}

struct Comparison {
    is_secret: bool,
    paths: ChangedPaths,
}

/// Returns the paths at which two states of an object differ. The status and what each write changes do not count.
pub(crate) fn changed_paths(before: &Value, after: &Value) -> ChangedPaths {
    // Other kinds of Secrets too, e.g. Gardener's InternalSecret.
    let is_secret = [before, after]
        .iter()
        .any(|object| object.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("Secret")));
    let mut comparison = Comparison { is_secret, paths: ChangedPaths::default() };
    comparison.compare(&mut String::new(), Some(before), Some(after));
    comparison.paths
}

impl ChangedPaths {
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns the first paths, at most `most`, and `…` if there are more.
    pub(crate) fn first(&self, most: usize) -> impl Iterator<Item = &str> {
        let more = self.more || self.found.len() > most;
        self.found.iter().take(most).map(String::as_str).chain(more.then_some("…"))
    }
}

impl fmt::Display for ChangedPaths {
    /// Separated by commas.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, path) in self.first(MOST).enumerate() {
            write!(f, "{}{path}", if index > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

impl Comparison {
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
        if self.paths.found.len() < MOST {
            self.paths.found.insert(cut_after(LONGEST, path).into_owned());
        } else {
            self.paths.more = true;
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

        assert_eq!(paths.to_string(), "data.k, data.more, list[1].a, longer, metadata.annotations.[a.io/b]");
        assert_eq!(paths.first(2).collect::<Vec<_>>(), ["data.k", "data.more", "…"]);
        assert_eq!(paths.first(5).count(), 5);
        assert!(!paths.is_empty() && changed_paths(&before, &before).is_empty());
    }

    #[test]
    fn changed_paths_do_not_name_keys_of_secrets() {
        let secret = |data: Value| json!({"apiVersion": "v1", "kind": "Secret", "data": data, "type": "Opaque"});

        let paths = changed_paths(&secret(json!({"password": "eA=="})), &secret(json!({"other": "eQ=="})));

        assert_eq!(paths.to_string(), "data[…]");
        let empty = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque"});
        assert_eq!(changed_paths(&secret(json!({"a": "eA=="})), &empty).to_string(), "data[…]");
        let internal = |value: &str| {
            let kind = "InternalSecret";
            json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": kind, "data": {"hidden": value}})
        };
        assert_eq!(changed_paths(&internal("eA=="), &internal("eQ==")).to_string(), "data[…]");
    }

    #[test]
    fn changed_paths_are_few_and_short() {
        let many = |value: u32| (0..MOST + 5).map(|key| (format!("k{key:02}"), json!(value))).collect::<Value>();
        let long = |value: u32| json!({"x".repeat(1000): value});

        let few = changed_paths(&many(1), &many(2)).to_string();

        assert!(few.ends_with("k09, …") && few.starts_with("k00, k01"), "{few}");
        assert_eq!(changed_paths(&long(1), &long(2)).to_string().chars().count(), LONGEST + 1);
    }
}

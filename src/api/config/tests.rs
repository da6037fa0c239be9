//! What the tests of all programs do with an example file that has every key: they compare its keys with those of the
//! program, and generate the reference of all keys.

use std::collections::BTreeSet;

use serde_json::Value;

#[derive(Debug, PartialEq)]
struct Key {
    /// As in messages: `controllers.networkPolicy.namespaceSelectors[].matchLabels`.
    path: String,
    meaning: String,
    /// The example's value; empty if it contains other keys.
    shown: String,
}

struct Open {
    indent: usize,
    path: String,
}

/// Fails unless `docs/reference/<file>` is the reference of an example's keys; prints the expected text.
pub(super) fn assert_reference(file: &str, introduction: &str, example: &str, defaults: &Value) {
    let rows: String = keys(example)
        .iter()
        .filter(|key| !["apiVersion", "kind"].contains(&key.path.as_str()))
        // A block without a meaning shows through its keys.
        .filter(|key| !(key.shown.is_empty() && key.meaning.is_empty()))
        .map(|key| format!("| `{}` | {} | {} |\n", key.path, default(key, defaults), key.meaning))
        .collect();
    let expected = format!("{introduction}\n| Key | Default | Meaning |\n|---|---|---|\n{rows}");

    let path = format!("{}/docs/reference/{file}", env!("CARGO_MANIFEST_DIR"));
    let actual = std::fs::read_to_string(path).unwrap_or_default();

    assert!(actual == expected, "docs/reference/{file} must be:\n{expected}");
}

#[test]
fn keys_are_read_with_their_paths_and_comments() {
    let yaml = "# The file.\n\na:\n  # First\n  # and second line.\n  b: 1\n\n  #c:\n  #- d: {e: f}\n    #g: 2\n\n# H.\nh: \"\"\n";
    let key = |path: &str, meaning: &str, shown: &str| Key {
        path: path.into(),
        meaning: meaning.into(),
        shown: shown.into(),
    };

    assert_eq!(
        keys(yaml),
        [
            key("a", "", ""),
            key("a.b", "First and second line.", "1"),
            key("a.c", "", ""),
            key("a.c[].d", "", "{e: f}"),
            key("a.c[].g", "", "2"),
            key("h", "H.", "\"\""),
        ]
    );
}

fn keys(yaml: &str) -> Vec<Key> {
    let (mut keys, mut comment, mut open) = (Vec::new(), Vec::new(), Vec::<Open>::new());
    for line in yaml.lines() {
        let text = line.trim_start();
        let mut indent = line.len() - text.len();
        if text.is_empty() {
            comment.clear();
            continue;
        }
        if let Some(text) = text.strip_prefix("# ") {
            comment.push(text);
            continue;
        }
        let mut setting = text.strip_prefix('#').unwrap_or(text); // a setting that is commented out counts too
        if let Some(entry) = setting.strip_prefix("- ") {
            open.retain(|open| open.indent <= indent);
            let list = open.last().map(|open| open.path.clone()).unwrap_or_default();
            open.push(Open { indent: indent + 1, path: format!("{list}[]") });
            (setting, indent) = (entry, indent + 2);
        }
        open.retain(|open| open.indent < indent);
        let Some((name, shown)) = setting.split_once(':') else { continue };
        let path = open.last().map_or(name.to_owned(), |open| format!("{}.{name}", open.path));
        keys.push(Key {
            path: path.clone(),
            meaning: std::mem::take(&mut comment).join(" "),
            shown: shown.trim().into(),
        });
        open.push(Open { indent, path });
    }
    keys
}

/// The default of a key, or else the example's value, marked as such.
fn default(key: &Key, defaults: &Value) -> String {
    let pointer = format!("/{}", key.path.replace('.', "/"));
    let (default, shown) = (defaults.pointer(&pointer), key.shown.as_str());
    let is_unset = match default {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty() && shown != "\"\"",
        Some(Value::Array(entries)) => entries.is_empty() && shown != "[]",
        Some(Value::Object(fields)) => !fields.is_empty() || shown != "{}",
        Some(Value::Bool(_) | Value::Number(_)) => false,
    };
    match default {
        _ if is_unset && shown.is_empty() => String::new(),
        _ if is_unset => format!("e.g. `{shown}`"),
        Some(Value::String(text)) if !text.is_empty() => format!("`{text}`"),
        Some(Value::Number(number)) => format!("`{}`", number.as_f64().unwrap_or_default()),
        _ => format!("`{shown}`"),
    }
}

/// The file with all settings: a line with `#` and no space after it is a setting.
pub(super) fn uncommented(yaml: &str) -> String {
    let line = |line: &str| match line.split_once('#') {
        Some((indent, setting)) if indent.trim().is_empty() && !setting.is_empty() && !setting.starts_with(' ') => {
            format!("{indent}{setting}\n")
        }
        _ => format!("{line}\n"),
    };
    yaml.lines().map(line).collect()
}

fn paths(value: &Value, path: String, found: &mut BTreeSet<String>) {
    found.insert(path.clone());
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                paths(value, path, found);
            }
        }
        Value::Array(entries) => {
            found.insert(format!("{path}[]"));
            for value in entries {
                paths(value, format!("{path}[]"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the paths of all keys.
pub(super) fn all_paths(value: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    paths(value, String::new(), &mut found);
    found
}

//! Differences between two values, for messages that people read (spec 62 §2.5).

use std::{borrow::Cow, collections::HashMap, fmt::Write as _};

use kit::quote::cut;
use sha2::{Digest as _, Sha256};

use super::Json;

const MOST_CHANGES: usize = 10;
const LONGEST: usize = 64; // longest text that is shown, in characters
/// Content of these fields belongs to users or providers: messages do not repeat it.
const CONFIDENTIAL: [&str; 8] = [
    "userData",
    "sshPublicKey",
    "data",
    "content",
    "values",
    "providerConfig",
    "infrastructureProviderStatus",
    "backupBucketProviderStatus",
];

/// The changes as `path: <new> != <old>`, at most ten, joined by commas. Very long paths are cut.
pub fn difference(new: &Json<'_>, old: &Json<'_>) -> String {
    let mut changes = Vec::new();
    compare(&mut String::new(), Some(new), Some(old), &mut changes);
    changes.join(",")
}

/// Replaces content that must not be repeated: its length, and the beginning of its SHA-256.
pub fn instead_of(content: &[u8]) -> String {
    let sum = Sha256::digest(content);
    let mut text = format!("<{} bytes, SHA-256 ", content.len());
    for byte in &sum[..4] {
        let _ = write!(text, "{byte:02x}"); // writing to a String never fails
    }
    text.push_str("…>");
    text
}

fn compare(path: &mut String, new: Option<&Json<'_>>, old: Option<&Json<'_>>, changes: &mut Vec<String>) {
    if changes.len() == MOST_CHANGES || new == old {
        return;
    }
    let length = path.len();
    match (new, old) {
        (Some(Json::Map(new)), Some(Json::Map(old))) => {
            let (now, before): (HashMap<&str, &Json<'_>>, HashMap<&str, &Json<'_>>) = (by_key(new), by_key(old));
            let gone = old.iter().filter(|(key, _)| !now.contains_key(&**key));
            for key in new.iter().chain(gone).map(|(key, _)| key) {
                let _ = write!(path, "{}{key}", if length == 0 { "" } else { "." });
                let (new, old) = (now.get(&**key).copied(), before.get(&**key).copied());
                if CONFIDENTIAL.contains(&&**key) && new != old {
                    changes.push(format!("{}: {} != {}", cut(path), hidden(new), hidden(old)));
                } else {
                    compare(path, new, old, changes);
                }
                path.truncate(length);
                if changes.len() >= MOST_CHANGES {
                    return;
                }
            }
        }
        (Some(Json::List(new)), Some(Json::List(old))) => {
            for at in 0..new.len().max(old.len()) {
                let _ = write!(path, "[{at}]");
                match (new.get(at), old.get(at)) {
                    (Some(new), Some(old)) => compare(path, Some(new), Some(old), changes),
                    (new, old) => {
                        changes.push(format!("{}: {} != {}", cut(path), shown(new, true), shown(old, true)));
                    }
                }
                path.truncate(length);
                if changes.len() >= MOST_CHANGES {
                    return;
                }
            }
        }
        (new, old) => changes.push(format!("{}: {} != {}", cut(path), shown(new, false), shown(old, false))),
    }
}

fn by_key<'b, 'a>(entries: &'b [(Cow<'a, str>, Json<'a>)]) -> HashMap<&'b str, &'b Json<'a>> {
    entries.iter().map(|(key, value)| (&**key, value)).collect()
}

fn shown(value: Option<&Json<'_>>, of_list: bool) -> String {
    match value {
        None if of_list => "<no value>".to_owned(),
        None => "<does not have key>".to_owned(),
        Some(Json::Null) => "<nil pointer>".to_owned(),
        Some(Json::Text(text)) if text.chars().nth(LONGEST).is_none() => text.to_string(),
        Some(value @ (Json::Bool(_) | Json::Number(_))) => json(value),
        Some(value) => instead_of(json(value).as_bytes()),
    }
}

fn hidden(value: Option<&Json<'_>>) -> String {
    match value {
        None | Some(Json::Null) => shown(value, false),
        Some(value) => instead_of(json(value).as_bytes()),
    }
}

fn json(value: &Json<'_>) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(new: &str, old: &str) -> String {
        difference(&serde_json::from_str(new).unwrap(), &serde_json::from_str(old).unwrap())
    }

    /// spec 62 §2.5
    #[test]
    fn difference_names_the_path_of_a_change() {
        assert_eq!(
            reported(r#"{"a":{"b":2},"c":[1,2]}"#, r#"{"a":{"b":1},"c":[1]}"#),
            "a.b: 2 != 1,c[1]: 2 != <no value>"
        );
        assert_eq!(
            reported(r#"{"a":"x"}"#, r#"{"b":null}"#),
            "a: x != <does not have key>,b: <does not have key> != <nil pointer>"
        );
        assert_eq!(reported("{}", "{}"), "");
        let many: String = (0..30).map(|key| format!(r#""{key}":0,"#)).collect();
        assert_eq!(reported(&format!(r#"{{{many}"x":1}}"#), "{}").split(',').count(), 10);
        let long = reported(&format!(r#"{{"{}":1}}"#, "k".repeat(100_000)), "{}");
        assert_eq!(long, format!("{}…: 1 != <does not have key>", "k".repeat(512)));
    }

    #[test]
    fn difference_does_not_repeat_content_of_users() {
        let reported = reported(
            r#"{"userData":"s3cret","files":[{"content":{"inline":{"data":"s3cret"}}}],"providerConfig":{"a":"s3cret"}}"#,
            r#"{"userData":"0ther","files":[{"content":{}}]}"#,
        );
        assert!(!reported.contains("s3cret") && !reported.contains("0ther"), "{reported}");
        assert!(reported.starts_with("userData: <8 bytes, SHA-256 "), "{reported}");
    }
}

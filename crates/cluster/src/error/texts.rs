//! Removes objects and contents of Secrets from error texts.

use http::StatusCode;
use kit::quote::cut_within;

const LONGEST_PLAIN_TEXT: usize = 1024;
/// Words before a quoted name in the API server's own texts. In a message about a Secret all other quotes are removed.
const BEFORE_NAMES: [&str; 9] =
    ["secrets", "Secret", "namespaces", "User", "resource", "group", "namespace", "webhook", "version"];
const LONGEST_NAME: usize = 253;
/// Words before a repeated object (api-facts §1, §5).
const BEFORE_OBJECTS: [&str; 3] =
    ["patch: Invalid value: ", "Object 'Kind' is missing in ", "Object 'apiVersion' is missing in "];
/// The text after these words is about the content, whatever its author.
const BEFORE_CONTENT: [&str; 2] = [" is invalid: ", " denied the request"];
pub(super) const LEFT_OUT: &str = "(left out)";

pub(super) fn plain_text(code: StatusCode, body: &[u8]) -> String {
    let body = body.trim_ascii();
    // One byte more than is shown: then a longer text is cut, and shows that.
    let text = String::from_utf8_lossy(&body[..body.len().min(LONGEST_PLAIN_TEXT + 1)]);
    let text = cut_within(LONGEST_PLAIN_TEXT, text.trim());
    if text.is_empty() { format!("the API server answered {code}") } else { text.into_owned() }
}

/// Removes a repeated object and everything after it, or [`without_content`] for a text about a Secret (decision 14).
pub(in super::super) fn without_objects(message: &str, secret: bool) -> String {
    if secret {
        return without_content(message, true);
    }
    let (message, object) = before_object(message);
    format!("{message}{object}")
}

fn before_object(message: &str) -> (&str, &'static str) {
    let ends = BEFORE_OBJECTS.iter().filter_map(|marker| message.find(marker).map(|found| found + marker.len()));
    ends.min().map_or((message, ""), |end| (&message[..end], LEFT_OUT))
}

/// Removes possible content from a text about a Secret: repeated objects, quotes that are not names, and data keys,
/// which are content if the indentation of a manifest is broken.
pub(super) fn without_content(message: &str, names: bool) -> String {
    let (message, object) = before_object(message);
    let begin = BEFORE_CONTENT.iter().filter_map(|marker| message.find(marker)).min().unwrap_or(message.len());
    let (head, tail) = message.split_at(if names { begin } else { 0 });
    without_keys(&(without_quotes(head, true) + &without_quotes(tail, false))) + object
}

pub(super) fn without_keys(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("data[") {
        let (before, inner) = rest.split_at(start + "data[".len());
        kept.push_str(before);
        kept.push_str(LEFT_OUT);
        rest = inner.find(']').map_or("", |end| &inner[end..]);
    }
    kept + rest
}

/// Replaces quoted text; with `names`, all except names. An unterminated quote counts as too long for a name.
fn without_quotes(message: &str, names: bool) -> String {
    let mut kept = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(start) = rest.find('"') {
        let (before, inner) = (&rest[..start], &rest[start + 1..]);
        let end = end_of_quote(inner);
        let is_name = names && before.split_whitespace().next_back().is_some_and(|word| BEFORE_NAMES.contains(&word));
        kept.push_str(before);
        match end {
            Some(end) if is_name && end <= LONGEST_NAME => kept.push_str(&rest[start..start + end + 2]),
            Some(_) | None => kept.push_str(LEFT_OUT),
        }
        rest = end.map_or("", |end| &inner[end + 1..]);
    }
    kept + rest
}

fn end_of_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let end = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        end
    })
}

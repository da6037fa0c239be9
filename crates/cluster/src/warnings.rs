//! Logs `Warning` headers of the API server (api-facts §10), once per text (spec 70 §8.3).

use std::{cell::RefCell, collections::BTreeSet};

use http::HeaderMap;

use super::error::without_objects;

/// Limit of remembered texts. The server has far fewer; above the limit something is wrong and nothing is logged.
const MOST: usize = 1024;

#[derive(Default)]
pub(super) struct Warnings(RefCell<BTreeSet<String>>);

impl Warnings {
    /// Logs the new texts of an answer. `secret`: the answer is about a Secret, so possible content is left out.
    pub(super) fn log(&self, host: &str, headers: &HeaderMap, secret: bool) {
        for value in headers.get_all(http::header::WARNING) {
            let Some(text) = value.to_str().ok().and_then(text_of) else { continue };
            let text = without_objects(&text, secret);
            if self.is_new(&text) {
                tracing::warn!(host, warning = text, "warning of the API server");
            }
        }
    }

    fn is_new(&self, text: &str) -> bool {
        let mut seen = self.0.borrow_mut();
        seen.len() < MOST && seen.insert(text.to_owned())
    }
}

/// Returns the text of `299 - "<text>"`; `None` for other codes and forms.
fn text_of(header: &str) -> Option<String> {
    let (_agent, quoted) = header.strip_prefix("299 ")?.split_once(' ')?;
    let mut characters = quoted.strip_prefix('"')?.chars();
    let mut text = String::new();
    loop {
        match characters.next()? {
            '"' => return Some(text),
            '\\' => text.push(characters.next()?),
            character => text.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warning_text_is_the_quoted_part() {
        assert_eq!(text_of(r#"299 - "unknown field \"spec.bar\"""#), Some(r#"unknown field "spec.bar""#.into()));
        assert_eq!(text_of("199 - \"x\""), None);
        assert_eq!(text_of("299 - \"x"), None);
    }

    #[test]
    fn warnings_are_logged_once_and_the_memory_is_bounded() {
        let warnings = Warnings::default();

        assert!(warnings.is_new("a"));
        assert!(!warnings.is_new("a"));
        for index in 0..2 * MOST {
            warnings.is_new(&index.to_string());
        }
        assert_eq!(warnings.0.borrow().len(), MOST);
    }
}

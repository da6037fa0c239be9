//! Keys that a map has twice. The last one counts (spec 10 §9.2); who checks manifests wants to know of both.

use std::fmt::Write as _;

const LONGEST_PATH: usize = 512; // bytes; the outer part of a longer path is left out

/// A key that a map has twice. The last one counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuplicateKey {
    /// Fields and positions in lists from the document on, e.g. `spec.ports[0].name`.
    pub path: String,
    /// Line of the later key within the data key, counted from 1.
    pub line: usize,
}

/// Gathers the duplicate keys of one document, at most as many as it is asked for.
#[derive(Debug, Default)]
pub(super) struct DuplicateKeys {
    most: usize,
    found: Vec<DuplicateKey>,
}

/// A step of a path.
pub(super) enum Step<'a> {
    Field(&'a str),
    Position(usize),
}

impl DuplicateKeys {
    /// With `most` 0, nothing is gathered.
    pub(super) fn new(most: usize) -> Self {
        Self { most, found: Vec::new() }
    }

    pub(super) fn is_gathering(&self) -> bool {
        self.found.len() < self.most
    }

    /// Adds the key at the end of a path. The steps come from the inside to the outside.
    pub(super) fn add<'a>(&mut self, steps: impl Iterator<Item = Step<'a>>, line: usize) {
        let mut parts = Vec::new();
        let mut length = 0;
        for step in steps {
            if length > LONGEST_PATH {
                parts.push("…".to_owned());
                break;
            }
            let part = rendered(step);
            length += part.len();
            parts.push(part);
        }
        let path: String = parts.into_iter().rev().collect();
        self.found.push(DuplicateKey { path: path.strip_prefix('.').unwrap_or(&path).to_owned(), line });
    }

    pub(super) fn clear(&mut self) {
        self.found.clear();
    }

    pub(super) fn take(&mut self) -> Vec<DuplicateKey> {
        std::mem::take(&mut self.found)
    }
}

/// Takes the duplicate keys within an item of a list out of those of the list; the paths become those of the item. Keys
/// of the list itself count for its first item.
pub(super) fn of_item(all: &mut Vec<DuplicateKey>, position: usize) -> Vec<DuplicateKey> {
    if all.is_empty() {
        return Vec::new();
    }
    let prefix = format!("items[{position}].");
    let is_of_it =
        |key: &mut DuplicateKey| key.path.starts_with(&prefix) || (position == 0 && !key.path.starts_with("items["));
    let within = all.extract_if(.., is_of_it).map(|DuplicateKey { path, line }| {
        let path = path.strip_prefix(&prefix).unwrap_or(&path).to_owned();
        DuplicateKey { path, line }
    });
    within.collect()
}

fn rendered(step: Step<'_>) -> String {
    let mut text = String::new();
    let is_plain = |key: &str| key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    // Writing to a string cannot fail.
    match step {
        Step::Field(key) if is_plain(key) && !key.is_empty() => write!(text, ".{}", shortened(key)),
        Step::Field(key) => write!(text, "[{}]", shortened(key)),
        Step::Position(position) => write!(text, "[{position}]"),
    }
    .ok();
    text
}

fn shortened(key: &str) -> &str {
    let end = (0..=LONGEST_PATH.min(key.len())).rev().find(|end| key.is_char_boundary(*end)).unwrap_or_default();
    &key[..end]
}

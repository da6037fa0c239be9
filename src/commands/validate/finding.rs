//! Findings, and how many of them are kept: who writes an input must not decide how much memory its findings take.

use std::{collections::BTreeSet, fmt};

use kit::{hash_of, quote::cut};
use serde_json::Value;

use crate::commands::{
    bundles,
    input::InputLocation,
    output::{one_line, without_middle},
};

/// Findings of one object that are listed. People do not read more.
const MOST: usize = 50;
/// Findings of a whole input that are listed.
const MOST_OF_ALL: usize = 5_000;
/// Characters of a very long text that are kept at its beginning and at its end.
const LONGEST_PART: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    location: InputLocation,
    /// Position in a Secret (`data.yaml.br:2`); empty outside of Secrets.
    inside: String,
    object: String,
    issue: Issue,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Issue {
    severity: Severity,
    what: String,
    remedy: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    /// The controller or the API server refuses it, or it has no effect.
    Error,
    /// It works, but perhaps not as its author expects.
    Warning,
    /// Says how many others are not listed.
    Rest,
}

/// The issues of one object: the first [`MOST`], each once, and the number of the others.
#[derive(Debug, Default)]
pub(super) struct Issues {
    kept: Vec<Issue>,
    /// Hashes of their whole texts: two long texts may be cut to the same one.
    texts: BTreeSet<u64>,
    errors: usize,
    warnings: usize,
}

/// The findings of an input: the first [`MOST_OF_ALL`], and the number of all.
#[derive(Debug, Default)]
pub(super) struct Findings {
    kept: Vec<Finding>,
    /// How many are not kept.
    more: usize,
    pub(super) errors: usize,
    pub(super) warnings: usize,
}

/// Where an object is.
pub(super) struct Place<'a> {
    pub(super) location: &'a InputLocation,
    /// Data key and position in a Secret.
    pub(super) inside: Option<(&'a str, usize)>,
    /// What it is called, cut; empty for an object without a kind.
    pub(super) object: String,
}

impl Issue {
    pub(super) fn error(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { severity: Severity::Error, what: what.into(), remedy: remedy.into() }
    }

    pub(super) fn warning(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, what: what.into(), remedy: remedy.into() }
    }
}

impl Issues {
    /// Adds an issue, unless another check has said the same.
    pub(super) fn push(&mut self, issue: Issue) {
        let Issue { severity, what, remedy } = issue;
        let text = hash_of(&what);
        if self.texts.contains(&text) {
            return;
        }
        match severity {
            Severity::Error => self.errors += 1,
            Severity::Warning | Severity::Rest => self.warnings += 1,
        }
        if self.kept.len() < MOST {
            self.texts.insert(text);
            self.kept.push(Issue {
                severity,
                what: without_middle(&what, LONGEST_PART).into_owned(),
                remedy: cut(&remedy).into_owned(),
            });
        }
    }

    /// Adds an error. Its text is made only if it is kept: a path may be long.
    pub(super) fn error(&mut self, what: impl FnOnce() -> String, remedy: &str) {
        if self.kept.len() < MOST { self.push(Issue::error(what(), remedy)) } else { self.errors += 1 }
    }

    /// Adds a warning, as [`Self::error`] does.
    pub(super) fn warning(&mut self, what: impl FnOnce() -> String, remedy: &str) {
        if self.kept.len() < MOST { self.push(Issue::warning(what(), remedy)) } else { self.warnings += 1 }
    }

    /// How many there are, also those that are not kept.
    pub(super) fn count(&self) -> usize {
        self.errors + self.warnings
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count() == 0
    }

    fn into_listed(self) -> impl Iterator<Item = Issue> {
        let more = self.count() - self.kept.len();
        let rest = (more > 0).then(|| Issue {
            severity: Severity::Rest,
            what: format!("{more} more findings are not listed"),
            remedy: "correct these first".to_owned(),
        });
        self.kept.into_iter().chain(rest)
    }
}

impl Extend<Issue> for Issues {
    fn extend<T: IntoIterator<Item = Issue>>(&mut self, issues: T) {
        issues.into_iter().for_each(|issue| self.push(issue));
    }
}

impl Findings {
    /// Adds all issues of an object.
    pub(super) fn add(&mut self, place: &Place<'_>, issues: Issues) {
        if issues.is_empty() {
            return;
        }
        self.errors += issues.errors;
        self.warnings += issues.warnings;
        let inside = place.inside.map(|(data_key, index)| format!("{}:{index}", cut(data_key))).unwrap_or_default();
        for issue in issues.into_listed() {
            if self.kept.len() == MOST_OF_ALL {
                self.more += usize::from(issue.severity != Severity::Rest);
                continue;
            }
            self.kept.push(Finding {
                location: place.location.clone(),
                inside: inside.clone(),
                object: place.object.clone(),
                issue,
            });
        }
    }

    /// Adds an issue of an object.
    pub(super) fn add_one(&mut self, place: &Place<'_>, issue: Issue) {
        let mut issues = Issues::default();
        issues.push(issue);
        self.add(place, issues);
    }

    /// Returns the listed ones as lines in the order of the input, and the number of the others.
    pub(super) fn into_text(mut self) -> (String, usize) {
        self.kept.sort();
        (self.kept.iter().map(|finding| format!("{finding}\n")).collect(), self.more)
    }
}

impl<'a> Place<'a> {
    pub(super) fn new(location: &'a InputLocation, inside: Option<(&'a str, usize)>, object: &Value) -> Self {
        Self { location, inside, object: bundles::display(object).unwrap_or_default() }
    }

    /// Returns the place of a document in this Secret.
    pub(super) fn at<'b>(&'b self, data_key: &'b str, index: usize) -> Place<'b> {
        Place { location: self.location, inside: Some((data_key, index)), object: self.object.clone() }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.location)?;
        match self.inside {
            Some((data_key, index)) => write!(f, "[{}:{index}]", cut(data_key)),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { location, inside, object, issue: Issue { severity, what, remedy } } = self;
        write!(f, "{}", one_line(&location.to_string()))?;
        if !inside.is_empty() {
            write!(f, "[{}]", one_line(inside))?;
        }
        if !object.is_empty() {
            write!(f, " {}", one_line(object))?;
        }
        let mark = if *severity == Severity::Warning { "warning: " } else { "" };
        write!(f, ": {mark}{} — {}", one_line(what), one_line(remedy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_that_begin_alike_are_different_findings() {
        let mut issues = Issues::default();
        for index in [1, 2, 2] {
            issues.push(Issue::error(format!("{}{index} is no string", "ä".repeat(5_000)), "quote it"));
        }

        let listed: Vec<_> = issues.into_listed().collect();

        assert_eq!(listed.len(), 2);
        let part = "ä".repeat(LONGEST_PART - "1 is no string".len());
        assert_eq!(listed[0].what, format!("{}…{part}1 is no string", "ä".repeat(LONGEST_PART)));
    }
}

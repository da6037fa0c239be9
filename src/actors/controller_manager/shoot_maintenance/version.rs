//! Version texts: how they are read and compared (spec 84 C-8, C-9). Pure.

use std::{cmp::Ordering, fmt};

/// A version as `<major>.<minor>.<patch>[-<pre-release>][+<build>]`. Two versions are equal if their precedence is
/// equal: the build does not count (spec 84 C-8).
#[derive(Debug, Clone)]
pub struct SemanticVersion {
    /// First number.
    pub major: u64,
    /// Second number.
    pub minor: u64,
    /// Third number.
    pub patch: u64,
    /// Empty for a release.
    pre_release: Box<str>,
    build: Box<str>,
}

/// Major, minor and patch of a version without everything else (spec 84 C-9).
pub type NormalizedVersion = (u64, u64, u64);

impl SemanticVersion {
    /// Reads a version: an optional `v`, one to three numbers, an optional pre-release, an optional build (spec 84 C-8).
    /// `None` for every other text.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let (text, build) = split(text, '+')?;
        let (numbers, pre_release) = split(text, '-')?;
        let (major, minor, patch) = numbers_of(numbers)?;
        Some(Self { major, minor, patch, pre_release: pre_release.into(), build: build.into() })
    }

    /// Returns major and minor.
    pub fn line(&self) -> (u64, u64) {
        (self.major, self.minor)
    }

    /// Returns its three numbers (spec 84 C-9).
    pub fn normalized(&self) -> NormalizedVersion {
        (self.major, self.minor, self.patch)
    }

    /// Returns true for a pre-release.
    pub fn is_pre_release(&self) -> bool {
        !self.pre_release.is_empty()
    }
}

impl fmt::Display for SemanticVersion {
    /// The canonical form: three numbers, pre-release and build, no `v` (spec 84 C.8).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        for (mark, part) in [('-', &self.pre_release), ('+', &self.build)] {
            if !part.is_empty() {
                write!(f, "{mark}{part}")?;
            }
        }
        Ok(())
    }
}

impl Ord for SemanticVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        let numbers = self.normalized().cmp(&other.normalized());
        numbers.then_with(|| match (self.is_pre_release(), other.is_pre_release()) {
            (true, true) => by_precedence(&self.pre_release, &other.pre_release),
            (is_pre_release, is_other) => is_other.cmp(&is_pre_release),
        })
    }
}

impl PartialOrd for SemanticVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for SemanticVersion {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for SemanticVersion {}

/// Returns the numbers of a version text without its letters `v`, up to the first `-`, `+` or `~` (spec 84 C-9). `None` if
/// the rest is no version.
pub fn normalized(text: &str) -> Option<NormalizedVersion> {
    let text = text.split(['-', '+', '~']).next().unwrap_or_default();
    numbers_of(&text.replace('v', ""))
}

/// One to three numbers; missing ones are 0.
fn numbers_of(text: &str) -> Option<NormalizedVersion> {
    let mut parts = text.split('.').map(number);
    let (major, minor, patch) = (parts.next()??, parts.next(), parts.next());
    let is_over = parts.next().is_none();
    is_over.then_some((major, minor.unwrap_or(Some(0))?, patch.unwrap_or(Some(0))?))
}

fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// Returns what stands before and after a mark. `None` if the part after it is no list of identifiers.
fn split(text: &str, mark: char) -> Option<(&str, &str)> {
    let Some((before, after)) = text.split_once(mark) else { return Some((text, "")) };
    let is_identifier =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    after.split('.').all(is_identifier).then_some((before, after))
}

/// The precedence of two pre-releases (spec 84 C-8).
fn by_precedence(one: &str, other: &str) -> Ordering {
    let (mut one, mut other) = (one.split('.'), other.split('.'));
    loop {
        let order = match (one.next(), other.next()) {
            (None, None) => return Ordering::Equal,
            (one, None) => return one.is_some().cmp(&false),
            (None, Some(_)) => return Ordering::Less,
            (Some(one), Some(other)) => by_identifier(one, other),
        };
        if order.is_ne() {
            return order;
        }
    }
}

/// Numbers come before words.
fn by_identifier(one: &str, other: &str) -> Ordering {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    match (is_number(one), is_number(other)) {
        (true, true) => {
            let (one, other) = (one.trim_start_matches('0'), other.trim_start_matches('0'));
            one.len().cmp(&other.len()).then_with(|| one.cmp(other))
        }
        (false, false) => one.cmp(other),
        (is_number, _) => (!is_number).cmp(&is_number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> SemanticVersion {
        SemanticVersion::parse(text).unwrap_or_else(|| panic!("{text} is a version"))
    }

    /// spec 84 C-8
    #[test]
    fn version_text_has_up_to_three_numbers() {
        for (text, canonical) in [
            ("1", "1.0.0"),
            ("1.2", "1.2.0"),
            ("v1.02.3", "1.2.3"),
            ("1.30.1-rc.1+b.7", "1.30.1-rc.1+b.7"),
            ("1-a", "1.0.0-a"),
            ("1+a-b", "1.0.0+a-b"),
            ("18446744073709551615", "18446744073709551615.0.0"),
        ] {
            assert_eq!(version(text).to_string(), canonical, "{text}");
        }
        let odd = [
            "",
            "v",
            "vv1",
            "1.",
            ".1",
            "1.2.3.4",
            "1.x",
            "1.2-",
            "1.2+",
            "1.2-a..b",
            "1.2-ä",
            "a",
            "-1",
            "+1",
            " 1",
            "1.2.3 ",
            "18446744073709551616",
            "1.2.3~1",
        ];
        for text in odd {
            assert!(SemanticVersion::parse(text).is_none(), "{text}");
        }
    }

    /// spec 84 C-8
    #[test]
    fn version_order_is_that_of_semantic_versions() {
        let rising = [
            "0.9.9",
            "1.0.0-1",
            "1.0.0-02",
            "1.0.0-10",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0-rc.1",
            "1.0.0",
            "1.0.1",
            "1.9.0",
            "1.10.0",
            "2",
        ];
        for (at, lower) in rising.iter().enumerate() {
            for higher in &rising[at + 1..] {
                assert!(version(lower) < version(higher), "{lower} < {higher}");
            }
        }
        for (one, other) in [("1", "1.0.0"), ("v1.2", "1.2.0+build"), ("1.0.0-a+b", "1.0.0-a+c")] {
            assert_eq!(version(one), version(other));
        }
    }

    /// spec 84 C-9, C-T7
    #[test]
    fn version_is_normalized_to_its_numbers() {
        for (text, expected) in [
            ("1.30.1", Some((1, 30, 1))),
            ("v1.30", Some((1, 30, 0))),
            ("1.v30.1", Some((1, 30, 1))),
            ("1.30.1-rc.1", Some((1, 30, 1))),
            ("1.30.1+v2", Some((1, 30, 1))),
            ("1.30.1~x", Some((1, 30, 1))),
            ("", None),
            ("v", None),
            ("1.x", None),
        ] {
            assert_eq!(normalized(text), expected, "{text}");
        }
    }
}

//! Constraints on the version of a kubelet: `>= 1.26, < 1.30 || ~1.31` (spec 84 C.7.1). Pure.

use super::version::SemanticVersion;

/// A constraint: one of its groups must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VersionConstraint(Vec<Group>);

/// All its terms must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Group(Vec<Term>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    operator: Operator,
    version: SemanticVersion,
    precision: Precision,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    AtLeast,
    AtMost,
    /// `~`
    SameMinor,
    /// `^`
    Compatible,
}

/// The parts of a version that are no wildcards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Precision {
    Nothing,
    Major,
    Minor,
    Patch,
}

impl VersionConstraint {
    /// Reads a constraint. `None` if it has another form.
    pub(super) fn parse(text: &str) -> Option<Self> {
        text.split("||").map(Group::parse).collect::<Option<_>>().map(Self)
    }

    /// Returns the number of its terms.
    pub(super) fn terms(&self) -> usize {
        self.0.iter().map(|group| group.0.len()).sum()
    }

    /// Returns true if a version satisfies it. A pre-release satisfies a group only if a term of it has a pre-release.
    pub(super) fn is_met_by(&self, version: &SemanticVersion) -> bool {
        self.0.iter().any(|group| group.is_met_by(version))
    }
}

impl Group {
    fn parse(text: &str) -> Option<Self> {
        let mut terms: Vec<Term> = Vec::new();
        let mut rest = text.trim_start_matches(is_separator);
        while !rest.is_empty() {
            // `A - B`: the term before it becomes `>= A`, the one after it is `<= B`.
            let upper = rest.strip_prefix('-').filter(|rest| rest.starts_with(char::is_whitespace));
            let (operator, after) = match upper {
                Some(after) => {
                    let lower = terms.last_mut().filter(|term| term.operator == Operator::Equal)?;
                    lower.operator = Operator::AtLeast;
                    (Operator::AtMost, after)
                }
                None => Operator::parse(rest)?,
            };
            let after = after.trim_start();
            let (version, after) = after.split_at(after.find(is_separator).unwrap_or(after.len()));
            terms.push(Term::parse(operator, version)?);
            rest = after.trim_start_matches(is_separator);
        }
        (!terms.is_empty()).then_some(Self(terms))
    }

    fn is_met_by(&self, version: &SemanticVersion) -> bool {
        let allows_pre_releases = || self.0.iter().any(|term| term.version.is_pre_release());
        (!version.is_pre_release() || allows_pre_releases()) && self.0.iter().all(|term| term.is_met_by(version))
    }
}

fn is_separator(character: char) -> bool {
    character == ',' || character.is_whitespace()
}

impl Operator {
    /// Returns the operator at the beginning of a text, and the rest.
    fn parse(text: &str) -> Option<(Self, &str)> {
        let (sign, rest) = text.split_at(text.find(|letter: char| !"=!<>~^".contains(letter)).unwrap_or(text.len()));
        let operator = match sign {
            "" | "=" => Self::Equal,
            "!=" => Self::NotEqual,
            ">" => Self::Greater,
            "<" => Self::Less,
            ">=" | "=>" => Self::AtLeast,
            "<=" | "=<" => Self::AtMost,
            "~" | "~>" => Self::SameMinor,
            "^" => Self::Compatible,
            _ => return None,
        };
        Some((operator, rest))
    }
}

impl Term {
    fn parse(operator: Operator, text: &str) -> Option<Self> {
        let bare = text.strip_prefix('v').unwrap_or(text);
        let end = bare.find(['-', '+']).unwrap_or(bare.len());
        let (numbers, extra) = bare.split_at(end);
        let parts: Vec<&str> = numbers.splitn(4, '.').collect();
        let is_wildcard = |part: &str| matches!(part, "x" | "X" | "*");
        let precise = parts.iter().position(|part| is_wildcard(part)).unwrap_or(parts.len());
        let precision = match (parts.len(), precise) {
            (4.., _) => return None,
            (_, 0) => Precision::Nothing,
            (_, 1) => Precision::Major,
            (_, 2) => Precision::Minor,
            (_, _) => Precision::Patch,
        };
        let is_part = |part: &&str| is_wildcard(part) || part.parse::<u64>().is_ok();
        if !parts.iter().all(is_part) {
            return None;
        }
        let numbers = if precise == 0 { "0".to_owned() } else { parts[..precise].join(".") };
        let version = SemanticVersion::parse(&format!("{numbers}{extra}"))?;
        Some(Self { operator, version, precision })
    }

    fn is_met_by(&self, version: &SemanticVersion) -> bool {
        let own = &self.version;
        let same_major = version.major == own.major;
        let same_minor = version.line() == own.line();
        match (self.operator, self.precision) {
            (
                Operator::Equal | Operator::SameMinor | Operator::Compatible | Operator::AtLeast | Operator::AtMost,
                Precision::Nothing,
            ) => true,
            (Operator::NotEqual | Operator::Greater | Operator::Less, Precision::Nothing) => false,

            (Operator::Equal, Precision::Patch) => version == own,
            (Operator::NotEqual, Precision::Major) => !same_major,
            (Operator::NotEqual, Precision::Minor) => !same_minor,
            (Operator::NotEqual, Precision::Patch) => version != own,
            (Operator::Greater, Precision::Major) => version.major > own.major,
            (Operator::Greater, Precision::Minor) => version.line() > own.line(),
            (Operator::Greater, Precision::Patch) => version > own,
            (Operator::Less, _) => version < own,
            (Operator::AtLeast, _) => version >= own,
            (Operator::AtMost, Precision::Major) => version.major <= own.major,
            (Operator::AtMost, Precision::Minor) => version.line() <= own.line(),
            (Operator::AtMost, Precision::Patch) => version <= own,

            (Operator::Equal | Operator::SameMinor, Precision::Major) => version >= own && same_major,
            (Operator::Equal, Precision::Minor) | (Operator::SameMinor, _) => version >= own && same_minor,
            (Operator::Compatible, precision) => version >= own && self.is_compatible(version, precision),
        }
    }

    /// The part of `^` that bounds a version from above.
    fn is_compatible(&self, version: &SemanticVersion, precision: Precision) -> bool {
        let own = &self.version;
        match (own.major, own.minor) {
            (0, 0) if precision == Precision::Patch => version.normalized() == own.normalized(),
            (0, _) if precision > Precision::Major => version.line() == own.line(),
            (_, _) => version.major == own.major,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec 84 C.7.1, scenario 63
    #[test]
    fn constraint_bounds_versions() {
        for (constraint, met, unmet) in [
            ("< 1.26", "0.9 1.25.9", "1.26.0 1.27.0"),
            (">= 1.26", "1.26.0 1.27.0 2.0.0", "1.25.9"),
            ("=>1.26", "1.26.0", "1.25.9"),
            ("1.2", "1.2.0 1.2.9", "1.1.9 1.3.0"),
            ("= 1.2.3", "1.2.3", "1.2.4"),
            ("1", "1.0.0 1.9.9", "2.0.0 0.9.9"),
            ("1.x 1.2.*", "1.2.0 1.2.7", "1.3.0"),
            ("1.X.5", "1.0.0 1.7.0", "2.0.0"),
            ("*", "0.0.0 7.0.0", ""),
            ("!= 1.2", "1.1.9 1.3.0", "1.2.0 1.2.9"),
            ("!= 1", "2.0.0", "1.9.9"),
            ("!=1.2.3", "1.2.4", "1.2.3"),
            ("> 1.2", "1.3.0", "1.2.9"),
            ("> 1", "2.0.0", "1.9.9"),
            ("> 1.2.3", "1.2.4", "1.2.3"),
            ("<= 1.2", "1.2.9", "1.3.0"),
            ("=<1", "1.9.9", "2.0.0"),
            ("<= 1.2.3", "1.2.3", "1.2.4"),
            ("< 1.2", "1.1.9", "1.2.0"),
            ("~1.2.3", "1.2.3 1.2.9", "1.2.2 1.3.0"),
            ("~>1", "1.0.0 1.9.0", "2.0.0 0.9.0"),
            ("^1.2.3", "1.2.3 1.9.0", "1.2.2 2.0.0"),
            ("^0.2.3", "0.2.3 0.2.9", "0.2.2 0.3.0"),
            ("^0.0.3", "0.0.3", "0.0.4 0.0.2"),
            ("^0", "0.0.1 0.9.0", "1.0.0"),
            ("1.2 - 1.4", "1.2.0 1.4.9", "1.1.9 1.5.0"),
            (">=1.2,<1.4 || ~ 1.6", "1.2.0 1.3.9 1.6.3", "1.4.0 1.5.0 1.7.0"),
            (">= 1.2 < 1.4", "1.3.0", "1.4.0"),
            (" v1.2.3 ", "1.2.3", "1.2.2"),
            (">= 1.2.0-0", "1.2.0-rc.1 1.3.0-a 1.2.0", "1.1.0"),
            (">= 1.2.0", "1.3.0", "1.3.0-rc.1"),
            ("< 1.3.0-rc.2, > 1.2.0", "1.3.0-rc.1", "1.3.0-rc.3"),
        ] {
            let parsed = VersionConstraint::parse(constraint).unwrap_or_else(|| panic!("{constraint}"));
            let is_met = |text: &str| parsed.is_met_by(&SemanticVersion::parse(text).unwrap());
            assert!(met.split_whitespace().all(is_met), "{constraint}: {met}");
            assert!(!unmet.split_whitespace().any(is_met), "{constraint}: {unmet}");
        }
    }

    /// spec 84 C.7.1
    #[test]
    fn constraint_of_another_form_is_not_read() {
        for odd in [
            "", " ", "||", "1.2 ||", "a", ">", ">= ", ">> 1", "=!1", "1.2.3.4", "1.2.3.x", "- 1.2", "> 1 - 2", "1 -",
            "1.2-", "1..2", "1.2; 1.3", "€", "-1",
        ] {
            assert_eq!(VersionConstraint::parse(odd), None, "{odd}");
        }
    }
}

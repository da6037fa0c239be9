//! To which version an update leads (spec 84 C.6.3). Pure.

use jiff::Timestamp;
use kit::quote::quoted;
use serde_json::Value;

use super::version::SemanticVersion;
use crate::actors::controller_manager::cloud_profile::classification::Version;

/// A version of a CloudProfile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedVersion {
    /// Its text and its classifications in the course of time.
    offer: Version,
    /// `None` if the text is no version: it is no target then (spec 84 C-10).
    number: Option<SemanticVersion>,
}

/// What counts of the classification of a version (spec 84 C-11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Neither of the others.
    Supported,
    /// A target if there is no other.
    Deprecated,
    /// A target of forced updates only.
    Expired,
    /// No target: `preview` or `unavailable`.
    Hidden,
}

/// How far an update may go (spec 84 C.6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateStrategy {
    /// Kubernetes: patches; forced, the next minor version.
    Kubernetes,
    /// Images: patches; forced, the next minor version that there is.
    Patch,
    /// Images: minor versions, patches first; forced, the next major version that there is.
    Minor,
    /// Images: any higher version, patches first.
    Major,
}

/// Why there is no target though an update is necessary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetError {
    /// The present version cannot be read (X1).
    Unreadable,
    /// The profile has no version for a forced update (X2).
    NoTarget,
    /// The strategy of the image has no forced updates (X3).
    EndOfLife,
}

impl OfferedVersion {
    /// Reads a version of Kubernetes or of an image.
    pub fn of(version: &Value) -> Self {
        let offer = Version::of(version);
        Self { number: SemanticVersion::parse(&offer.version), offer }
    }

    /// Returns its text, as in the CloudProfile.
    pub fn text(&self) -> &str {
        &self.offer.version
    }

    /// Returns the version, if the text is one.
    pub fn number(&self) -> Option<&SemanticVersion> {
        self.number.as_ref()
    }

    /// Returns how much work it is to look at it: it, and its stages.
    pub(super) fn work(&self) -> usize {
        1 + self.offer.stage_count()
    }

    /// Returns the stage at a time.
    pub fn stage(&self, now: Timestamp) -> Stage {
        match self.offer.classification(now) {
            "expired" => Stage::Expired,
            "deprecated" => Stage::Deprecated,
            "preview" | "unavailable" => Stage::Hidden,
            _ => Stage::Supported,
        }
    }
}

/// A version that may be a target.
#[derive(Debug, Clone, Copy)]
struct Candidate<'a> {
    text: &'a str,
    number: &'a SemanticVersion,
    stage: Stage,
}

/// Returns the text of the version to which an update leads, as in the CloudProfile; `None` if there is nothing to do
/// (spec 84 C-13). `is_forced`: the present version cannot stay.
pub fn target<'a>(
    offers: impl Iterator<Item = &'a OfferedVersion>,
    current: &str,
    strategy: UpdateStrategy,
    is_forced: bool,
    now: Timestamp,
) -> Result<Option<&'a str>, TargetError> {
    let current = SemanticVersion::parse(current).ok_or(TargetError::Unreadable)?;
    let higher = offers.filter_map(|offer| {
        let number = offer.number.as_ref().filter(|number| **number > current)?;
        let stage = offer.stage(now);
        (stage != Stage::Hidden).then(|| Candidate { text: offer.text(), number, stage })
    });
    let higher: Vec<_> = higher.collect();
    if let Some(found) = automatic_target(&higher, &current, strategy) {
        return Ok(Some(found.text));
    }
    if !is_forced {
        return Ok(None);
    }
    let forced = match strategy {
        UpdateStrategy::Kubernetes => {
            let next = (current.major, current.minor.saturating_add(1));
            forced_target(higher.iter().filter(|candidate| candidate.number.line() == next))
        }
        UpdateStrategy::Patch => {
            let lines = || higher.iter().filter(|candidate| candidate.number.major == current.major);
            let next = lines().map(|candidate| candidate.number.minor).filter(|minor| *minor > current.minor).min();
            forced_target(lines().filter(|candidate| Some(candidate.number.minor) == next))
        }
        UpdateStrategy::Minor => {
            let majors = higher.iter().map(|candidate| candidate.number.major);
            let next = majors.filter(|major| *major > current.major).min();
            forced_target(higher.iter().filter(|candidate| Some(candidate.number.major) == next))
        }
        UpdateStrategy::Major => return Err(TargetError::EndOfLife),
    };
    forced.map(|found| Some(found.text)).ok_or(TargetError::NoTarget)
}

/// The columns "automatic": PATCH, MINOR, MAJOR.
fn automatic_target<'a>(
    higher: &[Candidate<'a>],
    current: &SemanticVersion,
    strategy: UpdateStrategy,
) -> Option<Candidate<'a>> {
    let is_patch =
        |number: &SemanticVersion| number.line() == current.line() && number.normalized() >= current.normalized();
    automatic(higher, is_patch).or_else(|| match strategy {
        UpdateStrategy::Kubernetes | UpdateStrategy::Patch => None,
        UpdateStrategy::Minor => automatic(higher, |number| number.major == current.major),
        UpdateStrategy::Major => automatic(higher, |_| true),
    })
}

/// AUTO(p): the highest that is not deprecated; if there is none, the highest of all. Expired ones do not count.
fn automatic<'a>(higher: &[Candidate<'a>], fits: impl Fn(&SemanticVersion) -> bool) -> Option<Candidate<'a>> {
    let of = |stage| highest(higher.iter().filter(|candidate| candidate.stage == stage && fits(candidate.number)));
    of(Stage::Supported).or_else(|| of(Stage::Deprecated))
}

/// The highest that is not expired; if there is none, the highest that is.
fn forced_target<'a, 'c>(candidates: impl Iterator<Item = &'c Candidate<'a>> + Clone) -> Option<Candidate<'a>>
where
    'a: 'c,
{
    let valid = candidates.clone().filter(|candidate| candidate.stage != Stage::Expired);
    highest(valid).or_else(|| highest(candidates))
}

/// Returns the highest; of equal ones the first in the list.
fn highest<'a, 'c>(candidates: impl Iterator<Item = &'c Candidate<'a>>) -> Option<Candidate<'a>>
where
    'a: 'c,
{
    candidates.copied().reduce(|best, next| if next.number > best.number { next } else { best })
}

impl TargetError {
    /// Returns the text of the error about a present version. `image` is the name of the image, if it is one's version
    /// (spec 84 X1 to X3).
    pub fn text(&self, current: &str, image: &str) -> String {
        let (current, image) = (quoted(current), quoted(image));
        match self {
            Self::Unreadable => {
                "failed to determine a higher patch version for automatic update: Invalid Semantic Version".to_owned()
            }
            Self::NoTarget => format!(
                "cannot perform forceful update of expired version {current}. No suitable version found in CloudProfile - \
                 this is most likely a misconfiguration of the CloudProfile"
            ),
            Self::EndOfLife => format!(
                "failed to determine version for forceful update: either the machine image {image} is reaching end of life \
                 and migration to another machine image is required or there is a misconfiguration in the CloudProfile. If \
                 it is the latter, make sure the machine image in the CloudProfile has at least one version that is not \
                 expired, not in preview and greater or equal to the current Shoot image version {current}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        "2026-08-21T12:00:00Z".parse().unwrap()
    }

    /// Versions with their classification: `1.0.0 expired, 1.0.1`.
    fn offers(text: &str) -> Vec<OfferedVersion> {
        let offer = |entry: &str| {
            let (version, class) = entry.split_once(' ').unwrap_or((entry, ""));
            OfferedVersion::of(&json!({ "version": version, "classification": class }))
        };
        text.split(", ").map(offer).collect()
    }

    /// Returns `-` for nothing to do, `!` for an error.
    fn chosen(strategy: UpdateStrategy, current: &str, text: &str) -> String {
        let offers = offers(text);
        let is_known = |offer: &&OfferedVersion| offer.text() == current && offer.stage(now()) != Stage::Expired;
        let is_forced = !offers.iter().any(|offer| is_known(&offer));
        match target(offers.iter(), current, strategy, is_forced, now()) {
            Ok(found) => found.unwrap_or("-").to_owned(),
            Err(_) => "!".to_owned(),
        }
    }

    /// spec 84 C.6.3, scenarios 40 to 45
    #[test]
    fn target_of_kubernetes_is_the_newest_patch_or_forced_the_next_minor() {
        for (current, offers, expected) in [
            ("1.30.1", "1.30.1, 1.30.5, 1.31.1", "1.30.5"),
            ("1.31.5", "1.31.5, 1.32.0", "-"),
            ("1.30.5", "1.30.5 expired, 1.31.1, 1.31.5", "1.31.5"),
            ("1.30.5", "1.30.5 expired, 1.31.1 expired, 1.31.5 expired", "1.31.5"),
            ("1.30.5", "1.30.5 expired, 1.31.1, 1.31.5 expired", "1.31.1"),
            ("1.30.5", "1.30.5 expired, 1.31.1 preview, 1.31.5 preview", "!"),
            ("1.30.5", "1.30.5 expired, 1.32.1", "!"),
            ("1.30.3", "1.30.1, 1.30.5", "1.30.5"),
            ("1.30.1", "1.30.1, 1.30.5 deprecated, 1.30.4", "1.30.4"),
            ("1.30.1", "1.30.1, 1.30.5 deprecated, 1.30.4 deprecated", "1.30.5"),
            ("1.30.1", "1.30.1, 1.30.5 preview, 1.30.4", "1.30.4"),
            ("1.30.1", "1.30.1, 1.30.5 unavailable, 1.30.4", "1.30.4"),
            ("1.30.1", "1.30.1, 1.30.5 expired", "-"),
            ("1.30.1", "1.30.1, odd, 1.30.2.1, 1.30.2", "1.30.2"),
            ("1.30.1", "1.30.1, v1.30.2, 1.30.2", "v1.30.2"),
            ("odd", "1.30.1", "!"),
        ] {
            assert_eq!(chosen(UpdateStrategy::Kubernetes, current, offers), expected, "{current}: {offers}");
        }
    }

    /// spec 84 C.6.3, scenarios 55 to 59, 68 and 69
    #[test]
    fn target_of_an_image_depends_on_its_strategy() {
        use UpdateStrategy::{Major, Minor, Patch};
        for (strategy, current, offers, expected) in [
            (Major, "1.0.0", "1.0.0, 1.5.3", "1.5.3"),
            (Major, "1.0.0", "1.0.0, 1.5.3, 1.0.2", "1.0.2"),
            (Major, "1.0.0", "1.0.0, 3.0.0, 2.0.0", "3.0.0"),
            (Major, "1.0.0", "1.0.0 expired", "!"),
            (Major, "1", "1, 2", "2"),
            (Patch, "1.0.0", "1.0.0, 1.2.5", "-"),
            (Patch, "1.0.0", "1.0.0 expired, 1.2.5", "1.2.5"),
            (Patch, "1.0.0", "1.0.0 expired, 1.2.5, 1.2.4, 1.3.1, 2.1.0", "1.2.5"),
            (Patch, "1.0.0", "1.0.0 expired, 1.2.4 preview, 1.4.1", "1.4.1"),
            (Patch, "1.0.0", "1.0.0 expired, 1.2.4 expired, 1.2.5 preview", "1.2.4"),
            (Patch, "1.0.0", "1.0.0 expired, 1.1.0 preview, 1.2.0, 1.2.1 expired", "1.2.0"),
            (Patch, "1.3.0", "1.3.0 expired, 2.1.0, 1.5.0 expired, 1.5.1", "1.5.1"),
            (Patch, "1.7", "1.7, 1.8", "-"),
            (Minor, "1.0.0", "1.0.0, 1.0.6, 1.5.1, 3.2.5", "1.0.6"),
            (Minor, "1.0.0", "1.0.0, 1.5.1, 3.2.5", "1.5.1"),
            (Minor, "1.5.1", "1.5.1 expired, 3.2.5", "3.2.5"),
            (Minor, "1.5.1", "1.5.1 expired, 2.1.1 preview, 3.2.5", "3.2.5"),
            (Minor, "1.5.1", "1.5.1 expired, 2.1.1 expired, 3.2.5", "2.1.1"),
        ] {
            assert_eq!(chosen(strategy, current, offers), expected, "{strategy:?} {current}: {offers}");
        }
    }

    /// spec 84 C-8, C.6.3
    #[test]
    fn target_of_a_pre_release_is_its_release() {
        assert_eq!(chosen(UpdateStrategy::Kubernetes, "1.30.1-rc.1", "1.30.1-rc.1, 1.30.1"), "1.30.1");
        assert_eq!(chosen(UpdateStrategy::Kubernetes, "1.30.1", "1.30.1, 1.30.2-rc.1"), "1.30.2-rc.1");
        assert_eq!(chosen(UpdateStrategy::Kubernetes, "1.30.1", "1.30.1, 1.30.1+b"), "-");
    }

    /// spec 84 X1 to X3
    #[test]
    fn target_error_has_the_text_of_the_specification() {
        assert!(
            TargetError::EndOfLife
                .text("1.0.0", "os")
                .ends_with("greater or equal to the current Shoot image version \"1.0.0\"")
        );
        assert!(
            TargetError::EndOfLife
                .text("1.0.0", "os")
                .contains("either the machine image \"os\" is reaching end of life and")
        );
        assert!(
            TargetError::NoTarget
                .text("1", "")
                .starts_with("cannot perform forceful update of expired version \"1\". No")
        );
    }
}

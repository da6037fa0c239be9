//! The updates of one run of a maintenance: results, remarks, and how much work they may be. Pure.

use std::cmp::Reverse;

use kit::quote::cut;

/// What became of an update or a rotation (spec 84 C.7 to C.9).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdateResult {
    /// What was done, or why it failed.
    pub description: String,
    /// Why an update is necessary.
    pub reason: String,
    /// It will be written.
    pub is_successful: bool,
}

/// Why a version is updated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UpdateNeed {
    /// The present version cannot stay.
    pub(super) is_forced: bool,
    pub(super) reason: String,
}

/// How urgent a remark is in the log, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RemarkLevel {
    /// For those who look for it.
    Debug,
    /// Something changes.
    Info,
    /// Something is odd.
    Warning,
    /// Something failed.
    Error,
}

/// A line for the log (spec 84 C.4, C.7, C.8).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// Its level.
    pub level: RemarkLevel,
    /// Its message.
    pub message: &'static str,
    /// What it is about: a pool, an image, a path; may be empty.
    pub about: String,
    /// A cause, or versions; may be empty.
    pub detail: String,
}

impl Remark {
    /// Long texts are cut.
    pub(super) fn new(level: RemarkLevel, message: &'static str, about: &str, detail: &str) -> Self {
        Self { level, message, about: cut(about).into_owned(), detail: cut(detail).into_owned() }
    }
}

/// Most remarks of a maintenance in the log: a Shoot may have thousands of pools.
const SHOWN_REMARKS: usize = 20;

/// Returns the remarks for the log, the most urgent first, and how many are left out.
pub(super) fn shown(remarks: &[Remark]) -> (Vec<&Remark>, usize) {
    let mut shown: Vec<_> = remarks.iter().collect();
    shown.sort_by_key(|remark| Reverse(remark.level));
    let more = shown.len().saturating_sub(SHOWN_REMARKS);
    shown.truncate(SHOWN_REMARKS);
    (shown, more)
}

/// How much of a CloudProfile one maintenance may still compare with worker pools: versions and their stages, flavors, values
/// of capabilities, container runtimes, terms of constraints. A Shoot of usual size needs some ten thousand. Tenants write Shoots and
/// NamespacedCloudProfiles: many pools times all that must not hold up other Shoots.
#[derive(Debug)]
pub(super) struct WorkBudget(usize);

impl WorkBudget {
    /// So many comparisons. Each looks up a short text in a set.
    const WHOLE: usize = 500_000;

    pub(super) fn new() -> Self {
        Self(Self::WHOLE)
    }

    /// Takes the work of so many comparisons. `None`: there is not enough left.
    pub(super) fn take(&mut self, work: usize) -> Option<()> {
        self.0 = self.0.checked_sub(work)?;
        Some(())
    }
}

/// The text about a pool for which there was no budget.
pub(super) const TOO_MUCH_WORK: &str =
    "the Shoot has too many worker pools for the number of versions in the CloudProfile";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_in_the_log_are_few_and_the_most_urgent() {
        use RemarkLevel::{Debug, Error, Info, Warning};
        let remark = |level: RemarkLevel, about: &str| Remark::new(level, "m", about, "");
        let mut remarks: Vec<_> = (0..30).map(|at| remark(Info, &at.to_string())).collect();
        remarks.extend([remark(Debug, "d"), remark(Warning, "w"), remark(Error, "e")]);

        let (first, more) = shown(&remarks);

        assert_eq!((first.len(), more), (20, 13));
        let abouts: Vec<_> = first.iter().take(4).map(|remark| &*remark.about).collect();
        assert_eq!(abouts, ["e", "w", "0", "1"]);
        let (all, more) = shown(&remarks[28..]);
        assert_eq!((all.len(), more), (5, 0));
    }
}

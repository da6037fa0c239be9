//! What the dashboard shows of an object that cannot go: its finalizer, and who refers to it. Pure. Names only, and a
//! bounded number of them.

use cluster::object::NamespacedName;

use super::held::DeletionTime;

/// Names of one kind that are shown.
const SHOWN: usize = 20;

/// Further lines of an actor: label and text.
pub(super) type Lines = Vec<(String, String)>;

/// The referrers of an object that have one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReferrersOfKind {
    kind: &'static str,
    count: usize,
    first: Vec<String>,
}

impl ReferrersOfKind {
    /// Keeps the first names only.
    pub(super) fn new(kind: &'static str, names: &[NamespacedName]) -> Self {
        let first = names.iter().take(SHOWN).map(NamespacedName::to_string).collect();
        Self { kind, count: names.len(), first }
    }

    /// Returns `1 Shoot`, `2 Shoots`.
    fn counted(&self) -> String {
        let plural = if self.count == 1 { "" } else { "s" };
        format!("{} {}{plural}", self.count, self.kind)
    }

    fn line(&self) -> (String, String) {
        let names = self.first.join(", ");
        let more = self.count - self.first.len();
        (format!("{}s", self.kind), if more == 0 { names } else { format!("{names} and {more} more") })
    }
}

/// Returns the line of an object that others refer to: `in use by 2 Shoots, 1 Seed`.
pub(super) fn in_use(referrers: &[ReferrersOfKind]) -> String {
    let known: Vec<_> = referrers.iter().filter(|of_kind| of_kind.count > 0).map(ReferrersOfKind::counted).collect();
    // A live list may find a referrer before the cache.
    if known.is_empty() { "in use".to_owned() } else { format!("in use by {}", known.join(", ")) }
}

/// Returns the further lines of an object that a finalizer keeps.
pub(super) fn kept(finalizer: &str, since: Option<DeletionTime>, referrers: &[ReferrersOfKind]) -> Lines {
    let mut lines = vec![("Finalizer".to_owned(), finalizer.to_owned())];
    lines.extend(since.map(|since| ("In deletion since".to_owned(), since.get().to_string())));
    lines.extend(referrers.iter().filter(|of_kind| of_kind.count > 0).map(ReferrersOfKind::line));
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shoots(count: usize) -> ReferrersOfKind {
        let names: Vec<_> = (0..count).map(|number| NamespacedName::new("ns", format!("s{number}"))).collect();
        ReferrersOfKind::new("Shoot", &names)
    }

    #[test]
    fn row_of_an_object_in_use_counts_its_referrers_by_kind() {
        let seeds = ReferrersOfKind::new("Seed", &[NamespacedName::new("", "x")]);

        assert_eq!(in_use(&[shoots(2), seeds.clone()]), "in use by 2 Shoots, 1 Seed");
        assert_eq!(in_use(&[shoots(0), seeds]), "in use by 1 Seed");
        assert_eq!(in_use(&[shoots(0)]), "in use");
    }

    #[test]
    fn row_of_a_kept_object_names_the_finalizer_and_a_bounded_number_of_referrers() {
        let object = json!({ "metadata": { "deletionTimestamp": "2026-08-21T12:00:00Z" } });

        let lines = kept("gardener", DeletionTime::of(&object), &[shoots(0), shoots(100_000)]);

        let text = |label: &str| lines.iter().find(|(known, _)| known == label).map(|(_, text)| text.as_str());
        assert_eq!(text("Finalizer"), Some("gardener"));
        assert_eq!(text("In deletion since"), Some("2026-08-21T12:00:00Z"));
        let shoots = text("Shoots").unwrap();
        assert!(shoots.starts_with("ns/s0, ns/s1, ") && shoots.ends_with("ns/s19 and 99980 more"), "{shoots}");
        assert_eq!(lines.len(), 3);
    }
}

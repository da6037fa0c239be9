//! Which objects of a ManagedResource are being deleted, and what they wait for.

use std::{collections::BTreeMap, rc::Rc};

use cluster::object::{self, ObjectKey};
use jiff::Timestamp;
use kit::quote::{cut, cut_after};
use serde_json::Value;

/// Most objects that are remembered.
const MOST: usize = 2000;
/// Longest text, in characters.
const LONGEST: usize = 1024;
/// Most finalizers that are named.
const MOST_FINALIZERS: usize = 10;

/// An object that is no longer wanted, and may still exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PendingDeletion {
    /// The deletion timestamp, if the object was seen with it.
    pub(crate) since: Option<Timestamp>,
    /// What it waits for, as far as known.
    pub(crate) why: Option<Rc<str>>,
}

#[derive(Debug, Default)]
pub(crate) struct Deletions(BTreeMap<ObjectKey, PendingDeletion>);

impl PendingDeletion {
    pub(crate) fn because(why: &str) -> Self {
        Self { since: None, why: Some(cut_after(LONGEST, why).into()) }
    }

    /// What an object in deletion says itself: its timestamp and its finalizers.
    pub(crate) fn of(live: &Value) -> Self {
        let since = object::deletion_timestamp(live).and_then(|text| text.parse().ok());
        let of_namespace = live.pointer("/spec/finalizers").and_then(Value::as_array).into_iter().flatten();
        let of_namespace = of_namespace.filter(|_| live["kind"] == "Namespace").filter_map(Value::as_str);
        let mut finalizers: Vec<_> = object::finalizers(live).chain(of_namespace).map(cut).collect();
        let hidden = finalizers.len().saturating_sub(MOST_FINALIZERS);
        finalizers.truncate(MOST_FINALIZERS);
        let mut why = match finalizers.as_slice() {
            [] => return Self { since, why: None },
            [one] => format!("waits for the finalizer {one}"),
            several => format!("waits for the finalizers {}", several.join(", ")),
        };
        if hidden > 0 {
            why.push_str(&format!(" and {hidden} more"));
        }
        Self { since, why: Some(why.into()) }
    }

    /// Adds what speaks against the deletion, e.g. an error.
    pub(crate) fn with_error(self, error: Option<&str>) -> Self {
        let Some(error) = error else { return self };
        let error = cut_after(LONGEST, error);
        let why = self.why.map_or_else(|| error.to_string(), |why| format!("{error}; {why}"));
        Self { why: Some(why.into()), ..self }
    }
}

impl Deletions {
    /// Replaces what is known of an object, within the bound.
    pub(crate) fn note(&mut self, object: ObjectKey, pending: PendingDeletion) {
        if self.0.len() < MOST || self.0.contains_key(&object) {
            self.0.insert(object, pending);
        }
    }

    pub(crate) fn is_gone(&mut self, object: &ObjectKey) {
        self.0.remove(object);
    }

    /// Forgets all objects for which `is_pending` returns false.
    pub(crate) fn keep(&mut self, is_pending: impl Fn(&ObjectKey) -> bool) {
        self.0.retain(|object, _| is_pending(object));
    }

    pub(crate) fn of(&self, object: &ObjectKey) -> Option<&PendingDeletion> {
        self.0.get(object)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn why(pending: &PendingDeletion) -> &str {
        pending.why.as_deref().unwrap_or_default()
    }

    #[test]
    fn pending_deletion_names_the_finalizers() {
        let live = |finalizers: Value| json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers}});
        let many: Vec<_> = (0..12).map(|number| format!("f{number:02}")).collect();

        let pending = PendingDeletion::of(&live(json!(["a/b"])));

        assert_eq!(
            (why(&pending), pending.since),
            ("waits for the finalizer a/b", "2026-01-01T00:00:00Z".parse().ok())
        );
        assert_eq!(why(&PendingDeletion::of(&live(json!(["a", "b"])))), "waits for the finalizers a, b");
        assert!(why(&PendingDeletion::of(&live(json!(many)))).ends_with("f08, f09 and 2 more"));
        assert_eq!(PendingDeletion::of(&json!({"metadata": 7, "spec": []})), PendingDeletion::default());
        let namespace = json!({"kind": "Namespace", "spec": {"finalizers": ["kubernetes"]}});
        assert_eq!(why(&PendingDeletion::of(&namespace)), "waits for the finalizer kubernetes");
        let failed = PendingDeletion::of(&live(json!(["a"]))).with_error(Some("bad grace time"));
        assert_eq!(why(&failed), "bad grace time; waits for the finalizer a");
    }

    #[test]
    fn pending_deletions_are_bounded() {
        let key = |number: usize| ObjectKey { name: number.to_string(), ..ObjectKey::default() };
        let mut deletions = Deletions::default();
        for number in 0..MOST + 10 {
            deletions.note(key(number), PendingDeletion::because(&"x".repeat(10_000)));
        }
        assert_eq!(deletions.0.len(), MOST);
        assert!(why(deletions.of(&key(0)).unwrap()).len() < 2 * LONGEST);

        deletions.note(key(0), PendingDeletion::default());
        deletions.is_gone(&key(1));
        deletions.keep(|key| key.name.len() == 1);

        assert_eq!((deletions.0.len(), deletions.of(&key(0))), (9, Some(&PendingDeletion::default())));
    }
}

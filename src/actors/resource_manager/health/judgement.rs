//! What is cached of an object for health: two verdicts, and for a Deployment how its Pods are counted.

use cluster::object::{self, GroupVersionKind};
use serde_json::Value;

use super::{fields::Trouble, judge, pods::Quota, progressing};
use crate::api::resources::keys::SKIP_HEALTH_CHECK;

/// A text is cut to this many bytes: each bad object has one.
const LONGEST_TEXT: usize = 8 * 1024;

/// Whether an object is fine, in one respect: healthy, or rolled out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum HealthVerdict {
    #[default]
    Fine,
    Bad(Box<str>),
    Unreadable(Box<str>),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Judgement {
    /// Whether it is healthy (spec 20 §11).
    pub(crate) health: HealthVerdict,
    /// Whether it is rolled out (spec 20 §14).
    pub(crate) rollout: HealthVerdict,
    /// Which Pods decide whether it is rolled out, if nothing else speaks against it (spec 20 §15).
    pub(crate) pods: Option<Quota>,
}

impl Judgement {
    /// Judges an object in the requested version; the object's own `apiVersion` and `kind` may be empty (spec 20 §17,
    /// trap 9). Returns `None` if it is fine in both respects and no Pods count, as nearly all objects.
    pub(crate) fn of(kind: &GroupVersionKind, object: &Value) -> Option<Box<Self>> {
        if is_skipped(object) {
            return None;
        }
        let health = verdict(judge::check(kind, object));
        let progress = progressing::check(kind, object);
        let (rollout, pods) = match progress {
            Ok(pods) => (HealthVerdict::Fine, pods),
            Err(trouble) => (verdict(Err(trouble)), None),
        };
        let judgement = Self { health, rollout, pods };
        (judgement != Self::default()).then(|| Box::new(judgement))
    }
}

/// Returns true if the object has the skip annotation: exactly `true` counts, unlike elsewhere (spec 20 §1).
fn is_skipped(object: &Value) -> bool {
    object::annotation(object, SKIP_HEALTH_CHECK) == Some("true")
}

fn verdict(check: Result<(), Trouble>) -> HealthVerdict {
    match check {
        Ok(()) => HealthVerdict::Fine,
        Err(Trouble::Bad(text)) => HealthVerdict::Bad(bounded(text)),
        Err(Trouble::Unreadable(text)) => HealthVerdict::Unreadable(bounded(text)),
    }
}

fn bounded(mut text: String) -> Box<str> {
    if text.len() > LONGEST_TEXT {
        text.truncate(text.floor_char_boundary(LONGEST_TEXT));
        text.push('…');
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(skip: Option<&str>) -> Value {
        let annotations = skip.map_or(json!({}), |value| json!({ SKIP_HEALTH_CHECK: value }));
        json!({"metadata": {"annotations": annotations}, "status": {"phase": "Pending"}})
    }

    /// spec 20 scenario 10.
    #[test]
    fn skip_annotation_must_match_exactly() {
        let kind = GroupVersionKind::new("", "v1", "Pod");
        let text = "pod is in invalid phase \"Pending\" (expected one of [\"Running\" \"Succeeded\"])";
        let bad = Judgement { health: HealthVerdict::Bad(text.into()), ..Judgement::default() };

        assert_eq!(Judgement::of(&kind, &pod(Some("true"))), None);
        for other in [None, Some("True"), Some("1"), Some("t"), Some("")] {
            assert_eq!(Judgement::of(&kind, &pod(other)).as_deref(), Some(&bad), "{other:?}");
        }
    }

    /// spec 20 scenario 12.
    #[test]
    fn skip_annotation_makes_a_deployment_rolled_out() {
        let kind = GroupVersionKind::new("apps", "v1", "Deployment");
        let rolling = json!({"metadata": {"annotations": {SKIP_HEALTH_CHECK: "true"}, "generation": 2}});

        assert_eq!(Judgement::of(&kind, &rolling), None);
    }

    /// spec 20 scenario 21.
    #[test]
    fn judgement_is_none_if_fine_or_without_rules() {
        let job = GroupVersionKind::new("batch", "v1", "Job");
        let nested = GroupVersionKind::new("resources.gardener.cloud", "v1alpha1", "ManagedResource");
        let failing = json!({"status": {"conditions": [{"type": "ResourcesHealthy", "status": "False"}]}});

        assert_eq!(Judgement::of(&job, &json!({})), None);
        assert_eq!(Judgement::of(&nested, &failing), None);
    }

    #[test]
    fn judgement_text_is_cut() {
        let kind = GroupVersionKind::new("apps", "v1", "Deployment");
        let condition = |kind: &str| json!({"type": kind, "status": "False", "message": "ö".repeat(40_000)});
        let object = json!({"status": {"conditions": [condition("Available"), condition("Progressing")]}});

        let judgement = Judgement::of(&kind, &object).unwrap();

        for verdict in [&judgement.health, &judgement.rollout] {
            let HealthVerdict::Bad(text) = verdict else { panic!("{verdict:?}") };
            assert!((8 * 1024..8 * 1024 + 8).contains(&text.len()) && text.ends_with('…'));
        }
    }

    #[test]
    fn judgement_text_that_fits_is_not_cut() {
        let fits = "a".repeat(8 * 1024);

        assert_eq!(*bounded(fits.clone()), fits);
        assert_eq!(*bounded(format!("{fits}a")), format!("{fits}…"));
    }

    #[test]
    fn judgement_of_nearly_all_objects_takes_one_pointer() {
        assert_eq!(size_of::<Option<Box<Judgement>>>(), size_of::<usize>());
    }
}

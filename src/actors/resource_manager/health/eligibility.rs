//! Whether a ManagedResource is judged, and which of its changes ask for that (spec 20 §4.1, the gate; §5.1, §10.1).

use crate::api::{
    meta::conditions::ConditionStatus,
    resources::{class::OwnClass, condition_names::RESOURCES_APPLIED, managed_resource::ManagedResource},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Eligibility {
    Eligible,
    /// Not now: its objects are not applied. It is checked again.
    Deferred,
    /// Not at all: nothing is written, no timer (spec 20 §10.1, rows 3 to 5).
    Excluded,
}

/// Returns whether a ManagedResource is judged in its current state. It is not judged as long as another class has not
/// finished with it: its objects may still be in another cluster ("Better than upstream" 15).
pub(crate) fn of(own: &OwnClass, mr: &ManagedResource) -> Eligibility {
    if mr.is_ignored() || !own.is_responsible(mr) || mr.is_deleting() {
        return Eligibility::Excluded;
    }
    let applied = mr.condition(RESOURCES_APPLIED).map(|condition| &condition.status);
    match applied {
        None | Some(ConditionStatus::Progressing | ConditionStatus::False) => Eligibility::Deferred,
        Some(_) if own.is_waiting_for_cleanup(mr) => Eligibility::Deferred,
        Some(ConditionStatus::True | ConditionStatus::Unknown | ConditionStatus::Other(_)) => Eligibility::Eligible,
    }
}

/// Returns true if the step from `old` to `new` asks for a reconcile at once (spec 20 §5.1). `None`: absent.
/// `references`: whether `status.resources` differ, which this function does not compare.
pub(crate) fn is_triggered(
    own: &OwnClass,
    old: Option<&ManagedResource>,
    new: Option<&ManagedResource>,
    references: bool,
) -> bool {
    let concerns = |mr: &ManagedResource| !mr.is_ignored() && (own.holds(mr) || own.is_responsible(mr));
    match (old, new) {
        (None, None) => false,
        (None, Some(created)) => concerns(created),
        (Some(deleted), None) => concerns(deleted),
        (Some(old), Some(new)) if old.metadata.uid != new.metadata.uid => concerns(new),
        // Another client wrote the refs, or a reconcile replaced the set without a change of the condition.
        (Some(old), Some(new)) => concerns(new) && (references || is_changed(own, old, new)),
    }
}

fn is_changed(own: &OwnClass, old: &ManagedResource, new: &ManagedResource) -> bool {
    let applied = |mr: &ManagedResource| mr.condition(RESOURCES_APPLIED).map(|condition| condition.status.clone());
    old.spec.class != new.spec.class
        || applied(old) != applied(new)
        || old.is_ignored()
        || own.is_waiting_for_cleanup(old) != own.is_waiting_for_cleanup(new)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn mr(applied: Option<&str>, change: Value) -> ManagedResource {
        let mut raw = json!({
            "metadata": {"namespace": "ns1", "name": "mr1", "uid": "u", "annotations": {},
                "finalizers": ["resources.gardener.cloud/gardener-resource-manager"]},
            "spec": {}, "status": {},
        });
        if let Some(status) = applied {
            raw["status"]["conditions"] = json!([{"type": "ResourcesApplied", "status": status, "reason": "R"}]);
        }
        for (pointer, value) in change.as_object().unwrap() {
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            raw.pointer_mut(parent).unwrap()[field] = value.clone();
        }
        serde_json::from_value(raw).unwrap()
    }

    fn own() -> OwnClass {
        OwnClass::new("resources")
    }

    fn ignored(value: &str) -> Value {
        json!({"/metadata/annotations": {"resources.gardener.cloud/ignore": value}})
    }

    /// spec 20 §4.1, scenarios 2 and 3.
    #[test]
    fn eligibility_depends_on_the_status_of_the_condition_only() {
        for (applied, expected) in [
            (None, Eligibility::Deferred),
            (Some("Progressing"), Eligibility::Deferred),
            (Some("False"), Eligibility::Deferred),
            (Some("True"), Eligibility::Eligible),
            (Some("Unknown"), Eligibility::Eligible),
            (Some("Whatever"), Eligibility::Eligible),
        ] {
            assert_eq!(of(&own(), &mr(applied, json!({}))), expected, "{applied:?}");
        }
    }

    /// spec 20 scenarios 26, 27, 28; trap 3.
    #[test]
    fn eligibility_excludes_ignored_foreign_and_deleted_resources() {
        for (change, expected) in [
            (ignored("T"), Eligibility::Excluded),
            (ignored("true"), Eligibility::Excluded),
            (ignored("1"), Eligibility::Excluded),
            (ignored("yes"), Eligibility::Eligible),
            (ignored(""), Eligibility::Eligible),
            (json!({"/spec/class": "other"}), Eligibility::Excluded),
            (json!({"/spec/class": ""}), Eligibility::Eligible),
            (json!({"/metadata/deletionTimestamp": "2026-01-01T00:00:00Z"}), Eligibility::Excluded),
            (
                json!({"/metadata/finalizers": ["resources.gardener.cloud/gardener-resource-manager-other"]}),
                Eligibility::Deferred,
            ),
        ] {
            assert_eq!(of(&own(), &mr(Some("True"), change.clone())), expected, "{change}");
        }
    }

    /// spec 20 §5.1.
    #[test]
    fn health_reconcile_follows_changes_that_may_make_a_resource_eligible() {
        let judged = || mr(Some("True"), json!({}));
        let other = "resources.gardener.cloud/gardener-resource-manager-other";
        let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "cfg"});
        for (old, new, expected) in [
            (None, Some(judged()), true),
            (Some(judged()), None, true),
            (Some(judged()), Some(judged()), false),
            (Some(mr(None, json!({}))), Some(judged()), true),
            (Some(mr(Some("Progressing"), json!({}))), Some(judged()), true),
            (Some(judged()), Some(mr(Some("False"), json!({}))), true),
            (Some(judged()), Some(mr(Some("True"), json!({"/metadata/generation": 7}))), false),
            (Some(judged()), Some(mr(Some("True"), json!({"/metadata/labels": {"a": "b"}}))), false),
            (Some(judged()), Some(mr(Some("True"), json!({"/spec/class": ""}))), true),
            (Some(judged()), Some(mr(Some("True"), ignored("true"))), false),
            (Some(mr(Some("True"), ignored("true"))), Some(judged()), true),
            (Some(judged()), Some(mr(Some("True"), json!({"/metadata/uid": "v"}))), true),
            (Some(judged()), Some(mr(Some("True"), json!({"/metadata/uid": "v", "/spec/class": "other"}))), true),
            (Some(mr(Some("True"), json!({"/metadata/finalizers": [other]}))), Some(judged()), true),
            (Some(judged()), Some(mr(Some("True"), json!({"/status/resources": [reference]}))), true),
            (None, Some(mr(Some("True"), ignored("true"))), false),
            (None, Some(mr(Some("True"), json!({"/spec/class": "other"}))), true),
            (None, Some(mr(Some("True"), json!({"/metadata/finalizers": []}))), true),
            (None, Some(mr(Some("True"), json!({"/spec/class": "other", "/metadata/finalizers": []}))), false),
        ] {
            let references = |mr: &Option<ManagedResource>| mr.as_ref().map(|mr| mr.status.resources.clone());
            let differ = references(&old) != references(&new);

            assert_eq!(is_triggered(&own(), old.as_ref(), new.as_ref(), differ), expected, "{old:?} → {new:?}");
        }
    }

    /// spec 20 §5.1.
    #[test]
    fn health_reconcile_follows_other_references_unless_ignored() {
        let (judged, ignored) = (mr(Some("True"), json!({})), mr(Some("True"), ignored("true")));

        assert!(is_triggered(&own(), Some(&judged), Some(&judged), true));
        assert!(!is_triggered(&own(), Some(&judged), Some(&ignored), true));
    }

    #[test]
    fn health_reconcile_does_not_follow_reason_and_message() {
        let reported = |reason: &str| {
            let condition =
                json!([{"type": "ResourcesApplied", "status": "True", "reason": reason, "message": reason}]);
            mr(None, json!({"/status/conditions": condition}))
        };

        assert!(!is_triggered(&own(), Some(&reported("A")), Some(&reported("B")), false));
    }
}

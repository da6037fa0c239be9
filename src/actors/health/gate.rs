//! Whether a bundle is judged at all, and which of its changes ask for that (spec 20 §4.1, §5.1, §10.1).

use crate::api::{
    class::OwnClass,
    conditions::{ConditionStatus, RESOURCES_APPLIED},
    managed_resource::ManagedResource,
};

/// What a pass does with a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// Its objects are judged.
    Open,
    /// Not now: they are not applied. It is looked at again.
    Closed,
    /// Not at all: nothing is written, no timer (spec 20 §10.1, rows 3 to 5).
    Barred,
}

/// What a pass does with a bundle as it stands.
///
/// A bundle that another class has not finished with is not judged: its objects may be in another cluster still
/// ("Better than upstream" 15).
pub fn gate(own: &OwnClass, mr: &ManagedResource) -> Gate {
    if mr.is_ignored() || !own.is_responsible(mr) || mr.is_deleting() {
        return Gate::Barred;
    }
    let applied = mr.condition(RESOURCES_APPLIED).map(|condition| &condition.status);
    match applied {
        None | Some(ConditionStatus::Progressing | ConditionStatus::False) => Gate::Closed,
        Some(_) if own.is_waiting_for_cleanup(mr) => Gate::Closed,
        Some(ConditionStatus::True | ConditionStatus::Unknown | ConditionStatus::Other(_)) => Gate::Open,
    }
}

/// Whether the step from `old` to `new` asks for a pass at once (spec 20 §5.1). No `old` is a creation, no `new` a
/// deletion. `references` tells whether `status.resources` differ; those of `old` and `new` are not looked at.
pub fn is_triggered(
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
        // Somebody else wrote the refs, or a pass that went from one set to another without closing the gate.
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
    fn only_the_status_of_the_condition_opens_the_gate() {
        for (applied, expected) in [
            (None, Gate::Closed),
            (Some("Progressing"), Gate::Closed),
            (Some("False"), Gate::Closed),
            (Some("True"), Gate::Open),
            (Some("Unknown"), Gate::Open),
            (Some("Whatever"), Gate::Open),
        ] {
            assert_eq!(gate(&own(), &mr(applied, json!({}))), expected, "{applied:?}");
        }
    }

    /// spec 20 scenarios 26, 27, 28; trap 3.
    #[test]
    fn what_is_ignored_foreign_or_deleted_is_not_judged() {
        for (change, expected) in [
            (ignored("T"), Gate::Barred),
            (ignored("true"), Gate::Barred),
            (ignored("1"), Gate::Barred),
            (ignored("yes"), Gate::Open),
            (ignored(""), Gate::Open),
            (json!({"/spec/class": "other"}), Gate::Barred),
            (json!({"/spec/class": ""}), Gate::Open),
            (json!({"/metadata/deletionTimestamp": "2026-01-01T00:00:00Z"}), Gate::Barred),
            (
                json!({"/metadata/finalizers": ["resources.gardener.cloud/gardener-resource-manager-other"]}),
                Gate::Closed,
            ),
        ] {
            assert_eq!(gate(&own(), &mr(Some("True"), change.clone())), expected, "{change}");
        }
    }

    /// spec 20 §5.1.
    #[test]
    fn a_change_asks_for_a_pass_if_it_may_open_the_gate() {
        let open = || mr(Some("True"), json!({}));
        let other = "resources.gardener.cloud/gardener-resource-manager-other";
        let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "cfg"});
        for (old, new, expected) in [
            (None, Some(open()), true),
            (Some(open()), None, true),
            (Some(open()), Some(open()), false),
            (Some(mr(None, json!({}))), Some(open()), true),
            (Some(mr(Some("Progressing"), json!({}))), Some(open()), true),
            (Some(open()), Some(mr(Some("False"), json!({}))), true),
            (Some(open()), Some(mr(Some("True"), json!({"/metadata/generation": 7}))), false),
            (Some(open()), Some(mr(Some("True"), json!({"/metadata/labels": {"a": "b"}}))), false),
            (Some(open()), Some(mr(Some("True"), json!({"/spec/class": ""}))), true),
            (Some(open()), Some(mr(Some("True"), ignored("true"))), false),
            (Some(mr(Some("True"), ignored("true"))), Some(open()), true),
            (Some(open()), Some(mr(Some("True"), json!({"/metadata/uid": "v"}))), true),
            (Some(open()), Some(mr(Some("True"), json!({"/metadata/uid": "v", "/spec/class": "other"}))), true),
            (Some(mr(Some("True"), json!({"/metadata/finalizers": [other]}))), Some(open()), true),
            (Some(open()), Some(mr(Some("True"), json!({"/status/resources": [reference]}))), true),
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
    fn other_references_ask_for_a_pass_unless_the_bundle_is_not_judged() {
        let (open, ignored) = (mr(Some("True"), json!({})), mr(Some("True"), ignored("true")));

        assert!(is_triggered(&own(), Some(&open), Some(&open), true));
        assert!(!is_triggered(&own(), Some(&open), Some(&ignored), true));
    }

    #[test]
    fn reason_and_message_ask_for_nothing() {
        let told = |reason: &str| {
            let condition =
                json!([{"type": "ResourcesApplied", "status": "True", "reason": reason, "message": reason}]);
            mr(None, json!({"/status/conditions": condition}))
        };

        assert!(!is_triggered(&own(), Some(&told("A")), Some(&told("B")), false));
    }
}

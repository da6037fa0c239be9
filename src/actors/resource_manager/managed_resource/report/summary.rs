//! A ManagedResource as a list shows it: class, marks, number of objects, conditions without messages.

use cluster::object::NamespacedName;
use kit::{ConditionSummary, ObjectSummary, quote::cut_after};

use super::{
    super::{
        known::{ManagedResourceSummary, SharedTexts},
        wake::trigger::{self, Operation},
    },
    announcement::tone,
};
use crate::api::{
    meta::conditions::Condition,
    resources::{
        class::OwnClass,
        condition_names::{RESOURCES_APPLIED, RESOURCES_HEALTHY, RESOURCES_PROGRESSING},
        keys::{DEFAULT_CLASS, KIND},
        managed_resource::ManagedResource,
    },
};

/// The conditions that this program writes. They come first.
const OWN: [&str; 3] = [RESOURCES_APPLIED, RESOURCES_HEALTHY, RESOURCES_PROGRESSING];
/// Most conditions: other programs may add some.
const MOST: usize = 6;
/// Longest text, in characters.
const LONGEST: usize = 64;

/// Makes summaries of the ManagedResources that a class looks after.
pub(crate) struct Summaries {
    class: OwnClass,
    texts: SharedTexts,
}

/// Returns the class of a ManagedResource.
pub(crate) fn class_of(mr: &ManagedResource) -> String {
    let class = mr.spec.class.as_deref().filter(|class| !class.is_empty()).unwrap_or(DEFAULT_CLASS);
    cut_after(LONGEST, class).into_owned()
}

impl Summaries {
    pub(crate) fn new(class: &OwnClass) -> Self {
        Self { class: class.clone(), texts: SharedTexts::default() }
    }

    /// Returns the summary, or `None` for a ManagedResource of another class that this one never looked after.
    pub(crate) fn of(&self, name: &NamespacedName, summary: &ManagedResourceSummary) -> Option<ObjectSummary> {
        let ManagedResourceSummary { mr, objects, .. } = summary;
        let is_ours = self.class.is_responsible(mr) || self.class.holds(mr);
        is_ours.then(|| ObjectSummary {
            kind: KIND,
            namespace: name.namespace.as_str().into(),
            name: name.name.as_str().into(),
            class: class_of(mr).into(),
            objects: *objects,
            marks: self.marks(mr),
            conditions: self.conditions(&mr.status.conditions),
        })
    }

    fn marks(&self, mr: &ManagedResource) -> Vec<&'static str> {
        let marks = [
            (mr.is_ignored(), "ignored"),
            (mr.is_deleting(), "deleting"),
            (trigger::operation(mr) == Operation::Stop, "wait-for-state"),
            (self.class.is_transferring(mr), "handed-over"),
            (self.class.is_waiting_for_cleanup(mr), "waits-for-class"),
        ];
        marks.into_iter().filter(|(has, _)| *has).map(|(_, mark)| mark).collect()
    }

    fn conditions(&self, conditions: &[Condition]) -> Vec<ConditionSummary> {
        let find = |kind: &str| conditions.iter().find(|condition| condition.kind == kind);
        let others = conditions.iter().filter(|condition| !OWN.contains(&condition.kind.as_str()));
        let shown =
            OWN.into_iter().filter_map(find).chain(others).take(MOST).map(|condition| self.condition(condition));
        let mut shown: Vec<_> = shown.collect();
        shown.shrink_to_fit();
        shown
    }

    fn condition(&self, condition: &Condition) -> ConditionSummary {
        let shared = |text: &str| self.texts.shared(&cut_after(LONGEST, text));
        ConditionSummary {
            kind: shared(&condition.kind),
            status: shared(condition.status.as_str()),
            reason: shared(&condition.reason),
            since: condition.last_transition_time,
            tone: tone(condition),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kit::Tone;
    use serde_json::{Value, json};

    use super::*;
    use crate::actors::resource_manager::managed_resource::known::CachedManagedResource;

    fn summary(object: &Value) -> Option<ObjectSummary> {
        let summaries = Summaries::new(&OwnClass::new(DEFAULT_CLASS));
        summaries.of(&NamespacedName::new("ns", "mr"), CachedManagedResource::of(object).unwrap().summary())
    }

    fn condition(kind: &str, status: &str) -> Value {
        json!({"type": kind, "status": status, "reason": "R", "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    #[test]
    fn summary_has_class_objects_and_own_conditions_first() {
        let conditions =
            [condition("Odd", "True"), condition("ResourcesHealthy", "False"), condition("ResourcesApplied", "True")];
        let object = json!({
            "metadata": {"namespace": "ns", "name": "mr"}, "spec": {"class": "", "secretRefs": []},
            "status": {"conditions": conditions, "resources": [{"kind": "A"}, {"kind": "B"}]},
        });

        let summary = summary(&object).unwrap();

        assert_eq!((summary.kind, &*summary.namespace, &*summary.name), ("ManagedResource", "ns", "mr"));
        assert_eq!((&*summary.class, summary.objects, summary.marks.len()), ("resources", 2, 0));
        let seen: Vec<_> = summary.conditions.iter().map(|it| (&*it.kind, &*it.status, it.tone)).collect();
        let expected = [
            ("ResourcesApplied", "True", Tone::Good),
            ("ResourcesHealthy", "False", Tone::Bad),
            ("Odd", "True", Tone::None),
        ];
        assert_eq!(seen, expected);
        assert_eq!(summary.conditions[0].since, "2026-01-01T00:00:00Z".parse().ok());
    }

    #[test]
    fn summary_marks_say_why_a_bundle_is_not_applied() {
        const FINALIZER: &str = "resources.gardener.cloud/gardener-resource-manager";
        for (metadata, class, marks) in [
            (json!({"annotations": {"resources.gardener.cloud/ignore": "t"}}), "", vec!["ignored"]),
            (json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}), "", vec!["deleting"]),
            (json!({"annotations": {"gardener.cloud/operation": "wait-for-state"}}), "", vec!["wait-for-state"]),
            (json!({"finalizers": [FINALIZER]}), "seed", vec!["handed-over"]),
            (json!({"finalizers": [format!("{FINALIZER}-seed")]}), "", vec!["waits-for-class"]),
        ] {
            let object = json!({"metadata": metadata, "spec": {"class": class}});

            assert_eq!(summary(&object).map(|summary| summary.marks), Some(marks), "{object}");
        }
        assert_eq!(summary(&json!({"spec": {"class": "seed"}})), None, "another class, and never ours");
    }

    #[test]
    fn summary_of_a_hostile_bundle_is_bounded() {
        let long = "x".repeat(10_000);
        let conditions: Vec<_> = (0..100).map(|number| condition(&format!("{number}{long}"), &long)).collect();
        let object = json!({"spec": {"class": null}, "status": {"conditions": conditions}});

        let summary = summary(&object).unwrap();

        assert_eq!((summary.conditions.len(), summary.conditions.capacity()), (MOST, MOST));
        assert!(summary.conditions.iter().all(|it| it.kind.len() < 300 && it.status.len() < 300));
    }

    /// Ten thousand ManagedResources have ten thousand of these.
    #[test]
    fn summary_takes_about_400_bytes() {
        let object = json!({"status": {"conditions": OWN.map(|kind| condition(kind, "True"))}});
        let texts = "shoot--project--cluster".len() + "extension-controlplane-shoot".len() + DEFAULT_CLASS.len();

        let summaries = Summaries::new(&OwnClass::new(DEFAULT_CLASS));
        let of = || {
            summaries
                .of(&NamespacedName::new("ns", "mr"), CachedManagedResource::of(&object).unwrap().summary())
                .unwrap()
        };
        let (one, other) = (of(), of());

        assert!(Arc::ptr_eq(&one.conditions[0].reason, &other.conditions[2].reason), "reasons are shared");
        assert_eq!(one.conditions.capacity(), 3);
        let size = size_of::<ObjectSummary>() + 3 * size_of::<ConditionSummary>() + texts;
        assert!(size <= 420, "{size}");
    }
}

//! A ManagedResource whose objects are up to date and watched: its period ends with an idle check.

use kit::{IdleCheck, hash_of};

use super::{
    super::known::{CachedManagedResource, ManagedResourceSummary, ObjectsRevision},
    run::{HealthReconciler, HealthRun, are_pods_needed, period},
};
use crate::{
    actors::resource_manager::health::eligibility::{self, Eligibility},
    api::{
        meta::conditions,
        resources::{
            class::OwnClass,
            condition_names::{RESOURCES_HEALTHY, RESOURCES_PROGRESSING},
        },
    },
};

/// Hash of a judged ManagedResource's references and of the written conditions. Whether it is judged is checked anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JudgedState(u64);

impl JudgedState {
    pub(super) fn of(class: &OwnClass, reconciler: HealthReconciler, summary: &ManagedResourceSummary) -> Option<Self> {
        let ManagedResourceSummary { mr, references, .. } = summary;
        let is_judged = eligibility::of(class, mr) == Eligibility::Eligible;
        is_judged.then(|| {
            let written: &[&str] = match reconciler {
                HealthReconciler::Health => &[RESOURCES_HEALTHY, RESOURCES_PROGRESSING],
                HealthReconciler::Progress => &[RESOURCES_PROGRESSING],
            };
            let conditions = written.iter().map(|kind| conditions::find(&mr.status.conditions, kind));
            let said = conditions.map(|it| it.map(|it| (&it.status, &it.reason, &it.message, &it.codes)));
            Self(hash_of(&(&mr.metadata.uid, references, said.collect::<Vec<_>>())))
        })
    }
}

impl HealthRun<'_> {
    pub(super) fn judged_state(&self) -> Option<JudgedState> {
        let class = &self.controller.settings.class;
        let judged_state = |cached: &CachedManagedResource| JudgedState::of(class, self.reconciler, cached.summary());
        self.controller.bundles.store().with(&self.reconcile.key, judged_state).flatten()
    }

    pub(super) fn next_idle_check(&self, objects: ObjectsRevision, judged_state: JudgedState) -> IdleCheck {
        let (controller, key, reconciler) = (self.controller.clone(), self.reconcile.key.clone(), self.reconciler);
        IdleCheck::new(move || {
            let class = &controller.settings.class;
            let is_judged_state = |cached: &CachedManagedResource| {
                JudgedState::of(class, reconciler, cached.summary()) == Some(judged_state)
            };
            let is_unchanged = controller.objects.revision(&key) == Some(objects)
                && controller.bundles.store().with(&key, is_judged_state) == Some(true)
                && !controller.pods.is_to_end(|| are_pods_needed(&controller));
            is_unchanged.then(|| controller.idle_period(period(&controller)))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::resources::keys::DEFAULT_CLASS;

    fn judged_state(reconciler: HealthReconciler, at: &str, value: Value) -> Option<JudgedState> {
        let mut object = json!({
            "metadata": {"namespace": "shoot", "name": "a", "uid": "u", "resourceVersion": "7", "labels": {}},
            "spec": {},
            "status": {
                "conditions": [
                    {"type": "ResourcesApplied", "status": "True", "message": "a", "lastUpdateTime": "2026-01-01T00:00:00Z"},
                    {"type": "ResourcesHealthy", "status": "True", "message": "b", "lastUpdateTime": "2026-01-01T00:00:00Z"},
                    {"type": "ResourcesProgressing", "status": "False", "message": "c", "lastUpdateTime": "2026-01-01T00:00:00Z"},
                ],
                "resources": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}],
            },
        });
        *object.pointer_mut(at).unwrap() = value;
        JudgedState::of(
            &OwnClass::new(DEFAULT_CLASS),
            reconciler,
            CachedManagedResource::of(&object).unwrap().summary(),
        )
    }

    #[test]
    fn health_idle_check_compares_references_and_own_conditions() {
        let unchanged = |reconciler| judged_state(reconciler, "/metadata/resourceVersion", json!("7"));
        assert!(unchanged(HealthReconciler::Health).is_some() && unchanged(HealthReconciler::Progress).is_some());
        for (at, value, for_health, for_progress) in [
            ("/metadata/resourceVersion", json!("8"), true, true),
            ("/metadata/labels", json!({"a": "b"}), true, true),
            ("/status/conditions/0/message", json!("x"), true, true),
            ("/status/conditions/1/lastUpdateTime", json!("2026-01-02T00:00:00Z"), true, true),
            ("/status/conditions/1/message", json!("x"), false, true),
            ("/status/conditions/1/status", json!("False"), false, true),
            ("/status/conditions/2/message", json!("x"), false, false),
            ("/status/conditions", json!([{"type": "ResourcesApplied", "status": "True"}]), false, false),
            ("/status/resources", json!([]), false, false),
            ("/metadata/uid", json!("v"), false, false),
        ] {
            let is_same = |reconciler| judged_state(reconciler, at, value.clone()) == unchanged(reconciler);
            assert_eq!(
                (is_same(HealthReconciler::Health), is_same(HealthReconciler::Progress)),
                (for_health, for_progress),
                "{at}"
            );
        }
    }

    #[test]
    fn health_idle_check_needs_a_judged_resource() {
        assert_eq!(judged_state(HealthReconciler::Health, "/status/conditions/0/status", json!("False")), None);
        assert_eq!(judged_state(HealthReconciler::Health, "/spec", json!({"class": "other"})), None);
    }
}

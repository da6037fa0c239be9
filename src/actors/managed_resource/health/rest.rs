//! A bundle whose objects are settled, and known by watches: its period ends with a look instead of a pass.

use std::hash::{DefaultHasher, Hash, Hasher};

use kit::Look;

use super::{
    super::known::{BundleRecord, Head, ObjectsRevision},
    run::{HealthDuty, HealthRun, are_pods_needed, period},
};
use crate::{
    actors::health::eligibility::{self, Eligibility},
    api::{
        class::OwnClass,
        conditions::{self, RESOURCES_HEALTHY, RESOURCES_PROGRESSING},
    },
};

/// What a pass goes by of a ManagedResource whose objects are judged: its references, and what the conditions say that the
/// duty writes, as a hash. Whether the bundle is to be judged is no part of it: that is asked anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stand(u64);

impl Stand {
    /// `None` if the objects are not judged.
    pub(super) fn of(class: &OwnClass, duty: HealthDuty, head: &Head) -> Option<Self> {
        let Head { mr, references } = head;
        let is_judged = eligibility::of(class, mr) == Eligibility::Eligible;
        is_judged.then(|| {
            let mut hasher = DefaultHasher::new();
            (&mr.metadata.uid, references).hash(&mut hasher);
            let written: &[&str] = match duty {
                HealthDuty::Health => &[RESOURCES_HEALTHY, RESOURCES_PROGRESSING],
                HealthDuty::Progress => &[RESOURCES_PROGRESSING],
            };
            for kind in written {
                let condition = conditions::find(&mr.status.conditions, kind);
                condition.map(|it| (&it.status, &it.reason, &it.message, &it.codes)).hash(&mut hasher);
            }
            Self(hasher.finish())
        })
    }
}

impl HealthRun<'_> {
    /// How the ManagedResource stands in the store.
    pub(super) fn stand(&self) -> Option<Stand> {
        let class = &self.controller.settings.class;
        let stand = |record: &BundleRecord| Stand::of(class, self.duty, record.head());
        self.controller.bundles.store().with(&self.pass.key, stand).flatten()
    }

    /// Looks whether all is still as it was when the objects were settled.
    pub(super) fn next_look(&self, objects: ObjectsRevision, stand: Stand) -> Look {
        let (controller, key, duty) = (self.controller.clone(), self.pass.key.clone(), self.duty);
        Look::new(move || {
            let class = &controller.settings.class;
            let stands = |record: &BundleRecord| Stand::of(class, duty, record.head()) == Some(stand);
            let is_calm = controller.objects.revision(&key) == Some(objects)
                && controller.bundles.store().with(&key, stands) == Some(true)
                && !controller.pods.is_to_end(|| are_pods_needed(&controller));
            is_calm.then(|| controller.calm_period(period(&controller)))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::keys::DEFAULT_CLASS;

    /// How a ManagedResource stands for a duty in which `value` is put in `at`.
    fn stand(duty: HealthDuty, at: &str, value: Value) -> Option<Stand> {
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
        Stand::of(&OwnClass::new(DEFAULT_CLASS), duty, BundleRecord::of(&object).unwrap().head())
    }

    #[test]
    fn a_managed_resource_stands_as_before_if_its_references_and_the_conditions_of_the_duty_do() {
        let unchanged = |duty| stand(duty, "/metadata/resourceVersion", json!("7"));
        assert!(unchanged(HealthDuty::Health).is_some() && unchanged(HealthDuty::Progress).is_some());
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
            let is_same = |duty| stand(duty, at, value.clone()) == unchanged(duty);
            assert_eq!(
                (is_same(HealthDuty::Health), is_same(HealthDuty::Progress)),
                (for_health, for_progress),
                "{at}"
            );
        }
    }

    #[test]
    fn a_managed_resource_that_is_not_judged_has_no_stand() {
        assert_eq!(stand(HealthDuty::Health, "/status/conditions/0/status", json!("False")), None);
        assert_eq!(stand(HealthDuty::Health, "/spec", json!({"class": "other"})), None);
    }
}

//! Reads the conditions of a ManagedResource (spec 10 §19.8).

use cluster::object::NamespacedName;

use crate::api::{
    meta::conditions::ConditionStatus,
    resources::{
        condition_names::{RESOURCES_APPLIED, RESOURCES_HEALTHY, RESOURCES_PROGRESSING},
        managed_resource::ManagedResource,
    },
};

/// A ManagedResource is not in the wanted state, or its state is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unhealthy {
    /// The controller has not seen the current spec yet.
    #[error("observed generation of managed resource {key} outdated ({observed}/{generation})")]
    Outdated {
        /// The ManagedResource.
        key: NamespacedName,
        /// `status.observedGeneration`.
        observed: i64,
        /// `metadata.generation`.
        generation: i64,
    },
    /// A condition is missing.
    #[error("condition {condition} for managed resource {key} has not been reported yet")]
    NotReported {
        /// The ManagedResource.
        key: NamespacedName,
        /// Type of the condition.
        condition: &'static str,
    },
    /// A condition has another status.
    #[error("condition {condition} of managed resource {key} is {status}: {message}")]
    Is {
        /// The ManagedResource.
        key: NamespacedName,
        /// Type of the condition.
        condition: &'static str,
        /// Its status.
        status: String,
        /// Its message.
        message: String,
    },
}

/// Checks that the current spec has been applied. Fails if it has not, or if that is unknown.
pub fn check_applied(mr: &ManagedResource) -> Result<(), Unhealthy> {
    let (observed, generation) = (mr.status.observed_generation, mr.metadata.generation);
    if observed != generation {
        return Err(Unhealthy::Outdated { key: mr.key(), observed, generation });
    }
    check_condition(mr, RESOURCES_APPLIED, &ConditionStatus::True)
}

/// Checks that the objects are healthy. Fails if they are not, or if that is unknown.
pub fn check_healthy(mr: &ManagedResource) -> Result<(), Unhealthy> {
    check_condition(mr, RESOURCES_HEALTHY, &ConditionStatus::True)
}

/// Checks that no rollout is in progress. Fails if one is, or if that is unknown.
pub fn check_not_progressing(mr: &ManagedResource) -> Result<(), Unhealthy> {
    check_condition(mr, RESOURCES_PROGRESSING, &ConditionStatus::False)
}

/// Checks that it is applied, then that it is healthy. Fails with the first check that fails.
pub fn check(mr: &ManagedResource) -> Result<(), Unhealthy> {
    check_applied(mr)?;
    check_healthy(mr)
}

fn check_condition(mr: &ManagedResource, condition: &'static str, wanted: &ConditionStatus) -> Result<(), Unhealthy> {
    let Some(found) = mr.condition(condition) else {
        return Err(Unhealthy::NotReported { key: mr.key(), condition });
    };
    if found.status == *wanted {
        return Ok(());
    }
    let (status, message) = (found.status.to_string(), found.message.clone());
    Err(Unhealthy::Is { key: mr.key(), condition, status, message })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn managed_resource(observed: i64, conditions: &[(&str, &str)]) -> ManagedResource {
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(kind, status)| json!({"type": kind, "status": status, "reason": "R", "message": "why"}))
            .collect();
        ManagedResource::from_value(&json!({
            "metadata": {"namespace": "ns", "name": "mr", "generation": 2},
            "status": {"observedGeneration": observed, "conditions": conditions},
        }))
        .unwrap()
    }

    /// spec 10 §19.8
    #[test]
    fn health_checks_follow_their_table() {
        type Check = fn(&ManagedResource) -> Result<(), Unhealthy>;
        type Row = (Check, i64, &'static [(&'static str, &'static str)], &'static str);
        let table: [Row; 11] = [
            (check_applied, 2, &[(RESOURCES_APPLIED, "True")], ""),
            (
                check_applied,
                1,
                &[(RESOURCES_APPLIED, "True")],
                "observed generation of managed resource ns/mr outdated (1/2)",
            ),
            (check_applied, 2, &[], "condition ResourcesApplied for managed resource ns/mr has not been reported yet"),
            (
                check_applied,
                2,
                &[(RESOURCES_APPLIED, "Progressing")],
                "condition ResourcesApplied of managed resource ns/mr is Progressing: why",
            ),
            (check_healthy, 1, &[(RESOURCES_HEALTHY, "True")], ""),
            (
                check_healthy,
                2,
                &[(RESOURCES_HEALTHY, "False")],
                "condition ResourcesHealthy of managed resource ns/mr is False: why",
            ),
            (check_not_progressing, 1, &[(RESOURCES_PROGRESSING, "False")], ""),
            (
                check_not_progressing,
                2,
                &[(RESOURCES_PROGRESSING, "Unknown")],
                "condition ResourcesProgressing of managed resource ns/mr is Unknown: why",
            ),
            (check, 2, &[(RESOURCES_APPLIED, "True"), (RESOURCES_HEALTHY, "True")], ""),
            (
                check,
                1,
                &[(RESOURCES_APPLIED, "True"), (RESOURCES_HEALTHY, "False")],
                "observed generation of managed resource ns/mr outdated (1/2)",
            ),
            (
                check,
                2,
                &[(RESOURCES_APPLIED, "True")],
                "condition ResourcesHealthy for managed resource ns/mr has not been reported yet",
            ),
        ];

        for (check, observed, conditions, expected) in table {
            let found = check(&managed_resource(observed, conditions));

            assert_eq!(found.err().map(|error| error.to_string()).unwrap_or_default(), expected);
        }
    }
}

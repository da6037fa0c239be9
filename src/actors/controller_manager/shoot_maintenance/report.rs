//! What a maintenance says: the texts of the last maintenance, and Events (spec 84 C.13, C.15). Pure.

use cluster::EventType;
use jiff::Timestamp;
use kit::quote::{cut_within, quoted};
use serde_json::{Value, json};

use super::update::UpdateResult;
use crate::actors::controller_manager::fields::whole_seconds;

/// Most bytes of a text in the status. A Shoot of usual size needs some hundreds.
pub(super) const LONGEST_TEXT: usize = 64 * 1024;

const KUBERNETES_REASON: &str = "KubernetesVersionMaintenance";
const IMAGE_REASON: &str = "MachineImageVersionMaintenance";

/// The reason of the Event about an update that could not be written.
pub(super) const FAILED_REASON: &str = "MaintenanceFailed";

/// What came of the parts of a maintenance.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MaintenanceResults {
    /// Kubernetes version of the control plane.
    pub control_plane: Option<UpdateResult>,
    /// Kubernetes versions by worker pool.
    pub kubernetes: Vec<(String, UpdateResult)>,
    /// Machine images by worker pool.
    pub images: Vec<(String, UpdateResult)>,
    /// Credentials by the operation that rotates them.
    pub credentials: Vec<(&'static str, UpdateResult)>,
    /// Texts of other changes.
    pub operations: Vec<String>,
}

/// The texts of one maintenance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaintenanceTexts {
    /// `status.lastMaintenance.description`
    pub description: String,
    /// `status.lastMaintenance.failureReason`; empty if nothing failed.
    pub failure_reason: String,
}

/// An Event about a Shoot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaintenanceEvent {
    /// Warning: the part failed.
    pub event_type: EventType,
    /// Its reason.
    pub reason: &'static str,
    /// Its note.
    pub note: String,
}

impl MaintenanceResults {
    /// Returns the results of all parts, in the order of the texts.
    pub fn all(&self) -> impl Iterator<Item = &UpdateResult> {
        let pools = self.kubernetes.iter().chain(&self.images).map(|(_, result)| result);
        self.control_plane.iter().chain(pools).chain(self.credentials.iter().map(|(_, result)| result))
    }

    /// Returns true if there is something to report (spec 84 C.13).
    pub fn is_changed(&self) -> bool {
        !self.operations.is_empty() || self.all().next().is_some()
    }

    /// Returns true if Kubernetes versions and machine images change (spec 84 "better" 7).
    pub(super) fn changes_both_kinds(&self) -> bool {
        let is_any = |results: &[(String, UpdateResult)]| results.iter().any(|(_, result)| result.is_successful);
        let control_plane = self.control_plane.as_ref().is_some_and(|result| result.is_successful);
        (control_plane || is_any(&self.kubernetes)) && is_any(&self.images)
    }

    /// Returns the texts of the last maintenance (spec 84 C.13).
    pub fn texts(&self) -> MaintenanceTexts {
        let (mut parts, mut failures) = (Vec::new(), Vec::new());
        let mut add = |result: &UpdateResult, subject: &str, failed: &str, failure: String| {
            let UpdateResult { description, reason, is_successful } = result;
            if *is_successful {
                parts.push(format!("{subject}: {description}. Reason: {reason}"));
            } else {
                parts.push(format!("{subject}: {failed} failed. Reason for update: {reason}"));
                failures.push(failure);
            }
        };
        if let Some(result) = &self.control_plane {
            let failure = format!("Control Plane: Kubernetes maintenance failure due to: {}", result.description);
            add(result, "Control Plane", "Kubernetes version update", failure);
        }
        for (pool, result) in &self.kubernetes {
            let pool = pool_subject(pool);
            let failure = format!("{pool}: Kubernetes maintenance failure due to: {}", result.description);
            add(result, &pool, "Kubernetes version maintenance", failure);
        }
        for (pool, result) in &self.images {
            let pool = pool_subject(pool);
            add(result, &pool, "machine image version maintenance", format!("{pool}: {}", result.description));
        }
        for (operation, result) in &self.credentials {
            let subject = format!("Credentials {}", quoted(operation));
            let failure = format!("{subject}: Automatic rotation failure due to: {}", result.description);
            add(result, &subject, "Automatic rotation", failure);
        }
        parts.extend(self.operations.iter().cloned());

        let (successful, all) = (self.all().filter(|result| result.is_successful).count(), self.all().count());
        let prefix = if failures.is_empty() {
            "All maintenance operations successful. ".to_owned()
        } else {
            format!("({successful}/{all}) maintenance operations successful. ")
        };
        let description = format!("{prefix}{}", parts.join(", "));
        MaintenanceTexts {
            description: cut_within(LONGEST_TEXT, description.trim_end_matches(' ')).into_owned(),
            failure_reason: cut_within(LONGEST_TEXT, &failures.join(", ")).into_owned(),
        }
    }

    /// Returns the Events about the parts (spec 84 C.15).
    pub fn events(&self) -> Vec<MaintenanceEvent> {
        let event = |result: &UpdateResult, reason: &'static str, subject: &str, failed: &str| {
            let UpdateResult { description, reason: why, is_successful } = result;
            let (event_type, note) = if *is_successful {
                (EventType::Normal, format!("{subject}: {description}. Reason: {why}."))
            } else {
                let note = format!("{subject}: {failed} failed. Reason for update: {why}. Error: {description}");
                (EventType::Warning, note)
            };
            MaintenanceEvent { event_type, reason, note }
        };
        let kubernetes = "Kubernetes version maintenance";
        let control_plane =
            self.control_plane.iter().map(|result| event(result, KUBERNETES_REASON, "Control Plane", kubernetes));
        let of_pools = self
            .kubernetes
            .iter()
            .map(|(pool, result)| event(result, KUBERNETES_REASON, &pool_subject(pool), kubernetes));
        let of_images = self.images.iter().map(|(pool, result)| {
            event(result, IMAGE_REASON, &pool_subject(pool), "Machine image version maintenance")
        });
        control_plane.chain(of_pools).chain(of_images).collect()
    }
}

impl MaintenanceTexts {
    /// Returns the last maintenance as it is written before the update (spec 84 C-22b). A reason left from before goes.
    pub(super) fn last_maintenance(&self, now: Timestamp) -> Value {
        let has_failed = !self.failure_reason.is_empty();
        json!({
            "description": self.description,
            "triggeredTime": whole_seconds(now).to_string(),
            "state": if has_failed { FAILED } else { PROCESSING },
            "failureReason": has_failed.then_some(&self.failure_reason),
        })
    }
}

/// States of a maintenance.
pub(super) const FAILED: &str = "Failed";
pub(super) const PROCESSING: &str = "Processing";
pub(super) const SUCCEEDED: &str = "Succeeded";

/// Returns the last maintenance after a refused dry run (spec 84 C-22).
pub(super) fn refused_maintenance(message: &str, now: Timestamp) -> Value {
    let reason = format!("Updates to the Shoot failed to be applied: {message}");
    json!({
        "description": "Maintenance failed",
        "triggeredTime": whole_seconds(now).to_string(),
        "state": FAILED,
        "failureReason": cut_within(LONGEST_TEXT, &reason),
    })
}

fn pool_subject(pool: &str) -> String {
    format!("Worker pool {}", quoted(pool))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(description: &str, is_successful: bool) -> UpdateResult {
        UpdateResult { description: description.into(), reason: format!("why {description}"), is_successful }
    }

    /// spec 84 C.13
    #[test]
    fn texts_name_all_parts_in_their_order() {
        let results = MaintenanceResults {
            control_plane: Some(result("cp", true)),
            kubernetes: vec![("a".into(), result("ka", true)), ("b".into(), result("kb", false))],
            images: vec![("a".into(), result("ia", false)), ("b".into(), result("ib", true))],
            credentials: vec![("rotate-x", result("x", true)), ("rotate-y", result("y", false))],
            operations: vec!["T1".into(), "T2".into()],
        };
        let MaintenanceTexts { description, failure_reason } = results.texts();
        assert_eq!(
            description,
            "(4/7) maintenance operations successful. Control Plane: cp. Reason: why cp, Worker pool \"a\": ka. Reason: why \
             ka, Worker pool \"b\": Kubernetes version maintenance failed. Reason for update: why kb, Worker pool \"a\": \
             machine image version maintenance failed. Reason for update: why ia, Worker pool \"b\": ib. Reason: why ib, \
             Credentials \"rotate-x\": x. Reason: why x, Credentials \"rotate-y\": Automatic rotation failed. Reason for \
             update: why y, T1, T2"
        );
        assert_eq!(
            failure_reason,
            "Worker pool \"b\": Kubernetes maintenance failure due to: kb, Worker pool \"a\": ia, Credentials \"rotate-y\": \
             Automatic rotation failure due to: y"
        );
    }

    /// spec 84 C.13, C-22b
    #[test]
    fn texts_without_failure_start_with_success() {
        let now = "2026-08-21T12:00:00.5Z".parse().unwrap();
        let results = MaintenanceResults { operations: vec!["T ".into()], ..MaintenanceResults::default() };
        let expected = json!({ "description": "All maintenance operations successful. T", "state": "Processing",
            "triggeredTime": "2026-08-21T12:00:00Z", "failureReason": null });
        assert_eq!(results.texts().last_maintenance(now), expected);
        let failed = MaintenanceResults { control_plane: Some(result("cp", false)), ..MaintenanceResults::default() };
        let expected = json!({ "state": "Failed", "triggeredTime": "2026-08-21T12:00:00Z",
            "description": "(0/1) maintenance operations successful. Control Plane: Kubernetes version update failed. Reason for update: why cp",
            "failureReason": "Control Plane: Kubernetes maintenance failure due to: cp" });
        assert_eq!(failed.texts().last_maintenance(now), expected);
    }

    /// spec 84 C.15
    #[test]
    fn events_tell_of_versions_only() {
        let results = MaintenanceResults {
            control_plane: Some(result("cp", false)),
            kubernetes: vec![("a".into(), result("ka", true)), ("b".into(), result("kb", false))],
            images: vec![("a".into(), result("ia", true)), ("b".into(), result("ib", false))],
            credentials: vec![("rotate-x", result("x", true))],
            operations: vec!["T1".into()],
        };
        let events: Vec<_> =
            results.events().into_iter().map(|event| (event.event_type, event.reason, event.note)).collect();
        let (normal, warning) = (EventType::Normal, EventType::Warning);
        assert_eq!(
            events,
            [
                (
                    warning,
                    KUBERNETES_REASON,
                    "Control Plane: Kubernetes version maintenance failed. Reason for update: why cp. Error: cp"
                        .to_owned()
                ),
                (normal, KUBERNETES_REASON, "Worker pool \"a\": ka. Reason: why ka.".to_owned()),
                (
                    warning,
                    KUBERNETES_REASON,
                    "Worker pool \"b\": Kubernetes version maintenance failed. Reason for update: why kb. Error: kb"
                        .to_owned()
                ),
                (normal, IMAGE_REASON, "Worker pool \"a\": ia. Reason: why ia.".to_owned()),
                (
                    warning,
                    IMAGE_REASON,
                    "Worker pool \"b\": Machine image version maintenance failed. Reason for update: why ib. Error: ib"
                        .to_owned()
                ),
            ]
        );
    }

    #[test]
    fn texts_have_a_bounded_length() {
        let results = MaintenanceResults { operations: vec!["x".repeat(1_000_000)], ..MaintenanceResults::default() };
        assert_eq!(results.texts().description.len(), LONGEST_TEXT);
    }
}

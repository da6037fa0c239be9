//! One maintenance of a Shoot: its plan, the dry run, the writes, the Events (spec 84 C.14, C.15).

use std::time::Duration;

use cluster::{
    ApiError, Context, EventType, Reference,
    object::{self, NamespacedName, field_mut},
};
use jiff::Timestamp;
use kit::{
    Deadline, Failure,
    quote::{cut, cut_after, cut_within},
};
use serde_json::{Value, json};

use super::{
    Memory, ShootMaintenance,
    changes::BindingMigration,
    end::PendingEnd,
    migration::migrate,
    operation::{OPERATION, asks_for_maintenance},
    plan::{MaintenanceInput, MaintenancePlan, plan},
    profile::MaintenanceProfile,
    report::{FAILED_REASON, LONGEST_TEXT, refused_maintenance},
    update::{Remark, RemarkLevel, shown},
};
use crate::api::kinds;

/// Most characters of a plan in the log.
const SHOWN_PLAN: usize = 4096;

/// Events that are recorded at once. The recorder keeps few unwritten ones about one object, and drops the oldest.
const EVENTS_AT_ONCE: usize = 4;

/// Longest wait until the first Events are written, so that the next ones find room. Events are no reason to hold a worker.
const EVENT_LIMIT: Duration = Duration::from_secs(10);

/// The action of Events (spec 84 §2).
const ACTION: &str = "Reconcile";

/// How a maintenance ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MaintenanceEnd {
    /// The maintenance is done. The label of the metric.
    Finished(&'static str),
    /// The API server refused the new Shoot; the status says so (spec 84 C-22).
    Refused,
    /// Somebody else changed the Shoot meanwhile: it must be looked at again (spec 84 C-22a, C-23).
    Conflict,
    /// The Shoot is gone.
    Gone,
}

/// What came of a write.
enum Written {
    Done(Value),
    Conflict,
    Gone,
}

/// What came of a dry run.
enum Tried {
    /// The Shoot as the API server would store it.
    Accepted(Value),
    /// The text of the API server, at most [`LONGEST_TEXT`] long.
    Refused(String),
    Conflict,
    Gone,
}

impl Written {
    fn of(result: Result<Value, ApiError>) -> Result<Self, ApiError> {
        match result {
            Ok(object) => Ok(Self::Done(object)),
            Err(error) if error.is_not_found() => Ok(Self::Gone),
            Err(error) if is_conflict(&error) => Ok(Self::Conflict),
            Err(error) => Err(error),
        }
    }
}

/// Goes on with the object of a write, or returns how the maintenance ended.
macro_rules! written {
    ($result:expr) => {
        match Written::of($result)? {
            Written::Done(object) => object,
            Written::Conflict => return Ok(MaintenanceEnd::Conflict),
            Written::Gone => return Ok(MaintenanceEnd::Gone),
        }
    };
}

impl ShootMaintenance {
    /// Maintains a Shoot as it was read live (spec 84 C.4, C.14). The memory has the end as long as the status lacks it, so
    /// that it survives a failed write, and a reconcile that is dropped meanwhile.
    pub(super) async fn maintain(
        &self,
        context: &Context,
        shoot: &Value,
        profile: &MaintenanceProfile,
        memory: &mut Memory,
        now: Timestamp,
    ) -> Result<MaintenanceEnd, Failure> {
        let (mut plan, migration) = self.planned(context, shoot, profile, now).await?;
        self.log_plan(&plan);
        let is_changed = plan.results.is_changed();
        let mut object = shoot.clone();
        let mut updated = None;
        if is_changed {
            (updated, plan) = match self.tried(context, (shoot, profile, migration.as_ref()), plan, now).await? {
                (Tried::Accepted(updated), plan) => (Some(updated), plan),
                (Tried::Refused(message), _) => return self.report_refusal(context, shoot, &message, now).await,
                (Tried::Conflict, _) => return Ok(MaintenanceEnd::Conflict),
                (Tried::Gone, _) => return Ok(MaintenanceEnd::Gone),
            };
            let patch = json!({ "status": { "lastMaintenance": plan.results.texts().last_maintenance(now) } });
            object = written!(self.patch(context, shoot, Some("status"), patch).await);
        }
        memory.pending_end = None;
        let applied = plan.applied(&object);
        if applied != object {
            let sent = self.clock.wall();
            memory.pending_end = updated.and_then(|updated| PendingEnd::unknown(&object, &updated, sent));
            let at = kinds::SHOOT.named(&NamespacedName::of(shoot));
            let request = self.cluster.replace(context, &at, None, &applied);
            let result = self.stores.shoots.enter_answer_of(context, request).await;
            if let Err(error) = &result {
                let (is_conflict, is_gone) = (is_conflict(error), error.is_not_found());
                if is_conflict || is_gone || is_refusal(error) {
                    memory.pending_end = None;
                }
                if !is_conflict && !is_gone {
                    let regarding = Reference::of(shoot);
                    self.events.record(EventType::Warning, &regarding, ACTION, FAILED_REASON, &error.to_string());
                }
            }
            object = written!(result);
        }
        memory.pending_end = Some(PendingEnd::confirmed(&object, is_changed));
        let finished = self.write_last_end(context, &object, memory).await;
        self.record_events(&plan, &object).await;
        finished?;
        Ok(MaintenanceEnd::Finished(match (is_changed, plan.results.all().all(|result| result.is_successful)) {
            (false, _) => "unchanged",
            (true, true) => "succeeded",
            (true, false) => "partly_failed",
        }))
    }

    /// Computes the plan. If the Shoot needs a CredentialsBinding, it is found or created first, and returned (spec 84 K4).
    async fn planned(
        &self,
        context: &Context,
        shoot: &Value,
        profile: &MaintenanceProfile,
        now: Timestamp,
    ) -> Result<(MaintenancePlan, Option<BindingMigration>), Failure> {
        let settings = self.settings;
        let input = MaintenanceInput { shoot, profile, settings, now, migration: None, image_refusal: None };
        let computed = plan(&input).map_err(|error| Failure::new(error.to_string()))?;
        let Some(secret_binding) = &computed.secret_binding else { return Ok((computed, None)) };
        let migration = migrate(&self.cluster, context, shoot, secret_binding).await;
        let input = MaintenanceInput { migration: Some(&migration), ..input };
        let computed = plan(&input).map_err(|error| Failure::new(error.to_string()))?;
        Ok((computed, Some(migration)))
    }

    /// Tries the plan. If the API server refuses new Kubernetes versions and new images together, the plan is tried without
    /// the images: they were chosen for the old versions (spec 84 C-21, "better" 7).
    async fn tried(
        &self,
        context: &Context,
        (shoot, profile, migration): (&Value, &MaintenanceProfile, Option<&BindingMigration>),
        first: MaintenancePlan,
        now: Timestamp,
    ) -> Result<(Tried, MaintenancePlan), Failure> {
        let refusal = match self.dry_run(context, &first.tried(shoot)).await? {
            Tried::Refused(message) if first.results.changes_both_kinds() => message,
            tried => return Ok((tried, first)),
        };
        tracing::info!(reason = &*cut(&refusal), "Trying the maintenance of the Shoot without new machine images");
        let settings = self.settings;
        let input = MaintenanceInput { shoot, profile, settings, now, migration, image_refusal: Some(&refusal) };
        let second = plan(&input).map_err(|error| Failure::new(error.to_string()))?;
        let tried = self.dry_run(context, &second.tried(shoot)).await?;
        Ok((tried, second))
    }

    async fn dry_run(&self, context: &Context, object: &Value) -> Result<Tried, ApiError> {
        let at = kinds::SHOOT.named(&NamespacedName::of(object));
        match self.cluster.try_replace(context, &at, object).await {
            Ok(updated) => Ok(Tried::Accepted(updated)),
            Err(error) if is_refusal(&error) => {
                Ok(Tried::Refused(cut_within(LONGEST_TEXT, &error.to_string()).into_owned()))
            }
            Err(error) if error.is_not_found() => Ok(Tried::Gone),
            Err(error) if is_conflict(&error) => Ok(Tried::Conflict),
            Err(error) => Err(error),
        }
    }

    /// Writes that the update was refused, and takes the request for a maintenance away (spec 84 C-22).
    async fn report_refusal(
        &self,
        context: &Context,
        shoot: &Value,
        message: &str,
        now: Timestamp,
    ) -> Result<MaintenanceEnd, Failure> {
        let mut patch = json!({ "status": { "lastMaintenance": refused_maintenance(message, now) } });
        let without_request = || json!({ "annotations": { OPERATION: null } });
        let is_asked = asks_for_maintenance(shoot);
        if is_asked {
            *field_mut(&mut patch, &["metadata"]) = without_request();
        }
        let written = written!(self.patch(context, shoot, Some("status"), patch).await);
        if is_asked && asks_for_maintenance(&written) {
            // The server ignores metadata in writes to the status.
            let patch = json!({ "metadata": without_request() });
            written!(self.patch(context, &written, None, patch).await);
        }
        tracing::info!(reason = &*cut(message), "Shoot maintenance failed");
        Ok(MaintenanceEnd::Refused)
    }

    /// Patches a Shoot, or its subresource, bound to the version of `shoot`.
    async fn patch(
        &self,
        context: &Context,
        shoot: &Value,
        subresource: Option<&str>,
        mut patch: Value,
    ) -> Result<Value, ApiError> {
        *field_mut(&mut patch, &["metadata", "resourceVersion"]) = object::resource_version(shoot).into();
        let at = kinds::SHOOT.named(&NamespacedName::of(shoot));
        let request = self.cluster.merge_patch(context, &at, subresource, &patch);
        self.stores.shoots.enter_answer_of(context, request).await
    }

    /// Records the Events of a maintenance, a few at a time (spec 84 C-26).
    async fn record_events(&self, plan: &MaintenancePlan, shoot: &Value) {
        let (regarding, deadline) = (Reference::of(shoot), Deadline::after(EVENT_LIMIT));
        for events in plan.results.events().chunks(EVENTS_AT_ONCE) {
            self.events.written(&regarding, deadline).await;
            for event in events {
                self.events.record(event.event_type, &regarding, ACTION, event.reason, &event.note);
            }
        }
    }

    /// Writes the remarks and the plan to the log (spec 84 "better" 10).
    fn log_plan(&self, plan: &MaintenancePlan) {
        let (remarks, more) = shown(&plan.remarks);
        for Remark { level, message, about, detail } in remarks {
            match level {
                RemarkLevel::Debug => tracing::debug!(about, detail, "{message}"),
                RemarkLevel::Info => tracing::info!(about, detail, "{message}"),
                RemarkLevel::Warning => tracing::warn!(about, detail, "{message}"),
                RemarkLevel::Error => tracing::error!(about, error = detail, "{message}"),
            }
        }
        if more > 0 {
            tracing::info!(more, "Further remarks about the maintenance of the Shoot are left out");
        }
        let texts = plan.results.texts();
        tracing::debug!(
            plan = %cut_after(SHOWN_PLAN, &texts.description),
            failureReason = %cut_after(SHOWN_PLAN, &texts.failure_reason),
            isChanged = plan.results.is_changed(),
            "Computed the maintenance of the Shoot"
        );
    }
}

/// Returns true if the API server refuses an update for what is in it (spec 84 C-22a).
pub(super) fn is_refusal(error: &ApiError) -> bool {
    matches!(error.code(), Some(400 | 403 | 405 | 413 | 415 | 422))
}

/// Returns true if somebody else changed the Shoot.
fn is_conflict(error: &ApiError) -> bool {
    error.is_conflict() || error.code() == Some(409)
}

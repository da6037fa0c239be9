//! A reconcile under way: what every step needs, and the writes to the ManagedResource itself.

use std::{rc::Rc, time::Duration};

use cluster::{
    ApiError, Context, ObjectRef,
    object::{NamespacedName, ObjectKey},
};
use jiff::Timestamp;
use kit::{Causes, Deadline, Failure, Reconcile};
use serde_json::Value;
use tokio::time::Instant;

use super::super::{
    known::ParsedManagedResource,
    record::{BundleRecord, WriteKind},
    report::StatusCell,
    shared::ManagedResources,
    wake::trigger,
};
use crate::api::resources::{
    managed_resource::{ManagedResource, ManagedResourceStatus},
    origin::Origin,
};

/// Time limit of a status write, whatever the reconcile has used up (contract rule 7).
const STATUS_TIME: Duration = Duration::from_secs(5);

pub(crate) struct Run<'a> {
    pub(crate) controller: &'a Rc<ManagedResources>,
    pub(crate) status: &'a StatusCell,
    pub(crate) record: &'a Rc<BundleRecord>,
    pub(crate) reconcile: &'a Reconcile<NamespacedName, ObjectKey>,
    pub(crate) context: Context,
    pub(crate) bundle: ParsedManagedResource,
    pub(crate) period_due: bool,
    pub(crate) last_period: Option<Instant>,
}

/// Time for objects, whatever was used up before: otherwise a ManagedResource that reads slowly would never progress.
const OBJECTS_TIME: Duration = Duration::from_secs(1);

impl Run<'_> {
    /// Returns true if the reconcile, which came to its objects at `since`, must let others have their turn.
    pub(crate) fn should_yield(&self, since: Instant) -> bool {
        let now = self.controller.env.clock.monotonic();
        self.reconcile.should_yield() && now.saturating_duration_since(since) >= OBJECTS_TIME
    }

    pub(crate) fn has_finalizer(&self) -> bool {
        self.controller.settings.class.holds(&self.bundle.mr)
    }

    pub(crate) fn mr(&self) -> &ManagedResource {
        &self.bundle.mr
    }

    pub(crate) async fn write_status(
        &mut self,
        change: impl FnOnce(&ManagedResourceStatus, Timestamp) -> ManagedResourceStatus,
    ) -> Result<(), Failure> {
        let now = self.controller.env.clock.wall();
        let own_time = Deadline::after(STATUS_TIME);
        let context = Context { deadline: self.context.deadline.max(own_time), ..self.context.clone() };
        match self.status.write(self.controller, &context, &self.bundle, |status| change(status, now)).await {
            Ok(written) => {
                self.bundle = written;
                Ok(())
            }
            Err(error) => Err(Failure::new(format!("could not update the ManagedResource status: {error}"))),
        }
    }

    /// Removes the operation annotation (spec 10 §5.2).
    pub(crate) async fn remove_operation(&mut self) -> Result<(), Failure> {
        let (source, patch) = (&self.controller.source, trigger::remove_operation_patch());
        let asked = self.controller.env.clock.monotonic();
        let answer = source.merge_patch(&self.context, &self.address(), None, &patch).await;
        match self.go_on_with(answer, asked) {
            Err(error) if !error.is_not_found() => Err(error.into()),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Adds the own finalizer if it is missing, before anything is written to the target (spec 10 §8).
    pub(crate) async fn ensure_finalizer(&mut self) -> Result<(), Failure> {
        let added = self.set_finalizer(true).await;
        added.map_err(|error| Failure::new(format!("failed to add finalizer: {error}")))
    }

    pub(crate) async fn set_finalizer(&mut self, held: bool) -> Result<(), ApiError> {
        if self.has_finalizer() == held {
            return Ok(());
        }
        let controller = self.controller;
        let (at, name) = (self.address(), controller.settings.class.finalizer());
        let asked = controller.env.clock.monotonic();
        let seen = self.bundle.cached.raw().map_err(|error| ApiError::Decode(error.to_string()))?;
        let answer = controller.source.set_finalizer(&self.context, &at, &seen, name, held).await;
        self.go_on_with(answer, asked)
    }

    /// Notes what was done to an object, for the dashboard. `more`: causes beside those of the reconcile.
    pub(crate) fn note_write(&self, object: &ObjectKey, kind: WriteKind, more: Causes) {
        let (controller, causes) = (self.controller, self.reconcile.wake.causes.with(more));
        let (object, now) = (controller.objects.shared(object), controller.env.clock.wall());
        self.record.writes.borrow_mut().note(object, kind, causes, now);
    }

    pub(crate) fn origin(&self) -> Origin {
        Origin::new(self.controller.settings.cluster_id.clone(), self.reconcile.key.clone())
    }

    fn address(&self) -> ObjectRef {
        self.controller.bundles.resource().named(&self.reconcile.key)
    }

    fn go_on_with(&mut self, answer: Result<Value, ApiError>, asked: Instant) -> Result<(), ApiError> {
        let answer = answer.inspect_err(|error| self.status.heard(error))?;
        self.bundle = ParsedManagedResource::of(&answer).map_err(|error| ApiError::Decode(error.to_string()))?;
        let cached = self.bundle.cached.clone();
        self.controller.bundles.wrote_cached(&self.reconcile.key, cached, &self.context.key, asked);
        Ok(())
    }

    /// Returns true if the reconcile runs for its period. Then an object that two ManagedResources want is written.
    pub(crate) fn is_period(&self) -> bool {
        self.period_due && self.reconcile.because_of(Causes::TIMER)
    }

    /// Reports that another ManagedResource wants the object too (decision 11).
    pub(crate) fn conflicting_owner(&self, object: &str, owner: &NamespacedName) {
        let own = &self.reconcile.key;
        let message = format!("object \"{object}\" is claimed by {own} and by {owner}; the last writer wins");
        if self.is_reported_now(object, "ConflictingOwner", &message) {
            tracing::warn!(object = %object, owner = %owner, "an object has two owners");
        }
    }

    /// Reports that an object was not pruned because it belongs to another ManagedResource now (decision 10).
    pub(crate) fn kept_for_owner(&self, object: &str, owner: &NamespacedName) {
        let own = &self.reconcile.key;
        let message = format!("object \"{object}\" left {own} but belongs to {owner} now and is not deleted");
        if self.is_reported_now(object, "OwnedByOther", &message) {
            tracing::warn!(object = %object, owner = %owner, "an object belongs to another owner");
        }
    }

    /// Reports a conflict as an Event. Returns false if it was reported within the last hour.
    fn is_reported_now(&self, object: &str, reason: &'static str, message: &str) -> bool {
        let is_news = self.controller.is_news(&self.reconcile.key, object, reason);
        if is_news {
            self.controller.recorder.warning(&self.controller.reference(self.mr()), reason, message);
        }
        is_news
    }
}

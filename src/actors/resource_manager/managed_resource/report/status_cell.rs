//! The only path by which the reconcilers of a ManagedResource write its status. Each reconciler replaces its own
//! conditions only. Writes are serialized. A write needs the `resourceVersion` that the deciding reconciler saw, or a
//! version that differs from it by our own status writes alone. Otherwise the reconciler decides again (spec 10 §17.3).

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
};

use cluster::{ApiError, Cached, Context, EventType, object::NamespacedName};
use kit::quote::cut_after;
use tokio::sync::Mutex;

use super::{
    super::{
        known::{CachedManagedResource, ParsedManagedResource},
        shared::ManagedResources,
    },
    announcement::{event_type, is_broken},
    fit::Draft,
};
use crate::api::{
    meta::conditions::{self, Condition},
    resources::{
        condition_names::RESOURCES_HEALTHY,
        managed_resource::{ManagedResource, ManagedResourceStatus, with_status},
    },
};

#[derive(Default)]
pub(crate) struct StatusCell {
    /// Held during a write, so that reconcilers do not overtake each other.
    turn: Mutex<()>,
    /// Versions before and after our own status writes, oldest first. The cache holds the newest.
    lineage: RefCell<Vec<u64>>,
    /// A write was answered with *not found*, and the ManagedResource was not read since.
    doubtful: Cell<bool>,
    /// Size in bytes of the smallest object that was refused for its size, and the text of the first refusal.
    refused: RefCell<Option<(usize, String)>>,
    /// Conditions whose last Event was a Warning.
    warned: RefCell<BTreeSet<String>>,
    /// Writes that may have been stored, oldest first: they ended without an answer, or were cut off.
    unanswered: RefCell<Vec<UnansweredWrite>>,
}

/// A write of changed conditions.
struct UnansweredWrite {
    /// Version of the ManagedResource before the write.
    version: u64,
    changes: Vec<ChangedCondition>,
}

/// A condition before and after a write.
struct ChangedCondition {
    old: Option<Condition>,
    new: Condition,
}

/// The API server accepts no larger request, whatever its database accepts (measured: docs/facts.md §10).
const LARGEST_REQUEST: usize = 3 * 1024 * 1024;

/// Length of `lineage`. A reconciler that decided on an older version decides again.
const LINEAGE: usize = 8;

/// Most writes without an answer that are remembered. Once a write was stored, all that follow it end in a conflict.
const UNANSWERED: usize = 4;

/// Longest message of a condition in a log record, in characters.
const LOGGED: usize = 1024;

impl StatusCell {
    /// Writes the status that `change` makes of the current one, if they differ. Returns the then current snapshot. A
    /// status too large to be stored shrinks. If nothing fits, nothing is written, no error: nothing waits for it
    /// (decision 36). Fails with the request's error, or a conflict if another client wrote since `basis`.
    pub(crate) async fn write(
        &self,
        controller: &ManagedResources,
        context: &Context,
        basis: &ParsedManagedResource,
        change: impl FnOnce(&ManagedResourceStatus) -> ManagedResourceStatus,
    ) -> Result<ParsedManagedResource, ApiError> {
        let _turn = self.turn.lock().await;
        self.announce_stored(controller, &basis.mr.key());
        let present = self.present(controller, basis);
        let mut draft = Draft::new(change(&present.mr.status), &present.mr.status);
        let key = present.mr.key();
        let at = controller.bundles.resource().named(&key);
        let undecodable = |error: &dyn std::fmt::Display| ApiError::Decode(error.to_string());
        loop {
            if present.mr.status == *draft.status() {
                return Ok(present);
            }
            let asked = controller.env.clock.monotonic();
            let raw = present.cached.raw().map_err(|error| undecodable(&error))?;
            let object = with_status(raw, draft.status());
            let size = serde_json::to_vec(&object).map_or(0, |text| text.len());
            if !self.is_too_large(size) {
                // Before the request: the reconcile may be cut off while it waits for the answer.
                self.begins(&present, draft.status());
                match controller.source.replace(context, &at, Some("status"), &object).await {
                    Ok(answer) => {
                        let written = ParsedManagedResource::of(&answer).map_err(|error| undecodable(&error))?;
                        controller.bundles.wrote_cached(&key, written.cached.clone(), &context.key, asked);
                        self.remember(&present, &written);
                        self.unanswered.take();
                        let changes = changes(&present.mr.status.conditions, &written.mr.status.conditions);
                        self.announce(controller, &written.mr, &changes);
                        return Ok(written);
                    }
                    Err(error) if error.is_too_large(size) => {
                        self.unanswered.borrow_mut().pop();
                        self.was_refused(size, &error);
                    }
                    Err(error) => {
                        if !error.outcome_unknown() {
                            self.unanswered.borrow_mut().pop();
                        }
                        self.heard(&error);
                        return Err(error);
                    }
                }
            }
            let refused = self.refused.borrow().as_ref().map(|(_, text)| text.clone()).unwrap_or_default();
            if !draft.shrink(size, &refused) {
                tracing::warn!(bytes = size, error = %refused, "a status is too large to be stored and is not written");
                return Ok(present);
            }
            tracing::info!(bytes = size, error = %refused, "a status is too large to be stored; a part of it is left out");
        }
    }

    /// Remembers a write until its answer is here.
    fn begins(&self, present: &ParsedManagedResource, status: &ManagedResourceStatus) {
        let changes = changes(&present.mr.status.conditions, &status.conditions);
        let mut unanswered = self.unanswered.borrow_mut();
        unanswered.push(UnansweredWrite { version: present.cached.version(), changes });
        let excess = unanswered.len().saturating_sub(UNANSWERED);
        unanswered.drain(..excess);
    }

    /// Announces the conditions of an own write that ended without an answer, if the cache shows that it was stored. A
    /// later reconcile finds these conditions in the status and would announce nothing. After a restart nothing is known
    /// of such a write, and it is not announced: the former process may have announced it.
    pub(crate) fn announce_unanswered(&self, controller: &ManagedResources, key: &NamespacedName) {
        // The answer of a write that is under way may still come.
        if let Ok(_turn) = self.turn.try_lock() {
            self.announce_stored(controller, key);
        }
    }

    fn announce_stored(&self, controller: &ManagedResources, key: &NamespacedName) {
        if self.unanswered.borrow().is_empty() {
            return;
        }
        let known = controller.bundles.store().get(key).and_then(|known| known.parsed().ok());
        let Some(known) = known else { return };
        let version = known.cached.version();
        if self.unanswered.borrow().iter().all(|write| version <= write.version) {
            return; // the cache is as old as the writes
        }
        let conditions = &known.mr.status.conditions;
        let is_stored = |change: &ChangedCondition| {
            conditions::find(conditions, &change.new.kind).is_some_and(|condition| is_same(condition, &change.new))
        };
        let writes = self.unanswered.take();
        let is_of_it = |write: &UnansweredWrite| {
            write.version < version && !write.changes.is_empty() && write.changes.iter().all(is_stored)
        };
        let stored = writes.into_iter().find(is_of_it);
        if let Some(write) = stored {
            self.announce(controller, &known.mr, &write.changes);
        }
    }

    /// Logs changed conditions, and records their Events.
    fn announce(&self, controller: &ManagedResources, mr: &ManagedResource, changes: &[ChangedCondition]) {
        for ChangedCondition { old, new } in changes {
            log(new);
            let mut warned = self.warned.borrow_mut();
            let event = event_type(old.as_ref(), warned.contains(&new.kind), new);
            if event == Some(EventType::Normal) {
                warned.remove(&new.kind);
            } else if is_broken(new) || old.as_ref().is_some_and(is_broken) {
                warned.insert(new.kind.clone());
            }
            if let Some(event) = event {
                let is_health = new.kind == RESOURCES_HEALTHY;
                let recorder = if is_health { &controller.health_recorder } else { &controller.recorder };
                recorder.record(event, &controller.reference(mr), "", &new.reason, &new.message);
            }
        }
    }

    /// Returns true if an object of this size is known to be refused. Such an object is not sent again.
    fn is_too_large(&self, size: usize) -> bool {
        if size > LARGEST_REQUEST && self.refused.borrow().is_none() {
            let text = format!("Request entity too large: limit is {LARGEST_REQUEST}");
            self.refused.replace(Some((size, text)));
        }
        self.refused.borrow().as_ref().is_some_and(|(refused, _)| size >= *refused)
    }

    fn was_refused(&self, size: usize, error: &ApiError) {
        let mut refused = self.refused.borrow_mut();
        // Without the sizes in brackets, which differ each time.
        let text = || error.to_string().split(" (").next().unwrap_or_default().to_owned();
        let (smallest, _) = refused.get_or_insert_with(|| (size, text()));
        *smallest = size.min(*smallest);
    }

    /// Evaluates the error of a write to the ManagedResource: after *not found* the cached object is unconfirmed.
    pub(crate) fn heard(&self, error: &ApiError) {
        if error.is_not_found() {
            self.doubtful.set(true);
        }
    }

    pub(crate) fn is_unconfirmed_now(&self) -> bool {
        self.doubtful.get()
    }

    pub(crate) fn was_found(&self) {
        self.doubtful.set(false);
    }

    /// Returns the newest snapshot that differs from `basis` by our own status writes alone.
    fn present(&self, controller: &ManagedResources, basis: &ParsedManagedResource) -> ParsedManagedResource {
        let lineage = self.lineage.borrow();
        let place = |cached: &CachedManagedResource| lineage.iter().position(|version| *version == cached.version());
        let newest = controller.bundles.store().get(&basis.mr.key());
        let newer = newest.filter(|newest| place(&basis.cached).is_some_and(|basis| place(newest) > Some(basis)));
        newer.and_then(|newer| newer.parsed().ok()).unwrap_or_else(|| basis.clone())
    }

    fn remember(&self, from: &ParsedManagedResource, to: &ParsedManagedResource) {
        let mut lineage = self.lineage.borrow_mut();
        if lineage.last() != Some(&from.cached.version()) {
            *lineage = vec![from.cached.version()];
        }
        lineage.push(to.cached.version());
        let excess = lineage.len().saturating_sub(LINEAGE);
        lineage.drain(..excess);
    }
}

/// The conditions that differ. Other clients may write a type twice; the first counts.
fn changes(before: &[Condition], after: &[Condition]) -> Vec<ChangedCondition> {
    let mut seen = BTreeSet::new();
    let first = after.iter().filter(|new| seen.insert(&new.kind));
    let pairs = first.map(|new| (conditions::find(before, &new.kind), new));
    let changed = pairs.filter(|(old, new)| !old.is_some_and(|old| is_same(old, new)));
    changed.map(|(old, new)| ChangedCondition { old: old.cloned(), new: new.clone() }).collect()
}

fn is_same(one: &Condition, other: &Condition) -> bool {
    one.status == other.status && one.reason == other.reason && one.message == other.message
}

fn log(condition: &Condition) {
    let Condition { kind, reason, message, .. } = condition;
    let (status, message) = (condition.status.as_str(), cut_after(LOGGED, message));
    if is_broken(condition) {
        tracing::error!(condition = %kind, status, reason = %reason, detail = %message, "a ManagedResource is broken");
    } else {
        tracing::info!(condition = %kind, status, reason = %reason, detail = %message, "a condition of a ManagedResource changed");
    }
}

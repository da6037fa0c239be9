//! The end of a maintenance in the status of its Shoot, also after a write that failed (spec 84 C-24, C-25, C-T3).

use cluster::{ApiError, Context, Lock, Subject, Wrote, object};
use jiff::{SignedDuration, Timestamp};
use kit::{hash_of, quote::cut};
use serde_json::{Value, json};

use super::{
    Memory, ShootMaintenance,
    report::{FAILED, PROCESSING, SUCCEEDED},
    run::is_refusal,
};
use crate::actors::controller_manager::fields::text;

/// An API server carries out a request within its time limit of 60 s, or not at all. The rest is for the way to it.
const LATEST_UPDATE: SignedDuration = SignedDuration::from_secs(65);

/// The end of a maintenance that the status of its Shoot does not show yet.
#[derive(Debug)]
pub(super) struct PendingEnd {
    uid: Box<str>,
    /// Hash of the `status.lastMaintenance` that ends.
    record: u64,
    is_changed: bool,
    update: Update,
}

/// Whether the Shoot has the update.
#[derive(Debug, Clone, Copy)]
enum Update {
    Confirmed,
    /// There is no answer yet, or it was lost.
    Unknown {
        /// Hash of the spec that the update writes.
        spec: u64,
        /// The API server does not carry out the update after this time.
        until: Timestamp,
    },
}

/// What became of the end of the last maintenance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastEnd {
    /// No end is pending, or it cannot be written any more.
    Settled,
    /// The status shows it now.
    Written,
    /// The Shoot does not have the update, and may get it until this time.
    Unknown(Timestamp),
}

impl PendingEnd {
    /// Returns the end of a maintenance whose update the API server has confirmed with this answer.
    pub(super) fn confirmed(answer: &Value, is_changed: bool) -> Self {
        Self { uid: object::uid(answer).into(), record: hash_of_record(answer), is_changed, update: Update::Confirmed }
    }

    /// Returns the end of a maintenance whose update is sent now. Returns `None` if the update does not change the spec:
    /// then the Shoot does not tell whether it has the update.
    pub(super) fn unknown(before: &Value, updated: &Value, now: Timestamp) -> Option<Self> {
        let update = Update::Unknown {
            spec: hash_of_spec(updated),
            until: now.checked_add(LATEST_UPDATE).unwrap_or(Timestamp::MAX),
        };
        let changes_spec = hash_of_spec(before) != hash_of_spec(updated);
        changes_spec.then(|| Self {
            uid: object::uid(before).into(),
            record: hash_of_record(before),
            is_changed: true,
            update,
        })
    }

    /// Returns true if the end can still be written: nobody has written another `lastMaintenance`.
    fn is_pending(&self, live: &Value) -> bool {
        object::uid(live) == &*self.uid && hash_of_record(live) == self.record
    }

    fn is_confirmed(&self, live: &Value) -> bool {
        match self.update {
            Update::Confirmed => true,
            Update::Unknown { spec, .. } => hash_of_spec(live) == spec,
        }
    }

    /// Returns the patch that writes the end, if there is something to write (spec 84 C-24, C-25).
    fn patch(&self, live: &Value) -> Option<Value> {
        if !self.is_pending(live) || !self.is_confirmed(live) {
            return None;
        }
        let end = match text(live, "/status/lastMaintenance/state") {
            PROCESSING => json!({ "state": SUCCEEDED }),
            FAILED if !self.is_changed => {
                json!({ "state": SUCCEEDED, "description": "Maintenance succeeded", "failureReason": null })
            }
            _ => return None,
        };
        Some(json!({ "status": { "lastMaintenance": end } }))
    }
}

impl ShootMaintenance {
    /// Writes the end of a maintenance. The patch is bound to the version: another maintenance may have begun.
    pub(super) async fn write_end<'s>(
        &self,
        context: &Context,
        shoot: impl Into<Subject<'s>>,
        end: &PendingEnd,
    ) -> Result<LastEnd, ApiError> {
        let wrote = self.stores.shoots.patch_status(context, shoot, Lock::Version, |live| end.patch(live)).await?;
        Ok(match (wrote, end.update) {
            (Wrote::Unchanged(live), Update::Unknown { until, .. })
                if end.is_pending(&live) && !end.is_confirmed(&live) =>
            {
                LastEnd::Unknown(until)
            }
            (Wrote::Created(_) | Wrote::Updated(_) | Wrote::Altered(_), _) => LastEnd::Written,
            (Wrote::Unchanged(_) | Wrote::Deleting(_) | Wrote::Gone, _) => LastEnd::Settled,
        })
    }

    /// Writes the end of the last maintenance if it is pending, and forgets it if it cannot be written any more: another
    /// maintenance began, the API server refuses the status, or the update did not come in time. Fails with the error of a
    /// request; then the end stays pending.
    pub(super) async fn write_last_end<'s>(
        &self,
        context: &Context,
        shoot: impl Into<Subject<'s>>,
        memory: &mut Memory,
    ) -> Result<LastEnd, ApiError> {
        let Some(end) = &memory.pending_end else { return Ok(LastEnd::Settled) };
        let last = match self.write_end(context, shoot, end).await {
            Ok(LastEnd::Unknown(until)) if !is_soon(until, self.clock.wall()) => LastEnd::Settled,
            Ok(last) => last,
            Err(error) if is_refusal(&error) => {
                tracing::warn!(error = &*cut(&error.to_string()), "The end of the maintenance of the Shoot is refused");
                LastEnd::Settled
            }
            Err(error) => return Err(error),
        };
        if !matches!(last, LastEnd::Unknown(_)) {
            memory.pending_end = None;
        }
        Ok(last)
    }
}

/// Returns true if a time is ahead, and not much further than the clock allowed when it was set.
fn is_soon(time: Timestamp, now: Timestamp) -> bool {
    let left = time.duration_since(now);
    left > SignedDuration::ZERO && left <= LATEST_UPDATE
}

fn hash_of_spec(shoot: &Value) -> u64 {
    hash_of(&shoot["spec"].to_string())
}

fn hash_of_record(shoot: &Value) -> u64 {
    hash_of(&shoot["status"]["lastMaintenance"].to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shoot(version: &str, state: &str) -> Value {
        json!({ "metadata": { "uid": "u" }, "spec": { "v": version }, "status": { "lastMaintenance": { "state": state } } })
    }

    fn end_of(before: &str, updated: &str) -> Option<PendingEnd> {
        PendingEnd::unknown(&shoot(before, PROCESSING), &shoot(updated, PROCESSING), Timestamp::UNIX_EPOCH)
    }

    /// spec 84 C-25, C-T3
    #[test]
    fn end_of_a_maintenance_is_written_once_the_shoot_has_the_update() {
        let end = end_of("1", "2").expect("the spec changes");
        let succeeded = Some(json!({ "status": { "lastMaintenance": { "state": "Succeeded" } } }));
        for (live, expected) in [
            (shoot("2", PROCESSING), succeeded),
            (shoot("1", PROCESSING), None),
            (shoot("2", FAILED), None),
            (shoot("2", SUCCEEDED), None),
            (json!({ "metadata": { "uid": "u" }, "spec": { "v": "2" } }), None),
            (
                json!({ "metadata": { "uid": "other" }, "spec": { "v": "2" }, "status": shoot("2", PROCESSING)["status"] }),
                None,
            ),
        ] {
            assert_eq!(end.patch(&live), expected, "{live}");
        }
        assert!(end_of("1", "1").is_none(), "a Shoot with the same spec does not tell whether it was written");
    }

    /// spec 84 C-24
    #[test]
    fn end_of_a_maintenance_without_changes_ends_an_earlier_failure() {
        let live = shoot("1", FAILED);
        let ends = |is_changed| PendingEnd::confirmed(&live, is_changed).patch(&live).is_some();
        assert_eq!((ends(false), ends(true)), (true, false));
    }
}

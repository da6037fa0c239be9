//! Waits until ManagedResources are in a state: for `wait`, and for `--wait` of `suspend`, `resume` and `reconcile`.
//! [`Goal::judge`] is pure; [`Waiter::look`] reads a ManagedResource once. All are read in turn, with a pause after each
//! round, so that none is found too late because another one is not there yet.

use std::time::Duration;

use cluster::{ApiError, Cluster, Context, object::NamespacedName};
use kit::{Deadline, Priority};
use tokio::time::sleep;

use super::{Screen, connect::is_unreachable, inspect::description::class};
use crate::{
    api::{
        kinds,
        meta::conditions::ConditionStatus,
        resources::{
            condition_names::{MANAGED_RESOURCE_IGNORED, RESOURCES_APPLIED, RESOURCES_HEALTHY},
            keys::{OPERATION, OPERATION_RECONCILE},
            managed_resource::ManagedResource,
        },
    },
    cli::WaitGoal,
};

/// How long commands wait if nobody says how long.
pub(super) const USUAL_LIMIT: Duration = Duration::from_secs(300);
const DELETED: &str = "deleted";
/// What a controller does first. Without a controller of the class, it never happens.
const BEGUN: &str = "has begun";
const NOTICED_SUSPENSION: &str = "has noticed the suspension";
const NOTICED_RESUMPTION: &str = "has noticed that it is resumed";
const OBSERVED: &str = "has observed the current generation";
const PAUSE: Duration = Duration::from_secs(1);
/// Time limit of one read, beside `--request-timeout`.
const READ: Duration = Duration::from_secs(60);

/// The state that is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    /// The controller reports that it ignores it.
    Suspended,
    /// The controller has begun, and the objects are applied; or it is deleted, if it was being deleted.
    Reconciled,
    Applied,
    Healthy,
    Deleted,
}

/// How far a ManagedResource is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Judgement {
    Reached(&'static str),
    /// What is missing.
    Pending(Missing),
    /// It cannot get there: says why.
    Hopeless(&'static str),
}

/// What a goal lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Missing {
    /// No controller has done this yet; the class that it would have to have.
    Controller {
        /// What it has not done: "has begun".
        done: String,
        class: String,
    },
    Other(String),
}

/// Why a wait ended without success.
#[derive(Debug, thiserror::Error)]
pub(super) enum WaitError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error("cannot read it: {0}")]
    Unreadable(String),
    #[error("{0}")]
    Hopeless(&'static str),
    #[error("not {goal} within {limit:?}: {missing}")]
    TooLate { goal: &'static str, limit: Duration, missing: String },
}

/// Waits with one deadline for all requests.
pub(super) struct Waiter<'a> {
    cluster: &'a Cluster,
    goal: Goal,
    limit: Duration,
    deadline: Deadline,
}

/// A ManagedResource that is waited for.
pub(super) struct Wait {
    key: NamespacedName,
    /// Whether it existed once.
    is_known: bool,
    uid: Option<String>,
    was_deleting: bool,
    /// What it lacked when it was read last.
    missing: Option<Missing>,
    /// Why the last read failed.
    failure: Option<ApiError>,
}

impl From<WaitGoal> for Goal {
    fn from(goal: WaitGoal) -> Self {
        match goal {
            WaitGoal::Applied => Self::Applied,
            WaitGoal::Healthy => Self::Healthy,
            WaitGoal::Deleted => Self::Deleted,
        }
    }
}

impl Goal {
    fn word(self) -> &'static str {
        match self {
            Self::Suspended => "reported as ignored",
            Self::Reconciled | Self::Applied => "applied",
            Self::Healthy => "healthy",
            Self::Deleted => "deleted",
        }
    }

    /// Judges a ManagedResource that exists (spec 10 §7, §16, §19.8).
    pub(super) fn judge(self, mr: &ManagedResource) -> Judgement {
        use Judgement::{Hopeless, Pending, Reached};

        let missing = |text: &str| Pending(Missing::Other(text.to_owned()));
        match self {
            Self::Deleted if mr.is_deleting() => missing("it is being deleted"),
            Self::Deleted => missing("nobody has asked for its deletion"),
            Self::Suspended if mr.is_deleting() => Reached("suspended, but its deletion goes on"),
            Self::Suspended if !mr.is_ignored() => Hopeless("it was resumed meanwhile"),
            Self::Suspended if reports_ignored(mr) => Reached("ignored"),
            Self::Suspended => Pending(Missing::of_controller(mr, NOTICED_SUSPENSION)),
            Self::Reconciled if mr.is_deleting() => missing("it is being deleted"),
            Self::Applied | Self::Healthy if mr.is_deleting() => Hopeless("it is being deleted"),
            Self::Reconciled | Self::Applied | Self::Healthy => self.judge_present(mr),
        }
    }

    fn judge_present(self, mr: &ManagedResource) -> Judgement {
        if mr.is_ignored() {
            return Judgement::Hopeless("it is suspended — use resume first");
        }
        if mr.annotation(OPERATION) == Some(OPERATION_RECONCILE) {
            return Judgement::Pending(Missing::of_controller(mr, BEGUN));
        }
        if reports_ignored(mr) {
            return Judgement::Pending(Missing::of_controller(mr, NOTICED_RESUMPTION));
        }
        if !is_true(mr, RESOURCES_APPLIED) {
            return Judgement::Pending(condition(mr, RESOURCES_APPLIED));
        }
        if mr.status.observed_generation != mr.metadata.generation {
            return Judgement::Pending(Missing::of_controller(mr, OBSERVED));
        }
        match self {
            Self::Healthy if !is_true(mr, RESOURCES_HEALTHY) => Judgement::Pending(condition(mr, RESOURCES_HEALTHY)),
            Self::Healthy => Judgement::Reached("healthy"),
            _ => Judgement::Reached("applied"),
        }
    }
}

impl<'a> Waiter<'a> {
    pub(super) fn new(cluster: &'a Cluster, goal: Goal, limit: Duration) -> Self {
        Self { cluster, goal, limit, deadline: Deadline::after(limit) }
    }

    /// Returns the time limit of one request. With a limit of 0, each ManagedResource is read once.
    pub(super) fn request_deadline(&self, most: Duration) -> Deadline {
        if self.limit.is_zero() { Deadline::after(most) } else { Deadline::after(self.deadline.left().min(most)) }
    }

    /// Reads a ManagedResource once, and returns how its wait ended, or `None` if it goes on. Remarks say what it waits for,
    /// when that changes. After the deadline nothing is read.
    pub(super) async fn look(
        &self,
        wait: &mut Wait,
        screen: &mut Screen<'_>,
    ) -> Option<Result<&'static str, WaitError>> {
        if self.deadline.is_over() && !(self.limit.is_zero() && wait.missing.is_none()) {
            if let Some(error) = wait.failure.take() {
                return Some(Err(error.into()));
            }
            let unread = || Missing::Other("there was no time to read it".to_owned());
            return Some(Err(self.too_late(wait.missing.take().unwrap_or_else(unread))));
        }
        let was_answered = wait.failure.take().is_none();
        let missing = match self.read(&wait.key).await {
            Ok(mr) => {
                let is_another = *wait.uid.get_or_insert_with(|| mr.metadata.uid.clone()) != mr.metadata.uid;
                if is_another && (self.goal == Goal::Deleted || wait.was_deleting) {
                    return Some(Ok(DELETED));
                }
                wait.is_known = true;
                wait.was_deleting = mr.is_deleting();
                match self.goal.judge(&mr) {
                    Judgement::Reached(text) => return Some(Ok(text)),
                    Judgement::Hopeless(text) => return Some(Err(WaitError::Hopeless(text))),
                    Judgement::Pending(missing) => missing,
                }
            }
            Err(WaitError::Api(error)) if error.is_not_found() => {
                let is_over = self.goal == Goal::Deleted || self.goal == Goal::Reconciled && wait.was_deleting;
                return Some(match is_over {
                    false => Err(error.into()),
                    true if wait.is_known => Ok(DELETED),
                    true => {
                        let text = "does not exist: it was deleted before, or name or namespace is wrong";
                        screen.remark(&format!("warning: ManagedResource {} {text}", wait.key));
                        Ok("does not exist")
                    }
                });
            }
            // The API server may be back in a moment.
            Err(WaitError::Api(error)) if is_temporary(&error) && !self.deadline.is_over() => {
                let text = format!("cannot read it: {error}");
                wait.failure = Some(error);
                Missing::Other(text)
            }
            Err(error) => match wait.missing.take() {
                // The deadline has cut off the read.
                Some(missing) if was_answered && self.deadline.is_over() => missing,
                Some(_) | None => return Some(Err(error)),
            },
        };
        if self.deadline.is_over() {
            return Some(Err(self.too_late(missing)));
        }
        if wait.missing.as_ref() != Some(&missing) {
            screen.remark(&format!("ManagedResource {}: waiting: {missing}", wait.key));
        }
        wait.missing = Some(missing);
        None
    }

    /// Waits until the next round, at most until the deadline.
    pub(super) async fn pause(&self) {
        sleep(PAUSE.min(self.deadline.left())).await;
    }

    async fn read(&self, key: &NamespacedName) -> Result<ManagedResource, WaitError> {
        let context = Context::new(Priority::High, self.request_deadline(READ), "wait");
        let raw = self.cluster.get(&context, &kinds::MANAGED_RESOURCE.named(key)).await?;
        ManagedResource::from_value(&raw).map_err(|error| WaitError::Unreadable(error.to_string()))
    }

    fn too_late(&self, missing: Missing) -> WaitError {
        let missing = match missing {
            Missing::Controller { .. } => format!("{missing} — does one run?"),
            Missing::Other(text) => text,
        };
        WaitError::TooLate { goal: self.goal.word(), limit: self.limit, missing }
    }
}

impl Wait {
    /// `is_known`: whether the ManagedResource existed when the wait began.
    pub(super) fn new(key: NamespacedName, is_known: bool) -> Self {
        Self { key, is_known, uid: None, was_deleting: false, missing: None, failure: None }
    }

    /// Whether the server answered the last read.
    pub(super) fn was_answered(&self) -> bool {
        self.failure.is_none()
    }
}

impl Missing {
    fn of_controller(mr: &ManagedResource, done: &str) -> Self {
        Self::Controller { done: done.to_owned(), class: class(mr).to_owned() }
    }
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Controller { done, class } => write!(f, "no controller with the class {class:?} {done} yet"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

fn is_temporary(error: &ApiError) -> bool {
    let is_overloaded = error.code().is_some_and(|code| code == 429 || code >= 500);
    is_overloaded || is_unreachable(error) && !error.is_unauthorized()
}

fn is_true(mr: &ManagedResource, kind: &str) -> bool {
    mr.condition(kind).is_some_and(|condition| condition.status == ConditionStatus::True)
}

/// Whether the conditions say that the ManagedResource is ignored. They say so until the first reconcile after `resume`.
fn reports_ignored(mr: &ManagedResource) -> bool {
    mr.condition(RESOURCES_APPLIED).is_some_and(|condition| condition.reason == MANAGED_RESOURCE_IGNORED)
}

fn condition(mr: &ManagedResource, kind: &str) -> Missing {
    match mr.condition(kind) {
        None => Missing::of_controller(mr, &format!("has reported {kind}")),
        Some(it) => Missing::Other(format!("{kind} is {}, {}: {}", it.status, it.reason, it.message)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const IGNORE: &str = "resources.gardener.cloud/ignore";

    fn object(applied: &str, reason: &str, change: impl Fn(&mut Value)) -> ManagedResource {
        let condition = |kind: &str, status: &str, reason: &str| json!({"type": kind, "status": status, "reason": reason, "message": "m"});
        let mut object = json!({
            "metadata": {"namespace": "ns", "name": "mr", "generation": 2, "annotations": {}},
            "spec": {"secretRefs": []},
            "status": {"observedGeneration": 2,
                "conditions": [condition(RESOURCES_APPLIED, applied, reason), condition(RESOURCES_HEALTHY, "False", "R")]},
        });
        change(&mut object);
        ManagedResource::from_value(&object).unwrap()
    }

    /// spec 10 §7, §16, §19.8
    #[test]
    fn wait_judges_goals_by_annotations_and_conditions() {
        use Goal::{Applied, Deleted, Healthy, Reconciled, Suspended};

        let good = |_: &mut Value| {};
        let ignored = |object: &mut Value| object["metadata"]["annotations"] = json!({IGNORE: "true"});
        let asked = |object: &mut Value| object["metadata"]["annotations"] = json!({OPERATION: "reconcile"});
        let deleting = |object: &mut Value| object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        let old = |object: &mut Value| object["status"]["observedGeneration"] = 1.into();
        let bare = |object: &mut Value| {
            object["status"] = json!({});
            object["spec"]["class"] = "seed".into();
        };
        let healthy = |object: &mut Value| object["status"]["conditions"][1]["status"] = "True".into();
        let applied = || object("True", "ApplySucceeded", good);
        let resumed = || object("True", MANAGED_RESOURCE_IGNORED, good);
        let reached = |text| Judgement::Reached(text);
        let table = [
            (Applied, applied(), reached("applied")),
            (Reconciled, applied(), reached("applied")),
            (Healthy, object("True", "R", healthy), reached("healthy")),
            (Suspended, object("True", MANAGED_RESOURCE_IGNORED, ignored), reached("ignored")),
            (Suspended, object("True", "R", deleting), reached("suspended, but its deletion goes on")),
            (Suspended, applied(), Judgement::Hopeless("it was resumed meanwhile")),
            (
                Applied,
                object("True", MANAGED_RESOURCE_IGNORED, ignored),
                Judgement::Hopeless("it is suspended — use resume first"),
            ),
            (Reconciled, object("True", "R", ignored), Judgement::Hopeless("it is suspended — use resume first")),
            (Healthy, object("True", "R", deleting), Judgement::Hopeless("it is being deleted")),
        ];
        for (goal, mr, expected) in table {
            assert_eq!(goal.judge(&mr), expected, "{goal:?}");
        }

        let table = [
            (Healthy, applied(), "ResourcesHealthy is False, R: m"),
            (Applied, object("False", "ApplyFailed", good), "ResourcesApplied is False, ApplyFailed: m"),
            (
                Applied,
                object("True", "R", old),
                "no controller with the class \"resources\" has observed the current generation yet",
            ),
            (Applied, resumed(), "no controller with the class \"resources\" has noticed that it is resumed yet"),
            (Reconciled, object("True", "R", asked), "no controller with the class \"resources\" has begun yet"),
            (Reconciled, object("True", "R", deleting), "it is being deleted"),
            (
                Suspended,
                object("True", "R", ignored),
                "no controller with the class \"resources\" has noticed the suspension yet",
            ),
            (
                Applied,
                object("True", "R", bare),
                "no controller with the class \"seed\" has reported ResourcesApplied yet",
            ),
            (Deleted, object("True", "R", deleting), "it is being deleted"),
            (Deleted, applied(), "nobody has asked for its deletion"),
        ];
        for (goal, mr, expected) in table {
            match goal.judge(&mr) {
                Judgement::Pending(missing) => assert_eq!(missing.to_string(), expected, "{goal:?}"),
                other => panic!("{goal:?}: {other:?}"),
            }
        }
    }
}

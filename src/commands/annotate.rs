//! `suspend`, `resume` and `reconcile`: set or remove an annotation of ManagedResources (spec 10 §5.2, §7); and `wait`,
//! which only waits.

use std::time::Duration;

use cluster::{ApiError, Cluster, Context, object::NamespacedName};
use kit::{Deadline, Priority};
use serde_json::{Value, json};

use super::{
    DIFFERENT, Said, Screen,
    connect::is_unreachable,
    output::foreign,
    report::ReportList,
    screen::Content,
    selection::Selection,
    waiting::{Goal, Wait, WaitError, Waiter},
};
use crate::{
    api::{
        kinds,
        resources::{
            keys::{IGNORE, OPERATION, OPERATION_RECONCILE},
            managed_resource::ManagedResource,
        },
    },
    cli::ReportFormat,
    jsonpath::TooMuch,
};

const TIME: Duration = Duration::from_secs(300);
/// A change gives up after so many changes by others between its read and its write.
const ATTEMPTS: usize = 5;

/// What is asked of the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    Suspend,
    Resume,
    Reconcile,
}

/// What is done with each ManagedResource, in this order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Steps {
    pub(super) request: Option<Request>,
    pub(super) wait: Option<(Goal, Duration)>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum AnnotateError {
    #[error("cannot read {what}: {source}")]
    Read { what: String, source: ApiError },
    #[error("ManagedResource {key}: {source}")]
    Lost { key: NamespacedName, source: ApiError },
    #[error(transparent)]
    Report(#[from] TooMuch),
}

/// Why a ManagedResource was not changed.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error("cannot read it: {0}")]
    Unreadable(String),
    #[error("it is suspended — use resume first")]
    Suspended,
    #[error("it has the operation {0:?} already")]
    Operation(String),
    #[error("others changed it {ATTEMPTS} times meanwhile — try again")]
    Contended,
}

/// What is done about one ManagedResource.
enum Decision {
    /// A patch of its annotations, and what is said about it.
    Patch(Value, &'static str),
    Nothing(&'static str),
}

struct Outcome {
    key: NamespacedName,
    result: Result<&'static str, String>,
}

impl Request {
    /// Returns the state in which the controller has done what is asked.
    pub(super) fn goal(self) -> Goal {
        match self {
            Self::Suspend => Goal::Suspended,
            Self::Resume | Self::Reconcile => Goal::Reconciled,
        }
    }
}

/// Changes the ManagedResources one after the other, then waits. Prints each result at once. The exit code is 1 if one of
/// them failed. Fails if the cluster cannot be reached for the first of them, or does not serve it.
pub(super) async fn annotate(
    cluster: &Cluster,
    selection: Selection<'_>,
    steps: Steps,
    format: Option<&ReportFormat>,
    screen: &mut Screen<'_>,
) -> Result<Said, AnnotateError> {
    let mut said = Said::default();
    let waiter = || steps.wait.map(|(goal, limit)| Waiter::new(cluster, goal, limit));
    // Without a request, the limit is one for all that the command does.
    let waits_only = waiter().filter(|_| steps.request.is_none());
    let deadline = waits_only.as_ref().map_or(Deadline::after(TIME), |waiter| waiter.request_deadline(TIME));
    let listing = Context::new(Priority::High, deadline, "annotate");
    let keys = selection.keys(cluster, listing).await.map_err(|source| {
        let what = format!("the ManagedResources{}", selection.location().replacen(" in ", " of ", 1));
        AnnotateError::Read { what, source }
    })?;
    if keys.is_empty() && !steps.is_done_without_any() {
        said.remarks.push(format!("error: no ManagedResources found{}", selection.location()));
        said.code = DIFFERENT;
    }
    let mut outcomes = Vec::new();
    for key in keys {
        let result = match steps.request {
            None => Ok(""),
            Some(request) => match change(cluster, &key, request).await {
                Err(Refusal::Api(source)) if outcomes.is_empty() && is_lost(&source) => {
                    return Err(AnnotateError::Lost { key, source });
                }
                result => result.map_err(|error| foreign(&error.to_string())),
            },
        };
        let outcome = Outcome { key, result };
        if steps.request.is_some() {
            said.tell(&outcome, format, screen);
        }
        outcomes.push(outcome);
    }
    if let Some(waiter) = waits_only.or_else(waiter) {
        let is_known = steps.request.is_some() || selection.named().is_empty();
        let was_reached = steps.request.is_some();
        let tell = |outcome: &Outcome, screen: &mut Screen<'_>| said.tell(outcome, format, screen);
        wait(&waiter, &mut outcomes, (is_known, was_reached), tell, screen).await?;
    }
    if let Some(format) = format {
        let mut list = ReportList::new(format);
        for outcome in &outcomes {
            screen.say(&list.next(outcome.json())?, Content::Data);
        }
        screen.say(&list.end()?, Content::Data);
    }
    Ok(said)
}

/// Waits for those without an error, and tells each result at once. Fails if the cluster cannot be reached at all.
async fn wait(
    waiter: &Waiter<'_>,
    outcomes: &mut [Outcome],
    (is_known, mut was_reached): (bool, bool),
    mut tell: impl FnMut(&Outcome, &mut Screen<'_>),
    screen: &mut Screen<'_>,
) -> Result<(), AnnotateError> {
    let started = outcomes.iter_mut().filter(|outcome| outcome.result.is_ok());
    let mut waits: Vec<_> = started.map(|outcome| (Wait::new(outcome.key.clone(), is_known), outcome)).collect();
    while !waits.is_empty() {
        let mut left = Vec::new();
        for (mut wait, outcome) in waits {
            match waiter.look(&mut wait, screen).await {
                None => {
                    was_reached |= wait.was_answered();
                    left.push((wait, outcome));
                }
                Some(Err(WaitError::Api(source))) if !was_reached && is_lost(&source) => {
                    return Err(AnnotateError::Lost { key: outcome.key.clone(), source });
                }
                Some(result) => {
                    outcome.result = result.map_err(|error| foreign(&error.to_string()));
                    tell(outcome, screen);
                    was_reached = true;
                }
            }
        }
        waits = left;
        if !waits.is_empty() {
            waiter.pause().await;
        }
    }
    Ok(())
}

fn context() -> Context {
    Context::new(Priority::High, Deadline::after(TIME), "annotate")
}

/// Decides on what it reads, and writes only if that is still the present state: another operation that was set
/// meanwhile is not overwritten.
async fn change(cluster: &Cluster, key: &NamespacedName, request: Request) -> Result<&'static str, Refusal> {
    let at = kinds::MANAGED_RESOURCE.named(key);
    for _ in 0..ATTEMPTS {
        let raw = cluster.get(&context(), &at).await?;
        let mr = ManagedResource::from_value(&raw).map_err(|error| Refusal::Unreadable(error.to_string()))?;
        let (annotations, text) = match decide(&mr, request)? {
            Decision::Nothing(text) => return Ok(text),
            Decision::Patch(annotations, text) => (annotations, text),
        };
        let version = mr.metadata.resource_version.as_str();
        let patch = json!({"metadata": {"resourceVersion": version, "annotations": annotations}});
        match cluster.metadata_only().merge_patch(&context(), &at, None, &patch).await {
            Ok(_) => return Ok(text),
            Err(error) if error.is_conflict() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Refusal::Contended)
}

/// Whether further requests would fail too.
fn is_lost(error: &ApiError) -> bool {
    is_unreachable(error) || error.is_not_served()
}

fn decide(mr: &ManagedResource, request: Request) -> Result<Decision, Refusal> {
    let has_ignore = mr.annotation(IGNORE).is_some();
    Ok(match (request, mr.annotation(OPERATION)) {
        (Request::Suspend, _) if mr.is_ignored() => Decision::Nothing("suspended already"),
        (Request::Suspend, _) => {
            let text = if mr.is_deleting() { "suspended, but its deletion goes on" } else { "suspended" };
            Decision::Patch(json!({IGNORE: "true"}), text)
        }
        (Request::Resume, _) if !has_ignore => Decision::Nothing("not suspended"),
        (Request::Resume, _) => Decision::Patch(json!({IGNORE: null}), "resumed"),
        (Request::Reconcile, _) if mr.is_ignored() && !mr.is_deleting() => return Err(Refusal::Suspended),
        (Request::Reconcile, Some(OPERATION_RECONCILE)) => Decision::Nothing("reconcile was requested already"),
        // The controller does nothing while this annotation is set, and others are part of a migration.
        (Request::Reconcile, Some(operation)) if !operation.is_empty() => {
            return Err(Refusal::Operation(operation.to_owned()));
        }
        (Request::Reconcile, _) => Decision::Patch(json!({OPERATION: OPERATION_RECONCILE}), "reconcile requested"),
    })
}

impl Steps {
    /// Whether it is right that there are no ManagedResources.
    fn is_done_without_any(self) -> bool {
        self.request.is_none() && self.wait.is_some_and(|(goal, _)| goal == Goal::Deleted)
    }
}

impl Outcome {
    fn json(&self) -> Value {
        json!({
            "namespace": self.key.namespace, "name": self.key.name,
            "result": self.result.as_ref().ok(), "error": self.result.as_ref().err(),
        })
    }
}

impl Said {
    fn tell(&mut self, outcome: &Outcome, format: Option<&ReportFormat>, screen: &mut Screen<'_>) {
        match &outcome.result {
            Ok(_) if format.is_some() => {}
            Ok(text) => screen.say(&format!("ManagedResource {}: {text}\n", outcome.key), Content::Data),
            Err(error) => {
                screen.remark(&format!("error: ManagedResource {}: {error}", outcome.key));
                self.code = DIFFERENT;
            }
        }
    }
}

//! `suspend`, `resume` and `reconcile`: set or remove an annotation of ManagedResources (spec 10 §5.2, §7).

use std::time::Duration;

use cluster::{
    ApiError, Cluster, Context, ListQuery,
    object::{self, NamespacedName},
};
use kit::{Deadline, Priority};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{DIFFERENT, Said, connect::is_unreachable};
use crate::{
    api::{
        kinds,
        meta::conditions::ConditionStatus,
        resources::{
            condition_names::RESOURCES_APPLIED,
            keys::{IGNORE, OPERATION, OPERATION_RECONCILE},
            managed_resource::ManagedResource,
        },
    },
    cli::SelectionOptions,
};

const TIME: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_secs(1);

/// What is asked of the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    Suspend,
    Resume,
    /// Wait so long until it is done, or not at all.
    Reconcile(Option<Duration>),
}

#[derive(Debug, thiserror::Error)]
pub(super) enum AnnotateError {
    #[error("cannot read {what}: {source}")]
    Read { what: String, source: ApiError },
    #[error("ManagedResource {key}: {source}")]
    Lost { key: NamespacedName, source: ApiError },
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
    #[error("no controller has begun within {0:?} — does one with the class {1:?} run?")]
    NotBegun(Duration, String),
    #[error("not applied within {0:?}: {1}")]
    NotApplied(Duration, String),
}

/// What is done about one ManagedResource.
enum Decision {
    Patch(Value, String),
    Nothing(String),
}

struct Annotator<'a> {
    cluster: &'a Cluster,
    namespace: &'a str,
}

/// Changes the ManagedResources one after the other, then waits. The exit code is 1 if one of them was not changed. Fails
/// if the cluster cannot be reached for the first of them, or does not serve it.
pub(super) async fn annotate(
    cluster: &Cluster,
    default_namespace: &str,
    options: &SelectionOptions,
    request: Request,
) -> Result<Said, AnnotateError> {
    let namespace = options.namespace.as_deref().unwrap_or(default_namespace);
    let annotator = Annotator { cluster, namespace };
    let keys = match &options.selector {
        Some(selector) => annotator.selected(selector).await?,
        None => options.names.iter().map(|name| annotator.key(name)).collect(),
    };
    let mut said = Said::default();
    if keys.is_empty() {
        said.remarks.push(format!("error: no ManagedResources found in namespace {namespace}"));
        said.code = DIFFERENT;
    }
    let mut changed = Vec::new();
    for key in keys {
        match annotator.change(&key, request).await {
            Ok(text) => {
                said.out.push_str(&format!("ManagedResource {key}: {text}\n"));
                changed.push(key);
            }
            Err(Refusal::Api(source)) if said == Said::default() && is_lost(&source) => {
                return Err(AnnotateError::Lost { key, source });
            }
            Err(error) => said.fail(&key, &error),
        }
    }
    if let Request::Reconcile(Some(limit)) = request {
        let deadline = Deadline::after(limit);
        for key in changed {
            match annotator.wait(&key, deadline, limit).await {
                Ok(text) => said.out.push_str(&format!("ManagedResource {key}: {text}\n")),
                Err(error) => said.fail(&key, &error),
            }
        }
    }
    Ok(said)
}

impl Annotator<'_> {
    /// Returns namespace and name of `[namespace/]name`. `--namespace` counts if the name has no namespace.
    fn key(&self, name: &str) -> NamespacedName {
        match name.split_once('/') {
            Some((namespace, name)) => NamespacedName::new(namespace, name),
            None => NamespacedName::new(self.namespace, name),
        }
    }

    fn context(&self) -> Context {
        Context::new(Priority::High, Deadline::after(TIME), "annotate")
    }

    async fn selected(&self, selector: &str) -> Result<Vec<NamespacedName>, AnnotateError> {
        let query = ListQuery { metadata_only: true, ..ListQuery::labelled(selector) };
        let mut pages =
            self.cluster.pages(self.context(), kinds::MANAGED_RESOURCE, Some(self.namespace.to_owned()), query);
        let mut keys = Vec::new();
        while let Some(page) = pages.next().await {
            let what = format!("the ManagedResources of namespace {}", self.namespace);
            let page = page.map_err(|source| AnnotateError::Read { what, source })?;
            keys.extend(page.items.iter().map(|item| NamespacedName::new(self.namespace, object::name(item))));
        }
        Ok(keys)
    }

    async fn read(&self, key: &NamespacedName) -> Result<ManagedResource, Refusal> {
        let raw = self.cluster.get(&self.context(), &kinds::MANAGED_RESOURCE.named(key)).await?;
        ManagedResource::from_value(&raw).map_err(|error| Refusal::Unreadable(error.to_string()))
    }

    async fn change(&self, key: &NamespacedName, request: Request) -> Result<String, Refusal> {
        match decide(&self.read(key).await?, request)? {
            Decision::Nothing(text) => Ok(text),
            Decision::Patch(annotations, text) => {
                let patch = json!({"metadata": {"annotations": annotations}});
                let at = kinds::MANAGED_RESOURCE.named(key);
                self.cluster.merge_patch(&self.context(), &at, None, &patch).await?;
                Ok(text)
            }
        }
    }

    /// Waits until the controller has begun, and the objects are applied, or the deletion is over.
    async fn wait(&self, key: &NamespacedName, deadline: Deadline, limit: Duration) -> Result<&'static str, Refusal> {
        let mut was_deleting = false;
        loop {
            let mr = match self.read(key).await {
                Err(Refusal::Api(error)) if was_deleting && error.is_not_found() => return Ok("deleted"),
                // The API server may be back in a moment.
                Err(Refusal::Api(error)) if is_unreachable(&error) && !deadline.is_over() => {
                    sleep(PAUSE).await;
                    continue;
                }
                result => result?,
            };
            was_deleting = mr.is_deleting();
            let has_begun = mr.annotation(OPERATION) != Some(OPERATION_RECONCILE);
            if has_begun && is_applied(&mr) {
                return Ok("applied");
            }
            if deadline.is_over() {
                return Err(match has_begun {
                    true => Refusal::NotApplied(limit, applied_text(&mr)),
                    false => Refusal::NotBegun(limit, super::inspect::description::class(&mr).to_owned()),
                });
            }
            sleep(PAUSE).await;
        }
    }
}

/// Whether further requests would fail too.
fn is_lost(error: &ApiError) -> bool {
    is_unreachable(error) || error.is_not_served()
}

fn decide(mr: &ManagedResource, request: Request) -> Result<Decision, Refusal> {
    let has_ignore = mr.annotation(IGNORE).is_some();
    Ok(match (request, mr.annotation(OPERATION)) {
        (Request::Suspend, _) if mr.is_ignored() => Decision::Nothing("suspended already".to_owned()),
        (Request::Suspend, _) => {
            let text = if mr.is_deleting() { "suspended, but its deletion goes on" } else { "suspended" };
            Decision::Patch(json!({IGNORE: "true"}), text.to_owned())
        }
        (Request::Resume, _) if !has_ignore => Decision::Nothing("not suspended".to_owned()),
        (Request::Resume, _) => Decision::Patch(json!({IGNORE: null}), "resumed".to_owned()),
        (Request::Reconcile(_), _) if mr.is_ignored() && !mr.is_deleting() => return Err(Refusal::Suspended),
        (Request::Reconcile(_), Some(OPERATION_RECONCILE)) => {
            Decision::Nothing("reconcile was requested already".to_owned())
        }
        // The controller does nothing while this annotation is set, and others are part of a migration.
        (Request::Reconcile(_), Some(operation)) if !operation.is_empty() => {
            return Err(Refusal::Operation(operation.to_owned()));
        }
        (Request::Reconcile(_), _) => {
            Decision::Patch(json!({OPERATION: OPERATION_RECONCILE}), "reconcile requested".to_owned())
        }
    })
}

fn is_applied(mr: &ManagedResource) -> bool {
    let is_true = mr.condition(RESOURCES_APPLIED).is_some_and(|it| it.status == ConditionStatus::True);
    is_true && mr.status.observed_generation == mr.metadata.generation
}

fn applied_text(mr: &ManagedResource) -> String {
    match mr.condition(RESOURCES_APPLIED) {
        None => format!("{RESOURCES_APPLIED} has not been reported yet"),
        Some(it) if it.status == ConditionStatus::True => "the current generation is not observed yet".to_owned(),
        Some(it) => format!("{RESOURCES_APPLIED} is {}, {}: {}", it.status, it.reason, it.message),
    }
}

impl Said {
    fn fail(&mut self, key: &NamespacedName, error: &Refusal) {
        self.remarks.push(format!("error: ManagedResource {key}: {error}"));
        self.code = DIFFERENT;
    }
}

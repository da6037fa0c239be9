//! DELETE: preconditions, finalizers, propagation, answers (facts §6).

use std::sync::Arc;

use jiff::SignedDuration;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    body,
    kinds::{Generation, ServedKind},
    list::{Selection, list_body},
    render::{self, Form},
    request::Request,
    state::{Answer, ApiState, single_form, text},
    status::{self, Failure},
    storage::{Key, Object},
};

/// The garbage collector removes it when the dependents are gone.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
/// The garbage collector removes it when the dependents are released.
pub(super) const ORPHAN: &str = "orphan";
/// The API server removes it when the objects of a definition are gone.
pub(super) const DEFINITION_CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// The body of a DELETE; unknown fields are ignored.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DeleteOptions {
    preconditions: Option<Preconditions>,
    propagation_policy: Option<String>,
    orphan_dependents: Option<bool>,
    grace_period_seconds: Option<i64>,
    dry_run: Option<Vec<String>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Propagation {
    Background,
    Foreground,
    Orphan,
    Unsaid,
}

pub(super) enum Deleted {
    Gone(Arc<Object>),
    /// The object is gone, but the answer shows it as terminating.
    Dying(Value),
    Held(Value),
}

impl DeleteOptions {
    fn of(request: &Request) -> Result<Self, Failure> {
        if !request.body.is_empty() {
            return serde_json::from_slice(&request.body)
                .map_err(|error| Failure::bad_request(&format!("error decoding the DeleteOptions: {error}")));
        }
        let query = &request.query;
        Ok(Self {
            preconditions: None,
            propagation_policy: query.get("propagationPolicy").map(str::to_owned),
            orphan_dependents: query.get("orphanDependents").map(|_| query.truthy("orphanDependents")),
            grace_period_seconds: query.get("gracePeriodSeconds").and_then(|text| text.parse().ok()),
            dry_run: None,
        })
    }

    pub(super) fn background() -> Self {
        Self { propagation_policy: Some("Background".into()), ..Self::default() }
    }

    pub(super) fn foreground() -> Self {
        Self { propagation_policy: Some("Foreground".into()), ..Self::default() }
    }

    pub(super) fn unsaid() -> Self {
        Self::default()
    }

    fn propagation(&self) -> Result<Propagation, Failure> {
        match (self.propagation_policy.as_deref(), self.orphan_dependents) {
            (Some("Background"), _) | (None, Some(false)) => Ok(Propagation::Background),
            (Some("Foreground"), _) => Ok(Propagation::Foreground),
            (Some("Orphan"), _) | (None, Some(true)) => Ok(Propagation::Orphan),
            (None, None) => Ok(Propagation::Unsaid),
            (Some(other), _) => Err(Failure::unknown_propagation_policy(other)),
        }
    }
}

impl ApiState {
    pub(super) fn delete(&mut self, kind: &Arc<ServedKind>, request: &Request) -> Result<Answer, Failure> {
        let form = single_form(&request.info.accept, self.clock.now())?;
        let options = DeleteOptions::of(request)?;
        let dry_run = request.is_dry_run() || options.dry_run.as_ref().is_some_and(|list| !list.is_empty());
        let key = self.key_of(kind, request);
        let (deleted, warnings) = self.remove(kind, &key, &options, dry_run)?;
        let answer = match deleted {
            Deleted::Held(value) | Deleted::Dying(value) => self.answer_value(kind, 200, &value, form),
            Deleted::Gone(object) if kind.answers_delete_with_object => self.answer_object(kind, 200, &object, form),
            Deleted::Gone(object) => {
                let uid = object.value["metadata"]["uid"].as_str().unwrap_or_default();
                Ok(Answer::json(200, status::deleted(kind, &key.name, uid)))
            }
        };
        answer.map(|answer| answer.with_warnings(&warnings))
    }

    pub(super) fn delete_collection(&mut self, kind: &Arc<ServedKind>, request: &Request) -> Result<Answer, Failure> {
        let options = DeleteOptions::of(request)?;
        let selection = Selection::of(kind, request)?;
        let scope = self.scope_of(kind, request);
        let mut items = Vec::new();
        for (index, (key, object)) in self.selected(&scope, &selection).into_iter().enumerate() {
            if index > 0 {
                items.push(b',');
            }
            if kind.custom {
                render::object(&mut items, &object, &kind.api_version(), &kind.kind, Form::Full);
            } else {
                render::untyped(&mut items, &object);
            }
            self.remove(kind, &key, &options, request.is_dry_run())?;
        }
        let metadata = json!({"resourceVersion": self.storage.revision().to_string()});
        Ok(Answer::json(200, list_body(kind, Form::Full, &metadata, &items)))
    }

    /// Deletes an object or marks it as being deleted. Returns the outcome and warnings for the caller.
    pub(super) fn remove(
        &mut self,
        kind: &ServedKind,
        key: &Key,
        options: &DeleteOptions,
        dry_run: bool,
    ) -> Result<(Deleted, Vec<String>), Failure> {
        let is_namespace = kind.group.is_empty() && kind.plural == "namespaces";
        if is_namespace && IMMORTAL.contains(&&*key.name) {
            return Err(Failure::forbidden(kind, &key.name, "this namespace may not be deleted"));
        }
        let propagation = options.propagation()?;
        let live = self.storage.get(key).cloned().ok_or_else(|| Failure::not_found(kind, &key.name))?;
        check_preconditions(kind, &live.value, options.preconditions.as_ref())?;

        let mut value = super::update::in_version(kind, &live.value)?.into_owned();
        let mut warnings = Vec::new();
        settle_finalizers(kind, &mut value, propagation, &mut warnings);
        let grace = grace_period(kind, &value, options.grace_period_seconds);
        mark(kind, &mut value, self.clock.now(), grace);
        if is_namespace {
            value["status"]["phase"] = "Terminating".into();
        }
        if super::update::is_finished(&value) {
            if !dry_run {
                self.erase(key);
            }
            let is_pod = kind.group.is_empty() && kind.plural == "pods";
            let deleted = if is_pod { Deleted::Dying(value) } else { Deleted::Gone(live) };
            return Ok((deleted, warnings));
        }
        let unchanged = value == *super::update::in_version(kind, &live.value)?;
        if dry_run || unchanged {
            return Ok((Deleted::Held(value), warnings));
        }
        let object = self.store(key.clone(), value);
        Ok((Deleted::Held(object.value.clone()), warnings))
    }
}

/// Checks the uid, then the version, each only if it is given.
fn check_preconditions(kind: &ServedKind, live: &Value, wanted: Option<&Preconditions>) -> Result<(), Failure> {
    let Some(wanted) = wanted else { return Ok(()) };
    let name = live["metadata"]["name"].as_str().unwrap_or_default();
    let text = |field: &str| live["metadata"][field].as_str().unwrap_or_default();
    let (uid, version) = (text("uid"), text("resourceVersion"));
    match (&wanted.uid, &wanted.resource_version) {
        (Some(wanted), _) if wanted != uid => Err(Failure::uid_precondition(kind, name, wanted, uid)),
        (_, Some(wanted)) if wanted != version => Err(Failure::version_precondition(kind, name, wanted, version)),
        _ => Ok(()),
    }
}

fn settle_finalizers(kind: &ServedKind, value: &mut Value, propagation: Propagation, warnings: &mut Vec<String>) {
    let mut finalizers: Vec<String> = value["metadata"]["finalizers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(Into::into)
        .collect();
    let is_deleting = value["metadata"].get("deletionTimestamp").is_some();
    let orphans_by_default =
        matches!((kind.group.as_str(), kind.plural.as_str()), ("batch", "jobs") | ("", "replicationcontrollers"));
    let held_by_dependents = finalizers.iter().any(|finalizer| finalizer == FOREGROUND || finalizer == ORPHAN);
    let wanted = match propagation {
        Propagation::Foreground => Some(FOREGROUND),
        Propagation::Orphan => Some(ORPHAN),
        Propagation::Background => None,
        Propagation::Unsaid if is_deleting || held_by_dependents => return add_cleanup(kind, value, finalizers),
        Propagation::Unsaid if orphans_by_default => {
            if kind.plural == "jobs" {
                warnings.push(
                    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to \
                     remove them or set propagationPolicy=Orphan to suppress this warning"
                        .into(),
                );
            }
            Some(ORPHAN)
        }
        Propagation::Unsaid => None,
    };
    finalizers
        .retain(|finalizer| (finalizer != FOREGROUND && finalizer != ORPHAN) || Some(finalizer.as_str()) == wanted);
    if let Some(wanted) = wanted
        && !finalizers.iter().any(|finalizer| finalizer == wanted)
    {
        finalizers.push(wanted.into());
    }
    add_cleanup(kind, value, finalizers);
}

fn add_cleanup(kind: &ServedKind, value: &mut Value, mut finalizers: Vec<String>) {
    let is_definition = kind.group == "apiextensions.k8s.io" && kind.plural == "customresourcedefinitions";
    let is_deleting = value["metadata"].get("deletionTimestamp").is_some();
    if is_definition && !is_deleting && !finalizers.iter().any(|finalizer| finalizer == DEFINITION_CLEANUP) {
        finalizers.push(DEFINITION_CLEANUP.into());
    }
    let metadata = body::metadata(value);
    if finalizers.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".into(), finalizers.into());
    }
}

/// Only pods on a node get a grace period.
fn grace_period(kind: &ServedKind, value: &Value, asked: Option<i64>) -> i64 {
    let is_pod = kind.group.is_empty() && kind.plural == "pods";
    let is_placed = value["spec"]["nodeName"].as_str().is_some_and(|name| !name.is_empty());
    let is_over = matches!(value["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if !is_pod || !is_placed || is_over {
        return 0;
    }
    asked.or(value["spec"]["terminationGracePeriodSeconds"].as_i64()).unwrap_or(30).max(0)
}

/// Sets the deletion time. A second deletion can only shorten the grace period.
fn mark(kind: &ServedKind, value: &mut Value, now: jiff::Timestamp, grace: i64) {
    let is_namespace = kind.group.is_empty() && kind.plural == "namespaces";
    let metadata = body::metadata(value);
    if metadata.contains_key("deletionTimestamp") {
        let current = metadata.get("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or_default();
        if grace >= current {
            return;
        }
    } else if kind.generation != Generation::None {
        let generation = metadata.get("generation").and_then(Value::as_i64).unwrap_or_default();
        metadata.insert("generation".into(), (generation + 1).into());
    }
    metadata.insert("deletionTimestamp".into(), text(now + SignedDuration::from_secs(grace)).into());
    if !is_namespace {
        metadata.insert("deletionGracePeriodSeconds".into(), grace.into());
    }
}

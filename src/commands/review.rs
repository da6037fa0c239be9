//! `webhook review`: runs a webhook on reviews, without a cluster.

use bytes::Bytes;
use cluster::{
    Cause,
    object::{self, GroupVersionKind},
};
use serde_json::{Value, json};

use super::{
    CommandError, DIFFERENT, FAILED, OK, Said,
    input::{self, InputDocument, InputLocation, Source},
};
use crate::{
    api::config::resource_manager::{self as config, Draft, Webhooks},
    producer::{decode::LabelWarning, yaml},
    webhooks::{
        endpoint::{Account, Endpoint as _, Mutating, Validating},
        exchange::Received,
        knowledge::Manifests,
        mutating::Request,
        registry::{self, WebhookEntry},
        review::{self, Body, Judged, Review, ReviewVerdict},
        view::Lookup,
    },
};

pub(super) struct Input<'a> {
    pub(super) path: &'a str,
    pub(super) reviews: &'a [Source],
    pub(super) config: Option<&'a Source>,
    pub(super) objects: &'a [Source],
}

/// One AdmissionReview or object.
pub(super) struct ReviewDocument {
    pub(super) location: InputLocation,
    pub(super) value: Value,
    pub(super) warnings: Vec<LabelWarning>,
}

/// What one review comes to.
#[derive(Debug, Default)]
pub(super) struct Reviewed {
    /// The resulting object and the patch.
    pub(super) values: Vec<Value>,
    /// Errors of a validating webhook.
    pub(super) errors: Vec<String>,
    pub(super) remarks: Vec<String>,
    pub(super) code: i32,
}

/// Reviews each document alone. Prints the resulting objects and the patches as YAML documents, or the errors of a
/// validating webhook. With several documents, verdicts and errors name theirs.
pub(super) fn review(input: &Input<'_>) -> Result<Said, CommandError> {
    let webhooks = configured(input.config)?;
    let entries = registry::mutating(&webhooks);
    let validating = registry::validating(&webhooks);
    let mut manifests = Manifests::new(&registry::reads(&entries), registry::node_selector(&webhooks));
    let documents = documents(input.reviews)?;
    let mut said = Said::default();
    let reviewed: Vec<Reviewed> = if let Some(entry) = validating.iter().find(|entry| entry.path == input.path) {
        if !input.objects.is_empty() {
            said.remarks.push("warning: --objects: a validating webhook reads no objects".to_owned());
        }
        documents.iter().map(|document| validate(entry, document, &manifests)).collect::<Result<_, _>>()?
    } else {
        let entry = entry(input.path, entries, &validating)?;
        said.remarks = add_objects(&mut manifests, input.objects)?;
        documents.iter().map(|document| mutate(&entry, document, &manifests)).collect::<Result<_, _>>()?
    };

    let mut values = Vec::new();
    for (ReviewDocument { location, warnings, .. }, reviewed) in documents.iter().zip(reviewed) {
        let prefix = if documents.len() > 1 { format!("{location}: ") } else { String::new() };
        said.remarks.extend(warnings.iter().map(|warning| format!("warning: {location}: {warning}")));
        said.remarks.extend(reviewed.remarks.iter().map(|remark| format!("{prefix}{remark}")));
        said.out.extend(reviewed.errors.iter().map(|error| format!("{prefix}{error}\n")));
        said.code = said.code.max(reviewed.code);
        values.extend(reviewed.values);
    }
    if !values.is_empty() {
        said.out = yaml::stream(&values);
    }
    Ok(said)
}

fn add_objects(manifests: &mut Manifests, sources: &[Source]) -> Result<Vec<String>, CommandError> {
    let mut remarks = Vec::new();
    for document in input::documents(sources) {
        let object =
            document.content.map_err(|error| CommandError::Usage(format!("{}: {error}", document.location)))?;
        let objects = object["items"].as_array().map_or(std::slice::from_ref(&object), Vec::as_slice);
        if objects.iter().filter(|object| !manifests.add(object)).count() > 0 {
            remarks.push(format!("warning: {}: no webhook reads such an object", document.location));
        }
    }
    Ok(remarks)
}

fn mutate(
    entry: &WebhookEntry<Mutating>,
    document: &ReviewDocument,
    manifests: &Manifests,
) -> Result<Reviewed, CommandError> {
    let refused = |refusal: review::Refusal| CommandError::Usage(format!("{}: {}", document.location, refusal.message));
    let review = review::decode(&body(&document.value), "application/json").map_err(refused)?;
    let verdict = review::attempt(&*entry.endpoint.mutator, &review, manifests).map_err(asked)?;
    let allowed = if review.operation == "DELETE" { "allowed: a deletion" } else { "allowed, nothing to change" };
    let mut reviewed = Reviewed::of(&verdict, allowed);
    if let ReviewVerdict::Patched(patch) = &verdict {
        reviewed.values = patched(entry, &review, manifests, patch);
    } else if let (Some(object), OK) = (review.object, reviewed.code) {
        reviewed.values = vec![object];
    }
    Ok(reviewed)
}

pub(super) fn validate(
    entry: &WebhookEntry<Validating>,
    document: &ReviewDocument,
    manifests: &Manifests,
) -> Result<Reviewed, CommandError> {
    let received = Received { body: body(&document.value), content_type: "application/json".to_owned() };
    let usage = |text: String| Err(CommandError::Usage(format!("{}: {text}", document.location)));
    let verdict = match entry.endpoint.answer(&received, manifests).map_err(asked)?.account {
        Account::Admission(Judged::Reviewed { verdict, .. }, _) => verdict,
        Account::Admission(Judged::Refused(refusal), _) => return usage(refusal.message),
        Account::Authorization(_) => return usage("it is not about an object".to_owned()),
    };
    let ReviewVerdict::Invalid { status, errors } = &verdict else { return Ok(Reviewed::of(&verdict, "allowed")) };
    let causes = status.causes.iter().map(|Cause { field, message, .. }| match &**field {
        "" => message.clone(),
        field => format!("{field}: {message}"),
    });
    let remarks = vec![format!("denied with code {}: errors: {errors}", status.code)];
    Ok(Reviewed { errors: causes.collect(), remarks, code: DIFFERENT, ..Reviewed::default() })
}

fn asked(lookup: Lookup) -> CommandError {
    CommandError::Usage(format!("the webhook asks for {lookup:?}"))
}

impl Reviewed {
    fn of(verdict: &ReviewVerdict, allowed: &str) -> Self {
        let (line, code) = reported(verdict, allowed);
        Self { remarks: vec![line], code, ..Self::default() }
    }
}

/// The line about a verdict, and the exit code.
fn reported(verdict: &ReviewVerdict, allowed: &str) -> (String, i32) {
    let (code, message) = verdict.reported();
    match verdict {
        ReviewVerdict::Allowed => (allowed.to_owned(), OK),
        ReviewVerdict::Patched(_) => ("allowed, changed".to_owned(), OK),
        ReviewVerdict::Unexpected(message) => (format!("allowed, not its business: {message}"), OK),
        ReviewVerdict::Denied(_) | ReviewVerdict::Status(_) | ReviewVerdict::Invalid { .. } => {
            (format!("denied with code {code}: {message}"), DIFFERENT)
        }
        ReviewVerdict::ReadFailed { .. } | ReviewVerdict::Errored { .. } => {
            (format!("not decided, code {code}: {message}"), DIFFERENT)
        }
        ReviewVerdict::Panicked(_) => (format!("not decided, a defect: {message}"), FAILED),
    }
}

/// Runs the webhook again to get the object that results from the patch: the webhook is a pure function.
fn patched(entry: &WebhookEntry<Mutating>, review: &Review, manifests: &Manifests, patch: &[u8]) -> Vec<Value> {
    let mut object = review.object.clone().unwrap_or_default();
    let request = Request {
        kind: review.kind.clone(),
        namespace: &review.namespace,
        name: &review.name,
        operation: &review.operation,
    };
    let patch = serde_json::from_slice::<Value>(patch).unwrap_or_default();
    match entry.endpoint.mutator.mutate(&mut object, &request, manifests) {
        Ok(_) => vec![object, patch],
        Err(_) => vec![patch],
    }
}

pub(super) fn configured(config: Option<&Source>) -> Result<Webhooks, CommandError> {
    let loaded = match config {
        Some(source) => config::load(&source.bytes),
        None => everything().finish(&[]),
    };
    let name = config.map_or("the defaults", |source| &*source.name);
    loaded.map(|loaded| loaded.config.webhooks).map_err(|error| CommandError::Usage(format!("{name}: {error}")))
}

fn everything() -> Draft {
    let mut draft = Draft::default();
    let webhooks = &mut draft.config.webhooks;
    for enabled in [
        &mut webhooks.projected_token_mount.enabled,
        &mut webhooks.high_availability_config.enabled,
        &mut webhooks.pod_scheduler_name.enabled,
        &mut webhooks.seccomp_profile.enabled,
        &mut webhooks.kubernetes_service_host.enabled,
        &mut webhooks.pod_kube_apiserver_load_balancing.enabled,
        &mut webhooks.system_components_config.enabled,
        &mut webhooks.endpoint_slice_hints.enabled,
        &mut webhooks.pod_topology_spread_constraints.enabled,
        &mut webhooks.vpa_in_place_updates.enabled,
        &mut webhooks.token_invalidator.enabled,
        &mut webhooks.crd_deletion_protection.enabled,
        &mut webhooks.extension_validation.enabled,
        &mut draft.config.controllers.token_invalidator.enabled, // both are enabled together
    ] {
        *enabled = true;
    }
    draft
}

fn entry(
    path: &str,
    mut entries: Vec<WebhookEntry<Mutating>>,
    others: &[WebhookEntry<Validating>],
) -> Result<WebhookEntry<Mutating>, CommandError> {
    match entries.iter().position(|entry| entry.path == path) {
        Some(index) => Ok(entries.swap_remove(index)),
        None => {
            let others = others.iter().map(|entry| entry.path);
            let paths: Vec<_> = entries.iter().map(|entry| entry.path).chain(others).collect();
            let paths = if paths.is_empty() { "none".to_owned() } else { paths.join(", ") };
            Err(CommandError::Usage(format!("no webhook is served at {path}; enabled are: {paths}")))
        }
    }
}

/// Returns all documents of the files. Fails if one is unreadable, or if there is none.
fn documents(sources: &[Source]) -> Result<Vec<ReviewDocument>, CommandError> {
    let mut documents = Vec::new();
    for InputDocument { location, content, warnings, .. } in input::documents(sources) {
        let value =
            content.map_err(|error| CommandError::Usage(format!("{location}: {error} — {}", error.remedy())))?;
        documents.push(ReviewDocument { location, value, warnings });
    }
    if documents.is_empty() {
        let text = "there is no AdmissionReview and no object in the input — give a file that has some";
        return Err(CommandError::Usage(text.to_owned()));
    }
    Ok(documents)
}

/// The AdmissionReview, or that of the creation of the object.
fn body(value: &Value) -> Body {
    let is_review = value.get("request").is_some() || value["kind"] == "AdmissionReview";
    let text = if is_review { value.to_string() } else { creation(value).to_string() };
    Body::Whole(Bytes::from(text))
}

fn creation(object: &Value) -> Value {
    let kind = GroupVersionKind::of(object);
    let kind = kind.map(|kind| json!({"group": kind.group, "version": kind.version, "kind": kind.kind}));
    let (namespace, name) = (object::namespace(object), object::name(object));
    json!({"request": {"kind": kind, "operation": "CREATE", "namespace": namespace, "name": name, "object": object}})
}

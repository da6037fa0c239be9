//! `webhook review`: runs a webhook on one review, without a cluster.

use bytes::Bytes;
use cluster::{
    Cause,
    object::{self, GroupVersionKind},
};
use serde_json::{Value, json};

use super::{CommandError, DIFFERENT, FAILED, OK, Said, input::Source};
use crate::{
    api::config::resource_manager::{self as config, Draft, Webhooks},
    producer::yaml,
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
    pub(super) review: &'a Source,
    pub(super) config: Option<&'a Source>,
    pub(super) objects: &'a [Source],
}

/// Prints the resulting object and the patch as two YAML documents, or the errors of a validating webhook.
pub(super) fn review(input: &Input<'_>) -> Result<Said, CommandError> {
    let webhooks = configured(input.config)?;
    let entries = registry::mutating(&webhooks);
    let validating = registry::validating(&webhooks);
    let mut manifests = Manifests::new(&registry::reads(&entries), registry::node_selector(&webhooks));
    if let Some(entry) = validating.iter().find(|entry| entry.path == input.path) {
        return validate(entry, input, &manifests);
    }
    let entry = entry(input.path, entries, &validating)?;
    let review = decode(input.review)?;
    let mut said = Said::default();
    for document in input.objects.iter().flat_map(Source::documents) {
        let object =
            document.content.map_err(|error| CommandError::Usage(format!("{}: {error}", document.location)))?;
        let objects = object["items"].as_array().map_or(std::slice::from_ref(&object), Vec::as_slice);
        if objects.iter().filter(|object| !manifests.add(object)).count() > 0 {
            said.remarks.push(format!("warning: {}: no webhook reads such an object", document.location));
        }
    }

    let verdict = review::attempt(&*entry.endpoint.mutator, &review, &manifests);
    let verdict = verdict.map_err(asked)?;
    let allowed = if review.operation == "DELETE" { "allowed: a deletion" } else { "allowed, nothing to change" };
    report(&verdict, allowed, &mut said);
    if let ReviewVerdict::Patched(patch) = &verdict {
        said.out = patched(&entry, &review, &manifests, patch);
    } else if let (Some(object), OK) = (&review.object, said.code) {
        said.out = yaml::stream(std::slice::from_ref(object));
    }
    Ok(said)
}

pub(super) fn validate(
    entry: &WebhookEntry<Validating>,
    input: &Input<'_>,
    manifests: &Manifests,
) -> Result<Said, CommandError> {
    let received = Received { body: body(input.review)?, content_type: "application/json".to_owned() };
    let usage = |text: String| Err(CommandError::Usage(format!("{}: {text}", input.review.name)));
    let verdict = match entry.endpoint.answer(&received, manifests).map_err(asked)?.account {
        Account::Admission(Judged::Reviewed { verdict, .. }, _) => verdict,
        Account::Admission(Judged::Refused(refusal), _) => return usage(refusal.message),
        Account::Authorization(_) => return usage("it is not about an object".to_owned()),
    };
    let mut said = Said::default();
    if !input.objects.is_empty() {
        said.remarks.push("warning: --objects: a validating webhook reads no objects".to_owned());
    }
    if let ReviewVerdict::Invalid { status, errors } = &verdict {
        let causes = status.causes.iter().map(|Cause { field, message, .. }| match &**field {
            "" => format!("{message}\n"),
            field => format!("{field}: {message}\n"),
        });
        said.out = causes.collect();
        said.remarks.push(format!("denied with code {}: errors: {errors}", status.code));
        said.code = DIFFERENT;
    } else {
        report(&verdict, "allowed", &mut said);
    }
    Ok(said)
}

fn asked(lookup: Lookup) -> CommandError {
    CommandError::Usage(format!("the webhook asks for {lookup:?}"))
}

fn report(verdict: &ReviewVerdict, allowed: &str, said: &mut Said) {
    let (code, message) = verdict.reported();
    let (line, exit_code) = match verdict {
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
    };
    said.remarks.push(line);
    said.code = exit_code;
}

/// Runs the webhook again to get the object that results from the patch: the webhook is a pure function.
fn patched(entry: &WebhookEntry<Mutating>, review: &Review, manifests: &Manifests, patch: &[u8]) -> String {
    let mut object = review.object.clone().unwrap_or_default();
    let request = Request {
        kind: review.kind.clone(),
        namespace: &review.namespace,
        name: &review.name,
        operation: &review.operation,
    };
    let patch = serde_json::from_slice::<Value>(patch).unwrap_or_default();
    match entry.endpoint.mutator.mutate(&mut object, &request, manifests) {
        Ok(_) => yaml::stream(&[object, patch]),
        Err(_) => yaml::stream(&[patch]),
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

fn decode(source: &Source) -> Result<Review, CommandError> {
    let refused = |refusal: review::Refusal| CommandError::Usage(format!("{}: {}", source.name, refusal.message));
    review::decode(&body(source)?, "application/json").map_err(refused)
}

fn body(source: &Source) -> Result<Body, CommandError> {
    let neither = || CommandError::Usage(format!("{}: is neither JSON nor YAML", source.name));
    let value = parse(&source.bytes).ok_or_else(neither)?;
    let is_review = value.get("request").is_some() || value["kind"] == "AdmissionReview";
    let value = if is_review { value } else { creation(value) };
    Ok(Body::Whole(Bytes::from(value.to_string())))
}

fn creation(object: Value) -> Value {
    let kind = GroupVersionKind::of(&object);
    let kind = kind.map(|kind| json!({"group": kind.group, "version": kind.version, "kind": kind.kind}));
    let (namespace, name) = (object::namespace(&object).to_owned(), object::name(&object).to_owned());
    json!({"request": {"kind": kind, "operation": "CREATE", "namespace": namespace, "name": name, "object": object}})
}

fn parse(bytes: &[u8]) -> Option<Value> {
    if let Ok(value) = serde_json::from_slice(bytes) {
        return Some(value);
    }
    let text = std::str::from_utf8(bytes).ok()?;
    serde_saphyr::from_str_with_options(text, serde_saphyr::options! { strict_booleans: true }).ok()
}

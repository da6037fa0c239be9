//! PUT and PATCH: conflicts, subresources, generation, no-op writes, the last finalizer (facts §4, §5).

use std::{borrow::Cow, sync::Arc};

use serde_json::{Map, Value};

use super::{
    body, defaults,
    kinds::{self, ServedKind},
    managed_fields, patch,
    request::Request,
    state::{Answer, ApiState, single_form},
    status::{Cause, Failure},
    storage::{Key, Object},
    validate,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Everything except a status that is a subresource.
    Main,
    /// The status, and for most built-in kinds labels and annotations.
    Status,
    /// `spec.finalizers` of a namespace.
    Finalize,
    /// The conditions `Approved` and `Denied` of a CertificateSigningRequest.
    Approval,
    Scale,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Writing<'a> {
    pub(super) manager: &'a str,
    pub(super) part: Part,
    pub(super) by_patch: bool, // the new state was computed from the stored one
    pub(super) dry_run: bool,
}

#[derive(Debug)]
pub(super) enum Written {
    Stored(Arc<Object>),
    /// Not stored: a dry run, or the object went with its last finalizer.
    Value(Value),
}

impl Part {
    fn subresource(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Status => "status",
            Self::Finalize => "finalize",
            Self::Approval => "approval",
            Self::Scale => "scale",
        }
    }
}

impl<'a> Writing<'a> {
    pub(super) fn of(request: &'a Request, part: Part, by_patch: bool) -> Self {
        Self { manager: request.field_manager(), part, by_patch, dry_run: request.is_dry_run() }
    }
}

impl ApiState {
    pub(super) fn replace(&mut self, kind: &Arc<ServedKind>, request: &Request) -> Result<Answer, Failure> {
        let form = single_form(&request.info.accept, self.clock.now())?;
        let (mut value, warnings) = body::decode(kind, request)?;
        check_name(&mut value, &request.info.name)?;
        body::settle_namespace(kind, &mut value, &request.info.namespace)?;
        let key = self.key_of(kind, request);
        if self.storage.get(&key).is_some() {
            let written = self.write(kind, &key, value, Writing::of(request, Part::Main, false))?;
            return Ok(self.answer_written(kind, &written, form)?.with_warnings(&warnings));
        }
        if !kind.creates_on_update {
            return Err(Failure::not_found(kind, &request.info.name));
        }
        self.check_namespace(kind, &value, &request.info.namespace)?;
        let created = self.insert(kind, request, value)?;
        Ok(self.answer_created(kind, &created, form)?.with_warnings(&warnings))
    }

    pub(super) fn patch(&mut self, kind: &Arc<ServedKind>, request: &Request) -> Result<Answer, Failure> {
        self.patch_part(kind, request, Part::Main)
    }

    pub(super) fn replace_part(
        &mut self,
        kind: &Arc<ServedKind>,
        request: &Request,
        part: Part,
    ) -> Result<Answer, Failure> {
        let form = single_form(&request.info.accept, self.clock.now())?;
        let (mut value, warnings) = body::decode(kind, request)?;
        check_name(&mut value, &request.info.name)?;
        body::settle_namespace(kind, &mut value, &request.info.namespace)?;
        let key = self.key_of(kind, request);
        let written = self.write(kind, &key, value, Writing::of(request, part, false))?;
        Ok(self.answer_written(kind, &written, form)?.with_warnings(&warnings))
    }

    pub(super) fn patch_part(
        &mut self,
        kind: &Arc<ServedKind>,
        request: &Request,
        part: Part,
    ) -> Result<Answer, Failure> {
        let form = single_form(&request.info.accept, self.clock.now())?;
        let change = patch::Patch::parse(kind, &request.info.content_type, &request.body)?;
        let key = self.key_of(kind, request);
        let live = self.storage.get(&key).cloned().ok_or_else(|| Failure::not_found(kind, &key.name))?;
        let patched = change.apply(kind, in_version(kind, &live.value)?.as_ref())?;
        let (mut value, warnings) = body::settle_patched(kind, request, patched)?;
        check_name(&mut value, &request.info.name)?;
        body::settle_namespace(kind, &mut value, &request.info.namespace)?;
        let written = self.write(kind, &key, value, Writing::of(request, part, true))?;
        Ok(self.answer_written(kind, &written, form)?.with_warnings(&warnings))
    }

    pub(super) fn answer_written(
        &self,
        kind: &ServedKind,
        written: &Written,
        form: super::render::Form,
    ) -> Result<Answer, Failure> {
        match written {
            Written::Stored(object) => self.answer_object(kind, 200, object, form),
            Written::Value(value) => self.answer_value(kind, 200, value, form),
        }
    }

    pub(super) fn write(
        &mut self,
        kind: &ServedKind,
        key: &Key,
        sent: Value,
        writing: Writing<'_>,
    ) -> Result<Written, Failure> {
        let live = self.storage.get(key).cloned().ok_or_else(|| Failure::not_found(kind, &key.name))?;
        let old = in_version(kind, &live.value)?;
        check_preconditions(kind, &old, &sent, writing.by_patch)?;
        let mut new = merge_part(kind, &old, sent, writing.part);
        if writing.part == Part::Approval {
            date_conditions(&mut new, &self.clock.text());
        }
        settle_metadata(kind, &old, &mut new)?;
        defaults::apply(kind, &mut new, Some(&old), &mut self.allocations)?;
        if writing.part == Part::Main {
            self.mutate("UPDATE", kind, &key.namespace, &mut new);
        }
        validate::update(kind, &old, &new, writing.part.subresource())?;
        // Writes of a subresource may change annotations, which count as a new generation of Deployments elsewhere.
        let counts = matches!(writing.part, Part::Main | Part::Scale);
        if counts && kinds::bumps_generation(kind, &old, &new) {
            let generation = old["metadata"]["generation"].as_i64().unwrap_or_default();
            body::metadata(&mut new).insert("generation".into(), (generation + 1).into());
        }
        let first = self.unsettled.contains(key);
        let keeps_owners = match new["metadata"].get("managedFields") {
            None => true,
            sent => sent == old["metadata"].get("managedFields"),
        };
        if !first && keeps_owners && has_same_content(&old, &new) {
            return Ok(Written::Stored(live));
        }
        let now = self.clock.text();
        managed_fields::record(Some(&old), &mut new, writing.manager, writing.part.subresource(), &now);
        if !first && *old == new {
            return Ok(Written::Stored(live));
        }
        if writing.dry_run {
            return Ok(Written::Value(new));
        }
        self.unsettled.remove(key);
        if is_finished(&new) {
            // Watches see the state before this write; the writer sees its own state with the old version.
            self.erase(key);
            return Ok(Written::Value(new));
        }
        Ok(Written::Stored(self.store(key.clone(), new)))
    }
}

pub(super) fn is_finished(value: &Value) -> bool {
    let metadata = &value["metadata"];
    let is_empty = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
    let is_namespace = value["kind"] == "Namespace" && value["apiVersion"] == "v1";
    metadata.get("deletionTimestamp").is_some()
        && metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or_default() == 0
        && is_empty(&metadata["finalizers"])
        && (!is_namespace || is_empty(&value["spec"]["finalizers"]))
}

pub(super) fn in_version<'a>(kind: &ServedKind, stored: &'a Value) -> Result<Cow<'a, Value>, Failure> {
    if let Some(converted) = super::convert::to_version(kind, stored)? {
        return Ok(Cow::Owned(converted));
    }
    let api_version = kind.api_version();
    if stored["apiVersion"] == api_version {
        return Ok(Cow::Borrowed(stored));
    }
    let mut value = stored.clone();
    value["apiVersion"] = api_version.into();
    Ok(Cow::Owned(value))
}

fn check_name(value: &mut Value, name: &str) -> Result<(), Failure> {
    let metadata = body::metadata(value);
    match metadata.get("name").and_then(Value::as_str) {
        Some(other) if other != name => Err(Failure::bad_request(&format!(
            "the name of the object ({other}) does not match the name on the URL ({name})"
        ))),
        _ => {
            metadata.insert("name".into(), name.into());
            Ok(())
        }
    }
}

fn check_preconditions(kind: &ServedKind, old: &Value, sent: &Value, by_patch: bool) -> Result<(), Failure> {
    let text = |value: &Value, field: &str| value["metadata"][field].as_str().unwrap_or_default().to_owned();
    let name = text(old, "name");
    let (sent_uid, uid) = (text(sent, "uid"), text(old, "uid"));
    let is_foreign = !sent_uid.is_empty() && sent_uid != uid;
    if is_foreign && !by_patch {
        return Err(Failure::uid_conflict(kind, &text(old, "namespace"), &name, &sent_uid, &uid));
    }
    match text(sent, "resourceVersion").as_str() {
        "" | "0" if kind.requires_resource_version => Err(Failure::version_required(kind, &name)),
        "" | "0" => Ok(()),
        version if version == text(old, "resourceVersion") => Ok(()),
        version if version.parse::<u64>().is_err() => Err(Failure::bad_version(version)),
        _ => Err(Failure::conflict(kind, &name)),
    }?;
    if is_foreign {
        // In a patch the uid is one of the immutable fields, which are checked last.
        let cause = Cause::invalid("metadata.uid", &sent_uid.into(), "field is immutable");
        return Err(Failure::invalid(kind, &name, vec![cause]));
    }
    Ok(())
}

/// The stored object with the part of the sent object that counts.
fn merge_part(kind: &ServedKind, old: &Value, sent: Value, part: Part) -> Value {
    match part {
        Part::Main => {
            let mut new = sent;
            if kind.has_status {
                copy_field(&mut new, old, "status");
            }
            if kind.group.is_empty() && kind.plural == "namespaces" {
                if new["spec"].is_null() {
                    new["spec"] = Value::Object(Map::new());
                }
                copy_field(&mut new["spec"], &old["spec"], "finalizers");
            }
            new
        }
        Part::Scale => sent,
        Part::Status | Part::Approval => {
            let mut new = old.clone();
            copy_field(&mut new, &sent, "status");
            complete_status(kind, &mut new);
            for field in status_metadata(kind) {
                let metadata = body::metadata(&mut new);
                match sent["metadata"].get(*field) {
                    Some(content) => metadata.insert((*field).into(), content.clone()),
                    None => metadata.remove(*field),
                };
            }
            new
        }
        Part::Finalize => {
            let mut new = old.clone();
            let finalizers = sent["spec"]["finalizers"].clone();
            if let Some(spec) = new.get_mut("spec").and_then(Value::as_object_mut) {
                spec.remove("finalizers");
                if finalizers.as_array().is_some_and(|finalizers| !finalizers.is_empty()) {
                    spec.insert("finalizers".into(), finalizers);
                }
            }
            new
        }
    }
}

/// Typed statuses exist even if they are empty.
pub(super) fn complete_status(kind: &ServedKind, value: &mut Value) {
    if kind.has_status && !kind.custom && value["status"].is_null() {
        value["status"] = Value::Object(Map::new());
    }
}

fn date_conditions(value: &mut Value, now: &str) {
    let conditions = value.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        for field in ["lastTransitionTime", "lastUpdateTime"] {
            if condition.get(field).is_none_or(Value::is_null) {
                condition.insert(field.into(), now.into());
            }
        }
    }
}

fn status_metadata(kind: &ServedKind) -> &'static [&'static str] {
    match (kind.group.as_str(), kind.plural.as_str()) {
        _ if kind.custom => &[],
        ("apiregistration.k8s.io", _) => &[],
        ("apps", "deployments") => &["annotations"],
        _ => &["labels", "annotations"],
    }
}

fn copy_field(to: &mut Value, from: &Value, field: &str) {
    if let Some(fields) = to.as_object_mut() {
        match from.get(field) {
            Some(content) => fields.insert(field.into(), content.clone()),
            None => fields.remove(field),
        };
    }
}

fn settle_metadata(kind: &ServedKind, old: &Value, new: &mut Value) -> Result<(), Failure> {
    let sent = new["metadata"].get("deletionTimestamp").cloned();
    if let Some(sent) = sent.filter(|sent| old["metadata"].get("deletionTimestamp") != Some(sent)) {
        let name = old["metadata"]["name"].as_str().unwrap_or_default();
        let cause = Cause::invalid("metadata.deletionTimestamp", &sent, "field is immutable");
        return Err(Failure::invalid(kind, name, vec![cause]));
    }
    let metadata = body::metadata(new);
    for field in [
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
    ] {
        match old["metadata"].get(field) {
            Some(content) => metadata.insert(field.into(), content.clone()),
            None => metadata.remove(field),
        };
    }
    Ok(())
}

/// Returns true if two states differ at most in `managedFields`.
fn has_same_content(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return old == new };
    let is_same = |old: &Map<String, Value>, new: &Map<String, Value>, except: &str| {
        let count = |map: &Map<String, Value>| map.len() - usize::from(map.contains_key(except));
        count(old) == count(new)
            && old.iter().all(|(field, content)| field == except || new.get(field) == Some(content))
    };
    let same_metadata = match (old.get("metadata"), new.get("metadata")) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => is_same(old, new, "managedFields"),
        (old, new) => old == new,
    };
    same_metadata && is_same(old, new, "metadata")
}

//! The state of the API server, behind one lock.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    Behaviour,
    agenda::Agenda,
    defaults::Allocations,
    encode,
    kinds::ServedKind,
    negotiate::{Asked, negotiate},
    owners::OwnerIndex,
    registry::Registry,
    render::{self, Form},
    request::Request,
    starting::Starting,
    status::Failure,
    storage::{Change, Key, Object, Storage},
    watchers::Watches,
};

pub(super) struct ApiState {
    pub(super) storage: Storage,
    pub(super) registry: Registry,
    pub(super) watches: Watches,
    pub(super) agenda: Agenda,
    pub(super) owners: OwnerIndex,
    pub(super) allocations: Allocations,
    pub(super) random: fastrand::Rng,
    pub(super) clock: ServerClock,
    pub(super) behaviour: Behaviour,
    pub(super) reviewer: Option<Reviewer>,
    pub(super) mutation: Option<Mutation>,
    pub(super) starting: Option<Starting>,
    /// Objects whose next write takes a version even if it changes nothing.
    pub(super) unsettled: BTreeSet<Key>,
}

pub(super) type Reviewer = Box<dyn FnMut(&Value) -> (bool, String) + Send>;

pub(super) type Mutation = Box<dyn FnMut(&Reviewed<'_>, &mut Value) + Send>;

/// An object in admission.
#[derive(Debug, Clone, Copy)]
pub struct Reviewed<'a> {
    /// `CREATE` or `UPDATE`.
    pub operation: &'static str,
    /// Plural name of its kind.
    pub resource: &'a str,
    /// Its Namespace, if it has one.
    pub namespace: Option<&'a Value>,
}

/// The server's wall clock. It follows tokio's time and no jumps of its clients' clocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerClock {
    start: Timestamp,
    zero: Instant,
}

#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) content_type: String,
    pub(super) body: Bytes,
    pub(super) headers: Vec<(&'static str, String)>,
}

#[derive(Debug)]
pub(super) enum Refusal {
    Failure(Failure),
    NotYet { revision: u64 },
}

impl ServerClock {
    pub(super) fn new(start: Timestamp) -> Self {
        Self { start, zero: Instant::now() }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.start + SignedDuration::try_from(self.zero.elapsed()).unwrap_or(SignedDuration::ZERO)
    }

    pub(super) fn text(&self) -> String {
        text(self.now())
    }
}

/// RFC 3339 in UTC with whole seconds, as in objects.
pub(super) fn text(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl Answer {
    pub(super) fn json(code: u16, body: impl Into<Bytes>) -> Self {
        Self { code, content_type: "application/json".into(), body: body.into(), headers: Vec::new() }
    }

    pub(super) fn of_value(code: u16, value: &Value) -> Self {
        let mut body = encode::to_vec(value);
        body.push(b'\n');
        Self::json(code, body)
    }

    pub(super) fn with_warnings(mut self, warnings: &[String]) -> Self {
        let headers = warnings.iter().map(|text| ("warning", format!("299 - \"{}\"", text.replace('"', "\\\""))));
        self.headers.extend(headers);
        self
    }
}

impl ApiState {
    pub(super) fn unknown(&self, group: &str, version: &str) -> Failure {
        if self.registry.is_built_in(group) {
            Failure::unknown_resource()
        } else if self.registry.is_served(group, version) {
            Failure::page_not_found()
        } else if self.dead_api_service(group, version) {
            Failure::service_unavailable_text()
        } else {
            Failure::page_not_found()
        }
    }

    /// Returns true if an APIService names another server for the group and version; the simulator has none.
    fn dead_api_service(&self, group: &str, version: &str) -> bool {
        let key = Key::new("apiregistration.k8s.io", "apiservices", "", &format!("{version}.{group}"));
        self.storage.get(&key).is_some_and(|service| !service.value["spec"]["service"].is_null())
    }

    pub(super) fn get(
        &mut self,
        kind: &ServedKind,
        request: &Request,
        read_as_of: Option<u64>,
    ) -> Result<Answer, Refusal> {
        let form = single_form(&request.info.accept, self.clock.now())?;
        let asked = read_revision(request)?;
        if asked.is_some_and(|revision| revision > self.storage.revision()) {
            return Err(Refusal::NotYet { revision: asked.unwrap_or_default() });
        }
        let key = self.key_of(kind, request);
        let object = match read_as_of {
            Some(revision) => self.storage.get_at(&key, revision.max(self.storage.oldest())).unwrap_or_default(),
            None => self.storage.get(&key).cloned(),
        };
        let object = object.ok_or_else(|| Failure::not_found(kind, &request.info.name))?;
        Ok(self.answer_object(kind, 200, &object, form)?)
    }

    pub(super) fn key_of(&self, kind: &ServedKind, request: &Request) -> Key {
        self.key(kind, &request.info.namespace, &request.info.name)
    }

    /// The storage key of an object. Versions of a resource share it, and so do the two groups of events.
    pub(super) fn key(&self, kind: &ServedKind, namespace: &str, name: &str) -> Key {
        let (group, resource) = kind.home();
        Key::new(group, resource, if kind.namespaced { namespace } else { "" }, name)
    }

    pub(super) fn answer_object(
        &self,
        kind: &ServedKind,
        code: u16,
        object: &Object,
        form: Form,
    ) -> Result<Answer, Failure> {
        let mut body = Vec::new();
        match super::convert::to_version(kind, &object.value)? {
            Some(converted) => render::value(&mut body, &converted, &kind.api_version(), &kind.kind, form, None),
            None => render::object(&mut body, object, &kind.api_version(), &kind.kind, form),
        }
        Ok(Answer::json(code, finish(body, &object.value, form)))
    }

    pub(super) fn answer_value(
        &self,
        kind: &ServedKind,
        code: u16,
        value: &Value,
        form: Form,
    ) -> Result<Answer, Failure> {
        let converted = super::convert::to_version(kind, value)?;
        let mut body = Vec::new();
        let value = converted.as_ref().unwrap_or(value);
        render::value(&mut body, value, &kind.api_version(), &kind.kind, form, None);
        Ok(Answer::json(code, finish(body, value, form)))
    }

    pub(super) fn store(&mut self, key: Key, value: Value) -> Arc<Object> {
        let change = self.storage.put(key, value);
        self.announce(&change);
        match &change.after {
            Some(object) => object.clone(),
            None => unreachable!("a put has a state after it"),
        }
    }

    pub(super) fn erase(&mut self, key: &Key) -> Option<Arc<Object>> {
        let change = self.storage.remove(key)?;
        self.announce(&change);
        if let Some(object) = &change.before {
            self.allocations.release(&key.resource, &object.value);
        }
        change.before.clone()
    }

    fn announce(&mut self, change: &Arc<Change>) {
        self.watches.announce(change);
        self.owners.observe(change);
        self.observe(change);
    }

    pub(super) fn new_uid(&mut self) -> String {
        let bits = self.random.u128(..);
        let digits = format!("{bits:032x}");
        let variant = ["8", "9", "a", "b"][(bits % 4) as usize];
        format!(
            "{}-{}-4{}-{variant}{}-{}",
            &digits[..8],
            &digits[8..12],
            &digits[13..16],
            &digits[17..20],
            &digits[20..]
        )
    }
}

fn finish(mut body: Vec<u8>, object: &Value, form: Form) -> Vec<u8> {
    match form {
        Form::Row(_) => {
            let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
            super::table::table(&metadata, &body)
        }
        Form::Full | Form::Metadata => {
            body.push(b'\n');
            body
        }
    }
}

pub(super) fn single_form(accept: &str, now: Timestamp) -> Result<Form, Failure> {
    match negotiate(accept)? {
        Asked::Table => Ok(Form::Row(now)),
        Asked::Full => Ok(Form::Full),
        Asked::Metadata => Ok(Form::Metadata),
        Asked::MetadataList => Err(Failure::not_acceptable(
            "you requested PartialObjectMetadataList, but the requested object is not a list",
        )),
    }
}

/// `resourceVersion` of a get or list, or `None` if it is absent or `0`.
pub(super) fn read_revision(request: &Request) -> Result<Option<u64>, Failure> {
    match request.query.get("resourceVersion") {
        None | Some("0") => Ok(None),
        Some(text) => match text.parse() {
            Ok(revision) => Ok(Some(revision)),
            Err(_) => Err(Failure::bad_request(&format!(
                "resourceVersion: Invalid value: \"{text}\": strconv.ParseUint: parsing \"{text}\": invalid syntax"
            ))),
        },
    }
}

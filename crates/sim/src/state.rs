//! Everything the API server knows, behind one lock.

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

/// The state of the simulated API server.
pub(super) struct ApiState {
    pub(super) storage: Storage,
    pub(super) registry: Registry,
    pub(super) watches: Watches,
    /// What the controllers will do when.
    pub(super) agenda: Agenda,
    pub(super) owners: OwnerIndex,
    /// Addresses and ports of Services that are taken.
    pub(super) allocations: Allocations,
    pub(super) random: fastrand::Rng,
    pub(super) clock: ServerClock,
    pub(super) behaviour: Behaviour,
    pub(super) reviewer: Option<Reviewer>,
    pub(super) mutation: Option<Mutation>,
    /// A start that has not come to its end.
    pub(super) starting: Option<Starting>,
    /// Objects whose next write takes a version even if it changes nothing.
    pub(super) unsettled: BTreeSet<Key>,
}

/// Answers SubjectAccessReviews: from the review's `spec`, whether it is allowed and why.
pub(super) type Reviewer = Box<dyn FnMut(&Value) -> (bool, String) + Send>;

/// Changes an object before it is stored, as mutating admission does.
pub(super) type Mutation = Box<dyn FnMut(&Reviewed<'_>, &mut Value) + Send>;

/// An object of a request, on its way through admission.
#[derive(Debug, Clone, Copy)]
pub struct Reviewed<'a> {
    /// `CREATE` or `UPDATE`.
    pub operation: &'static str,
    /// Plural name of its kind.
    pub resource: &'a str,
    /// Its Namespace, where it is in one.
    pub namespace: Option<&'a Value>,
}

/// The server's wall clock: it moves with tokio's time and does not follow jumps of its clients' clocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerClock {
    start: Timestamp,
    zero: Instant,
}

/// A complete answer.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) content_type: String,
    pub(super) body: Bytes,
    /// Further headers.
    pub(super) headers: Vec<(&'static str, String)>,
}

/// Why a request is not carried out.
#[derive(Debug)]
pub(super) enum Refusal {
    Failure(Failure),
    /// A read asks for a revision that is not there yet: it waits for it.
    NotYet {
        revision: u64,
    },
}

impl ServerClock {
    pub(super) fn new(start: Timestamp) -> Self {
        Self { start, zero: Instant::now() }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.start + SignedDuration::try_from(self.zero.elapsed()).unwrap_or(SignedDuration::ZERO)
    }

    /// Now, as timestamps in objects are written: in whole seconds.
    pub(super) fn text(&self) -> String {
        text(self.now())
    }
}

/// A time as objects have it: RFC 3339 in UTC with whole seconds.
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

    /// With a `Warning` header for each text.
    pub(super) fn with_warnings(mut self, warnings: &[String]) -> Self {
        let headers = warnings.iter().map(|text| ("warning", format!("299 - \"{}\"", text.replace('"', "\\\""))));
        self.headers.extend(headers);
        self
    }
}

impl ApiState {
    /// Why a resource of a group and version is not served.
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

    /// Whether an APIService says that another server answers for the group and version: the simulator has no such servers.
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
        let form = single_form(&request.accept, self.clock.now())?;
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

    /// Where the object that a path names is stored.
    pub(super) fn key_of(&self, kind: &ServedKind, request: &Request) -> Key {
        self.key(kind, &request.info.namespace, &request.info.name)
    }

    /// Where an object of a kind is stored. Versions of a resource share their place, and so do the two groups of events.
    pub(super) fn key(&self, kind: &ServedKind, namespace: &str, name: &str) -> Key {
        let (group, resource) = kind.home();
        Key::new(group, resource, if kind.namespaced { namespace } else { "" }, name)
    }

    /// A stored object as the answer, in the kind's version.
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

    /// A value that is not stored (any more) as the answer.
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

    /// Stores an object and tells everybody.
    pub(super) fn store(&mut self, key: Key, value: Value) -> Arc<Object> {
        let change = self.storage.put(key, value);
        self.announce(&change);
        match &change.after {
            Some(object) => object.clone(),
            None => unreachable!("a put has a state after it"),
        }
    }

    /// Removes an object and tells everybody.
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

    /// A new uid.
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

/// The body of an answer that is one object.
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

/// The form of an answer that is one object.
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

/// `resourceVersion` of a get or list; `None` for none and for `0`.
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

//! `/status`, `/scale`, `/finalize`, `/approval` and `/token` (facts §4, §8).

use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use super::{
    kinds::{Scale, ServedKind},
    patch,
    request::Request,
    state::{Answer, ApiState, single_form},
    status::Failure,
    update::{Part, Writing, Written},
};

/// Subresources of the real API server that the simulator answers with 501.
const REFUSED: [(&str, &str); 12] = [
    ("pods", "attach"),
    ("pods", "binding"),
    ("pods", "ephemeralcontainers"),
    ("pods", "eviction"),
    ("pods", "exec"),
    ("pods", "log"),
    ("pods", "portforward"),
    ("pods", "proxy"),
    ("pods", "resize"),
    ("nodes", "proxy"),
    ("services", "proxy"),
    ("namespaces", "proxy"),
];

impl ApiState {
    pub(super) fn subresource(&mut self, kind: &Arc<ServedKind>, request: &Request) -> Result<Answer, Failure> {
        let name = request.info.subresource.as_str();
        let Some(known) = kind.subresource(name) else {
            return Err(match (kind.plural.as_str(), name) {
                place if !kind.custom && REFUSED.contains(&place) => {
                    Failure::not_simulated(&format!("the subresource {}/{name}", kind.plural))
                }
                _ if kind.custom => Failure::not_found(kind, &request.info.name),
                _ => Failure::unknown_resource(),
            });
        };
        if !known.verbs.iter().any(|verb| *verb == request.info.verb) {
            return Err(Failure::method_not_allowed());
        }
        match name {
            "status" => self.part(kind, request, Part::Status),
            "approval" => self.part(kind, request, Part::Approval),
            "finalize" => self.part(kind, request, Part::Finalize),
            "scale" => self.scale(kind, request),
            "token" => self.create_token(request),
            other => Err(Failure::not_simulated(&format!("the subresource {}/{other}", kind.plural))),
        }
    }

    fn part(&mut self, kind: &Arc<ServedKind>, request: &Request, part: Part) -> Result<Answer, Failure> {
        match request.method {
            Method::GET => {
                let key = self.key_of(kind, request);
                let object = self.storage.get(&key).cloned().ok_or_else(|| Failure::not_found(kind, &key.name))?;
                self.answer_object(kind, 200, &object, single_form(&request.info.accept, self.clock.now())?)
            }
            Method::PUT => self.replace_part(kind, request, part),
            Method::PATCH => self.patch_part(kind, request, part),
            _ => Err(Failure::method_not_allowed()),
        }
    }

    fn scale(&mut self, kind: &Arc<ServedKind>, request: &Request) -> Result<Answer, Failure> {
        let key = self.key_of(kind, request);
        let live = self.storage.get(&key).cloned().ok_or_else(|| Failure::not_found(kind, &key.name))?;
        let places = kind.scale.as_ref().ok_or_else(Failure::unknown_resource)?;
        let scale = scale_of(places, &live.value);
        let sent: Value = match request.method {
            Method::GET => return Ok(Answer::of_value(200, &scale)),
            Method::PUT => serde_json::from_slice(&request.body)
                .map_err(|error| Failure::bad_request(&format!("the body is no Scale: {error}")))?,
            Method::PATCH => {
                patch::Patch::parse(kind, &request.info.content_type, &request.body)?.apply(kind, &scale)?
            }
            _ => return Err(Failure::method_not_allowed()),
        };
        let Some(replicas) = sent["spec"].get("replicas").map_or(Some(0), Value::as_i64) else {
            return Err(Failure::bad_request("spec.replicas of the Scale is no number"));
        };
        let mut value = super::update::in_version(kind, &live.value)?.into_owned();
        set(&mut value, &places.spec_replicas, replicas.into());
        let metadata = super::body::metadata(&mut value);
        let version = sent["metadata"].get("resourceVersion").cloned();
        metadata.insert("resourceVersion".into(), version.unwrap_or_else(|| live_version(&live.value)));
        let written = self.write(kind, &key, value, Writing::of(request, Part::Scale, false))?;
        let scale = match &written {
            Written::Stored(object) => scale_of(places, &object.value),
            Written::Value(value) => scale_of(places, value),
        };
        Ok(Answer::of_value(200, &scale))
    }
}

/// An update of a scale without a version applies to any version.
fn live_version(live: &Value) -> Value {
    live["metadata"]["resourceVersion"].clone()
}

/// Sets a value at a JSON pointer and creates missing parents. Leaves parents that are no objects alone.
fn set(object: &mut Value, pointer: &str, content: Value) {
    let mut place = object;
    for field in pointer.split('/').skip(1) {
        if place.is_null() {
            *place = json!({});
        }
        let Some(fields) = place.as_object_mut() else { return };
        place = fields.entry(field).or_insert(Value::Null);
    }
    *place = content;
}

fn scale_of(places: &Scale, object: &Value) -> Value {
    let metadata = &object["metadata"];
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default();
    let selector = places.selector.as_deref().and_then(|pointer| object.pointer(pointer));
    let mut status = json!({"replicas": number(&places.status_replicas)});
    match selector {
        Some(Value::String(text)) => status["selector"] = text.as_str().into(),
        Some(selector @ Value::Object(_)) => {
            let labels = selector.get("matchLabels").unwrap_or(selector).as_object().into_iter().flatten();
            let terms = labels.map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()));
            status["selector"] = terms.collect::<Vec<_>>().join(",").into();
        }
        _ => {}
    }
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"], "creationTimestamp": metadata["creationTimestamp"],
        },
        "spec": {"replicas": number(&places.spec_replicas)},
        "status": status,
    })
}

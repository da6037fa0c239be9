//! `/status`, `/scale`, `/finalize`, `/approval` and `/token` (facts §4, §8).

use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use super::{
    kinds::Kind,
    patch,
    request::Request,
    state::{Answer, State, single_form},
    status::Failure,
    update::{Part, Writing},
};

/// Subresources of the real API server that the simulator knows but does not do.
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

impl State {
    pub(super) fn subresource(&mut self, kind: &Arc<Kind>, request: &Request) -> Result<Answer, Failure> {
        let place = (kind.group.as_str(), kind.plural.as_str(), request.info.subresource.as_str());
        match place {
            (_, _, "status") if kind.has_status => self.part(kind, request, Part::Status),
            (_, _, "scale") if scales(kind) => self.scale(kind, request),
            ("", "namespaces", "finalize") if request.method == Method::PUT => {
                self.replace_part(kind, request, Part::Finalize)
            }
            ("certificates.k8s.io", "certificatesigningrequests", "approval") => {
                self.part(kind, request, Part::Approval)
            }
            ("", "serviceaccounts", "token") if request.method == Method::POST => self.create_token(request),
            (_, plural, name) if REFUSED.contains(&(plural, name)) => {
                Err(Failure::not_simulated(&format!("the subresource {plural}/{name}")))
            }
            (_, _, "scale") if kind.custom => Err(Failure::not_simulated("the subresource scale of custom kinds")),
            _ if kind.custom => Err(Failure::not_found(kind, &request.info.name)),
            _ => Err(Failure::unknown_resource()),
        }
    }

    fn part(&mut self, kind: &Arc<Kind>, request: &Request, part: Part) -> Result<Answer, Failure> {
        match request.method {
            Method::GET => {
                let key = self.key_of(kind, request);
                let object = self.storage.get(&key).cloned().ok_or_else(|| Failure::not_found(kind, &key.name))?;
                self.answer_object(kind, 200, &object, single_form(&request.accept)?)
            }
            Method::PUT => self.replace_part(kind, request, part),
            Method::PATCH => self.patch_part(kind, request, part),
            _ => Err(Failure::method_not_allowed()),
        }
    }

    fn scale(&mut self, kind: &Arc<Kind>, request: &Request) -> Result<Answer, Failure> {
        let key = self.key_of(kind, request);
        let live = self.storage.get(&key).cloned().ok_or_else(|| Failure::not_found(kind, &key.name))?;
        let scale = scale_of(&live.value);
        let sent = match request.method {
            Method::GET => return Ok(Answer::of_value(200, &scale)),
            Method::PUT => serde_json::from_slice(&request.body)
                .map_err(|error| Failure::bad_request(&format!("the body is no Scale: {error}")))?,
            Method::PATCH => {
                patch::Patch::parse(kind, &request.info.content_type, &request.body)?.apply(kind, &scale)?
            }
            _ => return Err(Failure::method_not_allowed()),
        };
        let sent: Value = sent;
        let mut value = super::update::in_version(kind, &live.value)?;
        let Some(replicas) = sent["spec"].get("replicas").map_or(Some(0), Value::as_i64) else {
            return Err(Failure::bad_request("spec.replicas of the Scale is no number"));
        };
        if value["spec"].is_object() {
            value["spec"]["replicas"] = replicas.into();
        }
        let metadata = super::body::metadata(&mut value);
        metadata.remove("resourceVersion");
        if let Some(version) = sent["metadata"].get("resourceVersion") {
            metadata.insert("resourceVersion".into(), version.clone());
        }
        self.write(kind, &key, value, Writing::of(request, Part::Scale, false))?;
        let live = self.storage.get(&key).cloned().ok_or_else(|| Failure::not_found(kind, &key.name))?;
        Ok(Answer::of_value(200, &scale_of(&live.value)))
    }
}

fn scales(kind: &Kind) -> bool {
    matches!(
        (kind.group.as_str(), kind.plural.as_str()),
        ("apps", "deployments" | "statefulsets" | "replicasets") | ("", "replicationcontrollers")
    )
}

/// The Scale of a workload.
fn scale_of(object: &Value) -> Value {
    let metadata = &object["metadata"];
    let labels = object["spec"]["selector"].get("matchLabels").unwrap_or(&object["spec"]["selector"]);
    let selector: Vec<_> = labels
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
        .collect();
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"], "creationTimestamp": metadata["creationTimestamp"],
        },
        "spec": {"replicas": object["spec"]["replicas"]},
        "status": {
            "replicas": object["status"]["replicas"].as_i64().unwrap_or_default(), "selector": selector.join(","),
        },
    })
}

//! Paths that are no resources: version, probes, discovery (facts §7).

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    discovery,
    negotiate::negotiate_discovery,
    render,
    request::Request,
    state::{Answer, State},
    status::Failure,
};

/// The version whose behaviour was measured.
const MINOR: &str = "36";
const GIT_VERSION: &str = "v1.36.3";

/// `/version`.
pub(super) fn version() -> Answer {
    let body = json!({
        "major": "1", "minor": MINOR, "gitVersion": GIT_VERSION, "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z", "goVersion": "", "compiler": "gc", "platform": "linux/amd64",
    });
    Answer::json(200, serde_json::to_vec_pretty(&body).unwrap_or_default())
}

/// `/healthz`, `/livez`, `/readyz`.
pub(super) fn health() -> Answer {
    let mut answer = Answer::json(200, &b"ok"[..]);
    answer.content_type = "text/plain; charset=utf-8".into();
    answer
}

// === impl State ===

impl State {
    /// `/api` and `/apis`, plain or aggregated.
    pub(super) fn groups(&self, core: bool, request: &Request) -> Result<Answer, Failure> {
        let kinds: Vec<_> = self.registry.all().cloned().collect();
        if !negotiate_discovery(&request.accept)? {
            let document = if core { discovery::api_versions() } else { discovery::group_list(&kinds) };
            return Ok(Answer::of_value(200, &document));
        }
        let mut body = render::to_vec(&discovery::aggregated(&kinds, core));
        let etag = format!("\"{}\"", hex(&Sha256::digest(&body)));
        body.push(b'\n');
        let headers =
            vec![("etag", etag.clone()), ("vary", "Accept".to_owned()), ("cache-control", "public".to_owned())];
        let unchanged = request.if_none_match.as_deref() == Some(etag.as_str());
        let mut answer = if unchanged { Answer::json(304, Vec::new()) } else { Answer::json(200, body) };
        answer.content_type = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList".into();
        answer.headers = headers;
        Ok(answer)
    }

    /// `/apis/<group>`.
    pub(super) fn group(&self, group: &str) -> Result<Answer, Failure> {
        let kinds: Vec<_> = self.registry.all().cloned().collect();
        match discovery::group(&kinds, group) {
            Some(document) => Ok(Answer::of_value(200, &document)),
            None => Err(Failure::page_not_found()),
        }
    }

    /// `/api/v1` and `/apis/<group>/<version>`.
    pub(super) fn group_version(&self, group: &str, version: &str) -> Result<Answer, Failure> {
        let kinds: Vec<_> = self.registry.all().cloned().collect();
        let document: Option<Value> = discovery::resource_list(&kinds, group, version);
        match document {
            Some(document) => Ok(Answer::of_value(200, &document)),
            None => Err(self.unknown(group, version)),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

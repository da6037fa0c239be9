//! Paths that are not resources: version, probes, discovery (facts §7).

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    discovery, encode,
    kinds::ServedKind,
    negotiate::negotiate_discovery,
    request::Request,
    state::{Answer, ApiState},
    status::Failure,
    storage::Scope,
};

const MINOR: &str = "36"; // the version whose behaviour was measured
const GIT_VERSION: &str = "v1.36.3";

pub(super) fn version() -> Answer {
    let body = json!({
        "major": "1", "minor": MINOR, "gitVersion": GIT_VERSION, "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z", "goVersion": "", "compiler": "gc", "platform": "linux/amd64",
    });
    Answer::json(200, serde_json::to_vec_pretty(&body).unwrap_or_default())
}

pub(super) fn health() -> Answer {
    plain(200, "ok")
}

/// The probes of a server that has just started.
pub(super) fn unhealthy() -> Answer {
    plain(500, "[+]ping ok\n[-]poststarthook failed: reason withheld\n")
}

fn plain(status: u16, text: &'static str) -> Answer {
    let mut answer = Answer::json(status, text.as_bytes());
    answer.content_type = "text/plain; charset=utf-8".into();
    answer
}

impl ApiState {
    /// `/api` and `/apis`, plain or aggregated.
    pub(super) fn groups(&self, core: bool, request: &Request) -> Result<Answer, Failure> {
        let is_aggregated = negotiate_discovery(&request.info.accept)?;
        let is_listed =
            |kind: &ServedKind| self.starting.is_none_or(|starting| starting.is_listed(kind, is_aggregated));
        let kinds: Vec<_> = self.registry.all().filter(|kind| is_listed(kind)).cloned().collect();
        if !is_aggregated {
            let mut document = if core { discovery::api_versions() } else { discovery::group_list(&kinds) };
            for (group, version) in self.dead_versions().iter().filter(|_| !core) {
                let entry = json!({"groupVersion": format!("{group}/{version}"), "version": version});
                add_version(&mut document["groups"], "/name", group, &entry);
            }
            return Ok(Answer::of_value(200, &document));
        }
        let mut document = discovery::aggregated(&kinds, core);
        for (group, version) in self.dead_versions().iter().filter(|_| !core) {
            let entry = json!({"version": version, "freshness": "Stale"});
            add_version(&mut document["items"], "/metadata/name", group, &entry);
        }
        let mut body = encode::to_vec(&document);
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

    /// Groups and versions of APIServices whose server is missing.
    fn dead_versions(&self) -> Vec<(String, String)> {
        let scope = Scope::new("apiregistration.k8s.io", "apiservices", None);
        let services = self.storage.scan(&scope).map(|(_, service)| &service.value["spec"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        services
            .filter(|spec| !spec["service"].is_null())
            .map(|spec| (text(&spec["group"]), text(&spec["version"])))
            .filter(|(group, version)| !self.registry.is_served(group, version))
            .collect()
    }

    pub(super) fn group(&self, group: &str) -> Result<Answer, Failure> {
        let kinds: Vec<_> = self.registry.all().cloned().collect();
        match discovery::group(&kinds, group) {
            Some(document) => Ok(Answer::of_value(200, &document)),
            None => Err(Failure::page_not_found()),
        }
    }

    pub(super) fn group_version(&self, group: &str, version: &str) -> Result<Answer, Failure> {
        let kinds: Vec<_> = self.registry.all().cloned().collect();
        let document: Option<Value> = discovery::resource_list(&kinds, group, version);
        match document {
            Some(document) => Ok(Answer::of_value(200, &document)),
            None => Err(self.unknown(group, version)),
        }
    }
}

fn add_version(entries: &mut Value, name: &str, group: &str, version: &Value) {
    let Some(entries) = entries.as_array_mut() else { return };
    match entries.iter_mut().find(|entry| entry.pointer(name).is_some_and(|name| name == group)) {
        Some(entry) => {
            if let Some(versions) = entry["versions"].as_array_mut() {
                versions.push(version.clone());
            }
        }
        None if name == "/name" => {
            entries.push(json!({"name": group, "versions": [version], "preferredVersion": version}));
        }
        None => entries.push(json!({"metadata": {"name": group}, "versions": [version]})),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

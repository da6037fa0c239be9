//! The store behind the API server, for what the API cannot do: objects with a past creation time, independent counts.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::http;

/// Operations per transaction; etcd allows 128.
const OPERATIONS: usize = 100;

pub(crate) struct Etcd {
    pub(super) port: u16,
}

impl Etcd {
    /// Writes objects under keys such as `configmaps/<namespace>/<name>`; the API server would set their creation time.
    pub(crate) fn store(&self, objects: &[(String, Value)]) -> Result<()> {
        for objects in objects.chunks(OPERATIONS) {
            let put = |(key, object): &(String, Value)| {
                let value = BASE64_STANDARD.encode(object.to_string());
                json!({ "requestPut": { "key": encoded(key), "value": value } })
            };
            let answer = self.post("/v3/kv/txn", &json!({ "success": objects.iter().map(put).collect::<Vec<_>>() }))?;
            ensure!(answer["succeeded"] == true, "etcd did not store: {answer}");
        }
        Ok(())
    }

    /// Returns the keys with this prefix, without `/registry/`.
    pub(crate) fn keys(&self, prefix: &str) -> Result<BTreeSet<String>> {
        // Keys are ASCII, so `~` sorts after every key with the prefix.
        let body = json!({ "key": encoded(prefix), "range_end": encoded(&format!("{prefix}~")), "keys_only": true });
        let answer = self.post("/v3/kv/range", &body)?;
        let keys = answer["kvs"].as_array().map(Vec::as_slice).unwrap_or_default();
        let decoded = |key: &Value| {
            let bytes = BASE64_STANDARD.decode(key["key"].as_str()?).ok()?;
            Some(String::from_utf8(bytes).ok()?.strip_prefix("/registry/")?.to_owned())
        };
        keys.iter().map(|key| decoded(key).ok_or_else(|| anyhow!("not a key of etcd: {key}"))).collect()
    }

    /// Drops the history before now, so that only versions in the API server's cache remain readable.
    pub(crate) fn compact(&self) -> Result<()> {
        let status = self.post("/v3/maintenance/status", &json!({}))?;
        let revision =
            status["header"]["revision"].as_str().ok_or_else(|| anyhow!("etcd names no revision: {status}"))?;
        self.post("/v3/kv/compaction", &json!({"revision": revision, "physical": true})).map(drop)
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value> {
        http::request(self.port, path, Some(&body.to_string()), None)?.json()
    }
}

fn encoded(key: &str) -> String {
    BASE64_STANDARD.encode(format!("/registry/{key}"))
}

//! Tests through a `kube::Client`, on virtual time.

mod controlling;
mod failing;
mod reading;
mod watching;
mod writing;

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use http::Request;
use jiff::Timestamp;
use kube::client::Body;
use serde_json::{Value, json};

use super::*;

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(test)
}

fn options() -> SimOptions {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    SimOptions::new(Clock::starting_at(start), Random::seeded(1))
}

struct Bench {
    sim: Sim,
    client: kube::Client,
}

struct Got {
    code: u16,
    headers: http::HeaderMap,
    text: String,
}

impl Got {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }

    fn message(&self) -> String {
        self.json()["message"].as_str().unwrap_or(&self.text).to_owned()
    }
}

impl Bench {
    fn new() -> Self {
        Self::with(options())
    }

    fn with(options: SimOptions) -> Self {
        let sim = Sim::new(options);
        let client = sim.client_as("tester", "tester/1.0");
        Self { sim, client }
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Result<Got, kube::Error> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.client.send(request.body(Body::from(body)).unwrap()).await?;
        let (parts, body) = response.into_parts();
        let text = String::from_utf8(body.collect_bytes().await.unwrap().to_vec()).unwrap();
        Ok(Got { code: parts.status.as_u16(), headers: parts.headers, text })
    }

    async fn get(&self, path: &str) -> Got {
        self.send("GET", path, &[], Vec::new()).await.unwrap()
    }

    async fn get_as(&self, path: &str, accept: &str) -> Got {
        self.send("GET", path, &[("accept", accept)], Vec::new()).await.unwrap()
    }

    async fn post(&self, path: &str, body: Value) -> Got {
        let headers = [("content-type", "application/json")];
        self.send("POST", path, &headers, body.to_string().into_bytes()).await.unwrap()
    }

    async fn put(&self, path: &str, body: Value) -> Got {
        let headers = [("content-type", "application/json")];
        self.send("PUT", path, &headers, body.to_string().into_bytes()).await.unwrap()
    }

    async fn merge(&self, path: &str, body: Value) -> Got {
        let headers = [("content-type", "application/merge-patch+json")];
        self.send("PATCH", path, &headers, body.to_string().into_bytes()).await.unwrap()
    }

    async fn delete(&self, path: &str, body: Value) -> Got {
        let headers = [("content-type", "application/json")];
        self.send("DELETE", path, &headers, body.to_string().into_bytes()).await.unwrap()
    }

    async fn watch(&self, path: &str) -> Events {
        self.watch_as(path, "application/json").await
    }

    async fn watch_as(&self, path: &str, accept: &str) -> Events {
        let request = Request::builder().uri(path).header("accept", accept).body(Body::empty()).unwrap();
        let response = self.client.send(request).await.unwrap();
        assert_eq!(response.status(), 200);
        let stream = http_body_util::BodyExt::into_data_stream(response.into_body());
        let reader = stream.map_err(std::io::Error::other).into_async_read();
        Events { lines: futures::io::AsyncBufReadExt::lines(reader).boxed() }
    }

    fn config_map(&self, name: &str) {
        self.sim.put(config_map(name)).unwrap();
    }
}

struct Events {
    lines: futures::stream::BoxStream<'static, std::io::Result<String>>,
}

impl Events {
    async fn next(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(Duration::from_secs(1), self.lines.next()).await.ok()??;
        Some(serde_json::from_str(&line.unwrap()).unwrap())
    }

    async fn brief(&mut self) -> String {
        match self.next().await {
            None => "nothing".into(),
            Some(event) => format!(
                "{} {}",
                event["type"].as_str().unwrap(),
                event["object"]["metadata"]["name"].as_str().unwrap_or_default()
            ),
        }
    }
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": {"a": "b"}})
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.g.io"},
        "spec": {
            "group": "g.io", "scope": "Namespaced",
            "names": {"kind": "Thing", "listKind": "ThingList", "plural": "things", "singular": "thing"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

fn thing(name: &str) -> Value {
    json!({"apiVersion": "g.io/v1", "kind": "Thing", "metadata": {"name": name, "namespace": "default"}, "spec": {"n": 1}})
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const THINGS: &str = "/apis/g.io/v1/namespaces/default/things";

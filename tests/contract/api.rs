use std::{rc::Rc, time::Duration};

use anyhow::{Context, Result, anyhow, bail};
use futures::future::LocalBoxFuture;
use http::{HeaderMap, Method, Request};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

/// Longer than any condition a row waits for; the deletion of a namespace takes 5 to 10 s.
const LIMIT: Duration = Duration::from_secs(40);

pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const JSON: &str = "application/json-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";

pub(crate) type Forget = Rc<dyn Fn() -> LocalBoxFuture<'static, Result<()>>>;

#[derive(Clone)]
pub(crate) struct Api {
    client: kube::Client,
    forget: Forget,
    /// The row's own empty namespace. Its unique name is also the prefix of the names of cluster-scoped objects.
    pub(crate) namespace: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) request: String,
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    pub(crate) body: Value,
}

pub(crate) struct Watch {
    request: String,
    body: Body,
    buffer: Vec<u8>,
}

pub(crate) struct Call {
    api: Api,
    method: Method,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Api {
    /// `forget` makes the server forget all versions before now, so that they are "too old".
    pub(crate) fn new(client: kube::Client, namespace: String, forget: Forget) -> Self {
        Self { client, forget, namespace }
    }

    pub(crate) fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// The collection of a kind in the row's namespace: `at("v1", "configmaps")`, `at("apps/v1", "deployments")`.
    pub(crate) fn at(&self, version: &str, plural: &str) -> String {
        format!("{}/namespaces/{}/{plural}", root(version), self.namespace)
    }

    pub(crate) fn maps(&self) -> String {
        self.at("v1", "configmaps")
    }

    pub(crate) fn unique(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.namespace)
    }

    pub(crate) fn call(&self, method: Method, path: impl Into<String>) -> Call {
        Call { api: self.clone(), method, path: path.into(), headers: Vec::new(), body: Vec::new() }
    }

    pub(crate) async fn get(&self, path: impl Into<String>) -> Result<Answer> {
        self.call(Method::GET, path).send().await
    }

    pub(crate) async fn post(&self, path: impl Into<String>, body: &Value) -> Result<Answer> {
        self.call(Method::POST, path).json(body).send().await
    }

    pub(crate) async fn put(&self, path: impl Into<String>, body: &Value) -> Result<Answer> {
        self.call(Method::PUT, path).json(body).send().await
    }

    pub(crate) async fn patch(&self, path: impl Into<String>, kind: &str, body: &Value) -> Result<Answer> {
        self.call(Method::PATCH, path).body(kind, &body.to_string()).send().await
    }

    pub(crate) async fn delete(&self, path: impl Into<String>) -> Result<Answer> {
        self.call(Method::DELETE, path).send().await
    }

    pub(crate) async fn delete_with(&self, path: impl Into<String>, options: &Value) -> Result<Answer> {
        self.call(Method::DELETE, path).json(options).send().await
    }

    pub(crate) async fn create(&self, path: impl Into<String>, body: &Value) -> Result<Value> {
        Ok(self.post(path, body).await?.code(201)?.body)
    }

    pub(crate) async fn create_map(&self, name: &str, metadata: Value) -> Result<Value> {
        self.create(self.maps(), &crate::bodies::config_map(name, metadata)).await
    }

    pub(crate) async fn version(&self, path: &str) -> Result<String> {
        Ok(self.get(path).await?.code(200)?.version())
    }

    /// Opens a watch; `path` has its query except for `watch=1`.
    pub(crate) async fn watch(&self, path: &str) -> Result<Watch> {
        self.call(Method::GET, path).watch().await
    }

    pub(crate) async fn eventually<T>(&self, what: &str, mut probe: impl AsyncFnMut() -> Result<T>) -> Result<T> {
        let deadline = Instant::now() + LIMIT;
        loop {
            match probe().await {
                Ok(value) => return Ok(value),
                Err(error) if Instant::now() > deadline => return Err(error.context(format!("not in time: {what}"))),
                Err(_) => sleep(Duration::from_millis(20)).await,
            }
        }
    }

    pub(crate) async fn becomes(&self, path: &str, code: u16) -> Result<Answer> {
        self.eventually(&format!("{path} is {code}"), async || self.get(path).await?.code(code)).await
    }

    pub(crate) async fn define(&self, definition: &Value) -> Result<()> {
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        self.create(definitions, definition).await?;
        let spec = &definition["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
        for version in spec["versions"].as_array().into_iter().flatten() {
            self.becomes(&format!("/apis/{group}/{}/{plural}", text(&version["name"])), 200).await?;
        }
        Ok(())
    }

    /// Makes all earlier versions too old to list or watch from. Only for rows that run alone: a real server restarts.
    pub(crate) async fn forget_history(&self) -> Result<()> {
        (self.forget)().await
    }
}

pub(crate) fn root(version: &str) -> String {
    if version.contains('/') { format!("/apis/{version}") } else { format!("/api/{version}") }
}

impl Call {
    pub(crate) fn json(self, body: &Value) -> Self {
        self.body("application/json", &body.to_string())
    }

    pub(crate) fn body(mut self, content_type: &str, body: &str) -> Self {
        self.body = body.as_bytes().to_vec();
        self.header("content-type", content_type)
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Asks for another form, for example `PartialObjectMetadata` or `Table`.
    pub(crate) fn form(self, kind: &str) -> Self {
        self.header("accept", &format!("application/json;as={kind};g=meta.k8s.io;v=v1"))
    }

    pub(crate) async fn send(self) -> Result<Answer> {
        let (request, future) = self.start()?;
        let answer = async {
            let response = future.await?;
            let (head, body) = response.into_parts();
            let bytes = body.collect().await.map_err(|error| anyhow!("read the body: {error}"))?.to_bytes();
            Ok::<_, anyhow::Error>((head, bytes))
        };
        let (head, bytes) = timeout(LIMIT, answer).await.with_context(|| format!("{request}: no answer"))??;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Ok(Answer { request, code: head.status.as_u16(), headers: head.headers, text, body })
    }

    pub(crate) async fn watch(mut self) -> Result<Watch> {
        let separator = if self.path.contains('?') { '&' } else { '?' };
        self.path = format!("{}{separator}watch=1", self.path);
        let (request, future) = self.start()?;
        let response = timeout(LIMIT, future).await.with_context(|| format!("{request}: no answer"))??;
        if response.status() != 200 {
            bail!("{request}: expected a stream, got {}", response.status());
        }
        Ok(Watch { request, body: response.into_body(), buffer: Vec::new() })
    }

    fn start(self) -> Result<(String, LocalBoxFuture<'static, Result<http::Response<Body>>>)> {
        let request = format!("{} {}", self.method, self.path);
        let mut builder = Request::builder().method(self.method).uri(&self.path);
        for (name, value) in &self.headers {
            builder = builder.header(*name, value);
        }
        let message = builder.body(Body::from(self.body)).with_context(|| request.clone())?;
        let (client, name) = (self.api.client, request.clone());
        Ok((request, Box::pin(async move { client.send(message).await.with_context(|| name) })))
    }
}

impl Answer {
    pub(crate) fn code(self, code: u16) -> Result<Self> {
        if self.code == code {
            return Ok(self);
        }
        bail!("{}: expected status {code}, got {} {}", self.request, self.code, self.text)
    }

    /// Fails unless this is exactly the Status `body` (with its `code`).
    pub(crate) fn is_status(&self, body: &Value) -> Result<()> {
        let expected = json!({"code": body["code"], "body": body});
        crate::expect::equal(&self.request, &json!({"code": self.code, "body": self.value()}), &expected)
    }

    pub(crate) fn fails(&self, code: u16, reason: &str, message: &str) -> Result<()> {
        let expected = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "code": code});
        let mut body = self.value();
        let got_reason = body["reason"].as_str().unwrap_or_default().to_owned();
        if let Some(fields) = body.as_object_mut() {
            fields.remove("details");
            fields.remove("reason");
        }
        crate::expect::equal(&self.request, &json!([self.code, got_reason, body]), &json!([code, reason, expected]))
    }

    pub(crate) fn fails_with(&self, code: u16, reason: &str, part: &str) -> Result<()> {
        let message = self.body["message"].as_str().unwrap_or_default();
        let shown = if message.contains(part) { part } else { message };
        let got = json!([self.code, self.body["reason"].as_str().unwrap_or_default(), shown]);
        crate::expect::equal(&self.request, &got, &json!([code, reason, part]))
    }

    pub(crate) fn is_text(&self, code: u16, text: &str) -> Result<()> {
        let kind = self.header("content-type").split(';').next().unwrap_or_default().to_owned();
        let got = json!([self.code, kind, self.text]);
        crate::expect::equal(&self.request, &got, &json!([code, "text/plain", text]))
    }

    pub(crate) fn header(&self, name: &str) -> String {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    }

    pub(crate) fn header_values(&self, name: &str) -> Vec<String> {
        self.headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).map(str::to_owned).collect()
    }

    pub(crate) fn version(&self) -> String {
        version(&self.body)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let items = self.body["items"].as_array().into_iter().flatten();
        items.map(|item| item["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
    }

    fn value(&self) -> Value {
        if self.body.is_null() { Value::String(self.text.clone()) } else { self.body.clone() }
    }
}

pub(crate) fn version(object: &Value) -> String {
    object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned()
}

impl Watch {
    pub(crate) async fn next(&mut self) -> Result<Option<Value>> {
        let event = timeout(LIMIT, self.read()).await;
        event.with_context(|| format!("{}: expected an event, got silence", self.request))?
    }

    pub(crate) async fn expect(&mut self, kind: &str, name: &str) -> Result<Value> {
        let event = self.next().await?.unwrap_or_default();
        let got = json!([event["type"], event["object"]["metadata"]["name"]]);
        crate::expect::equal(&self.request, &got, &json!([kind, name]))?;
        Ok(event["object"].clone())
    }

    async fn read(&mut self) -> Result<Option<Value>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Ok(Some(serde_json::from_slice(&line).context("an event is JSON")?));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(frame) => {
                    let frame = frame.map_err(|error| anyhow!("{}: {error}", self.request))?;
                    self.buffer.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
                }
            }
        }
    }
}

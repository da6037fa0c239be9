use anyhow::{Result, bail, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use gardener_resource_manager::api::resources::crd;
use http::{Method, Request};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};

use crate::support::{ControlPlane, User, eventually};

pub(crate) struct Admin {
    client: kube::Client,
}

pub(crate) fn bundles(namespace: &str) -> String {
    format!("/apis/resources.gardener.cloud/v1alpha1/namespaces/{namespace}/managedresources")
}

pub(crate) fn core(namespace: &str, plural: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/{plural}")
}

/// One kind that is hashed whole, one with secret content, and one with allocated fields.
pub(crate) fn objects(namespace: &str, name: &str, value: &str) -> Vec<Value> {
    let metadata = json!({ "namespace": namespace, "name": name });
    vec![
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { "k": value } }),
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": { "k": value } }),
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": { "namespace": namespace, "name": name, "annotations": { "value": value } },
            "spec": { "selector": { "app": name }, "ports": [{ "port": 80 }] }
        }),
    ]
}

pub(crate) fn secret(namespace: &str, name: &str, objects: &[Value]) -> Value {
    let stream: String = objects.iter().map(|object| format!("---\n{object}\n")).collect();
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "namespace": namespace, "name": name },
        "data": { "objects.yaml": BASE64_STANDARD.encode(stream) }
    })
}

pub(crate) fn managed_resource(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
        "metadata": { "namespace": namespace, "name": name }, "spec": { "secretRefs": [{ "name": name }] }
    })
}

pub(crate) fn is_applied(bundle: &Value) -> bool {
    let conditions = bundle["status"]["conditions"].as_array().into_iter().flatten();
    let applied = conditions.filter(|condition| condition["type"] == "ResourcesApplied");
    applied.clone().count() == 1
        && applied.clone().all(|condition| condition["status"] == "True")
        && bundle["status"]["observedGeneration"] == bundle["metadata"]["generation"]
}

impl Admin {
    pub(crate) async fn prepare(cluster: &ControlPlane, namespace: &str) -> Result<Self> {
        let admin = Self { client: cluster.client(User::Admin).await? };
        let definition: Value = serde_saphyr::from_str(crd::MANAGED_RESOURCES)?;
        admin.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await?;
        let namespace_object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
        admin.create("/api/v1/namespaces", &namespace_object).await?;
        eventually("ManagedResources are served", std::time::Duration::from_secs(20), async || {
            admin.list(&bundles(namespace)).await.map(drop)
        })
        .await?;
        Ok(admin)
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<(u16, Value)> {
        let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let content_type = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request =
            Request::builder().method(method).uri(path).header("content-type", content_type).body(Body::from(bytes))?;
        let response = self.client.send(request).await?;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await?.to_bytes();
        Ok((code, serde_json::from_slice(&bytes).unwrap_or_default()))
    }

    pub(crate) async fn create(&self, collection: &str, object: &Value) -> Result<Value> {
        let (code, answer) = self.send(Method::POST, collection, Some(object)).await?;
        ensure!(code == 201, "POST {collection}: {code} {answer}");
        Ok(answer)
    }

    pub(crate) async fn replace(&self, path: &str, object: &Value) -> Result<Value> {
        let (code, answer) = self.send(Method::PUT, path, Some(object)).await?;
        ensure!(code == 200, "PUT {path}: {code} {answer}");
        Ok(answer)
    }

    pub(crate) async fn merge(&self, path: &str, patch: &Value) -> Result<Value> {
        let (code, answer) = self.send(Method::PATCH, path, Some(patch)).await?;
        ensure!(code == 200, "PATCH {path}: {code} {answer}");
        Ok(answer)
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value> {
        let (code, answer) = self.send(Method::GET, path, None).await?;
        ensure!(code == 200, "GET {path}: {code} {answer}");
        Ok(answer)
    }

    pub(crate) async fn list(&self, collection: &str) -> Result<Vec<Value>> {
        let (code, mut answer) = self.send(Method::GET, collection, None).await?;
        ensure!(code == 200, "GET {collection}: {code} {answer}");
        match answer["items"].take() {
            Value::Array(items) => Ok(items),
            other => bail!("GET {collection}: items are {other}"),
        }
    }
}

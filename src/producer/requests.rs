//! The few requests a producer makes, on raw objects.

use bytes::Bytes;
use cluster::{ApiError, Resource};
use futures::{Stream, StreamExt as _};
use http::{Method, Request, header::CONTENT_TYPE};
use kube::{Client, core::WatchEvent};
use serde_json::{Value, json};

use crate::api::{
    keys,
    object::{resource_version, truthy},
};

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_MERGE_PATCH: &str = "application/strategic-merge-patch+json";
/// Objects of one page of a list.
const PAGE: u32 = 500;
/// The server ends a watch after so many seconds. What is watched is read anew then, so a silent connection hides nothing
/// for long.
const WATCH_SECONDS: u32 = 60;

/// The two kinds a producer has to do with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    ManagedResource,
    Secret,
}

/// One page of a list, or all of it.
pub(super) struct Listed {
    pub(super) items: Vec<Value>,
    pub(super) resource_version: String,
}

/// What is listed and watched.
#[derive(Debug, Clone, Copy)]
pub(super) struct Selection<'a> {
    /// `None` for all namespaces.
    pub(super) namespace: Option<&'a str>,
    pub(super) label_selector: &'a str,
    pub(super) field_selector: &'a str,
}

/// The requests. Those about a Secret leave quoted values out of error texts.
#[derive(Clone, Copy)]
pub(super) struct Requests<'a>(pub(super) &'a Client);

// === impl Kind ===

impl Kind {
    fn resource(self) -> Resource {
        match self {
            Self::ManagedResource => Resource::new(keys::GROUP, keys::VERSION, keys::KIND, keys::PLURAL, true),
            Self::Secret => Resource::new("", "v1", "Secret", "secrets", true),
        }
    }

    fn object_path(self, namespace: &str, name: &str) -> Result<String, ApiError> {
        self.resource().at(namespace, name).path(None)
    }
}

// === impl Requests ===

impl Requests<'_> {
    pub(super) async fn get(self, kind: Kind, namespace: &str, name: &str) -> Result<Value, ApiError> {
        self.send(kind, Method::GET, kind.object_path(namespace, name)?, None).await
    }

    /// `None` if the object does not exist.
    pub(super) async fn find(self, kind: Kind, namespace: &str, name: &str) -> Result<Option<Value>, ApiError> {
        absent_is_none(self.get(kind, namespace, name).await)
    }

    pub(super) async fn create(self, kind: Kind, namespace: &str, object: &Value) -> Result<Value, ApiError> {
        let path = kind.resource().at(namespace, "").collection_path()?;
        self.send(kind, Method::POST, path, Some((JSON, object))).await
    }

    pub(super) async fn replace(
        self,
        kind: Kind,
        namespace: &str,
        name: &str,
        object: &Value,
    ) -> Result<Value, ApiError> {
        self.send(kind, Method::PUT, kind.object_path(namespace, name)?, Some((JSON, object))).await
    }

    pub(super) async fn merge_patch(
        self,
        kind: Kind,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Value, ApiError> {
        self.send(kind, Method::PATCH, kind.object_path(namespace, name)?, Some((MERGE_PATCH, patch))).await
    }

    /// Hands a Secret to the garbage collector. One that does not exist needs none (spec 10 §19.6).
    pub(super) async fn mark_garbage_collectable(self, namespace: &str, name: &str) -> Result<(), ApiError> {
        let Some(secret) = self.find(Kind::Secret, namespace, name).await? else { return Ok(()) };
        if truthy(crate::api::object::label(&secret, keys::GARBAGE_COLLECTABLE)) {
            return Ok(());
        }
        let patch = json!({"metadata": {"labels": {keys::GARBAGE_COLLECTABLE: keys::GARBAGE_COLLECTABLE_VALUE}}});
        let path = Kind::Secret.object_path(namespace, name)?;
        let body = Some((STRATEGIC_MERGE_PATCH, &patch));
        absent_is_none(self.send(Kind::Secret, Method::PATCH, path, body).await).map(drop)
    }

    /// An object that does not exist is deleted already.
    pub(super) async fn delete(self, kind: Kind, namespace: &str, name: &str) -> Result<(), ApiError> {
        let path = kind.object_path(namespace, name)?;
        absent_is_none(self.send(kind, Method::DELETE, path, None).await).map(drop)
    }

    /// All objects of a selection, page by page.
    pub(super) async fn list(self, kind: Kind, selection: Selection<'_>) -> Result<Listed, ApiError> {
        let mut listed = Listed { items: Vec::new(), resource_version: String::new() };
        let mut token = String::new();
        loop {
            let uri = selection.uri(kind, &[("limit", &PAGE.to_string()), ("continue", &token)]);
            let mut page = self.send(kind, Method::GET, uri, None).await?;
            if let Value::Array(items) = page["items"].take() {
                listed.items.extend(items);
            }
            listed.resource_version = resource_version(&page).to_owned();
            token = page["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
            if token.is_empty() {
                return Ok(listed);
            }
        }
    }

    /// The changes of a selection from a version on; from the present state if it is empty, which then comes first.
    pub(super) async fn watch(
        self,
        kind: Kind,
        selection: Selection<'_>,
        from: &str,
    ) -> Result<impl Stream<Item = Result<WatchEvent<Value>, ApiError>>, ApiError> {
        let seconds = WATCH_SECONDS.to_string();
        let parameters = [("watch", "true"), ("timeoutSeconds", seconds.as_str()), ("resourceVersion", from)];
        let request = request(Method::GET, selection.uri(kind, &parameters), None)?;
        let is_secret = kind == Kind::Secret;
        let events = self.0.request_events::<Value>(request).await;
        let events = events.map_err(|error| ApiError::of_kube(&error, is_secret))?;
        Ok(events.map(move |event| event.map_err(|error| ApiError::of_kube(&error, is_secret))))
    }

    async fn send(
        self,
        kind: Kind,
        method: Method,
        uri: String,
        body: Option<(&str, &Value)>,
    ) -> Result<Value, ApiError> {
        let answer = self.0.request::<Value>(request(method, uri, body)?).await;
        answer.map_err(|error| ApiError::of_kube(&error, kind == Kind::Secret))
    }
}

fn request(method: Method, uri: String, body: Option<(&str, &Value)>) -> Result<Request<Vec<u8>>, ApiError> {
    let mut request = Request::builder().method(method).uri(uri);
    let mut bytes = Bytes::new();
    if let Some((content_type, object)) = body {
        request = request.header(CONTENT_TYPE, content_type);
        bytes = object.to_string().into();
    }
    request.body(bytes.into()).map_err(|error| ApiError::BadRequest(error.to_string()))
}

fn absent_is_none(result: Result<Value, ApiError>) -> Result<Option<Value>, ApiError> {
    match result {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

// === impl Selection ===

impl Selection<'_> {
    fn uri(self, kind: Kind, parameters: &[(&str, &str)]) -> String {
        let path = kind.resource().collection_path(self.namespace);
        let selectors = [("labelSelector", self.label_selector), ("fieldSelector", self.field_selector)];
        let all = parameters.iter().chain(&selectors);
        cluster::uri(&path, all.map(|(name, value)| (*name, *value)))
    }
}

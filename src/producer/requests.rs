use cluster::{
    ApiError, Resource,
    object::{resource_version, truthy},
};
use futures::{Stream, StreamExt as _};
use http::Request;
use kube::{
    Client,
    api::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, WatchParams},
    core::{WatchEvent, request::Error},
};
use serde_json::{Value, json};

use crate::api::{kinds, resources::keys};

const PAGE: u32 = 500;
/// The server then ends the watch, and everything is read again: a dead connection hides changes only so long.
const WATCH_SECONDS: u32 = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectKind {
    ManagedResource,
    Secret,
}

pub(super) struct Listed {
    pub(super) items: Vec<Value>,
    pub(super) resource_version: String,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Selection<'a> {
    pub(super) namespace: Option<&'a str>,
    pub(super) label_selector: &'a str,
    pub(super) field_selector: &'a str,
}

/// The requests. Errors about Secrets leave quoted values out of their texts.
#[derive(Clone, Copy)]
pub(super) struct Requests<'a>(pub(super) &'a Client);

impl ObjectKind {
    fn resource(self) -> Resource {
        match self {
            Self::ManagedResource => kinds::MANAGED_RESOURCE,
            Self::Secret => kinds::SECRET,
        }
    }

    fn all(self, namespace: Option<&str>) -> kube::core::Request {
        kube::core::Request::new(self.resource().collection_path(namespace))
    }

    fn one(self, namespace: &str, name: &str) -> Result<kube::core::Request, ApiError> {
        self.resource().at(namespace, name).path(None)?;
        Ok(self.all(Some(namespace)))
    }
}

impl Requests<'_> {
    pub(super) async fn get(self, kind: ObjectKind, namespace: &str, name: &str) -> Result<Value, ApiError> {
        self.send(kind, kind.one(namespace, name)?.get(name, &GetParams::default())).await
    }

    pub(super) async fn find(self, kind: ObjectKind, namespace: &str, name: &str) -> Result<Option<Value>, ApiError> {
        absent_is_none(self.get(kind, namespace, name).await)
    }

    pub(super) async fn create(self, kind: ObjectKind, namespace: &str, object: &Value) -> Result<Value, ApiError> {
        kind.resource().at(namespace, "").collection_path()?;
        let body = object.to_string().into_bytes();
        self.send(kind, kind.all(Some(namespace)).create(&PostParams::default(), body)).await
    }

    pub(super) async fn replace(
        self,
        kind: ObjectKind,
        namespace: &str,
        name: &str,
        object: &Value,
    ) -> Result<Value, ApiError> {
        let body = object.to_string().into_bytes();
        self.send(kind, kind.one(namespace, name)?.replace(name, &PostParams::default(), body)).await
    }

    pub(super) async fn merge_patch(
        self,
        kind: ObjectKind,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Value, ApiError> {
        self.patch(kind, namespace, name, &Patch::Merge(patch)).await
    }

    async fn patch(
        self,
        kind: ObjectKind,
        namespace: &str,
        name: &str,
        patch: &Patch<&Value>,
    ) -> Result<Value, ApiError> {
        self.send(kind, kind.one(namespace, name)?.patch(name, &PatchParams::default(), patch)).await
    }

    /// Marks a Secret for the garbage collector, if it exists (spec 10 §19.6).
    pub(super) async fn mark_garbage_collectable(self, namespace: &str, name: &str) -> Result<(), ApiError> {
        let Some(secret) = self.find(ObjectKind::Secret, namespace, name).await? else { return Ok(()) };
        if truthy(cluster::object::label(&secret, keys::GARBAGE_COLLECTABLE)) {
            return Ok(());
        }
        let patch = json!({"metadata": {"labels": {keys::GARBAGE_COLLECTABLE: keys::GARBAGE_COLLECTABLE_VALUE}}});
        absent_is_none(self.patch(ObjectKind::Secret, namespace, name, &Patch::Strategic(&patch)).await).map(drop)
    }

    pub(super) async fn delete(self, kind: ObjectKind, namespace: &str, name: &str) -> Result<(), ApiError> {
        let request = kind.one(namespace, name)?.delete(name, &DeleteParams::default());
        absent_is_none(self.send(kind, request).await).map(drop)
    }

    pub(super) async fn list(self, kind: ObjectKind, selection: Selection<'_>) -> Result<Listed, ApiError> {
        let mut listed = Listed { items: Vec::new(), resource_version: String::new() };
        let mut parameters =
            ListParams::default().labels(selection.label_selector).fields(selection.field_selector).limit(PAGE);
        loop {
            let mut page = self.send(kind, kind.all(selection.namespace).list(&parameters)).await?;
            if let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) {
                listed.items.extend(items);
            }
            listed.resource_version = resource_version(&page).to_owned();
            let token = page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()).map(str::to_owned);
            if token.is_none() {
                return Ok(listed);
            }
            parameters.continue_token = token;
        }
    }

    /// Watches a selection from a version on. With an empty version, the existing objects come first.
    pub(super) async fn watch(
        self,
        kind: ObjectKind,
        selection: Selection<'_>,
        from: &str,
    ) -> Result<impl Stream<Item = Result<WatchEvent<Value>, ApiError>>, ApiError> {
        let parameters = WatchParams::default()
            .labels(selection.label_selector)
            .fields(selection.field_selector)
            .timeout(WATCH_SECONDS)
            .disable_bookmarks();
        let request = kind.all(selection.namespace).watch(&parameters, from).map_err(|error| refused(&error))?;
        let is_secret = kind == ObjectKind::Secret;
        let events = self.0.request_events::<Value>(request).await;
        let events = events.map_err(|error| ApiError::of_kube(&error, is_secret))?;
        Ok(events.map(move |event| event.map_err(|error| ApiError::of_kube(&error, is_secret))))
    }

    async fn send(self, kind: ObjectKind, request: Result<Request<Vec<u8>>, Error>) -> Result<Value, ApiError> {
        let answer = self.0.request::<Value>(request.map_err(|error| refused(&error))?).await;
        answer.map_err(|error| ApiError::of_kube(&error, kind == ObjectKind::Secret))
    }
}

fn refused(error: &Error) -> ApiError {
    ApiError::BadRequest(error.to_string())
}

fn absent_is_none(result: Result<Value, ApiError>) -> Result<Option<Value>, ApiError> {
    match result {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

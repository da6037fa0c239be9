use cluster::{
    ApiError, ObjectRef, Resource,
    object::{NamespacedName, label, resource_version, truthy},
};
use futures::{Stream, StreamExt as _};
use kube::{
    Client,
    api::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, WatchParams},
    core::{Request, WatchEvent, request::Error},
};
use serde_json::{Value, json};

use crate::api::{kinds, resources::keys};

const PAGE: u32 = 500;
/// The server then ends the watch, and everything is read again: a dead connection hides changes only so long.
const WATCH_SECONDS: u32 = 60;

pub(super) struct Listed {
    pub(super) items: Vec<Value>,
    pub(super) resource_version: String,
}

/// Which ManagedResources are meant: one, or those with labels in a namespace or in all.
#[derive(Debug, Clone, Copy)]
pub(super) enum Selection<'a> {
    One(&'a NamespacedName),
    Labelled { namespace: Option<&'a str>, label_selector: &'a str },
}

/// The requests. Errors about Secrets leave quoted values out of their texts.
#[derive(Clone, Copy)]
pub(super) struct Requests<'a>(pub(super) &'a Client);

impl Requests<'_> {
    pub(super) async fn get(self, at: &ObjectRef) -> Result<Value, ApiError> {
        self.send(&at.resource, one(at)?.get(&at.name, &GetParams::default())).await
    }

    pub(super) async fn find(self, at: &ObjectRef) -> Result<Option<Value>, ApiError> {
        absent_is_none(self.get(at).await)
    }

    pub(super) async fn create(self, at: &ObjectRef, object: &Value) -> Result<Value, ApiError> {
        let body = object.to_string().into_bytes();
        self.send(&at.resource, Request::new(at.collection_path()?).create(&PostParams::default(), body)).await
    }

    /// Replaces a live object if `change` changes it.
    pub(super) async fn update(
        self,
        at: &ObjectRef,
        live: Value,
        change: impl FnOnce(&mut Value),
    ) -> Result<Value, ApiError> {
        let mut wanted = live.clone();
        change(&mut wanted);
        if wanted == live {
            return Ok(live);
        }
        let body = wanted.to_string().into_bytes();
        self.send(&at.resource, one(at)?.replace(&at.name, &PostParams::default(), body)).await
    }

    pub(super) async fn patch(self, at: &ObjectRef, patch: &Patch<&Value>) -> Result<Value, ApiError> {
        self.send(&at.resource, one(at)?.patch(&at.name, &PatchParams::default(), patch)).await
    }

    /// Marks a Secret for the garbage collector, if it exists (spec 10 §19.6).
    pub(super) async fn mark_garbage_collectable(self, namespace: &str, name: &str) -> Result<(), ApiError> {
        let at = kinds::SECRET.at(namespace, name);
        let Some(secret) = self.find(&at).await? else { return Ok(()) };
        if truthy(label(&secret, keys::GARBAGE_COLLECTABLE)) {
            return Ok(());
        }
        let patch = json!({"metadata": {"labels": {keys::GARBAGE_COLLECTABLE: keys::GARBAGE_COLLECTABLE_VALUE}}});
        absent_is_none(self.patch(&at, &Patch::Strategic(&patch)).await).map(drop)
    }

    pub(super) async fn delete(self, at: &ObjectRef) -> Result<(), ApiError> {
        absent_is_none(self.send(&at.resource, one(at)?.delete(&at.name, &DeleteParams::default())).await).map(drop)
    }

    /// Reads ManagedResources. The version of a missing one is empty.
    pub(super) async fn read(self, selection: Selection<'_>) -> Result<Listed, ApiError> {
        let (namespace, label_selector) = match selection {
            Selection::One(key) => {
                let found = self.find(&kinds::MANAGED_RESOURCE.named(key)).await?;
                let resource_version = found.as_ref().map(resource_version).unwrap_or_default().to_owned();
                return Ok(Listed { items: found.into_iter().collect(), resource_version });
            }
            Selection::Labelled { namespace, label_selector } => (namespace, label_selector),
        };
        let mut items = Vec::new();
        let mut parameters = ListParams::default().labels(label_selector).fields("").limit(PAGE);
        loop {
            let request = Request::new(kinds::MANAGED_RESOURCE.collection_path(namespace)).list(&parameters);
            let mut page = self.send(&kinds::MANAGED_RESOURCE, request).await?;
            if let Some(Value::Array(more)) = page.get_mut("items").map(Value::take) {
                items.extend(more);
            }
            let token = page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()).map(str::to_owned);
            if token.is_none() {
                return Ok(Listed { items, resource_version: resource_version(&page).to_owned() });
            }
            parameters.continue_token = token;
        }
    }

    /// Watches ManagedResources from a version on. With an empty version, the existing objects come first.
    pub(super) async fn watch(
        self,
        selection: Selection<'_>,
        from: &str,
    ) -> Result<impl Stream<Item = Result<WatchEvent<Value>, ApiError>>, ApiError> {
        let (namespace, label_selector, field_selector) = match selection {
            Selection::One(key) => (Some(key.namespace.as_str()), "", format!("metadata.name={}", key.name)),
            Selection::Labelled { namespace, label_selector } => (namespace, label_selector, String::new()),
        };
        let parameters = WatchParams::default()
            .labels(label_selector)
            .fields(&field_selector)
            .timeout(WATCH_SECONDS)
            .disable_bookmarks();
        let request = Request::new(kinds::MANAGED_RESOURCE.collection_path(namespace)).watch(&parameters, from);
        let events = self.0.request_events::<Value>(request.map_err(|error| refused(&error))?).await;
        let failed = |error| ApiError::of_kube(&error, false);
        Ok(events.map_err(failed)?.map(move |event| event.map_err(failed)))
    }

    async fn send(
        self,
        resource: &Resource,
        request: Result<http::Request<Vec<u8>>, Error>,
    ) -> Result<Value, ApiError> {
        let answer = self.0.request::<Value>(request.map_err(|error| refused(&error))?).await;
        answer.map_err(|error| ApiError::of_kube(&error, *resource == kinds::SECRET))
    }
}

fn one(at: &ObjectRef) -> Result<Request, ApiError> {
    at.path(None)?;
    Ok(Request::new(at.collection_path()?))
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

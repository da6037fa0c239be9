use std::rc::Rc;

use http::Method;
use kit::{Clock, Deadline, Priority, Random};
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::{
    AnswerRoom, ApiError, ClusterLabel, Discovery, Fence, ListQuery, ObjectRef, Page, Pages, RequestObserver,
    RequestScheduler, Resource, WatchQuery, WatchStream,
    contact::{Contact, Known},
    resource::Query,
    transport::{Admission, Answer, Call, JSON, MERGE_PATCH, Transport},
    warnings::Warnings,
    whole::named,
};

/// `Accept` header for one object's metadata. An old server sends the whole object, and [`narrow`] reduces it.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// A cluster; cheap to clone, bound to the thread that made it.
#[derive(Clone)]
pub struct Cluster(Rc<Inner>);

struct Inner {
    transport: Rc<Transport>,
    options: ClusterOptions,
    env: ClusterEnv,
    request_scheduler: RequestScheduler,
    discovery: Discovery,
}

/// Properties of a cluster's connection.
#[derive(Debug, Clone)]
pub struct ClusterOptions {
    /// Its name.
    pub label: ClusterLabel,
    /// `host:port` of the API server.
    pub host: String,
    /// Requests per second and resource type; negative is unlimited.
    pub qps: f32,
    /// Burst of requests per resource type, beyond which `qps` applies.
    pub burst: u32,
    /// The namespaces this process may read; empty for all (spec 70 §8.4).
    pub namespaces: Vec<String>,
}

/// What a cluster takes from the process.
#[derive(Debug, Clone)]
pub struct ClusterEnv {
    /// Time.
    pub clock: Clock,
    /// Randomness.
    pub random: Random,
    /// Whether this process may write; one for all clusters.
    pub fence: Fence,
    /// Room for answers. All clusters share it, and none can take all.
    pub room: AnswerRoom,
}

/// On whose behalf a request is made.
#[derive(Debug, Clone)]
pub struct Context {
    /// How urgent it is.
    pub priority: Priority,
    /// When the request ends at the latest.
    pub deadline: Deadline,
    /// Who asks: keys of one priority take turns in the request scheduler.
    pub key: Rc<str>,
}

/// Options of a deletion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Delete only if the object still has this uid.
    pub uid: Option<String>,
    /// Delete only if the object is still at this version.
    pub resource_version: Option<String>,
    /// What happens to dependents; the server's default for the kind if absent.
    pub propagation: Option<Propagation>,
    /// Replaces the grace period of a Pod, in seconds.
    pub grace_period_seconds: Option<u32>,
}

/// What happens to dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// They are deleted after the object.
    Background,
    /// They are deleted before the object.
    Foreground,
    /// They stay.
    Orphan,
}

/// Result of a deletion (api-facts §6).
#[derive(Debug, Clone, PartialEq)]
pub enum Deleted {
    /// The object is gone.
    Gone,
    /// The object, which waits for finalizers or a grace period.
    Pending(Value),
}

impl Cluster {
    /// Creates a cluster that uses only the service of `client`.
    pub fn new(
        client: kube::Client,
        options: ClusterOptions,
        env: ClusterEnv,
        observer: Rc<dyn RequestObserver>,
    ) -> Self {
        let request_scheduler = RequestScheduler::new(options.qps, options.burst, options.label, observer.clone());
        let host = options.host.clone();
        let warnings = Warnings::default();
        let room = env.room.of_cluster();
        let transport = Rc::new(Transport { client, host, observer, warnings, contact: Contact::default(), room });
        let discovery = Discovery::new(transport.clone());
        Self(Rc::new(Inner { transport, options, env, request_scheduler, discovery }))
    }

    /// Returns the cluster without request scheduler and fence: for Leases, which open the fence, and for last Events.
    pub fn beside(&self) -> Self {
        let request_scheduler = RequestScheduler::new(-1.0, 0, self.0.options.label, Rc::new(super::NoObserver));
        Self(Rc::new(Inner {
            transport: self.0.transport.clone(),
            options: self.0.options.clone(),
            env: ClusterEnv { fence: Fence::open(), ..self.0.env.clone() },
            request_scheduler,
            discovery: self.0.discovery.clone(),
        }))
    }

    /// Returns the cluster with its own request scheduler at half the rate: requests of strangers do not delay others.
    pub fn apart(&self) -> Self {
        let ClusterOptions { qps, burst, label, .. } = self.0.options;
        let request_scheduler = RequestScheduler::half(qps, burst, label, Rc::new(super::NoObserver));
        Self(Rc::new(Inner {
            transport: self.0.transport.clone(),
            options: self.0.options.clone(),
            env: self.0.env.clone(),
            request_scheduler,
            discovery: self.0.discovery.clone(),
        }))
    }

    /// Returns the cluster under another label, with the same connection, request scheduler and discovery.
    pub fn labelled(&self, label: ClusterLabel, namespaces: Vec<String>) -> Self {
        let inner = &self.0;
        Self(Rc::new(Inner {
            transport: inner.transport.clone(),
            options: ClusterOptions { label, namespaces, ..inner.options.clone() },
            env: inner.env.clone(),
            request_scheduler: inner.request_scheduler.clone(),
            discovery: inner.discovery.clone(),
        }))
    }

    /// Properties of its connection.
    pub fn options(&self) -> &ClusterOptions {
        &self.0.options
    }

    /// Returns true if the last request got no HTTP answer at all, not even an error, or no request has ended yet.
    pub fn is_silent(&self) -> bool {
        self.0.transport.contact.is_silent()
    }

    pub(super) fn transport(&self) -> &Transport {
        &self.0.transport
    }

    pub(super) fn contact(&self) -> watch::Receiver<Known> {
        self.0.transport.contact.subscribe()
    }

    /// The kinds it serves.
    pub fn discovery(&self) -> &Discovery {
        &self.0.discovery
    }

    /// The write fence.
    pub fn fence(&self) -> &Fence {
        &self.0.env.fence
    }

    /// The request scheduler.
    pub fn request_scheduler(&self) -> &RequestScheduler {
        &self.0.request_scheduler
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.0.env.clock
    }

    /// The random source.
    pub fn random(&self) -> &Random {
        &self.0.env.random
    }

    pub(super) fn observer(&self) -> &Rc<dyn RequestObserver> {
        &self.0.transport.observer
    }

    /// Reads one object, live.
    pub async fn get(&self, ctx: &Context, at: &ObjectRef) -> Result<Value, ApiError> {
        named(self.object(ctx, at, Call::read(at.path(None)?)).await?, &at.name)
    }

    /// Reads one object's metadata, as `PartialObjectMetadata`.
    pub async fn get_metadata(&self, ctx: &Context, at: &ObjectRef) -> Result<Value, ApiError> {
        let object = self.object(ctx, at, Call::read(at.path(None)?).accepting(METADATA)).await?;
        Ok(narrow(named(object, &at.name)?))
    }

    /// Reads a subresource of an object, e.g. `scale`.
    pub async fn get_subresource(&self, ctx: &Context, at: &ObjectRef, subresource: &str) -> Result<Value, ApiError> {
        self.object(ctx, at, Call::read(at.path(Some(subresource))?)).await
    }

    /// Reads one page of a list, or all without a limit. `scope` is a namespace; `None` for all or for cluster scope.
    pub async fn list(
        &self,
        ctx: &Context,
        resource: &Resource,
        scope: Option<&str>,
        query: &ListQuery,
    ) -> Result<Page, ApiError> {
        let call = query.call(resource, scope);
        let answer = self.perform(ctx, resource, &call).await?;
        Page::decode(resource, query.metadata_only, &answer)
    }

    /// Lists in pages of about 1 MiB, or fewer objects if necessary. Sets `query.limit` and `query.continue_token`.
    pub fn pages(&self, ctx: Context, resource: Resource, scope: Option<String>, query: ListQuery) -> Pages {
        Pages::new(self.clone(), ctx, resource, scope, query)
    }

    /// Opens a watch stream, without request scheduler and fence. Repeating it is up to the caller.
    pub async fn watch(
        &self,
        resource: &Resource,
        scope: Option<&str>,
        query: WatchQuery,
    ) -> Result<WatchStream, ApiError> {
        let opened = WatchStream::open(&self.0.transport, resource, scope, &query).await;
        if opened.as_ref().is_err_and(ApiError::is_not_served) {
            self.0.discovery.missed(&resource.group);
        }
        opened
    }

    /// Creates an object; returns it without `managedFields`. The name comes from the object, not from `at`.
    pub async fn create(&self, ctx: &Context, at: &ObjectRef, object: &Value) -> Result<Value, ApiError> {
        let call = Call::new(Method::POST, at.collection_path()?).with_body(JSON, object);
        self.written(ctx, at, call).await
    }

    /// As [`Self::create`], but returns only `PartialObjectMetadata`.
    pub(super) async fn create_metadata(
        &self,
        ctx: &Context,
        at: &ObjectRef,
        object: &Value,
    ) -> Result<Value, ApiError> {
        let call = Call::new(Method::POST, at.collection_path()?).with_body(JSON, object).accepting(METADATA);
        self.written(ctx, at, call).await.map(narrow)
    }

    /// Posts to a subresource, e.g. `token` of a ServiceAccount, and returns the answer.
    pub async fn create_subresource(
        &self,
        ctx: &Context,
        at: &ObjectRef,
        subresource: &str,
        object: &Value,
    ) -> Result<Value, ApiError> {
        let call = Call::new(Method::POST, at.path(Some(subresource))?).with_body(JSON, object);
        self.object(ctx, at, call).await
    }

    /// Replaces an object, or the part covered by its subresource (e.g. `status`). Returns it without `managedFields`.
    pub async fn replace(
        &self,
        ctx: &Context,
        at: &ObjectRef,
        subresource: Option<&str>,
        object: &Value,
    ) -> Result<Value, ApiError> {
        let call = Call::new(Method::PUT, at.path(subresource)?).with_body(JSON, object);
        self.written(ctx, at, call).await
    }

    /// Dry run of a replacement, without the fence: returns the object with the server's defaults and admission.
    pub async fn try_replace(&self, ctx: &Context, at: &ObjectRef, object: &Value) -> Result<Value, ApiError> {
        let uri = Query::default().maybe("dryRun", Some("All")).after(&at.path(None)?);
        let call = Call::new(Method::PUT, uri).with_body(JSON, object);
        self.beside().written(ctx, at, call).await
    }

    /// Applies a JSON merge patch, bound to `metadata.resourceVersion` if set. The answer has no `managedFields`.
    pub async fn merge_patch(
        &self,
        ctx: &Context,
        at: &ObjectRef,
        subresource: Option<&str>,
        patch: &Value,
    ) -> Result<Value, ApiError> {
        let call = Call::new(Method::PATCH, at.path(subresource)?).with_body(MERGE_PATCH, patch);
        self.written(ctx, at, call).await
    }

    /// As [`Self::merge_patch`], but returns only `PartialObjectMetadata`: no Secret's content is read.
    pub async fn merge_patch_metadata(&self, ctx: &Context, at: &ObjectRef, patch: &Value) -> Result<Value, ApiError> {
        let call = Call::new(Method::PATCH, at.path(None)?).with_body(MERGE_PATCH, patch).accepting(METADATA);
        self.written(ctx, at, call).await.map(narrow)
    }

    /// Deletes an object. If it does not exist, the error is [`ApiError::is_not_found`].
    pub async fn delete(&self, ctx: &Context, at: &ObjectRef, options: &DeleteOptions) -> Result<Deleted, ApiError> {
        self.delete_accepting(ctx, at, options, JSON).await
    }

    /// As [`Self::delete`], but returns only `PartialObjectMetadata`.
    pub(super) async fn delete_metadata(
        &self,
        ctx: &Context,
        at: &ObjectRef,
        options: &DeleteOptions,
    ) -> Result<Deleted, ApiError> {
        Ok(match self.delete_accepting(ctx, at, options, METADATA).await? {
            Deleted::Pending(object) => Deleted::Pending(narrow(object)),
            Deleted::Gone => Deleted::Gone,
        })
    }

    async fn delete_accepting(
        &self,
        ctx: &Context,
        at: &ObjectRef,
        options: &DeleteOptions,
        accept: &'static str,
    ) -> Result<Deleted, ApiError> {
        let call = Call::new(Method::DELETE, at.path(None)?).with_body(JSON, &options.body()).accepting(accept);
        let answer = self.object(ctx, at, call).await?;
        if answer["kind"] == "Status" && answer["metadata"]["name"].is_null() {
            return Ok(Deleted::Gone);
        }
        let object = named(answer, &at.name)?;
        let pending = crate::object::deletion_timestamp(&object).is_some();
        Ok(if pending { Deleted::Pending(object) } else { Deleted::Gone })
    }

    /// Deletes the objects of a namespace (or of a cluster-scoped kind) that have the labels.
    pub async fn delete_collection(
        &self,
        ctx: &Context,
        resource: &Resource,
        namespace: &str,
        label_selector: &str,
    ) -> Result<(), ApiError> {
        let path = resource.at(namespace, "").collection_path()?;
        let uri = Query::default().maybe("labelSelector", Some(label_selector)).after(&path);
        self.perform(ctx, resource, &Call::new(Method::DELETE, uri)).await.map(drop)
    }

    /// Reads the server's `/healthz`, without the request scheduler.
    pub async fn healthz(&self, deadline: Deadline) -> Result<(), ApiError> {
        let call = Call::read("/healthz".into()).accepting("*/*");
        let admit = async || Ok(Admission::default());
        self.0.transport.perform(&call, deadline, admit).await.map(drop)
    }

    async fn written(&self, ctx: &Context, at: &ObjectRef, call: Call) -> Result<Value, ApiError> {
        let is_review = at.resource.plural.ends_with("reviews");
        // A new object has the name of its body, or a name that the server made.
        let name = if call.method == Method::POST { "" } else { at.name.as_str() };
        let object = self.answered(ctx, at, call).await?.slim()?;
        // A review is answered and not stored, so it may have no metadata.
        if is_review && object.is_object() { Ok(object) } else { named(object, name) }
    }

    async fn object(&self, ctx: &Context, at: &ObjectRef, call: Call) -> Result<Value, ApiError> {
        let object = self.answered(ctx, at, call).await?.json()?;
        if object.is_object() { Ok(object) } else { Err(ApiError::Decode("it is not an object".into())) }
    }

    async fn answered(&self, ctx: &Context, at: &ObjectRef, call: Call) -> Result<Answer, ApiError> {
        let call = call.about_secret(at.resource.is_secret());
        // A creation misses its namespace, or an object named in its body.
        let is_about_it = call.method != Method::POST;
        let answer = self.perform(ctx, &at.resource, &call).await;
        answer.map_err(|error| if is_about_it { error.about(at) } else { error })
    }

    async fn perform(&self, ctx: &Context, resource: &Resource, call: &Call) -> Result<Answer, ApiError> {
        let write = !call.is_read();
        let admit = async || {
            let fence = &self.0.env.fence;
            if write {
                fence.check()?; // do not queue in vain
            }
            let _permit = Some(self.0.request_scheduler.acquire(ctx.priority, &ctx.key, resource, write).await);
            let guard = if write { Some(fence.enter()?) } else { None };
            Ok(Admission { _permit, guard })
        };
        let result = self.0.transport.perform(call, ctx.deadline, admit).await;
        let is_served = match &result {
            Ok(_) => Some(true),
            Err(error) if error.is_not_served() => Some(false),
            Err(error) => error.is_not_found().then_some(true), // the object does not exist, but its kind does
        };
        if is_served.is_some_and(|served| !served || self.0.discovery.lacks(resource)) {
            self.0.discovery.missed(&resource.group);
        }
        result
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Cluster").field(&self.0.options).finish()
    }
}

impl Context {
    /// Creates a context on behalf of `key`, until `deadline`.
    pub fn new(priority: Priority, deadline: Deadline, key: impl Into<Rc<str>>) -> Self {
        Self { priority, deadline, key: key.into() }
    }

    /// Returns the same context with another deadline.
    pub fn until(&self, deadline: Deadline) -> Self {
        Self { deadline, ..self.clone() }
    }
}

impl DeleteOptions {
    fn body(&self) -> Value {
        let mut preconditions = Map::new();
        for (field, value) in [("uid", &self.uid), ("resourceVersion", &self.resource_version)] {
            if let Some(value) = value {
                preconditions.insert(field.into(), value.as_str().into());
            }
        }
        let mut body =
            Map::from_iter([("kind".to_owned(), "DeleteOptions".into()), ("apiVersion".to_owned(), "v1".into())]);
        if !preconditions.is_empty() {
            body.insert("preconditions".into(), preconditions.into());
        }
        if let Some(propagation) = self.propagation {
            body.insert("propagationPolicy".into(), propagation.as_str().into());
        }
        if let Some(seconds) = self.grace_period_seconds {
            body.insert("gracePeriodSeconds".into(), seconds.into());
        }
        body.into()
    }
}

impl Propagation {
    /// Returns the API's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}

/// Reduces an object to its metadata, for servers that do not know `PartialObjectMetadata`.
pub(super) fn narrow(mut object: Value) -> Value {
    if object["kind"] == "PartialObjectMetadata" {
        return object;
    }
    let metadata = object.get_mut("metadata").map(Value::take);
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
}

#[cfg(test)]
mod tests;

use std::{rc::Rc, time::Duration};

use http::Method;
use kit::{Clock, Deadline, Priority, Random};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    AnswerRoom, ApiError, ClusterLabel, Discovery, Fence, ListQuery, ObjectRef, Page, RequestObserver,
    RequestScheduler, Resource, WatchQuery, WatchStream,
    contact::{Contact, Known},
    object::{deletion_timestamp, field_mut},
    resource::Query,
    transport::{Admission, Answer, Call, JSON, MERGE_PATCH, Transport},
    warnings::Warnings,
    whole::named,
};

/// `Accept` header for one object's metadata. An old server sends the whole object, and [`narrow`] reduces it.
pub(super) const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// A cluster; cheap to clone, bound to the thread that made it.
#[derive(Clone)]
pub struct Cluster {
    inner: Rc<Inner>,
    /// Whether answers are reduced to metadata.
    metadata_only: bool,
    /// Time limit of each request, beside the deadline of its context.
    request_limit: Option<Duration>,
}

#[derive(Clone)]
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
    /// How many seconds the object may take to end; the server's default for the kind if absent.
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
        let discovery = Discovery::new(transport.clone(), env.clock.clone());
        let inner = Inner { transport, options, env, request_scheduler, discovery };
        Self { inner: Rc::new(inner), metadata_only: false, request_limit: None }
    }

    fn with(&self, inner: Inner) -> Self {
        Self { inner: Rc::new(inner), ..self.clone() }
    }

    /// Returns the cluster with `PartialObjectMetadata` as the answer to a read, creation, patch or deletion of an
    /// object: no Secret's content is read.
    pub fn metadata_only(&self) -> Self {
        Self { metadata_only: true, ..self.clone() }
    }

    /// Returns the cluster with a time limit for each request, but not for watches and discovery.
    pub fn limited(&self, request_limit: Duration) -> Self {
        Self { request_limit: Some(request_limit), ..self.clone() }
    }

    /// Returns the cluster without request scheduler and fence: for Leases, which open the fence, and for last Events.
    pub fn beside(&self) -> Self {
        let request_scheduler = RequestScheduler::new(-1.0, 0, self.inner.options.label, Rc::new(super::NoObserver));
        let env = ClusterEnv { fence: Fence::open(), ..self.inner.env.clone() };
        self.with(Inner { env, request_scheduler, ..(*self.inner).clone() })
    }

    /// Returns the cluster with its own request scheduler at half the rate: requests of strangers do not delay others.
    pub fn apart(&self) -> Self {
        let ClusterOptions { qps, burst, label, .. } = self.inner.options;
        let request_scheduler = RequestScheduler::half(qps, burst, label, Rc::new(super::NoObserver));
        self.with(Inner { request_scheduler, ..(*self.inner).clone() })
    }

    /// Returns the cluster under another label, with the same connection, request scheduler and discovery.
    pub fn labelled(&self, label: ClusterLabel, namespaces: Vec<String>) -> Self {
        let options = ClusterOptions { label, namespaces, ..self.inner.options.clone() };
        self.with(Inner { options, ..(*self.inner).clone() })
    }

    /// Returns true if both share one connection, and so one API server.
    pub fn shares_connection(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.inner.transport, &other.inner.transport)
    }

    /// Properties of its connection.
    pub fn options(&self) -> &ClusterOptions {
        &self.inner.options
    }

    /// Returns true if the last request got no HTTP answer at all, not even an error, or no request has ended yet.
    pub fn is_silent(&self) -> bool {
        self.inner.transport.contact.is_silent()
    }

    /// Returns true if the last answer was a 401: the server does not accept the credentials.
    pub fn is_unauthorized(&self) -> bool {
        self.inner.transport.contact.is_unauthorized()
    }

    pub(super) fn transport(&self) -> &Transport {
        &self.inner.transport
    }

    pub(super) fn contact(&self) -> watch::Receiver<Known> {
        self.inner.transport.contact.subscribe()
    }

    /// The kinds it serves.
    pub fn discovery(&self) -> &Discovery {
        &self.inner.discovery
    }

    /// The write fence.
    pub fn fence(&self) -> &Fence {
        &self.inner.env.fence
    }

    /// The request scheduler.
    pub fn request_scheduler(&self) -> &RequestScheduler {
        &self.inner.request_scheduler
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.inner.env.clock
    }

    /// The random source.
    pub fn random(&self) -> &Random {
        &self.inner.env.random
    }

    pub(super) fn observer(&self) -> &Rc<dyn RequestObserver> {
        &self.inner.transport.observer
    }

    /// Reads one object, live.
    pub async fn get(&self, ctx: &Context, at: &ObjectRef) -> Result<Value, ApiError> {
        let object = self.object(ctx, at, Call::read(at.path(None)?)).await?;
        Ok(self.narrowed(named(object, &at.name)?))
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

    /// Opens a watch stream, without request scheduler and fence. Repeating it is up to the caller.
    pub async fn watch(
        &self,
        resource: &Resource,
        scope: Option<&str>,
        query: WatchQuery,
    ) -> Result<WatchStream, ApiError> {
        let opened = WatchStream::open(&self.inner.transport, resource, scope, &query).await;
        let is_outdated = match &opened {
            Ok(_) => self.inner.discovery.lacks(resource),
            Err(error) => error.is_not_served(),
        };
        if is_outdated {
            self.inner.discovery.missed(&resource.group);
        }
        opened
    }

    /// Creates an object; returns it without `managedFields`. The name comes from the object, not from `at`.
    pub async fn create(&self, ctx: &Context, at: &ObjectRef, object: &Value) -> Result<Value, ApiError> {
        let call = Call::new(Method::POST, at.collection_path()?).with_body(JSON, object);
        self.written(ctx, at, call).await
    }

    /// Posts a review, which the server answers and does not store: without the fence, and not before the request scheduler
    /// lets it pass.
    pub async fn review(&self, ctx: &Context, resource: &Resource, review: &Value) -> Result<Value, ApiError> {
        let env = ClusterEnv { fence: Fence::open(), ..self.inner.env.clone() };
        let unfenced = self.with(Inner { env, ..(*self.inner).clone() });
        unfenced.create(ctx, &resource.at("", ""), review).await
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

    /// Dry run of a creation, without the fence: returns the object with the server's defaults and admission.
    pub async fn try_create(&self, ctx: &Context, at: &ObjectRef, object: &Value) -> Result<Value, ApiError> {
        let uri = Query::default().maybe("dryRun", Some("All")).after(&at.collection_path()?);
        let call = Call::new(Method::POST, uri).with_body(JSON, object);
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

    /// Deletes an object. If it does not exist, the error is [`ApiError::is_not_found`].
    pub async fn delete(&self, ctx: &Context, at: &ObjectRef, options: &DeleteOptions) -> Result<Deleted, ApiError> {
        let call = Call::new(Method::DELETE, at.path(None)?).with_body(JSON, &options.body());
        let answer = self.object(ctx, at, call).await?;
        if answer["kind"] == "Status" && answer["metadata"]["name"].is_null() {
            return Ok(Deleted::Gone);
        }
        let object = named(answer, &at.name)?;
        let pending = deletion_timestamp(&object).is_some();
        Ok(if pending { Deleted::Pending(self.narrowed(object)) } else { Deleted::Gone })
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
        self.inner.transport.perform_at_once(&Call::read("/healthz".into()).accepting("*/*"), deadline).await.map(drop)
    }

    async fn written(&self, ctx: &Context, at: &ObjectRef, call: Call) -> Result<Value, ApiError> {
        let is_review = at.resource.plural.ends_with("reviews");
        // A new object has the name of its body, or a name that the server made.
        let name = if call.method == Method::POST { "" } else { at.name.as_str() };
        let object = self.answered(ctx, at, call).await?.slim()?;
        // A review is answered and not stored, so it may have no metadata.
        if is_review && object.is_object() { Ok(object) } else { Ok(self.narrowed(named(object, name)?)) }
    }

    pub(super) fn is_metadata_only(&self) -> bool {
        self.metadata_only
    }

    fn narrowed(&self, object: Value) -> Value {
        if self.metadata_only { narrow(object) } else { object }
    }

    async fn object(&self, ctx: &Context, at: &ObjectRef, call: Call) -> Result<Value, ApiError> {
        let object = self.answered(ctx, at, call).await?.json()?;
        if object.is_object() { Ok(object) } else { Err(ApiError::Decode("it is not an object".into())) }
    }

    async fn answered(&self, ctx: &Context, at: &ObjectRef, call: Call) -> Result<Answer, ApiError> {
        let call = call.about_secret(at.resource.is_secret());
        let call = if self.metadata_only { call.accepting(METADATA) } else { call };
        // A creation misses its namespace, or an object named in its body.
        let is_about_it = call.method != Method::POST;
        let answer = self.perform(ctx, &at.resource, &call).await;
        answer.map_err(|error| if is_about_it { error.about(at) } else { error })
    }

    async fn perform(&self, ctx: &Context, resource: &Resource, call: &Call) -> Result<Answer, ApiError> {
        let write = !call.is_read();
        let admit = async || {
            let fence = &self.inner.env.fence;
            if write {
                fence.check()?; // do not queue in vain
            }
            let _permit = Some(self.inner.request_scheduler.acquire(ctx.priority, &ctx.key, resource, write).await);
            let guard = if write { Some(fence.enter()?) } else { None };
            Ok(Admission { _permit, guard })
        };
        let deadline = self.request_limit.map_or(ctx.deadline, |limit| ctx.deadline.min(Deadline::after(limit)));
        let result = self.inner.transport.perform(call, deadline, admit).await;
        let is_served = match &result {
            Ok(_) => Some(true),
            Err(error) if error.is_not_served() => Some(false),
            Err(error) => error.is_not_found().then_some(true), // the object does not exist, but its kind does
        };
        if is_served.is_some_and(|served| !served || self.inner.discovery.lacks(resource)) {
            self.inner.discovery.missed(&resource.group);
        }
        result
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Cluster").field(&self.inner.options).finish()
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

impl From<Option<Propagation>> for DeleteOptions {
    fn from(propagation: Option<Propagation>) -> Self {
        Self { propagation, ..Self::default() }
    }
}

impl DeleteOptions {
    fn body(&self) -> Value {
        let mut body = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
        let options = [
            (&["preconditions", "uid"][..], self.uid.as_ref().map(|uid| json!(uid))),
            (&["preconditions", "resourceVersion"], self.resource_version.as_ref().map(|version| json!(version))),
            (&["propagationPolicy"], self.propagation.map(|propagation| json!(propagation.as_str()))),
            (&["gracePeriodSeconds"], self.grace_period_seconds.map(|seconds| json!(seconds))),
        ];
        for (path, value) in options {
            if let Some(value) = value {
                *field_mut(&mut body, path) = value;
            }
        }
        body
    }
}

impl Propagation {
    /// All policies.
    pub const ALL: [Self; 3] = [Self::Background, Self::Foreground, Self::Orphan];

    /// Returns the policy of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|propagation| propagation.as_str() == name)
    }

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

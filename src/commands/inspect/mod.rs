//! `describe`, `events`, `trace`, and `unpack` of a ManagedResource: read the source cluster and the target cluster, and
//! write nothing.
//! ```text
//! status.resources ─► live.rs: one object and how the controller judges it ┐
//! Secrets ─► documents.rs: the objects of the documents                    ├─► describe.rs ─► text.rs, JSON
//! Events ─► event.rs: one Event                                            ┘
//! object ─► trace.rs: its ManagedResource, Secret and document
//! Secrets ─► bundle.rs: their content
//! ```
//! Clusters are passed in, so tests use those of the simulator. Start reading at [`describe`](describe::describe).

pub(super) mod bundle;
pub(super) mod describe;
pub(super) mod description;
mod documents;
mod event;
pub(super) mod events;
mod live;
mod text;
pub(super) mod trace;

use std::time::Duration;

use cluster::{ApiError, Cluster, Context, ListQuery, Located, Nowhere, Pages, Resource, object::NamespacedName};
use jiff::Timestamp;
use kit::{Clock, Deadline, Priority, Random};
use serde_json::Value;

use super::{connect, report, selection};
use crate::{
    api::{
        kinds,
        resources::{managed_resource::ManagedResource, side::Side},
    },
    cli::{ReportFormat, RequestTimeout},
    jsonpath::TooMuch,
};

const TIME: Duration = Duration::from_secs(300);

/// Why nothing can be shown.
#[derive(Debug, thiserror::Error)]
pub(super) enum InspectError {
    #[error("cannot read {what}: {source}")]
    Read { what: String, source: ApiError },
    #[error("cannot read {what} of the target cluster: {source}")]
    ReadTarget { what: String, source: ApiError },
    #[error(transparent)]
    Report(#[from] TooMuch),
    #[error("{0}")]
    NotServed(String),
    #[error("{0}")]
    Input(String),
}

/// Both clusters, and the namespace of the source's context.
pub(super) struct Clusters {
    source: Cluster,
    target: Cluster,
    namespace: String,
}

/// A ManagedResource, as the server sent it and as the controller reads it.
struct Found {
    raw: Value,
    mr: ManagedResource,
}

impl Clusters {
    /// Nothing can be written through them. Without a target, the source is the target.
    pub(super) fn new(
        source: kube::Client,
        target: Option<kube::Client>,
        (clock, random): (Clock, Random),
        timeout: RequestTimeout,
    ) -> Self {
        let namespace = source.default_namespace().to_owned();
        let target = target.unwrap_or_else(|| source.clone());
        let limit = timeout.get();
        let cluster = |client, side| connect::read_only(client, side, clock.clone(), random.clone()).limited(limit);
        let (source, target) = (cluster(source, Side::Source), cluster(target, Side::Target));
        Self { source, target, namespace }
    }

    fn now(&self) -> Timestamp {
        self.source.clock().wall()
    }

    fn context(&self) -> Context {
        Context::new(Priority::High, Deadline::after(TIME), "inspect")
    }

    fn pages(&self, resource: Resource, scope: Option<String>, query: ListQuery) -> Pages {
        self.source.pages(self.context(), resource, scope, query)
    }

    /// Returns namespace and name of `[namespace/]name`. `--namespace` counts if the name has no namespace.
    fn key(&self, name: &str, namespace: Option<&str>) -> NamespacedName {
        selection::key(name, namespace.unwrap_or(&self.namespace))
    }

    async fn managed_resource(&self, key: &NamespacedName) -> Result<Option<Found>, InspectError> {
        let kind = kinds::MANAGED_RESOURCE.group_version_kind();
        match self.source.locate(&self.context(), &kind, (&key.namespace, &key.name), 0).await {
            Ok(Located::At(_, raw)) => found(raw).map(Some),
            Ok(Located::Nowhere(Nowhere::NotFound)) => Ok(None),
            Ok(Located::Nowhere(Nowhere::Kind(_))) => Err(InspectError::NotServed(connect::not_served())),
            Err(source) => Err(InspectError::Read { what: format!("ManagedResource {key}"), source }),
        }
    }
}

fn found(raw: Value) -> Result<Found, InspectError> {
    match ManagedResource::from_value(&raw) {
        Ok(mr) => Ok(Found { raw, mr }),
        Err(error) => Err(InspectError::Input(format!("{}: {error}", NamespacedName::of(&raw)))),
    }
}

pub(in crate::commands) fn missing(key: &NamespacedName) -> String {
    format!("error: there is no ManagedResource {key} — check name and namespace; get -A lists all")
}

fn report_of(value: &Value, format: &ReportFormat) -> Result<String, InspectError> {
    Ok(report::whole(value, format)?)
}

//! What a webhook may know of the clusters, as plain values (spec 50 §2.7). A webhook asks a [`View`], which answers at
//! once from stores in memory. If a store cannot answer for sure, the attempt ends with [`Failure::Look`]. The caller
//! then makes that one request and runs the webhook again, on the original object and with a view that knows the
//! answer. So a webhook needs no I/O, but must have no side effects.

use std::{collections::BTreeMap, sync::Arc};

use cluster::{Status, object::NamespacedName};
use kit::quote::cut;
use serde_json::Value;

use super::{
    cached_kind::{AnyCachedKind, CachedKind, Fields},
    fields::WrongType,
};

/// The knowledge of the clusters. Webhooks read objects with [`object`](#method.object), which knows the type of a
/// cached kind. `Ok(None)` is certain: the object does not exist. If a store is not sure, the answer is
/// `Err(Failure::Look(_))`. All methods fail with [`Failure::Look`] or with the reason why the read failed.
pub trait View {
    /// Returns the cached fields of an object, or `None` if it does not exist.
    fn find(
        &self,
        cached_kind: &'static dyn AnyCachedKind,
        name: &NamespacedName,
        recency: Recency,
    ) -> Result<Option<Fields>, Failure>;

    /// Returns the cached fields of all watched objects, in the order of their names.
    fn find_all(&self, cached_kind: &'static dyn AnyCachedKind) -> Result<Vec<(NamespacedName, Fields)>, Failure>;

    /// Returns the largest `spec.maxReplicas` of the HorizontalPodAutoscalers that scale a workload. `sure` demands a
    /// live read before `None`, because the workload is about to be scaled down (spec 51, "better" 5).
    fn autoscaler(&self, scaled: &Scaled<'_>, sure: bool) -> Result<Option<i64>, Failure>;

    /// Returns whether the cluster has exactly one Node (decision 4).
    fn has_one_node(&self) -> Result<bool, Failure>;

    /// Returns the tolerations for the taints of the Nodes that the configured selector matches, without duplicates,
    /// sorted by key, value and effect (spec 50 §10.1 rules 3 to 8).
    fn tolerations_of_nodes(&self) -> Result<Arc<Vec<Value>>, Failure>;

    /// Returns the first object of a collection whose deletion is not confirmed (spec 60 §2.3), read live at most a
    /// second ago. Fails with [`Failure::Status`] and code 404 if the kind does not exist, and always offline.
    fn unconfirmed(&self, _: &Collection) -> Result<Option<NamespacedName>, Failure> {
        let message = "only a cluster knows the other objects of the collection".to_owned();
        Err(Failure::Errored { code: 500, message })
    }
}

/// Objects that are deleted together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Collection {
    /// API group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Plural name, as in paths.
    pub plural: String,
    /// Namespace; empty for all namespaces and for cluster-scoped kinds.
    pub namespace: String,
    /// Label selector of the objects that count; `None` selects all.
    pub label_selector: Option<&'static str>,
}

/// How recent an answer must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Recency {
    /// The store's content is good enough, as far as the kind [allows](super::cached_kind::Objects::heard_of). Only
    /// objects that the store lacks are read live.
    Known,
    /// Read live for this attempt, because the store's content is or may be out of date.
    Live,
}

/// Strings by key, as in `metadata.annotations` or the `data` of a ConfigMap.
pub type Annotations = BTreeMap<String, String>;

/// The target of an autoscaler, `spec.scaleTargetRef`. All fields must be equal (spec 51 §2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scaled<'a> {
    /// Namespace of the autoscaler and its target.
    pub namespace: &'a str,
    /// E.g. `apps/v1`.
    pub api_version: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Name.
    pub name: &'a str,
}

/// One live read. Requests share equal reads that are in flight.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lookup {
    /// GET of an object.
    Object {
        /// Which kind, and which fields are cached.
        cached_kind: &'static dyn AnyCachedKind,
        /// Which object.
        name: NamespacedName,
        /// Why it is read.
        recency: Recency,
    },
    /// LIST of objects whose watch is out of contact.
    List(&'static dyn AnyCachedKind),
    /// Wait for the first list of these objects, which is in flight.
    Objects(&'static dyn AnyCachedKind),
    /// LIST of the HorizontalPodAutoscalers of a namespace.
    Autoscalers(String),
    /// Wait for the first list of the Nodes, which is in flight.
    Nodes,
    /// LIST of a collection that is about to be deleted.
    Collection(Box<Collection>),
}

/// Why a webhook has no result (spec 50 §2.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Not a verdict: this must be read live, then the webhook runs again.
    ReadLive(Lookup),
    /// Denied: 403 `Forbidden` with this text.
    Denied(String),
    /// Denied with an API status, unchanged.
    Status(Box<Status>),
    /// Code 500, because a read failed. The other webhooks pass on the status of a failed read.
    ReadFailed {
        /// What could not be read.
        read: Read,
        /// `status.message`.
        message: String,
    },
    /// A code and a message without a reason.
    Errored {
        /// `status.code`.
        code: u16,
        /// `status.message`.
        message: String,
    },
}

/// The subject of a failed read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// The Namespace of the object.
    Namespace,
    /// The HorizontalPodAutoscalers of the namespace.
    Autoscalers,
    /// The Nodes.
    Nodes,
}

impl dyn View + '_ {
    /// Like [`View::find`], typed, with [`Recency::Known`].
    pub fn object<T: Send + Sync + 'static>(
        &self,
        cached_kind: &'static CachedKind<T>,
        name: &NamespacedName,
    ) -> Result<Option<Arc<T>>, Failure> {
        self.find(cached_kind, name, Recency::Known)?.map(|fields| typed(cached_kind, fields)).transpose()
    }

    /// Like [`View::find`], typed, with [`Recency::Live`].
    pub fn object_live<T: Send + Sync + 'static>(
        &self,
        cached_kind: &'static CachedKind<T>,
        name: &NamespacedName,
    ) -> Result<Option<Arc<T>>, Failure> {
        self.find(cached_kind, name, Recency::Live)?.map(|fields| typed(cached_kind, fields)).transpose()
    }

    /// Like [`View::find_all`], typed.
    pub fn objects<T: Send + Sync + 'static>(
        &self,
        cached_kind: &'static CachedKind<T>,
    ) -> Result<Vec<(NamespacedName, Arc<T>)>, Failure> {
        let all = self.find_all(cached_kind)?.into_iter();
        all.map(|(name, fields)| Ok((name, typed(cached_kind, fields)?))).collect()
    }
}

fn typed<T: Send + Sync + 'static>(cached_kind: &CachedKind<T>, fields: Fields) -> Result<Arc<T>, Failure> {
    fields.downcast().map_err(|_| {
        let message = format!("the cached fields of a {} have an unexpected type", cached_kind.objects.kind);
        Failure::Errored { code: 500, message }
    })
}

impl Lookup {
    /// Returns the GET of an object that the stores lack.
    pub fn missing(cached_kind: &'static dyn AnyCachedKind, name: NamespacedName) -> Self {
        Self::Object { cached_kind, name, recency: Recency::Known }
    }

    /// Returns the object or namespace for the log, cut because clients choose it; empty if the read is of all.
    pub fn subject(&self) -> String {
        match self {
            Self::Object { name, .. } => cut(&name.to_string()).into_owned(),
            Self::Autoscalers(namespace) => cut(namespace).into_owned(),
            Self::Collection(collection) => cut(&collection.namespace).into_owned(),
            Self::List(_) | Self::Objects(_) | Self::Nodes => String::new(),
        }
    }
}

impl Failure {
    /// Returns a 404 worded like a cached read: with the kind, not the resource (spec 50 trap T4).
    pub fn not_found(kind: &str, name: &str) -> Self {
        Self::Status(Box::new(Status {
            code: 404,
            reason: "NotFound".to_owned(),
            message: format!("{kind} \"{name}\" not found"),
            name: name.to_owned(),
            kind: kind.to_owned(),
            ..Status::default()
        }))
    }

    /// Returns the text for the client.
    pub fn text(&self) -> &str {
        match self {
            Self::ReadLive(_) => "it must be read live first",
            Self::Denied(message) | Self::ReadFailed { message, .. } | Self::Errored { message, .. } => message,
            Self::Status(status) => &status.message,
        }
    }
}

impl From<WrongType> for Failure {
    /// Spec 50 §2.2 row 7.
    fn from(error: WrongType) -> Self {
        Self::Errored { code: 400, message: error.to_string() }
    }
}

//! What a webhook may know of the clusters, as plain values (spec 50 §2.7).
//!
//! A webhook asks a [`View`] and goes on at once: the view answers from stores in memory. What a store cannot answer for
//! sure ends the attempt with [`Failure::Look`]: whoever runs the webhook makes that one request and runs it again, on the
//! object as it came, with a view that knows the answer. A webhook needs no I/O for that, only to be free of side effects.

use std::{collections::BTreeMap, sync::Arc};

use serde::Serialize;
use serde_json::Value;

use super::{
    cached_kind::{AnyCachedKind, CachedKind, Fields},
    fields::WrongType,
};
use crate::api::{object::NamespacedName, quote::cut};

/// What is known of the clusters.
///
/// `Ok(None)` is certain: there is no such object. An answer that a store cannot vouch for is `Err(Failure::Look(_))`.
/// Objects are asked for with [`object`](#method.object), which knows the type of a projection.
pub trait View {
    /// What is kept of an object.
    ///
    /// # Errors
    /// [`Failure::Look`], or why it cannot be read.
    fn find(
        &self,
        cached_kind: &'static dyn AnyCachedKind,
        name: &NamespacedName,
        recency: Recency,
    ) -> Result<Option<Fields>, Failure>;

    /// What is kept of all objects that are watched, in the order of their names.
    ///
    /// # Errors
    /// [`Failure::Look`], or why they cannot be read.
    fn find_all(&self, cached_kind: &'static dyn AnyCachedKind) -> Result<Vec<(NamespacedName, Fields)>, Failure>;

    /// `spec.maxReplicas` of the HorizontalPodAutoscaler that scales a workload: the largest of several.
    /// `sure`: the workload is about to be scaled down, so that none must not be a matter of a store that lags
    /// (spec 51, "better" 5).
    ///
    /// # Errors
    /// [`Failure::Look`], or why it cannot be read.
    fn autoscaler(&self, scaled: &Scaled<'_>, sure: bool) -> Result<Option<i64>, Failure>;

    /// Whether the cluster has exactly one Node (decision 4).
    ///
    /// # Errors
    /// [`Failure::Look`], or why it cannot be read.
    fn has_one_node(&self) -> Result<bool, Failure>;

    /// The tolerations of the taints of the nodes that the configured selector matches, without doubles, sorted by key,
    /// value and effect (spec 50 §10.1 rules 3 to 8).
    ///
    /// # Errors
    /// [`Failure::Look`], or why they cannot be read.
    fn tolerations_of_nodes(&self) -> Result<Arc<Vec<Value>>, Failure>;

    /// The first object of a collection whose deletion is not confirmed (spec 60 §2.3). It is read live; the answer may be as
    /// old as a second. A view without a cluster fails.
    ///
    /// # Errors
    /// [`Failure::Look`], or why it cannot be read; [`Failure::Status`] with code 404 if there is no such kind.
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
    /// Its name in paths of the API.
    pub plural: String,
    /// Namespace; empty: of all, or of none.
    pub namespace: String,
    /// Which of them count; `None`: all.
    pub label_selector: Option<&'static str>,
}

/// How recent an answer must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Recency {
    /// What a store holds is good enough, as far as the kind [allows](super::projection::Objects::heard_of); only what it
    /// lacks is read live.
    Known,
    /// Read live for this attempt: what the store holds is known to be out of date, or may be.
    Live,
}

/// Texts by key, as in `metadata.annotations` or the `data` of a ConfigMap.
pub type Annotations = BTreeMap<String, String>;

/// The target of an autoscaler, `spec.scaleTargetRef`; all of it must be equal (spec 51 §2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scaled<'a> {
    /// Namespace of both.
    pub namespace: &'a str,
    /// E.g. `apps/v1`.
    pub api_version: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Name.
    pub name: &'a str,
}

/// One live read. Equal ones that are under way are shared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lookup {
    /// GET of an object.
    Object {
        /// What is kept of it.
        cached_kind: &'static dyn AnyCachedKind,
        /// Which one.
        name: NamespacedName,
        /// Why it is read.
        recency: Recency,
    },
    /// LIST of objects whose watch is not heard of.
    List(&'static dyn AnyCachedKind),
    /// The first list of objects, which is under way.
    Objects(&'static dyn AnyCachedKind),
    /// LIST of the HorizontalPodAutoscalers of a namespace.
    Autoscalers(String),
    /// The first list of the Nodes, which is under way.
    Nodes,
    /// LIST of a collection that is about to be deleted.
    Collection(Box<Collection>),
}

/// Why a webhook does not come to a result (spec 50 §2.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Not a verdict: this must be read live, then the webhook is run again.
    Look(Lookup),
    /// Denied: 403 `Forbidden` with this text.
    Denied(String),
    /// Denied with an API status, unchanged.
    Status(Box<ApiStatus>),
    /// Errored with code 500, because a read failed that the other webhooks pass on with its status.
    ReadFailed {
        /// What could not be read.
        read: Read,
        /// `status.message`.
        message: String,
    },
    /// Errored: a code and a message, no reason.
    Errored {
        /// `status.code`.
        code: u16,
        /// `status.message`.
        message: String,
    },
}

/// What a failed read was about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// The Namespace of the object.
    Namespace,
    /// The HorizontalPodAutoscalers of the namespace.
    Autoscalers,
    /// The Nodes.
    Nodes,
}

/// An API status that is passed through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiStatus {
    /// E.g. 404.
    pub code: u16,
    /// E.g. `NotFound`.
    pub reason: String,
    /// The text.
    pub message: String,
    /// `details`; empty without them.
    pub details: Details,
}

/// `details` of an API status, as they are written. What is empty is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    /// Name of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Group of the kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Kind of the object, or its resource.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Uid of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The findings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// When to try again.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u64,
}

/// One finding of an API status.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// E.g. `FieldValueInvalid`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Path of the field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

impl dyn View + '_ {
    /// What is known of an object.
    ///
    /// # Errors
    /// [`Failure::Look`], or why it cannot be read.
    pub fn object<T: Send + Sync + 'static>(
        &self,
        cached_kind: &'static CachedKind<T>,
        name: &NamespacedName,
    ) -> Result<Option<Arc<T>>, Failure> {
        self.find(cached_kind, name, Recency::Known)?.map(|fields| typed(cached_kind, fields)).transpose()
    }

    /// What a live read says of an object.
    ///
    /// # Errors
    /// [`Failure::Look`], or why it cannot be read.
    pub fn object_live<T: Send + Sync + 'static>(
        &self,
        cached_kind: &'static CachedKind<T>,
        name: &NamespacedName,
    ) -> Result<Option<Arc<T>>, Failure> {
        self.find(cached_kind, name, Recency::Live)?.map(|fields| typed(cached_kind, fields)).transpose()
    }

    /// What is known of all objects that are watched, in the order of their names.
    ///
    /// # Errors
    /// [`Failure::Look`], or why they cannot be read.
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde expects this signature")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Lookup {
    /// GET of an object that the stores lack.
    pub fn missing(cached_kind: &'static dyn AnyCachedKind, name: NamespacedName) -> Self {
        Self::Object { cached_kind, name, recency: Recency::Known }
    }

    /// Of which object or namespace it is, for the log; empty: of all. Clients choose these names.
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
    /// An object that does not exist, in the words of a cached read: with the kind, not the resource (spec 50 trap T4).
    pub fn not_found(kind: &str, name: &str) -> Self {
        Self::Status(Box::new(ApiStatus {
            code: 404,
            reason: "NotFound".to_owned(),
            message: format!("{kind} \"{name}\" not found"),
            details: Details { name: name.to_owned(), kind: kind.to_owned(), ..Details::default() },
        }))
    }

    /// What it says to whoever asked.
    pub fn text(&self) -> &str {
        match self {
            Self::Look(_) => "it must be read live first",
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

//! What a webhook may know of the target cluster, as plain values (spec 50 §2.7).
//!
//! A webhook asks a [`View`] and goes on at once: the view answers from stores in memory. What a store cannot answer for
//! sure ends the attempt with [`Failure::Look`]: whoever runs the webhook makes that one request and runs it again, on the
//! object as it came, with a view that knows the answer. A webhook needs no I/O for that, only to be free of side effects.

use std::{collections::BTreeMap, sync::Arc};

use serde::Serialize;
use serde_json::Value;

use super::fields::WrongType;
use crate::api::object::NamespacedName;

/// What is known of the target cluster.
///
/// `Ok(None)` is certain: there is no such object. An answer that a store cannot vouch for is `Err(Failure::Look(_))`.
pub trait View {
    /// A ServiceAccount.
    ///
    /// # Errors
    /// [`Failure::Look`], or why it cannot be read.
    fn service_account(&self, name: &NamespacedName) -> Result<Option<ServiceAccount>, Failure>;

    /// The annotations of a Namespace that the high-availability webhook reads.
    ///
    /// # Errors
    /// [`Failure::Look`], or why it cannot be read.
    fn namespace(&self, name: &str) -> Result<Option<Arc<Annotations>>, Failure>;

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

    /// `data` of the ConfigMap `istio-internal-load-balancing` of a namespace; only the keys `hosts` and
    /// `istio-namespace`.
    ///
    /// # Errors
    /// [`Failure::Look`], or why it cannot be read.
    fn load_balancing(&self, namespace: &str) -> Result<Option<Arc<Annotations>>, Failure>;

    /// `spec.clusterIPs` of the Service `istio-ingressgateway-internal` of a namespace.
    ///
    /// # Errors
    /// [`Failure::Look`], or why it cannot be read.
    fn gateway(&self, namespace: &str) -> Result<Option<Arc<Vec<String>>>, Failure>;
}

/// Texts by key, as in `metadata.annotations` or the `data` of a ConfigMap.
pub type Annotations = BTreeMap<String, String>;

/// What is read of a ServiceAccount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceAccount {
    /// `automountServiceAccountToken`.
    pub automount: Option<bool>,
}

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
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lookup {
    /// GET of a ServiceAccount.
    ServiceAccount(NamespacedName),
    /// GET of a Namespace.
    Namespace(String),
    /// LIST of the HorizontalPodAutoscalers of a namespace.
    Autoscalers(String),
    /// GET of the ConfigMap `istio-internal-load-balancing` of a namespace.
    LoadBalancing(String),
    /// GET of the Service `istio-ingressgateway-internal` of a namespace.
    Gateway(String),
    /// The first list of the Nodes, which is under way.
    Nodes,
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "that is how serde asks")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

// === impl Failure ===

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
}

impl From<WrongType> for Failure {
    /// Spec 50 §2.2 row 7.
    fn from(error: WrongType) -> Self {
        Self::Errored { code: 400, message: error.to_string() }
    }
}

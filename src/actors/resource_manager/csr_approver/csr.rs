//! Selects the CertificateSigningRequests to judge and reads them (spec 32 §4, §5).

use std::{sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use cluster::{CachedFields, Index, Watch, WatchOptions, Watches};
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    actors::shared::certificate_request::{Request, Unreadable},
    api::kinds,
};

/// Username prefix of kubelets; the name of the Node follows.
pub(super) const KUBELET: &str = "system:node:";

/// Group and kind.
pub const KIND: (&str, &str) = ("certificates.k8s.io", "CertificateSigningRequest");

/// The signers whose requests this controller judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signer {
    /// `kubernetes.io/kubelet-serving`
    KubeletServing,
    /// `kubernetes.io/kube-apiserver-client`
    KubeApiserverClient,
}

/// A CertificateSigningRequest to judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Csr {
    /// `spec.signerName`.
    pub signer: Signer,
    /// `spec.username`: the requesting user, set by the API server.
    pub username: String,
    /// The parsed `spec.request`.
    pub request: Request,
}

/// An unreadable request: no denial (spec 32 §5 row 4), no retry, as it is immutable ("Better than upstream" 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unable to parse csr: {0}")]
pub struct Unparsable(#[from] Unreadable);

impl Signer {
    /// Returns the signer for `spec.signerName`, or `None` if it is not ours.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "kubernetes.io/kubelet-serving" => Some(Self::KubeletServing),
            "kubernetes.io/kube-apiserver-client" => Some(Self::KubeApiserverClient),
            _ => None,
        }
    }
}

impl Csr {
    /// Reads a request; `None` unless it [needs a judgement](wants). Fails if `spec.request` cannot be parsed.
    pub fn read(csr: &Value) -> Result<Option<Self>, Unparsable> {
        let Some(signer) = open_for(csr) else { return Ok(None) };
        // Invalid base64 counts as invalid PEM; an API server stores neither.
        let pem = STANDARD.decode(text(csr, "/spec/request")).map_err(|_| Unreadable::Block)?;
        let request = Request::from_pem(&pem)?;
        Ok(Some(Self { signer, username: text(csr, "/spec/username").to_owned(), request }))
    }

    /// Returns the Node whose kubelet requests a serving certificate: the verdict depends on it and on its Machine.
    pub fn served_node(&self) -> Option<&str> {
        self.username.strip_prefix(KUBELET).filter(|_| self.signer == Signer::KubeletServing)
    }
}

/// Returns true if a request needs a judgement: the signer is ours, and the request has neither a certificate nor a
/// decision (spec 32 §4, §5 row 3, "Better than upstream" 5). Events are filtered by it.
pub fn wants(csr: &Value) -> bool {
    open_for(csr).is_some()
}

/// The watch of all requests. Undecided requests are kept whole, as the decision is sent with the whole object.
pub type Requests = Watch<CachedFields<Option<Arc<Value>>>>;

/// Opens the watch.
pub fn watch(watches: &Watches) -> Requests {
    let undecided = |csr: &Value| wants(csr).then(|| Arc::new(csr.clone()));
    watches.open(WatchOptions::fields(kinds::CERTIFICATE_SIGNING_REQUEST, undecided))
}

/// Indexes the undecided requests by the Node on which their verdict depends.
pub(super) fn index_by_node(requests: &Requests) -> Index<String> {
    requests.index(|_, csr| {
        let csr = csr.fields.as_ref().and_then(|csr| Csr::read(csr).ok().flatten());
        csr.iter().filter_map(Csr::served_node).map(str::to_owned).collect()
    })
}

/// Returns the age of a request: zero if its creation time is unreadable or lies in the future.
pub fn age(csr: &Value, now: Timestamp) -> Duration {
    let created = text(csr, "/metadata/creationTimestamp").parse::<Timestamp>().unwrap_or(now);
    Duration::try_from(now.duration_since(created)).unwrap_or_default()
}

fn open_for(csr: &Value) -> Option<Signer> {
    let signer = Signer::from_name(text(csr, "/spec/signerName"))?;
    let conditions = csr.pointer("/status/conditions").and_then(Value::as_array);
    let is_decided =
        conditions.into_iter().flatten().any(|condition| matches!(text(condition, "/type"), "Approved" | "Denied"));
    let is_issued = !text(csr, "/status/certificate").is_empty();
    (!is_decided && !is_issued).then_some(signer)
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

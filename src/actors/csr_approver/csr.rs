//! CertificateSigningRequests: which are ours to judge, and what is read of them (spec 32 §4, §5).

use std::{sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use cluster::{CachedFields, Resource, Watch, WatchOptions, Watches};
use jiff::Timestamp;
use serde_json::Value;

use super::request::{Request, Unreadable};

/// Group and kind.
pub const KIND: (&str, &str) = ("certificates.k8s.io", "CertificateSigningRequest");

/// Who signs the certificate; other signers are none of our business.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signer {
    /// `kubernetes.io/kubelet-serving`
    KubeletServing,
    /// `kubernetes.io/kube-apiserver-client`
    KubeApiserverClient,
}

/// A CertificateSigningRequest that wants to be judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Csr {
    /// Who shall sign.
    pub signer: Signer,
    /// `spec.username`: who asks, as the API server knows.
    pub username: String,
    /// What is asked for.
    pub request: Request,
}

/// A request that nobody can read: it is not denied (spec 32 §5 row 4), and trying again is of no use, because
/// `spec.request` is immutable ("Better than upstream" 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unable to parse csr: {0}")]
pub struct Unparsable(#[from] Unreadable);

impl Signer {
    /// By `spec.signerName`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "kubernetes.io/kubelet-serving" => Some(Self::KubeletServing),
            "kubernetes.io/kube-apiserver-client" => Some(Self::KubeApiserverClient),
            _ => None,
        }
    }
}

impl Csr {
    /// Reads a CertificateSigningRequest; `None` if [there is nothing to judge](wants).
    ///
    /// # Errors
    /// If `spec.request` is no request.
    pub fn read(csr: &Value) -> Result<Option<Self>, Unparsable> {
        let Some(signer) = open_for(csr) else { return Ok(None) };
        // What is no base64 is no PEM either; an API server stores neither.
        let pem = STANDARD.decode(text(csr, "/spec/request")).map_err(|_| Unreadable::Block)?;
        let request = Request::from_pem(&pem)?;
        Ok(Some(Self { signer, username: text(csr, "/spec/username").to_owned(), request }))
    }
}

/// Whether a CertificateSigningRequest wants to be judged: one of our signers shall sign it, and it has neither a
/// certificate nor a decision (spec 32 §4, §5 row 3, "Better than upstream" 5). The filter of its events.
pub fn wants(csr: &Value) -> bool {
    open_for(csr).is_some()
}

/// The watch of all requests. They are kept whole while they wait for a decision, because that is sent with all of what was
/// read; of others only the version is kept.
pub type Requests = Watch<CachedFields<Option<Arc<Value>>>>;

/// Opens the watch.
pub fn watch(watches: &Watches) -> Requests {
    let resource = Resource::new(KIND.0, "v1", KIND.1, "certificatesigningrequests", false);
    watches.open(WatchOptions::new(resource, |csr| CachedFields::of(csr, wants(csr).then(|| Arc::new(csr.clone())))))
}

/// How long ago it was created; zero if that cannot be read, or lies ahead.
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

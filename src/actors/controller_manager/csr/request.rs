//! What counts of a CertificateSigningRequest (spec 81 B.2). Pure.

use std::collections::BTreeSet;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::Value;

use crate::actors::{
    controller_manager::fields::{list, text},
    shared::certificate_request::{Request, Unreadable},
};

/// The signer of client certificates. Requests for others are left alone.
pub const SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// A request for a client certificate that is not decided yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GardenletRequest {
    /// `spec.username`: who asks.
    pub username: String,
    /// `spec.uid`, `spec.groups` and `spec.extra` of the user, as in the request.
    pub user: Value,
    /// `spec.groups`.
    pub groups: Vec<String>,
    /// `spec.usages`.
    pub usages: BTreeSet<String>,
    /// The parsed `spec.request`.
    pub certificate: Request,
}

/// Returns true if a request has neither a certificate nor a decision (rule 2).
pub fn is_undecided(csr: &Value) -> bool {
    let is_decided = |condition: &Value| matches!(text(condition, "/type"), "Approved" | "Denied");
    text(csr, "/status/certificate").is_empty() && !list(csr, "/status/conditions").any(is_decided)
}

impl GardenletRequest {
    /// Reads a request; `None` if it is decided or for another signer. Fails if `spec.request` cannot be read.
    pub fn read(csr: &Value) -> Result<Option<Self>, Unreadable> {
        if text(csr, "/spec/signerName") != SIGNER || !is_undecided(csr) {
            return Ok(None);
        }
        let pem = BASE64_STANDARD.decode(text(csr, "/spec/request")).map_err(|_| Unreadable::Block)?;
        let certificate = Request::from_pem(&pem)?;
        let texts = |pointer| list(csr, pointer).map(|entry| entry.as_str().unwrap_or_default().to_owned());
        let of_user = ["uid", "groups", "extra"];
        let of_user =
            of_user.iter().filter_map(|field| Some(((*field).to_owned(), csr.get("spec")?.get(*field)?.clone())));
        Ok(Some(Self {
            username: text(csr, "/spec/username").to_owned(),
            user: Value::Object(of_user.filter(|(_, value)| !value.is_null()).collect()),
            groups: texts("/spec/groups").collect(),
            usages: texts("/spec/usages").collect(),
            certificate,
        }))
    }
}

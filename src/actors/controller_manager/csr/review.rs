//! The SubjectAccessReview about the requesting user, and what is written for a decision (spec 81 B.5, B.6). Pure.

use cluster::object;
use serde_json::{Value, json};

use super::{request::GardenletRequest, requirements::Certificate};

/// Label of approved requests in metrics.
pub(super) const APPROVED: &str = "approved";
/// Label of denied requests in metrics.
pub(super) const DENIED: &str = "denied";

/// What is decided about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The certificate may be issued.
    Approve,
    /// It must not, for this reason. That is final.
    Deny(String),
}

impl Decision {
    /// Says what is done, for errors.
    pub(super) fn verb(&self) -> &'static str {
        match self {
            Self::Approve => "approving",
            Self::Deny(_) => "denying",
        }
    }

    /// Returns its label in metrics.
    pub(super) fn label(&self) -> &'static str {
        match self {
            Self::Approve => APPROVED,
            Self::Deny(_) => DENIED,
        }
    }

    /// Says that it is done, for the log.
    pub(super) fn done(&self) -> &'static str {
        match self {
            Self::Approve => "Approval successful",
            Self::Deny(_) => "Denial successful",
        }
    }
}

/// Returns the question whether the user of a request may have the certificate.
pub fn review(request: &GardenletRequest, certificate: Certificate) -> Value {
    let mut review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {
            "user": request.username,
            "resourceAttributes": {
                "group": "certificates.k8s.io", "resource": "certificatesigningrequests", "verb": "create",
                "subresource": certificate.subresource(),
            },
        },
    });
    if let (Value::Object(spec), Value::Object(user)) = (object::field_mut(&mut review, &["spec"]), &request.user) {
        spec.extend(user.clone());
    }
    review
}

/// Returns true if the answer to a review allows the certificate.
pub fn is_allowed(answer: &Value) -> bool {
    answer.pointer("/status/allowed") == Some(&Value::Bool(true))
}

/// Returns the request with the condition of a decision. The API server sets its times.
pub fn decided(mut csr: Value, decision: &Decision) -> Value {
    let (kind, reason, message) = match decision {
        Decision::Approve => (
            "Approved",
            "AutoApproved",
            "Auto approving gardenlet client certificate after SubjectAccessReview.".to_owned(),
        ),
        Decision::Deny(reason) => (
            "Denied",
            "RequestDenied",
            format!(
                "Denying gardenlet client certificate (Bootstrap token does not fulfill requirements for auto-approval: \
                 {reason})"
            ),
        ),
    };
    let condition = json!({ "type": kind, "status": "True", "reason": reason, "message": message });
    match object::field_mut(&mut csr, &["status", "conditions"]) {
        Value::Array(conditions) => conditions.push(condition),
        conditions => *conditions = json!([condition]),
    }
    csr
}

//! The condition that is written for a verdict (spec 32 §5.2).

use cluster::object;
use serde_json::{Value, json};

use super::judge::{Certificate, CsrVerdict};

/// What is sent to the subresource `approval`: the CertificateSigningRequest as it was read, with one more condition.
/// `None` if nothing is to be written. Its `resourceVersion` is what makes two deciders notice each other.
pub fn decided(mut csr: Value, verdict: &CsrVerdict) -> Option<Value> {
    let condition = condition(verdict)?;
    match object::field_mut(&mut csr, &["status", "conditions"]) {
        Value::Array(conditions) => conditions.push(condition),
        conditions => *conditions = json!([condition]),
    }
    Some(csr)
}

/// The condition of a verdict. It has no times: the API server sets them.
pub fn condition(verdict: &CsrVerdict) -> Option<Value> {
    let (kind, reason, message) = match verdict {
        CsrVerdict::Approved(certificate) => {
            ("Approved", "RequestApproved", message("Approving", *certificate, "all checks passed"))
        }
        CsrVerdict::Denied(certificate, denial) => {
            ("Denied", "RequestDenied", message("Denying", *certificate, &denial.reason))
        }
        CsrVerdict::NoOpinion(_) => return None,
    };
    Some(json!({"type": kind, "status": "True", "reason": reason, "message": message}))
}

fn message(verb: &str, certificate: Certificate, reason: &str) -> String {
    let certificate = match certificate {
        Certificate::KubeletServing => "kubelet server",
        Certificate::NodeAgent => "gardener-node-agent",
    };
    format!("{verb} {certificate} certificate CSR ({reason})")
}

//! The condition that records a verdict (spec 32 §5.2).

use cluster::object;
use serde_json::{Value, json};

use super::judge::{Certificate, CsrVerdict};

/// Returns the request plus a condition; `None` without an opinion. `resourceVersion` stops a concurrent decider.
pub fn decided(mut csr: Value, verdict: &CsrVerdict) -> Option<Value> {
    let condition = condition(verdict)?;
    match object::field_mut(&mut csr, &["status", "conditions"]) {
        Value::Array(conditions) => conditions.push(condition),
        conditions => *conditions = json!([condition]),
    }
    Some(csr)
}

/// Returns the condition of a verdict, without times: the API server sets them.
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

//! CertificateSigningRequests (spec 61 §5.1).

use super::{CSRS, End, Request, texts};
use crate::webhooks::authorizing::Decision;

/// A node agent may create any CSR, because another controller approves them. It may read only its own.
pub(super) fn decide(request: Request<'_>) -> Result<Decision, End> {
    if request.action.verb == "create" {
        return Ok(Decision::Allow);
    }
    let name = &*request.action.name;
    let found = request.object(&CSRS, "", name);
    let found = found.map_err(|failure| End::while_reading(failure, || texts::getting_csr(name)))?;
    let username = found.ok_or_else(|| End::Deny(texts::no_csr(name)))?;
    if **username == *request.user { Ok(Decision::Allow) } else { Err(End::Deny(texts::only_own_csrs(request.user))) }
}

//! CertificateSigningRequests (spec 61 §5.1).

use super::{CSRS, End, Request, texts};
use crate::webhooks::authorizing::Decision;

/// Any may be created: approval is another controller's business. Those of others may not be read.
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

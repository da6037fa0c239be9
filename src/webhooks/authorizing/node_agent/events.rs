//! Events (spec 61 §5.2): a node agent may write them in any namespace.

use crate::webhooks::authorizing::Decision;

pub(super) fn decide() -> Decision {
    Decision::Allow
}

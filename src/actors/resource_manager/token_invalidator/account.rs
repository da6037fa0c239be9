//! ServiceAccounts: whether their static tokens are wanted (spec 31 §4.2 rule 5).

use cluster::object;
use serde_json::Value;

use crate::api::resources::keys::TOKEN_INVALIDATOR_SKIP;

/// The cached fields of a ServiceAccount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Tells a recreated ServiceAccount from the old one.
    uid: Box<str>,
    /// It opted out of tokens (`automountServiceAccountToken: false`) and has no skip label, whatever its value.
    pub wants_no_tokens: bool,
}

impl Account {
    /// Reads a ServiceAccount.
    pub fn of(account: &Value) -> Self {
        let opted_out = account.get("automountServiceAccountToken") == Some(&Value::Bool(false));
        let is_skipped = object::label(account, TOKEN_INVALIDATOR_SKIP).is_some();
        Self { uid: object::uid(account).into(), wants_no_tokens: opted_out && !is_skipped }
    }
}

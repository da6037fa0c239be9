//! ServiceAccounts: whether their static tokens are wanted (spec 31 §4.2 rule 5).

use cluster::{CachedFields, Watch, WatchOptions, Watches, object};
use serde_json::Value;

use crate::api::{kinds, resources::keys::TOKEN_INVALIDATOR_SKIP};

/// The cached fields of a ServiceAccount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Tells a recreated ServiceAccount from the old one.
    uid: Box<str>,
    /// It opted out of tokens (`automountServiceAccountToken: false`) and has no skip label, whatever its value.
    pub wants_no_tokens: bool,
}

pub(super) type Accounts = Watch<CachedFields<Account>>;

/// Opens the watch; it shares its informer with webhooks that read ServiceAccounts.
pub(super) fn watch(watches: &Watches) -> Accounts {
    watches.open(WatchOptions::new(kinds::SERVICE_ACCOUNT, |account| CachedFields::of(account, Account::of(account))))
}

impl Account {
    /// Reads a ServiceAccount.
    pub fn of(account: &Value) -> Self {
        let opted_out = account.get("automountServiceAccountToken") == Some(&Value::Bool(false));
        let is_skipped = object::label(account, TOKEN_INVALIDATOR_SKIP).is_some();
        Self { uid: object::uid(account).into(), wants_no_tokens: opted_out && !is_skipped }
    }
}

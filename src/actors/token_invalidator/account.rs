//! ServiceAccounts: whether their static tokens are wanted (spec 31 §4.2 rule 5).

use cluster::{CachedFields, Change, Resource, Watch, WatchOptions, Watches, object};
use serde_json::Value;

use crate::api::keys::TOKEN_INVALIDATOR_SKIP;

/// The cached fields of a ServiceAccount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Tells a recreated ServiceAccount from the old one.
    uid: Box<str>,
    /// It opted out of tokens (`automountServiceAccountToken: false`) and has no skip label, whatever its value.
    pub wants_no_tokens: bool,
}

pub(super) type Accounts = Watch<CachedFields<Account>>;

pub(super) fn service_account() -> Resource {
    Resource::new("", "v1", "ServiceAccount", "serviceaccounts", true)
}

/// Opens the watch; it shares its informer with webhooks that read ServiceAccounts.
pub(super) fn watch(watches: &Watches) -> Accounts {
    watches.open(WatchOptions::new(service_account(), |account| CachedFields::of(account, Account::of(account))))
}

/// Returns true if the ServiceAccount is new or different (spec 31 §4.1, "Better than upstream" 1).
pub(super) fn concerns_its_secrets(change: &Change<'_, CachedFields<Account>>) -> bool {
    change.new.is_some() && change.old.map(|old| &old.fields) != change.new.map(|new| &new.fields)
}

impl Account {
    /// Reads a ServiceAccount.
    pub fn of(account: &Value) -> Self {
        let opted_out = account.get("automountServiceAccountToken") == Some(&Value::Bool(false));
        let is_skipped = object::label(account, TOKEN_INVALIDATOR_SKIP).is_some();
        Self { uid: object::uid(account).into(), wants_no_tokens: opted_out && !is_skipped }
    }
}

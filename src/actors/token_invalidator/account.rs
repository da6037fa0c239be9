//! ServiceAccounts: whether the static tokens of one are wanted (spec 31 §4.2 rule 5).

use cluster::{CachedFields, Change, Resource, Watch, WatchOptions, Watches, object};
use serde_json::Value;

use crate::api::keys::TOKEN_INVALIDATOR_SKIP;

/// What is kept of a ServiceAccount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// One that was deleted and made anew is another one.
    uid: Box<str>,
    /// Whether its static tokens are to be invalid: it opted out of mounting tokens (`automountServiceAccountToken: false`),
    /// and has no skip label. That counts by its presence.
    pub wants_no_tokens: bool,
}

/// The watch of all ServiceAccounts.
pub(super) type Accounts = Watch<CachedFields<Account>>;

/// The kind.
pub(super) fn service_account() -> Resource {
    Resource::new("", "v1", "ServiceAccount", "serviceaccounts", true)
}

/// Opens the watch; webhooks that read ServiceAccounts share its stream.
pub(super) fn watch(watches: &Watches) -> Accounts {
    watches.open(WatchOptions::new(service_account(), |account| CachedFields::of(account, Account::of(account))))
}

/// Whether a change concerns the Secrets of the ServiceAccount: it is there now, and was not or was otherwise (spec 31 §4.1,
/// "Better than upstream" 1).
pub(super) fn concerns_its_secrets(change: &Change<'_, CachedFields<Account>>) -> bool {
    change.new.is_some() && change.old.map(|old| &old.fields) != change.new.map(|new| &new.fields)
}

impl Account {
    /// What is kept of a ServiceAccount.
    pub fn of(account: &Value) -> Self {
        let opted_out = account.get("automountServiceAccountToken") == Some(&Value::Bool(false));
        let is_skipped = object::label(account, TOKEN_INVALIDATOR_SKIP).is_some();
        Self { uid: object::uid(account).into(), wants_no_tokens: opted_out && !is_skipped }
    }
}

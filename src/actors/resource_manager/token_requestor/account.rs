//! ServiceAccounts: cached fields and the wanted state (spec 30 §5.2).

use cluster::{
    CachedFields, Predicate, Watch, WatchOptions, Watches,
    object::{self, NamespacedName},
};
use serde_json::{Map, Value, json};

use super::order::Labels;
use crate::api::kinds;

/// The cached fields of a ServiceAccount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// A recreated ServiceAccount has another uid, and the old tokens are invalid.
    pub uid: Box<str>,
    mounts_no_tokens: bool,
    labels: Box<[(Box<str>, Box<str>)]>,
}

/// The watch of all ServiceAccounts. Startup does not wait for it: while it is stale, ServiceAccounts are read live.
pub(super) type Accounts = Watch<CachedFields<Account>>;

const AUTOMOUNT: &str = "automountServiceAccountToken";

pub(super) fn watch(watches: &Watches) -> Accounts {
    let options = WatchOptions::new(kinds::SERVICE_ACCOUNT, |account| CachedFields::of(account, Account::of(account)));
    watches.open(options.unawaited())
}

/// Selects ServiceAccounts that were deleted or recreated, also by this process ("Better than upstream" 1).
pub(super) fn invalidates_tokens() -> Predicate<CachedFields<Account>> {
    let recreated = Predicate::differing(|old: &CachedFields<Account>, new| old.fields.uid != new.fields.uid);
    recreated.ignoring_creation().including_own_writes()
}

/// Builds a new ServiceAccount.
pub fn created(name: &NamespacedName, labels: &Labels) -> Value {
    let mut account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": { "namespace": name.namespace, "name": name.name }, AUTOMOUNT: false,
    });
    if !labels.is_empty() {
        *object::field_mut(&mut account, &["metadata", "labels"]) = json!(labels);
    }
    account
}

/// Returns the ServiceAccount to write, or `None`. Foreign labels go, other fields stay (spec 30 T6, T8).
pub fn updated(live: &Value, labels: &Labels) -> Option<Value> {
    if Account::of(live).fits(labels) {
        return None;
    }
    let mut account = live.clone();
    *object::field_mut(&mut account, &[AUTOMOUNT]) = json!(false);
    if let Some(metadata) = account.get_mut("metadata").and_then(Value::as_object_mut) {
        match labels.is_empty() {
            true => drop(metadata.remove("labels")),
            false => drop(metadata.insert("labels".to_owned(), json!(labels))),
        }
    }
    Some(account)
}

impl Account {
    /// Reads a ServiceAccount.
    pub fn of(account: &Value) -> Self {
        let labels = account.pointer("/metadata/labels").and_then(Value::as_object);
        let pair = |(key, value): (&String, &Value)| (key.as_str().into(), value.as_str().unwrap_or_default().into());
        let mut labels: Vec<(Box<str>, Box<str>)> = labels.into_iter().flat_map(Map::iter).map(pair).collect();
        labels.sort();
        Self {
            uid: object::uid(account).into(),
            mounts_no_tokens: account.get(AUTOMOUNT) == Some(&Value::Bool(false)),
            labels: labels.into(),
        }
    }

    /// Returns true if no write is needed.
    pub fn fits(&self, labels: &Labels) -> bool {
        let mine = self.labels.iter().map(|(key, value)| (&**key, &**value));
        self.mounts_no_tokens && mine.eq(labels.iter().map(|(key, value)| (key.as_str(), value.as_str())))
    }
}

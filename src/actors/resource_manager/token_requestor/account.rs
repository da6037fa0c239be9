//! ServiceAccounts: cached fields and the wanted state (spec 30 §5.2).

use cluster::{
    CachedFields, Predicate,
    object::{self, NamespacedName},
};
use serde_json::{Value, json};

use crate::api::meta::selector::{Labels, labels_in};

/// The cached fields of a ServiceAccount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// A recreated ServiceAccount has another uid, and the old tokens are invalid.
    pub uid: Box<str>,
    mounts_no_tokens: bool,
    labels: Box<[(String, String)]>,
}

const AUTOMOUNT: &str = "automountServiceAccountToken";

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
        Self {
            uid: object::uid(account).into(),
            mounts_no_tokens: account.get(AUTOMOUNT) == Some(&Value::Bool(false)),
            labels: labels_in(&account["metadata"]["labels"]).into_iter().collect(),
        }
    }

    /// Returns true if no write is needed.
    pub fn fits(&self, labels: &Labels) -> bool {
        self.mounts_no_tokens && self.labels.iter().map(|(key, value)| (key, value)).eq(labels)
    }
}

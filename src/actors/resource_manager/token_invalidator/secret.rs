//! Metadata of Secrets with a static token, and the patch of their labels (spec 31 §2, §4.2). Content is never read.

use cluster::object::{self, NamespacedName};
use serde_json::{Map, Value, json};

use crate::api::resources::keys::{
    PURPOSE, PURPOSE_TOKEN_INVALIDATOR, SERVICE_ACCOUNT_OF_TOKEN, TOKEN_INVALIDATOR_CONSIDER as CONSIDER,
};

/// The cached fields of a Secret with a static token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenSecret {
    /// Name of the ServiceAccount in the Secret's namespace; not empty.
    pub account: Box<str>,
    /// The value of the purpose label.
    pub purpose: Purpose,
    /// True if it has the label that invalidates its token, with any value.
    pub considered: bool,
}

/// The label `resources.gardener.cloud/purpose`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The label is missing.
    Unset,
    /// The token invalidator: the webhook sees the Secret.
    TokenInvalidator,
    /// Any other value. The label stays, and the webhook never sees the Secret (spec 31 T11).
    Other,
}

impl TokenSecret {
    /// Reads a Secret; `None` if its annotation names no ServiceAccount. The type is ignored (spec 31 §4.1).
    pub fn of(secret: &Value) -> Option<Self> {
        let account = object::annotation(secret, SERVICE_ACCOUNT_OF_TOKEN).filter(|account| !account.is_empty())?;
        let purpose = match object::label(secret, PURPOSE) {
            None => Purpose::Unset,
            Some(PURPOSE_TOKEN_INVALIDATOR) => Purpose::TokenInvalidator,
            Some(_) => Purpose::Other,
        };
        Some(Self { account: account.into(), purpose, considered: object::label(secret, CONSIDER).is_some() })
    }

    /// Returns the ServiceAccount, given the Secret's namespace.
    pub fn account_in(&self, namespace: &str) -> NamespacedName {
        NamespacedName::new(namespace, &*self.account)
    }

    /// Returns true if the webhook would change the token: the label changes, and the webhook sees the Secret.
    pub fn changes_token(&self, considered: bool) -> bool {
        self.considered != considered && self.purpose != Purpose::Other
    }

    /// Returns the patch of the labels; `None` if they are right (spec 31 §4.2 rules 4, 5, 9). Bind it to the version.
    pub fn patch(&self, considered: bool) -> Option<Value> {
        let mut labels = Map::new();
        if self.purpose == Purpose::Unset {
            labels.insert(PURPOSE.to_owned(), PURPOSE_TOKEN_INVALIDATOR.into());
        }
        if self.considered != considered {
            labels.insert(CONSIDER.to_owned(), if considered { "true".into() } else { Value::Null });
        }
        (!labels.is_empty()).then(|| json!({ "metadata": { "labels": labels } }))
    }
}

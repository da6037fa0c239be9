//! Secrets with a static token: what is kept of one, and how its labels are changed (spec 31 §2, §4.2). Their content is
//! never here: they are watched, and answers to patches come, as metadata.

use cluster::{
    CachedFields, Index, Resource, Watch, WatchOptions, Watches,
    object::{self, NamespacedName},
};
use serde_json::{Map, Value, json};

use crate::api::keys::{
    PURPOSE, PURPOSE_TOKEN_INVALIDATOR, SERVICE_ACCOUNT_OF_TOKEN, TOKEN_INVALIDATOR_CONSIDER as CONSIDER,
};

/// What is kept of a Secret with a static token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenSecret {
    /// Name of the ServiceAccount in the Secret's namespace. Not empty.
    pub account: Box<str>,
    /// What the label says the Secret is for.
    pub purpose: Purpose,
    /// Whether it has the label that makes its token invalid, with whatever value.
    pub considered: bool,
}

/// The label `resources.gardener.cloud/purpose`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It is not there.
    Unset,
    /// The token invalidator: the webhook sees the Secret.
    TokenInvalidator,
    /// Something else, which is left as it is: the webhook never sees the Secret (spec 31 T11).
    Other,
}

/// The watch of all Secrets; of those without a token of a ServiceAccount only the version is kept.
pub(super) type Secrets = Watch<CachedFields<Option<TokenSecret>>>;

/// The kind.
pub(super) fn secret() -> Resource {
    Resource::new("", "v1", "Secret", "secrets", true)
}

/// Opens the watch. Its stream is metadata, and whoever else watches all Secrets of the cluster shares it.
pub(super) fn watch(watches: &Watches) -> Secrets {
    let options = WatchOptions::new(secret(), |secret| CachedFields::of(secret, TokenSecret::of(secret)));
    watches.open(options.metadata())
}

/// The Secrets with tokens of a ServiceAccount, whether it lists them in `.secrets[]` or not (spec 31 T5).
pub(super) fn index_by_account(secrets: &Secrets) -> Index<NamespacedName> {
    secrets.index(|name, secret| {
        let account = secret.fields.as_ref().map(|secret| secret.account_in(&name.namespace));
        account.into_iter().collect()
    })
}

impl TokenSecret {
    /// What is kept of a Secret; `None` if its annotation names no ServiceAccount. The type does not matter (spec 31 §4.1).
    pub fn of(secret: &Value) -> Option<Self> {
        let account = object::annotation(secret, SERVICE_ACCOUNT_OF_TOKEN).filter(|account| !account.is_empty())?;
        let purpose = match object::label(secret, PURPOSE) {
            None => Purpose::Unset,
            Some(PURPOSE_TOKEN_INVALIDATOR) => Purpose::TokenInvalidator,
            Some(_) => Purpose::Other,
        };
        Some(Self { account: account.into(), purpose, considered: object::label(secret, CONSIDER).is_some() })
    }

    /// The ServiceAccount of a Secret in this namespace.
    pub fn account_in(&self, namespace: &str) -> NamespacedName {
        NamespacedName::new(namespace, &*self.account)
    }

    /// Whether the webhook changes the token when the Secret is considered or is not any more: it sees the change, and there is
    /// one.
    pub fn changes_token(&self, considered: bool) -> bool {
        self.considered != considered && self.purpose != Purpose::Other
    }

    /// The merge patch that lets the webhook see the Secret and has it considered or not, bound to the version that was
    /// seen; `None` if its labels are as they should be (spec 31 §4.2 rules 4, 5, 9).
    pub fn patch(&self, version: u64, considered: bool) -> Option<Value> {
        let mut labels = Map::new();
        if self.purpose == Purpose::Unset {
            labels.insert(PURPOSE.to_owned(), PURPOSE_TOKEN_INVALIDATOR.into());
        }
        if self.considered != considered {
            labels.insert(CONSIDER.to_owned(), if considered { "true".into() } else { Value::Null });
        }
        let metadata = json!({ "labels": labels, "resourceVersion": version.to_string() });
        (!labels.is_empty()).then(|| json!({ "metadata": metadata }))
    }
}

//! Secrets that want a token: what is kept of one, and what is to be done with it (spec 30 §2.1, §9). Metadata alone; the
//! content is never here.

use cluster::{CachedFields, Index, Resource, Watch, WatchOptions, Watches, object, object::NamespacedName};
use jiff::Timestamp;
use serde_json::Value;

use crate::api::keys::{
    CLASS, CLASS_SHOOT, PURPOSE, PURPOSE_TOKEN_REQUESTOR, SERVICE_ACCOUNT_NAME, SERVICE_ACCOUNT_NAMESPACE,
    SERVICE_ACCOUNT_SKIP_DELETION, TOKEN_RENEW_TIMESTAMP,
};

/// Finalizer of Secrets whose ServiceAccount goes with them (spec 30 §9 D1).
pub const FINALIZER: &str = "resources.gardener.cloud/token-requestor";

/// Which Secrets this process looks after, and how (spec 30 §2.1, §3, §9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Secrets of any class, also of none: flag mode.
    pub any_class: bool,
    /// ServiceAccounts go with their Secret.
    pub deletes: bool,
}

/// What is kept of a Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The label says that the Secret wants a token.
    pub has_purpose: bool,
    class: Option<Box<str>>,
    /// The ServiceAccount its annotations name; parts of it may be empty.
    pub account: NamespacedName,
    /// When the token is to be renewed, as it is written there; `None` if there is nothing.
    pub renewal: Option<Box<str>>,
    has_finalizer: bool,
    is_terminating: bool,
    skips_deletion: bool,
}

/// What is to be done with a Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Nothing.
    None,
    /// It is to hold a token. Before that it gets the finalizer, or loses it, if that is said.
    Keep {
        /// The finalizer is to be there; `None`: whether it is there does not matter, or it is as it should be.
        finalizer: Option<bool>,
    },
    /// It is let go: the finalizer is taken away, after the ServiceAccount is deleted if that is said.
    Release {
        /// Delete the ServiceAccount.
        account: bool,
    },
}

/// The watch of Secrets.
pub(super) type Secrets = Watch<CachedFields<Option<Access>>>;

/// The kind.
pub(super) fn secret() -> Resource {
    Resource::new("", "v1", "Secret", "secrets", true)
}

/// Opens the watch, of metadata. With deletion on it is of all Secrets, because one that holds our finalizer may have lost its
/// label; whoever else watches all Secrets shares the stream.
pub(super) fn watch(watches: &Watches, rules: Rules) -> Secrets {
    let options = WatchOptions::new(secret(), |secret| CachedFields::of(secret, Access::of(secret))).metadata();
    watches.open(if rules.deletes { options } else { options.labelled(format!("{PURPOSE}={PURPOSE_TOKEN_REQUESTOR}")) })
}

/// The Secrets that name a ServiceAccount.
pub(super) fn index_by_account(secrets: &Secrets) -> Index<NamespacedName> {
    secrets.index(|_, secret| secret.fields.iter().map(|access| access.account.clone()).collect())
}

impl Access {
    /// What is kept of a Secret, or of its metadata; `None` if it is no business of ours.
    pub fn of(secret: &Value) -> Option<Self> {
        let annotation = |key| object::annotation(secret, key).filter(|text| !text.is_empty());
        let text = |key| annotation(key).unwrap_or_default();
        let access = Self {
            has_purpose: object::label(secret, PURPOSE) == Some(PURPOSE_TOKEN_REQUESTOR),
            class: object::label(secret, CLASS).map(Into::into),
            account: NamespacedName::new(text(SERVICE_ACCOUNT_NAMESPACE), text(SERVICE_ACCOUNT_NAME)),
            renewal: annotation(TOKEN_RENEW_TIMESTAMP).map(Into::into),
            has_finalizer: object::finalizers(secret).any(|finalizer| finalizer == FINALIZER),
            is_terminating: object::deletion_timestamp(secret).is_some(),
            // Spec 30 §9 D3: exactly this text, no other that means true.
            skips_deletion: annotation(SERVICE_ACCOUNT_SKIP_DELETION) == Some("true"),
        };
        (access.has_purpose || access.has_finalizer).then_some(access)
    }

    fn is_of_class(&self, rules: Rules) -> bool {
        rules.any_class || self.class.as_deref() == Some(CLASS_SHOOT)
    }

    /// Whether it is ours (spec 30 §2.1).
    pub fn is_relevant(&self, rules: Rules) -> bool {
        self.has_purpose && self.is_of_class(rules)
    }

    /// Whether its token is to be renewed by now, as far as the annotation tells: it is not there, cannot be read, or is over.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.renewal.as_deref().and_then(|text| text.parse().ok()).is_none_or(|renewal: Timestamp| renewal <= now)
    }

    /// Whether it keeps its ServiceAccount from being deleted with another Secret (spec 30 §9 D6).
    pub fn claims_account(&self, rules: Rules) -> bool {
        self.is_relevant(rules) && !self.is_terminating
    }

    /// What is to be done with it (spec 30 §5 rule 2, §9).
    pub fn task(&self, rules: Rules) -> Task {
        let is_relevant = self.is_relevant(rules);
        if !rules.deletes {
            return match is_relevant {
                // Left by an earlier version, which looked after Secrets of any class and of none; it must not hang.
                _ if self.is_terminating && self.has_finalizer => Task::Release { account: false },
                true => Task::Keep { finalizer: None },
                false => Task::None,
            };
        }
        if self.has_finalizer && (self.is_terminating || !self.has_purpose) {
            // D5: one that wants a token still, but of another class, has another owner, and so has its ServiceAccount.
            let is_of_others = self.has_purpose && !self.is_of_class(rules);
            return Task::Release { account: !is_of_others && !self.skips_deletion };
        }
        if !is_relevant {
            return if self.has_finalizer { Task::Release { account: false } } else { Task::None };
        }
        if self.is_terminating {
            return Task::None; // D8
        }
        let wanted = !self.skips_deletion;
        Task::Keep { finalizer: (wanted != self.has_finalizer).then_some(wanted) }
    }
}

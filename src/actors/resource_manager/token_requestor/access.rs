//! Metadata of Secrets that want a token, and the resulting task (spec 30 §2.1, §9). Content is never here.

use cluster::{CachedFields, Watch, WatchOptions, Watches, object, object::NamespacedName};
use jiff::Timestamp;
use serde_json::Value;

use crate::api::{
    kinds,
    resources::keys::{
        CLASS, CLASS_SHOOT, PURPOSE, PURPOSE_TOKEN_REQUESTOR, SERVICE_ACCOUNT_NAME, SERVICE_ACCOUNT_NAMESPACE,
        SERVICE_ACCOUNT_SKIP_DELETION, TOKEN_RENEW_TIMESTAMP,
    },
};

/// Finalizer of Secrets whose ServiceAccount is deleted with them (spec 30 §9 D1).
pub const FINALIZER: &str = "resources.gardener.cloud/token-requestor";

/// Which Secrets this process handles, and how (spec 30 §2.1, §3, §9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Handle Secrets of any class or none (flag mode).
    pub any_class: bool,
    /// Delete the ServiceAccount with its Secret.
    pub deletes: bool,
}

/// The cached fields of a Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The purpose label requests a token.
    pub has_purpose: bool,
    class: Option<Box<str>>,
    /// The ServiceAccount named by the annotations; name and namespace may be empty.
    pub account: NamespacedName,
    /// The annotation with the renewal time, unparsed; `None` if missing.
    pub renewal: Option<Box<str>>,
    has_finalizer: bool,
    is_terminating: bool,
    skips_deletion: bool,
}

/// What to do with a Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Nothing.
    None,
    /// Keep a good token in it, after setting or removing the finalizer.
    Keep {
        /// Set (true) or remove (false) the finalizer; `None` leaves it.
        finalizer: Option<bool>,
    },
    /// Release it: remove the finalizer, after deleting the ServiceAccount.
    Release {
        /// Delete the ServiceAccount first.
        account: bool,
    },
}

pub(super) type Secrets = Watch<CachedFields<Option<Access>>>;

/// Opens the watch of metadata. With deletion enabled it watches all Secrets, because a Secret with our finalizer may
/// have lost its label; it shares its informer with other watches of all Secrets.
pub(super) fn watch(watches: &Watches, rules: Rules) -> Secrets {
    let options = WatchOptions::fields(kinds::SECRET, Access::of).metadata();
    watches.open(if rules.deletes { options } else { options.labelled(format!("{PURPOSE}={PURPOSE_TOKEN_REQUESTOR}")) })
}

impl Access {
    /// Reads a Secret or its metadata; `None` without purpose label and finalizer.
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
            // Spec 30 §9 D3: exactly `true`, unlike other flags.
            skips_deletion: annotation(SERVICE_ACCOUNT_SKIP_DELETION) == Some("true"),
        };
        (access.has_purpose || access.has_finalizer).then_some(access)
    }

    fn is_of_class(&self, rules: Rules) -> bool {
        rules.any_class || self.class.as_deref() == Some(CLASS_SHOOT)
    }

    /// Returns true if the Secret is ours (spec 30 §2.1).
    pub fn is_relevant(&self, rules: Rules) -> bool {
        self.has_purpose && self.is_of_class(rules)
    }

    /// Returns true if the renewal time is missing, unreadable or has passed.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.renewal.as_deref().and_then(|text| text.parse().ok()).is_none_or(|renewal: Timestamp| renewal <= now)
    }

    /// Returns true if the Secret prevents the deletion of its ServiceAccount with another Secret (spec 30 §9 D6).
    pub fn claims_account(&self, rules: Rules) -> bool {
        self.is_relevant(rules) && !self.is_terminating
    }

    /// Returns the task (spec 30 §5 rule 2, §9).
    pub fn task(&self, rules: Rules) -> Task {
        let is_relevant = self.is_relevant(rules);
        if !rules.deletes {
            return match is_relevant {
                // An earlier version set the finalizer on Secrets of any class; they must not hang.
                _ if self.is_terminating && self.has_finalizer => Task::Release { account: false },
                true => Task::Keep { finalizer: None },
                false => Task::None,
            };
        }
        if self.has_finalizer && (self.is_terminating || !self.has_purpose) {
            // D5: a Secret of another class still wants a token; another process owns it and its ServiceAccount.
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

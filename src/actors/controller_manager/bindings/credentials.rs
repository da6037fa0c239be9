//! The objects with credentials: Secrets, InternalSecrets, WorkloadIdentities. Only their metadata is read (spec 81 G-T7).
//! Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use cluster::{Resource, object, object::NamespacedName};
use serde_json::{Map, Value, json};

use super::binding::{BindingKind, can_exist};
use crate::{actors::controller_manager::held::DeletionTime, api::kinds};

/// The finalizer of earlier releases, which both kinds of bindings shared.
pub const LEGACY: &str = "gardener.cloud/gardener";

const PROVIDER: &str = "provider.shoot.gardener.cloud/";
/// The value of a label that is added.
pub const TRUE: &str = "true";

/// A kind of credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CredentialsKind {
    /// `v1` Secret.
    Secret,
    /// `core.gardener.cloud/v1beta1` InternalSecret.
    InternalSecret,
    /// `security.gardener.cloud/v1alpha1` WorkloadIdentity.
    WorkloadIdentity,
}

/// Credentials by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CredentialsRef {
    /// Their kind.
    pub kind: CredentialsKind,
    /// Namespace and name.
    pub name: NamespacedName,
}

/// What is kept of credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialsState {
    /// The kinds of bindings whose finalizer they have.
    pub held_by: BTreeSet<BindingKind>,
    /// They have the finalizer of earlier releases.
    pub has_legacy: bool,
    /// The kinds of bindings whose label they have.
    pub labelled_by: BTreeSet<BindingKind>,
    /// The types of the provider labels, and whether the value is `true`.
    pub types: BTreeMap<String, bool>,
    /// They are being deleted.
    pub is_deleting: bool,
    /// When their deletion began.
    pub deleted: Option<DeletionTime>,
}

/// What becomes of labels.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelChange {
    /// Labels to add if they are missing. A label with any value stays as it is.
    pub add: BTreeSet<String>,
    /// Labels to remove.
    pub remove: BTreeSet<String>,
}

impl CredentialsKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Secret, Self::InternalSecret, Self::WorkloadIdentity];

    /// Returns the kind to which `apiVersion` and `kind` of a reference lead; `None` for kinds that are not supported.
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.resource().api_version() == api_version && &*it.resource().kind == kind)
    }

    /// Returns the kind as the server addresses it.
    pub fn resource(self) -> &'static Resource {
        static SECRET: Resource = kinds::SECRET;
        static INTERNAL_SECRET: Resource = kinds::INTERNAL_SECRET;
        static WORKLOAD_IDENTITY: Resource = kinds::WORKLOAD_IDENTITY;
        match self {
            Self::Secret => &SECRET,
            Self::InternalSecret => &INTERNAL_SECRET,
            Self::WorkloadIdentity => &WORKLOAD_IDENTITY,
        }
    }
}

impl CredentialsRef {
    /// Returns false if no object can have their name.
    pub fn can_exist(&self) -> bool {
        can_exist(&self.name)
    }
}

impl fmt::Display for CredentialsRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.resource().kind, self.name)
    }
}

impl CredentialsState {
    /// Reads the metadata of credentials.
    pub fn of(metadata: &Value) -> Self {
        let has = |name: &str| object::finalizers(metadata).any(|finalizer| finalizer == name);
        let of = |is: &dyn Fn(BindingKind) -> bool| BindingKind::ALL.into_iter().filter(|kind| is(*kind)).collect();
        let labels = metadata.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
        let types = labels.filter_map(|(label, value)| Some((label.strip_prefix(PROVIDER)?.to_owned(), value == TRUE)));
        Self {
            held_by: of(&|kind| has(kind.finalizer())),
            has_legacy: has(LEGACY),
            labelled_by: of(&|kind| object::label(metadata, kind.label()).is_some()),
            types: types.collect(),
            is_deleting: object::deletion_timestamp(metadata).is_some(),
            deleted: DeletionTime::of(metadata),
        }
    }

    /// Returns true if a binding of this kind refers to them, or did.
    pub fn is_marked_by(&self, kind: BindingKind) -> bool {
        self.held_by.contains(&kind) || self.labelled_by.contains(&kind)
    }

    /// Returns true if a newer state lacks a mark that bindings of this kind may need.
    pub fn loses_mark(&self, newer: &Self, kind: BindingKind) -> bool {
        let is_lost =
            |old: &BTreeSet<BindingKind>, new: &BTreeSet<BindingKind>| old.contains(&kind) && !new.contains(&kind);
        is_lost(&self.held_by, &newer.held_by)
            || is_lost(&self.labelled_by, &newer.labelled_by)
            || self.types.keys().any(|name| !newer.types.contains_key(name))
    }

    fn has_label(&self, label: &str) -> bool {
        match label.strip_prefix(PROVIDER) {
            Some(name) => self.types.contains_key(name),
            None => self.labelled_by.iter().any(|kind| kind.label() == label),
        }
    }

    /// Returns when their deletion began, if the finalizer of a kind keeps them.
    pub fn kept_since(&self, kind: BindingKind) -> Option<DeletionTime> {
        self.deleted.filter(|_| self.held_by.contains(&kind))
    }

    /// Returns true if they can no longer get the finalizer of a kind.
    pub fn is_lost_for(&self, kind: BindingKind) -> bool {
        self.is_deleting && !self.held_by.contains(&kind)
    }
}

/// Returns the label of a type of providers.
pub fn provider_label(name: &str) -> String {
    format!("{PROVIDER}{name}")
}

/// Returns the merge patch that adds the finalizer of a kind and removes that of earlier releases, in one step. `None`
/// if that is so already, or if the finalizer cannot be added: then the other one stays.
pub fn protect(credentials: &Value, kind: BindingKind) -> Option<Value> {
    let own = kind.finalizer();
    let is_held = object::finalizers(credentials).any(|finalizer| finalizer == own);
    if !is_held && object::deletion_timestamp(credentials).is_some() {
        return None;
    }
    let others = object::finalizers(credentials).filter(|finalizer| *finalizer != LEGACY);
    finalizers_patch(credentials, others.chain((!is_held).then_some(own)).collect())
}

/// Returns the merge patch that removes the finalizer of a kind and that of earlier releases; `None` if there are none.
/// If a binding of the other kind is in use, the finalizer of earlier releases stays until that of the other kind is set.
pub fn release(credentials: &Value, kind: BindingKind, other_is_used: bool) -> Option<Value> {
    let other = kind.other().finalizer();
    let keeps_legacy = other_is_used && !object::finalizers(credentials).any(|finalizer| finalizer == other);
    let is_kept = |finalizer: &&str| *finalizer != kind.finalizer() && (keeps_legacy || *finalizer != LEGACY);
    finalizers_patch(credentials, object::finalizers(credentials).filter(is_kept).collect())
}

fn finalizers_patch(credentials: &Value, wanted: Vec<&str>) -> Option<Value> {
    let is_same = object::finalizers(credentials).eq(wanted.iter().copied());
    let wanted = if wanted.is_empty() { Value::Null } else { json!(wanted) };
    (!is_same).then(|| json!({ "metadata": { "finalizers": wanted } }))
}

impl LabelChange {
    /// Returns true if credentials in this state need no patch.
    pub fn is_done(&self, state: &CredentialsState) -> bool {
        self.add.iter().all(|label| state.has_label(label)) && !self.remove.iter().any(|label| state.has_label(label))
    }

    /// Returns the merge patch for credentials in this state; `None` if nothing differs. It has changed labels only.
    pub fn patch(&self, state: &CredentialsState) -> Option<Value> {
        let added = self.add.iter().filter(|label| !state.has_label(label));
        let removed = self.remove.iter().filter(|label| state.has_label(label));
        let added = added.map(|label| (label.clone(), json!(TRUE)));
        let labels: Map<_, _> = added.chain(removed.map(|label| (label.clone(), Value::Null))).collect();
        (!labels.is_empty()).then(|| json!({ "metadata": { "labels": labels } }))
    }
}

//! What counts of a SecretBinding or CredentialsBinding, and in what the two kinds differ (spec 81 G.1). Pure.

use std::collections::BTreeSet;

use cluster::{
    Resource,
    object::{self, GroupVersionKind, NamespacedName},
};
use serde_json::Value;

use super::credentials::{CredentialsKind, CredentialsRef};
use crate::{
    actors::controller_manager::{
        fields::{list, text},
        guards::{GARDENER, named},
    },
    api::{kinds, meta::field::formats},
};

/// A kind of bindings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BindingKind {
    /// `core.gardener.cloud/v1beta1` SecretBinding.
    SecretBinding,
    /// `security.gardener.cloud/v1alpha1` CredentialsBinding.
    CredentialsBinding,
}

/// A binding of any kind.
pub type BindingName = (BindingKind, NamespacedName);

/// What is kept of a binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// Its credentials, or the error text about a reference that is not supported.
    pub credentials: Result<CredentialsRef, String>,
    /// The types of its providers.
    pub types: BTreeSet<String>,
    /// Its Quotas.
    pub quotas: BTreeSet<NamespacedName>,
    /// It is being deleted.
    pub is_deleting: bool,
    /// It has the finalizer of guards: it is not released.
    pub is_held: bool,
}

impl BindingKind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::SecretBinding, Self::CredentialsBinding];

    /// Returns the other kind.
    pub fn other(self) -> Self {
        match self {
            Self::SecretBinding => Self::CredentialsBinding,
            Self::CredentialsBinding => Self::SecretBinding,
        }
    }

    /// Returns the kind as the server addresses it.
    pub fn resource(self) -> &'static Resource {
        static SECRET_BINDING: Resource = kinds::SECRET_BINDING;
        static CREDENTIALS_BINDING: Resource = kinds::CREDENTIALS_BINDING;
        match self {
            Self::SecretBinding => &SECRET_BINDING,
            Self::CredentialsBinding => &CREDENTIALS_BINDING,
        }
    }

    /// Returns true if its bindings may have credentials of a kind.
    pub fn may_have(self, credentials: CredentialsKind) -> bool {
        match self {
            Self::SecretBinding => credentials == CredentialsKind::Secret,
            Self::CredentialsBinding => true,
        }
    }

    /// Returns the finalizer of its credentials.
    pub fn finalizer(self) -> &'static str {
        match self {
            Self::SecretBinding => "gardener.cloud/secretbinding",
            Self::CredentialsBinding => "gardener.cloud/credentialsbinding",
        }
    }

    /// Returns the label of its credentials and Quotas.
    pub fn label(self) -> &'static str {
        match self {
            Self::SecretBinding => "reference.gardener.cloud/secretbinding",
            Self::CredentialsBinding => "reference.gardener.cloud/credentialsbinding",
        }
    }

    /// Returns the field of a Shoot that names its binding of this kind.
    pub fn field_of_shoot(self) -> &'static str {
        match self {
            Self::SecretBinding => "/spec/secretBindingName",
            Self::CredentialsBinding => "/spec/credentialsBindingName",
        }
    }
}

impl Binding {
    /// Reads a binding.
    pub fn of(kind: BindingKind, binding: &Value) -> Self {
        let own = object::namespace(binding);
        let named =
            |reference: &Value| NamespacedName::new(or(text(reference, "/namespace"), own), text(reference, "/name"));
        let credentials = match kind {
            BindingKind::SecretBinding => {
                let name = named(binding.get("secretRef").unwrap_or(&Value::Null));
                Ok(CredentialsRef { kind: CredentialsKind::Secret, name })
            }
            BindingKind::CredentialsBinding => {
                let reference = binding.get("credentialsRef").unwrap_or(&Value::Null);
                let (version, kind) = (text(reference, "/apiVersion"), text(reference, "/kind"));
                let name = named(reference);
                CredentialsKind::of(version, kind).map(|kind| CredentialsRef { kind, name: name.clone() }).ok_or_else(
                    || {
                        let kind = GroupVersionKind::from_api_version(version, kind);
                        format!("unsupported credentials reference: {name}, {kind}")
                    },
                )
            }
        };
        let types = text(binding, "/provider/type");
        let types: Vec<&str> = match kind {
            BindingKind::SecretBinding => types.split(',').map(str::trim).collect(),
            BindingKind::CredentialsBinding => vec![types],
        };
        Self {
            credentials,
            types: types.into_iter().filter(|name| !name.is_empty()).map(str::to_owned).collect(),
            quotas: list(binding, "/quotas").map(named).filter(|quota| !quota.name.is_empty()).collect(),
            is_deleting: object::deletion_timestamp(binding).is_some(),
            is_held: object::finalizers(binding).any(|finalizer| finalizer == GARDENER),
        }
    }

    /// Returns true if it exists for the release of what it refers to: it is not deleted, or not released.
    pub fn exists(&self) -> bool {
        !self.is_deleting || self.is_held
    }
}

/// Returns the bindings to which a Shoot refers.
pub fn bindings_of_shoot(shoot: &Value) -> Box<[BindingName]> {
    let namespace = object::namespace(shoot);
    let of_kind = |kind: BindingKind| {
        named(namespace, text(shoot, kind.field_of_shoot())).into_iter().map(move |name| (kind, name))
    };
    BindingKind::ALL.into_iter().flat_map(of_kind).collect()
}

/// Returns false if no object can have this name: then it does not exist, and the server is not asked, because it would
/// refuse the request.
pub fn can_exist(name: &NamespacedName) -> bool {
    formats::dns_label(&name.namespace).is_empty() && formats::dns_subdomain(&name.name).is_empty()
}

/// An empty namespace is that of the binding (spec 80 §10.2).
fn or<'a>(text: &'a str, default: &'a str) -> &'a str {
    if text.is_empty() { default } else { text }
}

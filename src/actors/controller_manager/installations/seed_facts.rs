//! What is kept of a Seed. Pure.

use cluster::object;
use kit::hash_of;
use serde_json::Value;

use super::{FINALIZER, spec_hash::spec_hash};
use crate::{
    actors::controller_manager::fields::{list, text, without_empty},
    api::meta::selector::{Labels, labels_in},
};

/// The label of a Seed that is a self-hosted Shoot. Its presence counts.
pub const SELF_HOSTED: &str = "seed.gardener.cloud/self-hosted-shoot-cluster";

/// A domain, and the type of the DNS provider that serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain {
    /// The domain.
    pub domain: Box<str>,
    /// The type of its provider.
    pub provider: Box<str>,
}

/// What counts of a Seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeedFacts {
    /// It is being deleted.
    pub is_deleting: bool,
    /// It has the finalizer of this program.
    pub is_held: bool,
    /// It carries the label of a self-hosted Shoot.
    pub is_self_hosted: bool,
    /// Its labels.
    pub labels: Labels,
    /// `spec.provider.type`.
    pub provider: Box<str>,
    /// `spec.backup.provider`; `None` without `spec.backup`.
    pub backup: Option<Box<str>>,
    /// `spec.dns.provider.type`; `None` without a provider.
    pub dns_provider: Option<Box<str>>,
    /// `spec.dns.internal`.
    pub internal_domain: Option<Domain>,
    /// `spec.dns.defaults`, in their order.
    pub default_domains: Box<[Domain]>,
    /// Enabled types of `spec.extensions`.
    pub extensions: Box<[Box<str>]>,
    /// Disabled types of `spec.extensions`.
    pub disabled_extensions: Box<[Box<str>]>,
    /// The hash of its `spec`.
    pub spec_hash: Box<str>,
    /// A hash of `spec`, labels and annotations: of all that wakes it (A.2 W1).
    pub content: u64,
}

impl SeedFacts {
    /// Reads a Seed of any shape.
    pub fn of(seed: &Value) -> Self {
        let present = |pointer| seed.pointer(pointer).filter(|value| !value.is_null());
        let domain =
            |domain: &Value| Domain { domain: text(domain, "/domain").into(), provider: text(domain, "/type").into() };
        let (extensions, disabled_extensions) = extension_types(seed);
        let labels = labels_in(seed.pointer("/metadata/labels").unwrap_or(&Value::Null));
        Self {
            is_deleting: object::deletion_timestamp(seed).is_some(),
            is_held: object::finalizers(seed).any(|finalizer| finalizer == FINALIZER),
            is_self_hosted: labels.contains_key(SELF_HOSTED),
            provider: text(seed, "/spec/provider/type").into(),
            backup: present("/spec/backup").map(|backup| text(backup, "/provider").into()),
            dns_provider: present("/spec/dns/provider").map(|provider| text(provider, "/type").into()),
            internal_domain: present("/spec/dns/internal").map(domain),
            default_domains: list(seed, "/spec/dns/defaults").map(domain).collect(),
            extensions,
            disabled_extensions,
            spec_hash: spec_hash(seed),
            content: content_hash(seed),
            labels,
        }
    }
}

/// Returns a hash of `spec`, labels and annotations. Null, absent and empty are equal.
pub(super) fn content_hash(object: &Value) -> u64 {
    let part = |pointer| object.pointer(pointer).map(without_empty).unwrap_or_default().to_string();
    hash_of(&["/spec", "/metadata/labels", "/metadata/annotations"].map(part))
}

/// Types of extensions.
type Types = Box<[Box<str>]>;

/// Returns the enabled and the disabled types of `spec.extensions`.
pub(super) fn extension_types(object: &Value) -> (Types, Types) {
    let entries = list(object, "/spec/extensions");
    let (disabled, enabled): (Vec<&Value>, Vec<_>) =
        entries.partition(|extension| extension.get("disabled") == Some(&Value::Bool(true)));
    let types = |entries: Vec<&Value>| entries.into_iter().map(|entry| text(entry, "/type").into()).collect();
    (types(enabled), types(disabled))
}

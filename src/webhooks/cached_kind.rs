//! What webhooks read of objects: one const for each kind and purpose.
//! ```text
//! pub const SERVICE_ACCOUNTS: CachedKind<ServiceAccount> = CachedKind {
//!     objects: Objects { kind: "ServiceAccount", plural: "serviceaccounts", ..Objects::TARGET },
//!     fields: |object| ServiceAccount { automount: … },
//! };
//! ```
//! For a new read, add a const and name it in the registry. Watch, store, live reads and error texts follow from it.

use std::{any::Any, cmp::Ordering, fmt, sync::Arc};

use cluster::Resource;
use serde_json::Value;

use crate::api::resources::side::Side;

/// A set of objects, and the fields that are cached of each.
#[derive(Debug)]
pub struct CachedKind<T> {
    /// Which objects.
    pub objects: Objects,
    /// Extracts the cached fields. Pure; a field that cannot be read is part of the value.
    pub fields: fn(&Value) -> T,
}

/// A set of objects. [`Objects::TARGET`] has the defaults.
#[derive(Debug, Clone, Copy)]
pub struct Objects {
    /// Distinguishes several cached kinds with the same kind; otherwise empty.
    pub purpose: &'static str,
    /// The cluster.
    pub side: Side,
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Version, e.g. `v1`.
    pub version: &'static str,
    /// Kind in upper camel case.
    pub kind: &'static str,
    /// Plural name, as in paths.
    pub plural: &'static str,
    /// Whether the kind is namespaced.
    pub namespaced: bool,
    /// The namespaces that are watched.
    pub within: Within,
    /// Which objects are watched. Live reads reach all others too.
    pub selected: Selected,
    /// Whether only metadata is watched.
    pub metadata_only: bool,
    /// Whether the kind may be missing from the cluster. Readiness does not wait for an optional kind.
    pub optional: bool,
    /// Whether objects are read live while their watch is out of contact. Otherwise the store's content counts even if
    /// it is out of date (spec 50 §2.7, "Cache lags behind the API server").
    pub heard_of: bool,
}

/// The watched namespaces of a namespaced kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Within {
    /// The namespaces that the configuration names for the cluster; nothing is known of others (spec 50 §2.7).
    Configured,
    /// All namespaces, whatever the configuration says.
    All,
    /// Only this namespace, whatever the configuration says.
    One(&'static str),
}

/// Selects the watched objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selected {
    /// All objects.
    All,
    /// The object of this name.
    Named(&'static str),
    /// Objects that have this label, whatever its value.
    Labelled(&'static str),
}

/// A [`CachedKind`] of any type. Two are equal if side, group, plural and purpose are.
pub trait AnyCachedKind: Send + Sync {
    /// Which objects.
    fn objects(&self) -> &Objects;

    /// Extracts the cached fields of an object.
    fn cached_fields(&self, object: &Value) -> Fields;
}

/// The cached fields of an object; their type is the parameter of the [`CachedKind`].
pub type Fields = Arc<dyn Any + Send + Sync>;

/// Objects that a webhook reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reads {
    /// Single objects.
    Objects(&'static dyn AnyCachedKind),
    /// Single objects of one namespace.
    ObjectsOf(&'static dyn AnyCachedKind, String),
    /// HorizontalPodAutoscalers: their scale targets and `maxReplicas`.
    Autoscalers,
    /// The number of Nodes.
    NodeCount,
    /// The taints of the Nodes that the configuration selects.
    NodeTaints,
}

impl<T: Send + Sync + 'static> AnyCachedKind for CachedKind<T> {
    fn objects(&self) -> &Objects {
        &self.objects
    }

    fn cached_fields(&self, object: &Value) -> Fields {
        Arc::new((self.fields)(object))
    }
}

impl Selected {
    /// Returns the label selector and the field selector in the API's syntax.
    pub fn selectors(&self) -> (Option<String>, Option<String>) {
        match self {
            Self::All => (None, None),
            Self::Named(name) => (None, Some(format!("metadata.name={name}"))),
            Self::Labelled(label) => (Some((*label).to_owned()), None),
        }
    }
}

impl Objects {
    /// All objects of a kind of `v1` in the target, in the configured namespaces.
    pub const TARGET: Self = Self {
        purpose: "",
        side: Side::Target,
        group: "",
        version: "v1",
        kind: "",
        plural: "",
        namespaced: true,
        within: Within::Configured,
        selected: Selected::All,
        metadata_only: false,
        optional: false,
        heard_of: false,
    };

    /// The same for authorization, where outdated objects could grant a permission that was revoked since.
    pub const HEARD_OF: Self = Self { heard_of: true, ..Self::TARGET };

    /// Returns the namespaces to watch; a single `None` means all of them. `configured` are the namespaces that the
    /// configuration names for the cluster (empty: all).
    pub fn scopes(&self, configured: &[String]) -> Vec<Option<String>> {
        match self.within {
            _ if !self.namespaced => vec![None],
            Within::One(one) => vec![Some(one.to_owned())],
            Within::Configured if !configured.is_empty() => configured.iter().cloned().map(Some).collect(),
            Within::Configured | Within::All => vec![None],
        }
    }

    /// Returns the kind as the server addresses it.
    pub fn resource(&self) -> Resource {
        Resource::new(self.group, self.version, self.kind, self.plural, self.namespaced)
    }

    /// Returns the name of the watch: the plural, prefixed with the purpose if there is one.
    pub fn name(&self) -> String {
        if self.purpose.is_empty() { self.plural.to_owned() } else { format!("{}/{}", self.purpose, self.plural) }
    }

    fn identity(&self) -> (&str, &str, &str, Side) {
        (self.group, self.plural, self.purpose, self.side)
    }
}

impl fmt::Debug for dyn AnyCachedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.objects().kind)
    }
}

impl PartialEq for dyn AnyCachedKind {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for dyn AnyCachedKind {}

impl PartialOrd for dyn AnyCachedKind {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn AnyCachedKind {
    fn cmp(&self, other: &Self) -> Ordering {
        self.objects().identity().cmp(&other.objects().identity())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::webhooks::{
        mutating::{
            high_availability::{NAMESPACES, Space, ZONES},
            load_balancing::{CONFIG_MAPS, SERVICES},
        },
        view::Annotations,
    };

    #[test]
    fn cached_fields_are_only_those_that_webhooks_read() {
        let consider = "high-availability-config.resources.gardener.cloud/consider";
        let namespace =
            json!({"metadata": {"labels": {consider: "true"}, "annotations": {ZONES: "a,b", "other": "x"}}});
        let config_map = json!({"data": {"hosts": "a,b", "other": "x"}});
        let service = json!({"spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "fd00::1"]}});

        let annotations = Annotations::from([(ZONES.to_owned(), "a,b".to_owned())]);
        assert_eq!((NAMESPACES.fields)(&namespace), Space { considered: true, annotations });
        assert_eq!((NAMESPACES.fields)(&json!({"metadata": {"labels": {consider: "yes"}}})), Space::default());
        assert_eq!((CONFIG_MAPS.fields)(&config_map), Annotations::from([("hosts".to_owned(), "a,b".to_owned())]));
        assert_eq!((SERVICES.fields)(&service), ["10.0.0.1", "fd00::1"]);
    }
}

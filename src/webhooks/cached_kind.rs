//! What webhooks read: of objects, one const for each kind and purpose.
//!
//! ```text
//! pub const SERVICE_ACCOUNTS: Projection<ServiceAccount> = Projection {
//!     objects: Objects { kind: "ServiceAccount", plural: "serviceaccounts", ..Objects::TARGET },
//!     fields: |object| ServiceAccount { automount: … },
//! };
//! ```
//!
//! Nothing else is needed for a new read but to name it in the registry: the watch, the store, the live read of what the
//! store lacks, and the texts of errors follow from it.

use std::{any::Any, cmp::Ordering, fmt, sync::Arc};

use cluster::{Resource, Side};
use serde_json::Value;

/// Some objects, and what is kept of each.
#[derive(Debug)]
pub struct CachedKind<T> {
    /// Which objects.
    pub objects: Objects,
    /// What is kept of one. Pure; what cannot be read is part of the value.
    pub fields: fn(&Value) -> T,
}

/// Which objects are read. Fields that are not named are those of [`Objects::TARGET`].
#[derive(Debug, Clone, Copy)]
pub struct Objects {
    /// Tells apart projections of the same kind; empty where there is one of the kind.
    pub purpose: &'static str,
    /// The cluster.
    pub side: Side,
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Version, e.g. `v1`.
    pub version: &'static str,
    /// Kind in upper camel case.
    pub kind: &'static str,
    /// Its name in paths.
    pub plural: &'static str,
    /// Whether the kind lives in namespaces.
    pub namespaced: bool,
    /// In which namespaces they are watched.
    pub within: Within,
    /// Which of them are watched; what is not can be read live all the same.
    pub selected: Selected,
    /// Whether metadata is enough.
    pub metadata_only: bool,
    /// Whether the kind may not be served: readiness does not wait for it.
    pub optional: bool,
    /// Whether a store counts only while its watch is heard of: then what it holds is read live. Others take what is out of
    /// date for what there is (spec 50 §2.7, "Cache lags behind the API server").
    pub heard_of: bool,
}

/// The namespaces of a kind that lives in some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Within {
    /// Those that the configuration names for the cluster; elsewhere nothing is known (spec 50 §2.7).
    Configured,
    /// All, whatever the configuration says.
    All,
    /// This one, whatever the configuration says.
    One(&'static str),
}

/// What makes an object one of those that are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selected {
    /// Nothing: all are.
    All,
    /// Its name.
    Named(&'static str),
    /// That it has a label, whatever its value.
    Labelled(&'static str),
}

/// A projection of any type, see [`Projection`]. Two are the same if their objects and purposes are.
pub trait AnyCachedKind: Send + Sync {
    /// Which objects.
    fn objects(&self) -> &Objects;

    /// What is kept of one.
    fn cached_fields(&self, object: &Value) -> Fields;
}

/// What is kept of an object: the type of its projection.
pub type Fields = Arc<dyn Any + Send + Sync>;

/// Objects that a webhook reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reads {
    /// Single objects.
    Objects(&'static dyn AnyCachedKind),
    /// Single objects of one namespace.
    ObjectsOf(&'static dyn AnyCachedKind, String),
    /// What HorizontalPodAutoscalers scale, and how far.
    Autoscalers,
    /// How many Nodes there are.
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
    /// The selectors of labels and of fields, in the API's syntax.
    pub fn selectors(&self) -> (Option<String>, Option<String>) {
        match self {
            Self::All => (None, None),
            Self::Named(name) => (None, Some(format!("metadata.name={name}"))),
            Self::Labelled(label) => (Some((*label).to_owned()), None),
        }
    }
}

impl Objects {
    /// All objects of a kind of `v1` in the target, in the namespaces of the configuration.
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

    /// The same for who decides by them what somebody may do: what is out of date may be what was taken away since.
    pub const HEARD_OF: Self = Self { heard_of: true, ..Self::TARGET };

    /// Where they are: in these namespaces, or everywhere (`None`). `configured`: the namespaces that the configuration names
    /// for the cluster; none for all.
    pub fn scopes(&self, configured: &[String]) -> Vec<Option<String>> {
        match self.within {
            _ if !self.namespaced => vec![None],
            Within::One(one) => vec![Some(one.to_owned())],
            Within::Configured if !configured.is_empty() => configured.iter().cloned().map(Some).collect(),
            Within::Configured | Within::All => vec![None],
        }
    }

    /// The kind as the server addresses it.
    pub fn resource(&self) -> Resource {
        Resource::new(self.group, self.version, self.kind, self.plural, self.namespaced)
    }

    /// Name of its watch: the plural, with the purpose if there is one.
    pub fn name(&self) -> String {
        if self.purpose.is_empty() { self.plural.to_owned() } else { format!("{}/{}", self.purpose, self.plural) }
    }

    fn identity(&self) -> (&str, &str, &str, &str) {
        (
            self.group,
            self.plural,
            self.purpose,
            match self.side {
                Side::Source => "source",
                Side::Target => "target",
            },
        )
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

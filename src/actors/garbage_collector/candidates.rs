//! Candidates: objects that are collectable, and old enough (spec 33 §4.1).

use std::{collections::BTreeMap, time::Duration};

use cluster::{
    Resource,
    object::{self, NamespacedName},
};
use jiff::Timestamp;
use serde_json::Value;

use crate::api::keys::{GARBAGE_COLLECTABLE, GARBAGE_COLLECTABLE_VALUE};

/// Younger objects are spared: producers make a Secret before what refers to it (spec 33 T8).
pub const SHORTEST_LIFE: Duration = Duration::from_secs(600);

/// What can be collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CollectableKind {
    /// A Secret.
    Secret,
    /// A ConfigMap.
    ConfigMap,
}

/// A candidate's identity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// Its namespace; first, so that candidates of a namespace stand together.
    pub namespace: String,
    /// Its kind.
    pub kind: CollectableKind,
    /// Its name.
    pub name: String,
}

/// What was seen of a candidate. It is deleted only if it is still that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`.
    pub resource_version: String,
    /// `metadata.creationTimestamp`.
    pub created: Timestamp,
}

/// All candidates of a run, and who is none although the label says so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Candidates {
    /// Those that are deleted unless something refers to them.
    pub known: BTreeMap<Identity, Seen>,
    /// Too young, or of unknown age.
    pub young: usize,
    /// Deleted already; a finalizer holds them.
    pub terminating: usize,
}

/// Selects collectable objects.
pub fn selector() -> String {
    format!("{GARBAGE_COLLECTABLE}={GARBAGE_COLLECTABLE_VALUE}")
}

impl CollectableKind {
    /// In the order in which they are listed.
    pub const ALL: [Self; 2] = [Self::Secret, Self::ConfigMap];

    /// How the API server serves it.
    pub fn resource(self) -> Resource {
        Resource::new("", "v1", self.name(), self.plural(), true)
    }

    /// As the API writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
        }
    }

    /// In paths.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Secret => "secrets",
            Self::ConfigMap => "configmaps",
        }
    }

    /// By its name in the keys of reference annotations.
    pub fn of_reference(text: &str) -> Option<Self> {
        match text {
            "secret" => Some(Self::Secret),
            "configmap" => Some(Self::ConfigMap),
            _ => None,
        }
    }
}

impl Candidates {
    /// Takes in an object of the list. One whose age nobody can tell is not touched.
    pub fn add(&mut self, kind: CollectableKind, object: &Value, now: Timestamp) {
        if object::deletion_timestamp(object).is_some() {
            self.terminating += 1;
            return;
        }
        let created = object.pointer("/metadata/creationTimestamp").and_then(Value::as_str);
        let created: Option<Timestamp> = created.and_then(|text| text.parse().ok());
        let Some(created) = created.filter(|created| is_old(*created, now)) else {
            self.young += 1;
            return;
        };
        let NamespacedName { namespace, name } = NamespacedName::of(object);
        let (uid, resource_version) = (object::uid(object).to_owned(), object::resource_version(object).to_owned());
        self.known.insert(Identity { namespace, kind, name }, Seen { uid, resource_version, created });
    }

    /// Takes out what is referred to; gives how many of these were candidates.
    pub fn take_out(&mut self, referred: impl IntoIterator<Item = Identity>) -> usize {
        referred.into_iter().filter(|found| self.known.remove(found).is_some()).count()
    }
}

/// At exactly ten minutes it is old (spec 33 §4.1 rule 3).
fn is_old(created: Timestamp, now: Timestamp) -> bool {
    created.checked_add(SHORTEST_LIFE).is_ok_and(|old| old <= now)
}

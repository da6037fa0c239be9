//! Candidates: collectable objects that are old enough (spec 33 §4.1).

use std::{collections::BTreeMap, time::Duration};

use cluster::{
    Resource,
    object::{self, NamespacedName},
};
use jiff::Timestamp;
use serde_json::Value;

use crate::api::{
    kinds,
    resources::keys::{GARBAGE_COLLECTABLE, GARBAGE_COLLECTABLE_VALUE},
};

/// Younger objects are spared: producers create a Secret before the objects that refer to it (spec 33 T8).
pub const SHORTEST_LIFE: Duration = Duration::from_secs(600);

/// The collectable kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CollectableKind {
    /// A Secret.
    Secret,
    /// A ConfigMap.
    ConfigMap,
}

/// The identity of a candidate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// Its namespace. It is first, so that the candidates of a namespace are adjacent in the order.
    pub namespace: String,
    /// Its kind.
    pub kind: CollectableKind,
    /// Its name.
    pub name: String,
}

/// The listed version of a candidate; only this version is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`.
    pub resource_version: String,
    /// `metadata.creationTimestamp`.
    pub created: Timestamp,
}

/// The candidates of a run, and counts of labelled objects that are not eligible.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Candidates {
    /// Objects to delete unless another object refers to them.
    pub known: BTreeMap<Identity, Seen>,
    /// Objects that are too young or of unknown age.
    pub young: usize,
    /// Objects that are terminating, held by a finalizer.
    pub terminating: usize,
}

/// The label selector of collectable objects.
pub fn selector() -> String {
    format!("{GARBAGE_COLLECTABLE}={GARBAGE_COLLECTABLE_VALUE}")
}

impl CollectableKind {
    /// All kinds, in the order in which they are listed.
    pub const ALL: [Self; 2] = [Self::Secret, Self::ConfigMap];

    /// Group, version and plural of the kind.
    pub fn resource(self) -> Resource {
        match self {
            Self::Secret => kinds::SECRET,
            Self::ConfigMap => kinds::CONFIG_MAP,
        }
    }

    /// The kind as in manifests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
        }
    }

    /// Returns the kind named in the key of a reference annotation, or `None`.
    pub fn of_reference(text: &str) -> Option<Self> {
        match text {
            "secret" => Some(Self::Secret),
            "configmap" => Some(Self::ConfigMap),
            _ => None,
        }
    }
}

impl Candidates {
    /// Adds a listed object. An object of unknown age counts as young.
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

    /// Removes the referenced candidates and returns their number.
    pub fn take_out(&mut self, referred: impl IntoIterator<Item = Identity>) -> usize {
        referred.into_iter().filter(|found| self.known.remove(found).is_some()).count()
    }
}

/// An object is old from exactly ten minutes on (spec 33 §4.1 rule 3).
fn is_old(created: Timestamp, now: Timestamp) -> bool {
    created.checked_add(SHORTEST_LIFE).is_ok_and(|old| old <= now)
}

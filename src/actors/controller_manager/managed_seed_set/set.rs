//! What is kept of a ManagedSeedSet, and which Shoots are its replicas (spec 86 §2, §5.1). Pure.

use std::sync::Arc;

use cluster::{Cached, object};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;

use super::{replica::ReplicaShoot, status::SetStatus};
use crate::{
    actors::controller_manager::guards::GARDENER,
    api::meta::selector::{Labels, Selector},
};

/// The error of a selector without conditions (DEV-16).
const EMPTY_SELECTOR: &str = "empty selector is invalid for ManagedSeedSet";

/// A ManagedSeedSet without its templates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedSeedSet {
    /// Its uid.
    pub uid: Box<str>,
    /// Its generation.
    pub generation: i64,
    /// It is being deleted.
    pub is_deleting: bool,
    /// It has the finalizer of this controller.
    pub is_held: bool,
    /// `spec.replicas`, absent counts as 1 (DEV-11). `None`: it is no number, or a negative one.
    replicas: Option<i64>,
    /// `spec.selector`.
    selection: Selection,
    /// Its status.
    pub status: SetStatus,
}

/// Which Shoots a ManagedSeedSet selects.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Selection {
    /// Those with these labels.
    Labelled(Selector),
    /// Its selector is empty or absent.
    Empty,
    /// Its selector is none, for this reason.
    Invalid(Box<str>),
}

/// A ManagedSeedSet in the cache.
#[derive(Debug, Clone)]
pub struct CachedSet {
    version: u64,
    /// The ManagedSeedSet.
    pub set: Arc<ManagedSeedSet>,
}

impl ManagedSeedSet {
    /// Reads a ManagedSeedSet of any shape.
    pub fn of(set: &Value) -> Self {
        let replicas = match set.pointer("/spec/replicas") {
            None | Some(Value::Null) => Some(1),
            Some(replicas) => replicas.as_i64().filter(|replicas| *replicas >= 0),
        };
        Self {
            uid: object::uid(set).into(),
            generation: object::generation(set),
            is_deleting: object::deletion_timestamp(set).is_some(),
            is_held: object::finalizers(set).any(|finalizer| finalizer == GARDENER),
            replicas,
            selection: Selection::of(set.pointer("/spec/selector").unwrap_or(&Value::Null)),
            status: SetStatus::of(set),
        }
    }

    /// Returns true if another state of it differs in what wakes it (§7).
    pub fn has_changed_since(&self, old: &Self) -> bool {
        let intent = |set: &Self| (set.uid.clone(), set.generation, set.is_deleting, set.is_held, set.replicas);
        intent(self) != intent(old) || self.selection != old.selection
    }

    /// Returns the number of replicas that it must have. Fails if that cannot be known: nothing is deleted on doubt.
    pub fn target(&self) -> Result<i64, String> {
        match (&self.selection, self.is_deleting) {
            (Selection::Labelled(_) | Selection::Empty, true) => Ok(0),
            (Selection::Labelled(_), false) => {
                self.replicas.ok_or_else(|| "spec.replicas is not a number of at least 0".to_owned())
            }
            (Selection::Empty, false) => Err(EMPTY_SELECTOR.to_owned()),
            (Selection::Invalid(cause), _) => Err(format!("spec.selector is invalid: {cause}")),
        }
    }

    /// Returns true if a Shoot of its namespace is a replica. A Shoot that another object controls is none (DEV-7). Without
    /// a selector the Shoots that it controls are, when it is being deleted (DEV-16).
    pub fn selects(&self, shoot: &ReplicaShoot) -> bool {
        let is_own = shoot.controller.as_deref() == Some(&*self.uid);
        match &self.selection {
            Selection::Labelled(selector) => {
                (is_own || shoot.controller.is_none()) && selector.matches(&shoot.labels())
            }
            Selection::Empty => self.is_deleting && is_own,
            Selection::Invalid(_) => false,
        }
    }

    /// Returns true if its selector matches the labels of a template.
    pub fn matches_labels(&self, labels: &Labels) -> bool {
        matches!(&self.selection, Selection::Labelled(selector) if selector.matches(labels))
    }

    /// Returns the label selector of a list of its replicas, in the syntax of the API; `None` for all Shoots.
    pub fn label_selector(&self) -> Option<String> {
        match &self.selection {
            Selection::Labelled(selector) => Some(selector.to_label_selector()),
            Selection::Empty | Selection::Invalid(_) => None,
        }
    }
}

impl Selection {
    fn of(selector: &Value) -> Self {
        if selector.is_null() {
            return Self::Empty;
        }
        let parsed = serde_json::from_value::<LabelSelector>(selector.clone()).map_err(|error| error.to_string());
        match parsed.and_then(|selector| Selector::new(&selector).map_err(|error| error.to_string())) {
            Ok(selector) if selector.is_empty() => Self::Empty,
            Ok(selector) => Self::Labelled(selector),
            Err(cause) => Self::Invalid(cause.into()),
        }
    }
}

impl CachedSet {
    /// Returns the cached form of a ManagedSeedSet, or `None` if it has no valid version.
    pub fn of(set: &Value) -> Option<Self> {
        let version = object::resource_version(set).parse().ok()?;
        Some(Self { version, set: Arc::new(ManagedSeedSet::of(set)) })
    }
}

impl Cached for CachedSet {
    fn uid(&self) -> &str {
        &self.set.uid
    }

    fn version(&self) -> u64 {
        self.version
    }
}

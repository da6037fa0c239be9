//! The kinds that refer to protected objects. Pure.

use cluster::{Resource, object};
use serde_json::Value;

use super::{
    extraction::{References, ShootReferences, of_controller_deployment, of_seed, of_shoot},
    object::{PROTECTION, ReferencedObject},
    verdict::ReferrerState,
};
use crate::{
    actors::controller_manager::{controller_deployment, guards::GARDENER, held::DeletionTime},
    api::kinds,
};

/// A kind of referrers.
pub(in crate::actors::controller_manager) struct ReferrerKind {
    /// Name of its controller (spec 80 §15).
    pub controller: &'static str,
    /// The kind.
    pub kind: Resource,
    /// The finalizer that a deleted referrer has while its own controllers still need its objects.
    pub last_user: &'static str,
    /// The namespace of the objects; `None`: that of the referrer.
    pub namespace: Option<&'static str>,
    /// Returns the objects to which a referrer refers.
    pub references: fn(&Value, ShootReferences) -> References,
}

/// All kinds of referrers.
pub(in crate::actors::controller_manager) static REFERRER_KINDS: [ReferrerKind; 3] = [
    ReferrerKind {
        controller: "controllerdeployment-reference",
        kind: kinds::CONTROLLER_DEPLOYMENT,
        last_user: controller_deployment::FINALIZER,
        namespace: Some(GARDEN),
        references: |deployment, _| of_controller_deployment(deployment),
    },
    ReferrerKind {
        controller: "seed-reference",
        kind: kinds::SEED,
        last_user: GARDENER,
        namespace: Some(GARDEN),
        references: |seed, _| of_seed(seed),
    },
    ReferrerKind {
        controller: "shoot-reference",
        kind: kinds::SHOOT,
        last_user: GARDENER,
        namespace: None,
        references: of_shoot,
    },
];

/// The namespace of objects that referrers without a namespace refer to.
const GARDEN: &str = "garden";

/// What is kept of a referrer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::actors::controller_manager) struct Referrer {
    /// Its state.
    pub state: ReferrerState,
    /// Its references, sorted.
    pub references: Box<[ReferencedObject]>,
    /// When its deletion began.
    pub deleted: Option<DeletionTime>,
}

impl Referrer {
    /// Reads a referrer.
    pub(in crate::actors::controller_manager) fn of(
        kind: &ReferrerKind,
        object: &Value,
        counted: ShootReferences,
    ) -> Self {
        let has = |name: &str| object::finalizers(object).any(|finalizer| finalizer == name);
        let is_deleting = object::deletion_timestamp(object).is_some();
        let state =
            ReferrerState { is_in_use: !is_deleting || has(kind.last_user), is_held: has(PROTECTION), is_deleting };
        let namespace = kind.namespace.unwrap_or_else(|| object::namespace(object));
        let references = (kind.references)(object, counted).into_iter();
        let references = references.map(|(kind, name)| ReferencedObject::new(kind, namespace, &name)).collect();
        Self { state, references, deleted: DeletionTime::of(object) }
    }

    /// Returns true if its objects must be looked at when it changes into `other`.
    pub(in crate::actors::controller_manager) fn concerns_objects_unlike(&self, other: &Self) -> bool {
        self.references != other.references || self.state.is_in_use != other.state.is_in_use
    }

    /// Returns when its deletion began, if nothing but the finalizer keeps it.
    pub(in crate::actors::controller_manager) fn kept_since(&self) -> Option<DeletionTime> {
        self.deleted.filter(|_| self.state.is_held && !self.state.is_in_use)
    }

    /// Returns true if nothing of it concerns its controller.
    pub(in crate::actors::controller_manager) fn is_idle(&self) -> bool {
        self.references.is_empty() && !self.state.is_held
    }
}

impl ReferrerKind {
    /// Returns true if its objects may refer to objects of a namespace.
    pub(in crate::actors::controller_manager) fn refers_into(&self, namespace: &str) -> bool {
        self.namespace.is_none_or(|own| own == namespace)
    }

    /// Returns the namespace to list for the referrers of a namespace's objects; `None` for cluster scope.
    pub(in crate::actors::controller_manager) fn list_scope(&self, namespace: &str) -> Option<String> {
        self.kind.namespaced.then(|| namespace.to_owned())
    }
}

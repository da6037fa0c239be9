//! What the annotations of a Namespace ask for (spec 51 §2.1). Values are never trimmed nor checked.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    api::object::{self, NamespacedName, truthy},
    webhooks::{
        cached_kind::{CachedKind, Objects},
        view::{Annotations, Failure, View},
    },
};

/// Annotation: which failures the workloads have to survive. Empty is something else than absent.
pub const FAILURE_TOLERANCE_TYPE: &str = "high-availability-config.resources.gardener.cloud/failure-tolerance-type";
/// Annotation: the zones, separated by commas.
pub const ZONES: &str = "high-availability-config.resources.gardener.cloud/zones";
/// Annotation: pin to the zones although there is no [`FAILURE_TOLERANCE_TYPE`]. Truthy.
pub const ZONE_PINNING: &str = "high-availability-config.resources.gardener.cloud/zone-pinning";

/// The annotations of a Namespace that are read.
pub const NAMESPACE_ANNOTATIONS: [&str; 3] = [FAILURE_TOLERANCE_TYPE, ZONES, ZONE_PINNING];

/// Label of the Namespaces for which the API server asks (spec 50 §3.4).
const CONSIDER: &str = "high-availability-config.resources.gardener.cloud/consider";

/// What is read of Namespaces.
pub const NAMESPACES: CachedKind<Space> = CachedKind {
    objects: Objects {
        kind: "Namespace",
        plural: "namespaces",
        namespaced: false,
        metadata_only: true,
        ..Objects::TARGET
    },
    fields: |object| {
        let text = |key| Some((String::from(key), object::annotation(object, key)?.to_owned()));
        Space {
            considered: object::label(object, CONSIDER) == Some("true"),
            annotations: NAMESPACE_ANNOTATIONS.into_iter().filter_map(text).collect(),
        }
    },
};

/// A Namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Space {
    /// Whether it has the label without which the API server does not ask.
    pub considered: bool,
    /// The annotations that are read.
    pub annotations: Annotations,
}

/// What is known of a Namespace. One that lacks the label without which the API server does not ask is out of date, as is one
/// that is missing (spec 51, "better" 4).
///
/// # Errors
/// [`Failure::Look`], or why it cannot be read.
pub fn space(name: &str, view: &dyn View) -> Result<Option<Arc<Space>>, Failure> {
    let name = NamespacedName::new("", name);
    match view.object(&NAMESPACES, &name)? {
        Some(space) if !space.considered => view.object_live(&NAMESPACES, &name),
        known => Ok(known),
    }
}

/// What a Namespace asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    /// "FTT".
    pub(super) tolerance: Tolerance,
    /// "Z": sorted by bytes, without doubles and empty ones.
    pub(super) zones: Vec<String>,
    /// "PIN".
    pub(super) pinned: bool,
}

/// The failure tolerance type, as far as rules tell it apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tolerance {
    /// There is no such annotation.
    Absent,
    /// The annotation is empty: a control plane that is not highly available.
    Empty,
    /// `zone`.
    Zone,
    /// `node`, or something unknown.
    Node,
}

impl Wanted {
    pub(super) fn of(annotations: &Annotations) -> Self {
        let text = |key| annotations.get(key).map(String::as_str);
        let zones: BTreeSet<&str> =
            text(ZONES).unwrap_or_default().split(',').filter(|zone| !zone.is_empty()).collect();
        Self {
            tolerance: match text(FAILURE_TOLERANCE_TYPE) {
                None => Tolerance::Absent,
                Some("") => Tolerance::Empty,
                Some("zone") => Tolerance::Zone,
                Some(_) => Tolerance::Node,
            },
            zones: zones.into_iter().map(str::to_owned).collect(),
            pinned: truthy(text(ZONE_PINNING)),
        }
    }
}

impl Tolerance {
    /// Whether the annotation is there and not empty.
    pub(super) fn is_some(self) -> bool {
        match self {
            Self::Absent | Self::Empty => false,
            Self::Zone | Self::Node => true,
        }
    }

    /// Whether Pods spread over the zones, if there are several. Not for [`Tolerance::Node`]: old clusters list several
    /// zones without being zonal (spec 51 R3).
    pub(super) fn spreads_over_zones(self) -> bool {
        match self {
            Self::Absent | Self::Zone => true,
            Self::Empty | Self::Node => false,
        }
    }
}

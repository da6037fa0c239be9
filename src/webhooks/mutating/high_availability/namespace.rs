//! The requirements in the annotations of a Namespace (spec 51 §2.1). Values are neither trimmed nor checked.

use std::{collections::BTreeSet, sync::Arc};

use cluster::object::{self, NamespacedName, truthy};

use crate::webhooks::{
    cached_kind::{CachedKind, Objects},
    view::{Annotations, Failure, View},
};

/// Annotation: the failures that workloads must survive. Empty and absent differ.
pub const FAILURE_TOLERANCE_TYPE: &str = "high-availability-config.resources.gardener.cloud/failure-tolerance-type";
/// Annotation: the zones, separated by commas.
pub const ZONES: &str = "high-availability-config.resources.gardener.cloud/zones";
/// Annotation, truthy: pin to the zones even without [`FAILURE_TOLERANCE_TYPE`].
pub const ZONE_PINNING: &str = "high-availability-config.resources.gardener.cloud/zone-pinning";

/// The annotations of a Namespace that are read.
pub const NAMESPACE_ANNOTATIONS: [&str; 3] = [FAILURE_TOLERANCE_TYPE, ZONES, ZONE_PINNING];

/// Label of the Namespaces for which the API server calls this webhook (spec 50 §3.4).
const CONSIDER: &str = "high-availability-config.resources.gardener.cloud/consider";

/// The Namespaces.
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

/// The cached fields of a Namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Space {
    /// Whether it has the label without which the API server does not call this webhook.
    pub considered: bool,
    /// The annotations that are read.
    pub annotations: Annotations,
}

/// Returns the Namespace, or `None` if it does not exist. A cached Namespace without the label is outdated, because the
/// API server would not have called; it is read live, like a missing one (spec 51, "better" 4). Fails with
/// [`Failure::Look`], or with the reason why the read failed.
pub fn space(name: &str, view: &dyn View) -> Result<Option<Arc<Space>>, Failure> {
    let name = NamespacedName::new("", name);
    match view.object(&NAMESPACES, &name)? {
        Some(space) if !space.considered => view.object_live(&NAMESPACES, &name),
        known => Ok(known),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    /// "FTT".
    pub(super) tolerance: Tolerance,
    /// "Z": sorted by bytes, without duplicates and empty zones.
    pub(super) zones: Vec<String>,
    /// "PIN".
    pub(super) pinned: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tolerance {
    Absent,
    /// The annotation is empty: a control plane that is not highly available.
    Empty,
    Zone,
    /// `node`, or any other value.
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
    pub(super) fn is_some(self) -> bool {
        match self {
            Self::Absent | Self::Empty => false,
            Self::Zone | Self::Node => true,
        }
    }

    /// Whether Pods spread over zones. Not for [`Tolerance::Node`]: old non-zonal clusters list zones (spec 51 R3).
    pub(super) fn spreads_over_zones(self) -> bool {
        match self {
            Self::Absent | Self::Zone => true,
            Self::Empty | Self::Node => false,
        }
    }
}

//! The webhook `high-availability-config` (spec 51): Deployments, StatefulSets and HorizontalPodAutoscalers of
//! namespaces that opt in run with the right number of replicas, in the right zones, spread over nodes and zones, and
//! leave broken nodes quickly. [`HighAvailability`] dispatches to one file for each step, in this order:
//! `namespace.rs`, the requirements in the annotations of the Namespace (§2.1); `replicas.rs`, the number of replicas
//! of workloads and their autoscalers (§4); `affinity.rs`, pinning to zones (§5); `spread.rs`, topology spread
//! constraints (§6); `tolerations.rs`, the time on broken nodes (§7).
//!
//! A step only adds or replaces, and the order of all results is fixed: each change of a Pod template is a roll-out.

mod affinity;
mod namespace;
mod replicas;
mod spread;
mod tolerations;

#[cfg(test)]
mod tests;

use serde_json::Value;

use self::{namespace::Wanted, replicas::Scaling};
pub use self::{
    namespace::{FAILURE_TOLERANCE_TYPE, NAMESPACE_ANNOTATIONS, NAMESPACES, Space, ZONE_PINNING, ZONES, space},
    replicas::{REPLICAS, TYPE},
    spread::HOST_SPREAD,
};
use super::{Mutation, Mutator, Request, text};
use crate::{
    api::config::resource_manager::HighAvailabilityConfig,
    webhooks::{
        fields::{self, Field, Type, WrongType},
        view::{Failure, Read, Scaled, View},
    },
};

/// The HTTP path (spec 50 §1).
pub const PATH: &str = "/webhooks/high-availability-config";

/// Denial of a review without an object (spec 51 §3).
const NO_CONTENT: &str = "there is no content to decode";

const FIELDS: [Field; 13] = [
    ("metadata.labels{}", Type::Text),
    ("metadata.annotations{}", Type::Text),
    ("spec.replicas", Type::Integer32),
    ("spec.selector.matchLabels", Type::Map),
    ("spec.selector.matchExpressions[].key", Type::Text),
    ("spec.template.metadata.labels{}", Type::Text),
    (
        "spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution\
         .nodeSelectorTerms[].matchExpressions[].key",
        Type::Text,
    ),
    ("spec.template.spec.topologySpreadConstraints[].topologyKey", Type::Text),
    ("spec.template.spec.topologySpreadConstraints[].matchLabelKeys[]", Type::Text),
    ("spec.template.spec.topologySpreadConstraints[].labelSelector.matchLabels", Type::Map),
    ("spec.template.spec.topologySpreadConstraints[].labelSelector.matchExpressions[].key", Type::Text),
    ("spec.template.spec.tolerations[].key", Type::Text),
    ("spec.template.spec.tolerations[].effect", Type::Text),
];

const AUTOSCALER_FIELDS: [Field; 4] = [
    ("metadata.labels{}", Type::Text),
    ("metadata.annotations{}", Type::Text),
    ("spec.minReplicas", Type::Integer32),
    ("spec.maxReplicas", Type::Integer32),
];

/// The webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HighAvailability(pub HighAvailabilityConfig);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkloadKind {
    Workload(Workload),
    Autoscaler,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Workload {
    Deployment,
    StatefulSet,
}

/// A failure. A field with the wrong type is a denial here, code 400 in the other webhooks (spec 50 §2.2 row 7).
#[derive(Debug, PartialEq, Eq)]
struct Error(Failure);

impl HighAvailability {
    /// Spec 51 §3.
    fn change(&self, object: &mut Value, request: &Request<'_>, view: &dyn View) -> Result<Mutation, Error> {
        let wanted = wanted(request, view)?;
        let Some(kind) = WorkloadKind::of(request) else {
            return Ok(Mutation::Unexpected(format!("unexpected resource: {}", request.kind.group_kind())));
        };
        decodes(object, request)?;
        fields::check(object, kind.fields())?;

        match kind {
            WorkloadKind::Autoscaler => replicas::of_autoscaler(object, &wanted)?,
            WorkloadKind::Workload(workload) => {
                let scaling = Scaling::of_workload(object, &wanted)?;
                let most = most_replicas(&scaling, request, view)?;
                scaling.apply(object, most.is_some())?;
                affinity::pin_to_zones(object, &wanted)?;
                spread::spread(object, workload, &wanted, most, &|| has_one_node(view))?;
                tolerations::add(object, &self.0)?;
            }
        }
        Ok(Mutation::Done)
    }
}

impl Mutator for HighAvailability {
    fn mutate(&self, object: &mut Value, request: &Request<'_>, view: &dyn View) -> Result<Mutation, Failure> {
        self.change(object, request, view).map_err(|Error(failure)| failure)
    }

    fn takes(&self) -> Option<(&'static str, &'static str)> {
        None
    }

    fn sees_everything(&self) -> bool {
        true
    }
}

fn wanted(request: &Request<'_>, view: &dyn View) -> Result<Wanted, Error> {
    let found = space(request.namespace, view).map_err(|failure| read_failed(Read::Namespace, failure))?;
    let missing = || read_failed(Read::Namespace, Failure::not_found("Namespace", request.namespace));
    let space = found.ok_or_else(missing)?;
    Ok(Wanted::of(&space.annotations))
}

fn most_replicas(scaling: &Scaling, request: &Request<'_>, view: &dyn View) -> Result<Option<i64>, Error> {
    if request.name.is_empty() {
        // The workload has no name yet, so no autoscaler can name it.
        return Ok(None);
    }
    let sure = request.operation == "UPDATE" && scaling.lowers();
    let api_version = request.kind.api_version();
    let scaled = Scaled {
        namespace: request.namespace,
        api_version: &api_version,
        kind: &request.kind.kind,
        name: request.name,
    };
    view.autoscaler(&scaled, sure).map_err(|failure| read_failed(Read::Autoscalers, failure))
}

fn has_one_node(view: &dyn View) -> Result<bool, Error> {
    view.has_one_node().map_err(|failure| read_failed(Read::Nodes, failure))
}

/// Reduces a failed read to its text. [`Failure::Look`] stays: it is no failure.
fn read_failed(read: Read, failure: Failure) -> Error {
    if matches!(failure, Failure::ReadLive(_)) {
        return Error(failure);
    }
    let context = match read {
        Read::Namespace => "",
        Read::Autoscalers => "failed to list all HPAs: ",
        Read::Nodes => "failed to list nodes: ",
    };
    Error(Failure::ReadFailed { read, message: format!("{context}{}", failure.text()) })
}

/// Fails if the object is absent, or names another kind or group than the request.
fn decodes(object: &Value, request: &Request<'_>) -> Result<(), Error> {
    if object.is_null() {
        return Err(Error::denied(NO_CONTENT));
    }
    let kind = fields::text(object, &["kind"])?.unwrap_or_default();
    let api_version = fields::text(object, &["apiVersion"])?.unwrap_or_default();
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let is_other_kind = !kind.is_empty() && kind != request.kind.kind;
    let is_other_group = !api_version.is_empty() && group != request.kind.group;
    if is_other_kind || is_other_group {
        return Err(Error::denied(format!("expected an object of {}, found {api_version}, Kind={kind}", request.kind)));
    }
    Ok(())
}

impl WorkloadKind {
    fn fields(self) -> &'static [Field] {
        match self {
            Self::Workload(_) => &FIELDS,
            Self::Autoscaler => &AUTOSCALER_FIELDS,
        }
    }

    /// By group and kind alone (spec 51 §3).
    fn of(request: &Request<'_>) -> Option<Self> {
        match (request.kind.group.as_str(), request.kind.kind.as_str()) {
            ("apps", "Deployment") => Some(Self::Workload(Workload::Deployment)),
            ("apps", "StatefulSet") => Some(Self::Workload(Workload::StatefulSet)),
            ("autoscaling", "HorizontalPodAutoscaler") => Some(Self::Autoscaler),
            _ => None,
        }
    }
}

impl Error {
    fn denied(text: impl Into<String>) -> Self {
        Self(Failure::Denied(text.into()))
    }
}

impl From<WrongType> for Error {
    fn from(error: WrongType) -> Self {
        Self::denied(error.to_string())
    }
}

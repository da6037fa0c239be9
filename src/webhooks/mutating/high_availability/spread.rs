//! Topology spread constraints (spec 51 §6).

use cluster::object::truthy;
use serde_json::{Value, json};

use super::{Error, Workload, affinity::ZONE_KEY, namespace::Wanted, replicas::COUNT, text};
use crate::webhooks::fields::{self, WrongType};

/// Annotation of a workload, truthy: a node gets a second Pod only when all nodes have one.
pub const HOST_SPREAD: &str = "high-availability-config.resources.gardener.cloud/host-spread";

const HOST_KEY: &str = "kubernetes.io/hostname";
/// Label of the Pods of a Deployment, one value per revision.
const REVISION_KEY: &str = "pod-template-hash";

const CONSTRAINTS: [&str; 4] = ["spec", "template", "spec", "topologySpreadConstraints"];
const TEMPLATE_LABELS: [&str; 4] = ["spec", "template", "metadata", "labels"];
const SELECTOR: [&str; 2] = ["spec", "selector"];

/// Number of nodes that satisfies a hard spread over nodes.
const ENOUGH_NODES: i64 = 3;

/// How hard a constraint is. `minDomains` is only legal with `DoNotSchedule` (spec 51 §9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hardness {
    Soft,
    Hard { domains: i64 },
}

/// Spreads the Pods of a workload with more than one replica over nodes, and over zones if there are several. `most` is
/// `maxReplicas` of its autoscaler. Calls `has_one_node` only when the answer matters.
pub(super) fn spread(
    object: &mut Value,
    workload: Workload,
    wanted: &Wanted,
    most: Option<i64>,
    has_one_node: &dyn Fn() -> Result<bool, Error>,
) -> Result<(), Error> {
    let replicas = fields::integer(object, &COUNT)?.unwrap_or_default();
    let selector = selector(object, workload)?;
    if replicas > 1 {
        // The maximum may be smaller if the autoscaler has not been changed yet (spec 51 R6).
        let pods = most.filter(|most| replicas <= *most).unwrap_or(replicas);
        let over_nodes = over_nodes(object, wanted, pods, has_one_node)?;
        let over_zones = over_zones(wanted, pods);

        let constraints = fields::list_mut(object, &CONSTRAINTS)?;
        constraints.retain(|constraint| ![HOST_KEY, ZONE_KEY].contains(&text(constraint, "topologyKey")));
        constraints.push(constraint(HOST_KEY, over_nodes, &selector));
        constraints.extend(over_zones.map(|hardness| constraint(ZONE_KEY, hardness, &selector)));
    }
    match workload {
        Workload::Deployment => Ok(count_revisions_apart(object)?),
        Workload::StatefulSet => Ok(()),
    }
}

/// "A" of spec 51 §6.2. A hard spread on a single node would leave all Pods except one pending (decision 4).
fn over_nodes(
    object: &Value,
    wanted: &Wanted,
    pods: i64,
    has_one_node: &dyn Fn() -> Result<bool, Error>,
) -> Result<Hardness, Error> {
    let enforced = truthy(fields::text(object, &["metadata", "annotations", HOST_SPREAD])?);
    if (enforced || wanted.tolerance.is_some()) && !has_one_node()? {
        return Ok(Hardness::Hard { domains: pods.min(ENOUGH_NODES) });
    }
    Ok(Hardness::Soft)
}

/// "B" of spec 51 §6.2.
fn over_zones(wanted: &Wanted, pods: i64) -> Option<Hardness> {
    let zones = i64::try_from(wanted.zones.len()).unwrap_or(i64::MAX);
    (zones > 1 && wanted.tolerance.spreads_over_zones()).then(|| Hardness::Hard { domains: zones.min(pods) })
}

/// `maxSkew` is always 1 (spec 51 R5).
fn constraint(topology_key: &str, hardness: Hardness, selector: &Value) -> Value {
    match hardness {
        Hardness::Soft => json!({
            "topologyKey": topology_key, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": selector,
        }),
        Hardness::Hard { domains } => json!({
            "topologyKey": topology_key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "minDomains": domains,
            "labelSelector": selector,
        }),
    }
}

/// Returns the selector of the counted Pods. A StatefulSet's own also matches Pods of the old template (spec 51 R4).
fn selector(object: &Value, workload: Workload) -> Result<Value, Error> {
    match workload {
        Workload::Deployment => Ok(match fields::map(object, &TEMPLATE_LABELS)? {
            Some(labels) if !labels.is_empty() => json!({ "matchLabels": labels }),
            Some(_) | None => json!({}),
        }),
        Workload::StatefulSet => {
            let selector = fields::map(object, &SELECTOR)?;
            selector.cloned().map(Value::Object).ok_or_else(|| Error::denied("spec.selector: Required value"))
        }
    }
}

/// Makes each constraint count the Pods of one revision (spec 51 §6.3). Skips constraints that this would invalidate:
/// those without a selector ("better" 9), and those whose selector names the revision.
fn count_revisions_apart(object: &mut Value) -> Result<(), WrongType> {
    fields::each_mut(object, &CONSTRAINTS, count_apart)
}

fn count_apart(constraint: &mut Value) -> Result<(), WrongType> {
    let keys = ["matchLabelKeys"];
    let is_there = fields::list(constraint, &keys)?.iter().any(|key| key == REVISION_KEY);
    if is_there || fields::map(constraint, &["labelSelector"])?.is_none() || selects_revisions(constraint)? {
        return Ok(());
    }
    fields::list_mut(constraint, &keys)?.push(REVISION_KEY.into());
    Ok(())
}

fn selects_revisions(constraint: &Value) -> Result<bool, WrongType> {
    let labels = fields::map(constraint, &["labelSelector", "matchLabels"])?;
    let expressions = fields::list(constraint, &["labelSelector", "matchExpressions"])?;
    let is_named = expressions.iter().any(|expression| text(expression, "key") == REVISION_KEY);
    Ok(is_named || labels.is_some_and(|labels| labels.contains_key(REVISION_KEY)))
}

//! Finds what a node waits for by the three checks of spec 41 §A.4, and words it (§A.6).

use std::{collections::BTreeSet, sync::Arc};

use cluster::object::NamespacedName;

use super::{daemon_set::DaemonSet, node::Node, pod::Pod};

/// The first failed check, with the objects that fail it, sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// DaemonSets without a pod on the node.
    Unscheduled(Vec<NamespacedName>),
    /// Pods that are not ready.
    Unready(Vec<NamespacedName>),
    /// CSI drivers that are not registered.
    Drivers(Vec<Box<str>>),
}

/// Returns what a node waits for, or `None` if nothing.
pub fn find(
    node: &Node<'_>,
    daemon_sets: &[(NamespacedName, Arc<DaemonSet>)],
    pods: &[(NamespacedName, Arc<Pod>)],
    drivers: &[Box<str>],
) -> Option<Obstacle> {
    let pods = relevant(pods);
    let drivers: BTreeSet<&str> = drivers.iter().map(|driver| &**driver).collect();
    let scheduled: BTreeSet<&str> = pods.iter().filter_map(|(_, pod)| pod.daemon_set.as_deref()).collect();
    let is_missing = |set: &DaemonSet| {
        set.is_awaited
            && !scheduled.contains(&*set.uid)
            && set.placement.admits(node.name, &node.node.labels, &node.node.taints)
    };
    let missing = daemon_sets.iter().filter(|(_, set)| is_missing(set)).map(|(name, _)| name.clone());
    let unready = pods.iter().filter(|(_, pod)| !pod.is_ready).map(|(name, _)| (*name).clone());
    let required =
        pods.iter().flat_map(|(_, pod)| &pod.drivers).filter(|driver| !drivers.contains(&***driver)).cloned();
    sorted(missing)
        .map(Obstacle::Unscheduled)
        .or_else(|| sorted(unready).map(Obstacle::Unready))
        .or_else(|| sorted(required).map(Obstacle::Drivers))
}

/// Returns the pods that count. A pod that has ended does not count, nor a terminating pod with a ready successor
/// (better 3), neither as an obstacle nor as the pod of its DaemonSet.
fn relevant(pods: &[(NamespacedName, Arc<Pod>)]) -> Vec<(&NamespacedName, &Pod)> {
    let running = pods.iter().map(|(name, pod)| (name, &**pod)).filter(|(_, pod)| !pod.is_over);
    let successors = running.clone().filter(|(_, pod)| pod.is_ready && !pod.is_terminating);
    let succeeded: BTreeSet<&str> = successors.filter_map(|(_, pod)| pod.daemon_set.as_deref()).collect();
    let has_successor = |pod: &Pod| pod.daemon_set.as_deref().is_some_and(|set| succeeded.contains(set));
    running.filter(|(_, pod)| !(pod.is_terminating && has_successor(pod))).collect()
}

fn sorted<T: Ord>(all: impl Iterator<Item = T>) -> Option<Vec<T>> {
    let all: BTreeSet<T> = all.collect();
    (!all.is_empty()).then(|| all.into_iter().collect())
}

impl Obstacle {
    /// All kinds, for metrics.
    pub const KINDS: [&'static str; 3] = ["daemon_sets", "pods", "csi_drivers"];

    /// The kind, for metrics.
    pub fn kind(&self) -> &'static str {
        let [daemon_sets, pods, drivers] = Self::KINDS;
        match self {
            Self::Unscheduled(_) => daemon_sets,
            Self::Unready(_) => pods,
            Self::Drivers(_) => drivers,
        }
    }

    /// The reason of the Event.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unscheduled(_) => "UnscheduledNodeCriticalDaemonSets",
            Self::Unready(_) => "UnreadyNodeCriticalPods",
            Self::Drivers(_) => "UnreadyRequiredCSIDrivers",
        }
    }

    /// The problem, without names.
    pub fn what(&self) -> &'static str {
        match self {
            Self::Unscheduled(_) => "Node-critical DaemonSets found that were not scheduled to Node yet",
            Self::Unready(_) => "Unready node-critical Pods found on Node",
            Self::Drivers(_) => "Unready required CSI drivers for Node",
        }
    }

    /// The objects that fail the check.
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::Unscheduled(names) | Self::Unready(names) => names.iter().map(ToString::to_string).collect(),
            Self::Drivers(names) => names.iter().map(ToString::to_string).collect(),
        }
    }

    /// The first names, and the number of the others.
    pub fn few_names(&self) -> String {
        crate::actors::shared::texts::together(&self.names(), ", ")
    }

    /// The text of the Event.
    pub fn text(&self) -> String {
        match self {
            Self::Unscheduled(_) | Self::Unready(_) => format!("{}: {}", self.what(), self.names().join(", ")),
            Self::Drivers(_) => format!("{}: [{}]", self.what(), self.names().join(" ")),
        }
    }
}

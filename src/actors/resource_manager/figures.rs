//! The metrics that only the controllers of this program have.

use process::{
    declarations,
    metrics::{
        Declaration, Figure,
        FigureKind::{Countdown, Gauge, Histogram},
        MetricKind,
        MetricName::Own,
    },
};

/// Upper bounds for the time in which nodes become ready for pods, in seconds.
const NODE_JOINS: [f64; 10] = [5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0];

#[rustfmt::skip]
declarations! {
    MANAGED_RESOURCES = MetricKind::Gauge, Own("managedresource_status"), ["condition", "status", "reason"], "ManagedResources",
        "ManagedResources of the own class by condition. At most 100 combinations, and a few more with reasons of the program itself. Further ones, very long reasons and foreign statuses count as other. Exists while the process leads.";
    MANAGED_RESOURCE = MetricKind::Gauge, Own("managedresource_condition"), ["namespace", "name", "condition", "status"], "always 1",
        "The conditions of each ManagedResource of the own class. Exists with server.metrics.perManagedResource, while the process leads.";
    GARBAGE = MetricKind::Gauge, Own("garbage"), ["state"], "objects",
        "Collectable Secrets and ConfigMaps in the last run of the garbage collector: candidates, and among them deleted, in_use, failed (could not be deleted); young (less than 10 minutes old) and terminating are not candidates.";
    TOKENS = MetricKind::Gauge, Own("tokens"), ["state"], "tokens",
        "Secrets of the token requestor by state: fresh, failing (the last reconcile failed), rejected (the API server does not accept what it issued).";
    TOKEN_EXPIRY = MetricKind::Gauge, Own("token_nearest_expiry_seconds"), [], "seconds",
        "Time until the first known token of the token requestor expires; negative after that. Absent while no token is known.";
    SERVICES_FAILING = MetricKind::Gauge, Own("network_policy_failing_services"), [], "Services",
        "Services with an annotation or a Gateway that cannot be read. Their policies stay as they are.";
    NODES_WAITING = MetricKind::Gauge, Own("nodes_waiting"), ["for"], "nodes",
        "Nodes that keep the taint for critical components, by what they wait for: daemon_sets, pods, csi_drivers, watches (no known component is missing, but a watch has been silent for too long).";
    NODE_SECONDS = MetricKind::Histogram(&NODE_JOINS), Own("node_join_seconds"), [], "seconds",
        "Time from the creation of a node until its critical components were ready and the taint was removed. Only nodes that this process saw being created.";
}

/// The metrics by the names that controllers use.
pub const FIGURES: &[Figure] = &[
    Figure { name: "managedresource_status", kind: Gauge, declaration: &MANAGED_RESOURCES },
    Figure { name: "managedresource_condition", kind: Gauge, declaration: &MANAGED_RESOURCE },
    Figure { name: "garbage", kind: Gauge, declaration: &GARBAGE },
    Figure { name: "tokens", kind: Gauge, declaration: &TOKENS },
    Figure { name: "token_expiry", kind: Countdown, declaration: &TOKEN_EXPIRY },
    Figure { name: "services_failing", kind: Gauge, declaration: &SERVICES_FAILING },
    Figure { name: "nodes_waiting", kind: Gauge, declaration: &NODES_WAITING },
    Figure { name: "node_joined", kind: Histogram, declaration: &NODE_SECONDS },
];

/// Their declarations.
pub fn declared() -> &'static [&'static Declaration] {
    ALL
}

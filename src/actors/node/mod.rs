//! What is done about Nodes of the target (spec 41): three controllers that share nothing but the stream of Nodes.
//!
//! | Folder | What it does | Actor per |
//! |---|---|---|
//! | [`critical_components`] | takes a taint off a node as soon as what the node needs runs on it | Node |
//! | [`reconciliation_delay`] | spreads the reconciliations of node agents over time | whole cluster |
//! | [`high_availability`] | has workloads reviewed anew when the cluster gets its second node, or loses it | whole cluster |

mod burst;
pub mod critical_components;
pub mod high_availability;
pub mod reconciliation_delay;

use cluster::Resource;

fn resource() -> Resource {
    Resource::new("", "v1", "Node", "nodes", false)
}

//! Three controllers for Nodes of the target (spec 41). They share only the informer of Nodes.
//!
//! | Folder | Purpose | Actor per |
//! |---|---|---|
//! | [`critical_components`] | removes a taint once the critical components run on the node | Node |
//! | [`reconciliation_delay`] | spreads the reconciliations of node agents over time | cluster |
//! | [`high_availability`] | re-triggers the HA webhook when the cluster gets its second node or loses it | cluster |

mod burst;
pub mod critical_components;
pub mod high_availability;
pub mod reconciliation_delay;

//! What all controllers get: the environment, and the two clusters with what is cached of them.

use std::{cell::OnceCell, rc::Rc};

use cluster::{Cluster, Definitions, Recorder, Watches};
use kit::Env;

const COMPONENT: &str = "gardener-resource-manager";

/// What all controllers get. Cheap to clone.
#[derive(Clone)]
pub struct ControllerContext {
    /// Clock, randomness, status registry, observers.
    pub env: Env,
    /// The cluster of ManagedResources, Secrets and Machines.
    pub source: ClusterHandle,
    /// The cluster to which objects are applied. It shares everything with the source if both are one cluster.
    pub target: ClusterHandle,
    /// CA certificates of the target's API server, in PEM; empty if none are known.
    pub target_ca: Rc<[u8]>,
    pub(super) cluster_id: Rc<OnceCell<String>>,
}

/// One of the two clusters. Cheap to clone.
#[derive(Clone)]
pub struct ClusterHandle {
    /// Requests.
    pub cluster: Cluster,
    /// What is cached of it: watches that controllers open during setup, and later.
    pub watches: Watches,
    /// Events about its objects. A controller writes them under its own name: [`Recorder::for_component`].
    pub events: Recorder,
    definitions: Rc<OnceCell<Definitions>>,
}

impl ControllerContext {
    /// Returns the cluster id of origin annotations (spec 70 §14); empty if there is none or before this process leads.
    pub fn cluster_id(&self) -> &str {
        self.cluster_id.get().map_or("", String::as_str)
    }
}

impl ClusterHandle {
    /// Watches nothing yet. The caller must spawn [`Recorder::run`].
    pub(super) fn new(cluster: &Cluster, env: &Env) -> Self {
        let events = Recorder::new(cluster, COMPONENT);
        let watches = Watches::new(cluster, env);
        Self { cluster: cluster.clone(), watches, events, definitions: Rc::default() }
    }

    /// Returns the same cluster as target. Streams are shared.
    pub(super) fn as_target(&self, target: &Cluster) -> Self {
        let watches = self.watches.as_side(target);
        Self { cluster: target.clone(), watches, definitions: Rc::default(), events: self.events.clone() }
    }

    /// Returns its CustomResourceDefinitions and APIServices, watched from the first call on.
    pub fn definitions(&self) -> Definitions {
        self.definitions.get_or_init(|| Definitions::open(&self.watches)).clone()
    }
}

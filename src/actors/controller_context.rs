//! What modules stand on: the environment, and the two clusters with what is known of them.

use std::{cell::OnceCell, rc::Rc};

use cluster::{Cluster, Definitions, Recorder, Watches};
use kit::Env;

/// Who writes Events that no controller has written under its own name.
const COMPONENT: &str = "gardener-resource-manager";

/// What modules stand on. Cheap to clone.
#[derive(Clone)]
pub struct ControllerContext {
    /// Clock, randomness, census, observers.
    pub env: Env,
    /// Where ManagedResources, Secrets and Machines are.
    pub source: ClusterHandle,
    /// Where things are applied; shares everything with the source if both are one cluster.
    pub target: ClusterHandle,
    /// CA certificates of the target's API server, in PEM; empty if none are known.
    pub target_ca: Rc<[u8]>,
    /// Empty before this process leads.
    pub(super) cluster_id: Rc<OnceCell<String>>,
}

/// One of the two clusters. Cheap to clone.
#[derive(Clone)]
pub struct ClusterHandle {
    /// Requests.
    pub cluster: Cluster,
    /// What is known of it: watches that modules open when they are installed, and later.
    pub watches: Watches,
    /// Events about its objects. A controller writes them under its own name: [`Recorder::for_component`].
    pub events: Recorder,
    definitions: Rc<OnceCell<Definitions>>,
}

impl ControllerContext {
    /// The cluster id of origin annotations (spec 70 §14); empty for none, and before this process leads.
    pub fn cluster_id(&self) -> &str {
        self.cluster_id.get().map_or("", String::as_str)
    }
}

impl ClusterHandle {
    /// Nothing is watched yet. [`Recorder::run`] is for the caller to spawn.
    pub(super) fn new(cluster: &Cluster, env: &Env) -> Self {
        let events = Recorder::new(cluster, COMPONENT);
        let watches = Watches::new(cluster, env);
        Self { cluster: cluster.clone(), watches, events, definitions: Rc::default() }
    }

    /// The same cluster in its other part. Streams are shared.
    pub(super) fn as_target(&self, target: &Cluster) -> Self {
        let watches = self.watches.as_side(target);
        Self { cluster: target.clone(), watches, definitions: Rc::default(), events: self.events.clone() }
    }

    /// Its CustomResourceDefinitions and APIServices, watched from the first time on that somebody asks for them.
    pub fn definitions(&self) -> Definitions {
        self.definitions.get_or_init(|| Definitions::open(&self.watches)).clone()
    }
}

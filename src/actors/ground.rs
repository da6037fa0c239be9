//! What modules stand on: the environment, and the two clusters with what is known of them.

use std::{
    cell::{OnceCell, RefCell},
    rc::Rc,
};

use cluster::{Cluster, Definitions, Record, Recorder, Router, RouterOptions};
use kit::{Env, Listening, Need};

use super::synced::Synced;

/// Who writes Events that no controller has written under its own name.
const COMPONENT: &str = "gardener-resource-manager";

/// What modules stand on. Cheap to clone.
#[derive(Clone)]
pub struct Ground {
    /// Clock, randomness, census, observers.
    pub env: Env,
    /// Where ManagedResources, Secrets and Machines are.
    pub source: Place,
    /// Where things are applied; shares everything with the source if both are one cluster.
    pub target: Place,
    /// Empty before this process leads.
    pub(super) cluster_id: Rc<OnceCell<String>>,
}

/// One of the two clusters. Cheap to clone.
#[derive(Clone)]
pub struct Place {
    /// Requests.
    pub cluster: Cluster,
    /// Events about its objects. A controller writes them under its own name: [`Recorder::for_component`].
    pub events: Recorder,
    env: Env,
    opened: Rc<Opened>,
}

/// The watches that were opened.
#[derive(Default)]
struct Opened {
    definitions: OnceCell<Definitions>,
    synced: RefCell<Synced>,
    needs: RefCell<Vec<Need>>,
    stops: RefCell<Vec<Box<dyn Fn()>>>,
    listening: RefCell<Vec<Listening>>,
}

// === impl Ground ===

impl Ground {
    /// The cluster id of origin annotations (spec 70 §14); empty for none, and before this process leads.
    pub fn cluster_id(&self) -> &str {
        self.cluster_id.get().map_or("", String::as_str)
    }
}

// === impl Place ===

impl Place {
    /// Nothing is watched yet. [`Recorder::run`] is for the caller to spawn.
    pub(super) fn new(cluster: &Cluster, env: &Env) -> Self {
        let events = Recorder::new(cluster, COMPONENT);
        Self { cluster: cluster.clone(), events, env: env.clone(), opened: Rc::default() }
    }

    /// The same cluster in its other part.
    pub(super) fn as_target(&self, target: &Cluster) -> Self {
        Self { cluster: target.clone(), opened: Rc::default(), ..self.clone() }
    }

    /// Watches a kind as long as the process lives. Readiness waits for its first list.
    pub fn open<R: Record>(&self, options: RouterOptions<R>) -> Router<R> {
        let router = Router::start(&self.cluster, options, &self.env);
        self.count(&router);
        let stopped = router.clone();
        self.opened.stops.borrow_mut().push(Box::new(move || stopped.stop()));
        router
    }

    /// Its CustomResourceDefinitions and APIServices, watched from the first time on that somebody asks for them.
    pub fn definitions(&self) -> Definitions {
        let definitions = self.opened.definitions.get_or_init(|| {
            let definitions = Definitions::start(self.cluster.options().side.as_str(), &self.cluster, &self.env);
            self.count(definitions.custom());
            let stopped = definitions.clone();
            self.opened.stops.borrow_mut().push(Box::new(move || stopped.stop()));
            definitions
        });
        definitions.clone()
    }

    /// How far its stores have come.
    pub(super) fn synced(&self) -> Synced {
        self.opened.synced.borrow().clone()
    }

    /// Waits until its stores have had their first list.
    pub(super) async fn listed(&self) {
        let needs = self.opened.needs.borrow().clone();
        for need in needs {
            need.met().await;
        }
    }

    /// Ends its watches.
    pub(super) fn stop(&self) {
        self.opened.stops.borrow().iter().for_each(|stop| stop());
    }

    fn count<R: Record>(&self, router: &Router<R>) {
        let listening = self.opened.synced.borrow_mut().add(router);
        self.opened.listening.borrow_mut().push(listening);
        self.opened.needs.borrow_mut().push(router.need());
    }
}

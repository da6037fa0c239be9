//! The routers of what webhooks read.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use cluster::{Cluster, Resource, Router, RouterOptions, Start, Store};
use kit::{Env, Listening};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{
    Knowledge,
    index::Limits,
    live::Reader,
    records::{self, Autoscaler, Node, Projected, Space},
};
use crate::{
    actors::synced::Synced,
    webhooks::{
        mutating::{
            load_balancing::{CONFIG_MAP, SERVICE},
            system_components::node_taints::TaintSet,
        },
        registry::Reads,
        view::{Annotations, ServiceAccount},
    },
};

/// Questions that wait to be taken up, which takes no time: as many as a burst of reviews may bring.
const QUESTIONS: usize = 256;

/// The running routers. Bound to the thread of the cluster.
pub struct Watches {
    knowledge: Knowledge,
    synced: Synced,
    stops: Vec<Box<dyn Fn()>>,
    _listening: Vec<Listening>,
}

pub(super) type NodeRouter = Router<Projected<Arc<Node>>>;

/// What can be read from any thread; `None` where nobody reads it.
#[derive(Debug, Default)]
pub(super) struct Stores {
    pub(super) service_accounts: Option<Store<Projected<ServiceAccount>>>,
    pub(super) spaces: Option<Store<Projected<Space>>>,
    pub(super) autoscalers: Option<AutoscalerStore>,
    pub(super) nodes: Option<NodeStore>,
    pub(super) load_balancing: Option<Store<Projected<Arc<Annotations>>>>,
    pub(super) gateways: Option<Store<Projected<Arc<Vec<String>>>>>,
    /// The namespaces this process may look at; empty for all.
    pub(super) namespaces: Vec<String>,
}

#[derive(Debug)]
pub(super) struct AutoscalerStore {
    pub(super) store: Store<Projected<Autoscaler>>,
    pub(super) limits: Limits,
}

#[derive(Debug)]
pub(super) struct NodeStore {
    pub(super) store: Store<Projected<Arc<Node>>>,
    pub(super) taints: Arc<RwLock<TaintSet>>,
}

/// Starts routers and keeps what there is to keep of them.
struct Starting<'a> {
    cluster: &'a Cluster,
    env: &'a Env,
    synced: Synced,
    stops: Vec<Box<dyn Fn()>>,
    listening: Vec<Listening>,
}

// === impl Watches ===

impl Watches {
    /// Starts what webhooks read of the target cluster. `node_selector`: labels of the Nodes whose taints count.
    pub fn start(cluster: &Cluster, reads: &[Reads], node_selector: BTreeMap<String, String>, env: &Env) -> Self {
        let mut starting =
            Starting { cluster, env, synced: Synced::default(), stops: Vec::new(), listening: Vec::new() };
        let wanted = |what| reads.contains(&what);
        let mut stores = Stores { namespaces: cluster.options().namespaces.clone(), ..Stores::default() };
        if wanted(Reads::ServiceAccounts) {
            let router = starting.router(service_accounts(), false, None, records::service_account);
            stores.service_accounts = Some(router.store().clone());
        }
        if wanted(Reads::Namespaces) {
            stores.spaces = Some(starting.router(namespaces(), true, None, records::space).store().clone());
        }
        if wanted(Reads::Autoscalers) {
            stores.autoscalers = Some(starting.autoscalers());
        }
        if wanted(Reads::LoadBalancing) {
            let router = starting.router(config_maps(), false, Some(CONFIG_MAP), records::load_balancing);
            stores.load_balancing = Some(router.store().clone());
        }
        if wanted(Reads::Gateways) {
            let router = starting.router(services(), false, Some(SERVICE), records::gateway);
            stores.gateways = Some(router.store().clone());
        }
        let nodes = (wanted(Reads::NodeCount) || wanted(Reads::NodeTaints))
            .then(|| starting.nodes(wanted(Reads::NodeTaints).then_some(node_selector)));
        let (nodes, node_router) = nodes.unzip();
        stores.nodes = nodes;

        let (questions, receiver) = mpsc::channel(QUESTIONS);
        // Ends when nobody can ask any more: live reads go on until the last review is answered.
        actix::spawn(Reader::new(cluster.clone(), node_router).run(receiver));
        let Starting { synced, stops, listening, .. } = starting;
        let knowledge = Knowledge { stores: Arc::new(stores), questions };
        Self { knowledge, synced, stops, _listening: listening }
    }

    /// What they know.
    pub fn knowledge(&self) -> Knowledge {
        self.knowledge.clone()
    }

    /// How far their stores have come.
    pub fn synced(&self) -> Synced {
        self.synced.clone()
    }

    /// Ends the watches; webhooks go on with what is known, and with live reads.
    pub fn stop(&self) {
        self.stops.iter().for_each(|stop| stop());
    }
}

// === impl Starting ===

impl Starting<'_> {
    /// Watches all objects of a kind, or those of one name, in the namespaces of the configuration.
    fn router<T: Clone + Send + Sync + 'static>(
        &mut self,
        resource: Resource,
        metadata_only: bool,
        name: Option<&str>,
        fields: impl Fn(&Value) -> T + 'static,
    ) -> Router<Projected<T>> {
        let namespaces = &self.cluster.options().namespaces;
        let scopes = if namespaces.is_empty() || !resource.namespaced {
            vec![None]
        } else {
            namespaces.iter().cloned().map(Some).collect()
        };
        let options = RouterOptions {
            name: format!("webhooks/{}", resource.plural),
            resource,
            scopes,
            label_selector: None,
            metadata_only,
            start: Start::List,
            record: Box::new(move |object| Some(Projected::of(object, fields(object)))),
            keep: Box::new(|_| true),
        };
        let router = match name {
            None => Router::start(self.cluster, options, self.env),
            Some(name) => Router::start_selecting(self.cluster, options, format!("metadata.name={name}"), self.env),
        };
        self.listening.push(self.synced.add(&router));
        let stopped = router.clone();
        self.stops.push(Box::new(move || stopped.stop()));
        router
    }

    fn autoscalers(&mut self) -> AutoscalerStore {
        let router = self.router(autoscalers(), false, None, records::autoscaler);
        let limits = Limits::default();
        let following = limits.clone();
        router.subscribe(move |change| {
            following.change(change.old.map(|record| &record.fields), change.new.map(|record| &record.fields));
        });
        AutoscalerStore { store: router.store().clone(), limits }
    }

    /// Without a selector Nodes are only counted, for which metadata is enough.
    fn nodes(&mut self, selector: Option<BTreeMap<String, String>>) -> (NodeStore, NodeRouter) {
        let metadata_only = selector.is_none();
        let selector = selector.unwrap_or_default();
        let taints = Arc::new(RwLock::new(TaintSet::new(selector.clone())));
        let router = self.router(nodes(), metadata_only, None, move |node| Arc::new(records::node(node, &selector)));
        let following = taints.clone();
        router.subscribe(move |change| {
            let now = change.new.map(|record| (&record.fields.labels, record.fields.taints.as_slice()));
            following.write().unwrap_or_else(PoisonError::into_inner).replace(&change.name.name, now);
        });
        (NodeStore { store: router.store().clone(), taints }, router)
    }
}

// === the kinds ===

pub(super) fn service_accounts() -> Resource {
    Resource::new("", "v1", "ServiceAccount", "serviceaccounts", true)
}

pub(super) fn namespaces() -> Resource {
    Resource::new("", "v1", "Namespace", "namespaces", false)
}

pub(super) fn autoscalers() -> Resource {
    Resource::new("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", true)
}

pub(super) fn config_maps() -> Resource {
    Resource::new("", "v1", "ConfigMap", "configmaps", true)
}

pub(super) fn services() -> Resource {
    Resource::new("", "v1", "Service", "services", true)
}

fn nodes() -> Resource {
    Resource::new("", "v1", "Node", "nodes", false)
}

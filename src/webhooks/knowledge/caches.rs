//! The watches of what webhooks read.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use cluster::{Resource, Store, Synced, Want, Watch, Watches};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{
    Knowledge,
    index::Limits,
    live::Reader,
    records::{self, Autoscaler, Node, Projected, Space},
};
use crate::webhooks::{
    mutating::{
        load_balancing::{CONFIG_MAP, SERVICE},
        system_components::node_taints::TaintSet,
    },
    registry::Reads,
    view::{Annotations, ServiceAccount},
};

/// Questions that wait to be taken up, which takes no time: as many as a burst of reviews may bring.
const QUESTIONS: usize = 256;

/// What is known of the kinds that webhooks read. Bound to the thread of the cluster.
pub struct Caches {
    knowledge: Knowledge,
    synced: Synced,
    stops: Vec<Box<dyn Fn()>>,
}

pub(super) type NodeWatch = Watch<Projected<Arc<Node>>>;

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

/// Opens watches and keeps what there is to keep of them.
struct Opening<'a> {
    watches: &'a Watches,
    stops: Vec<Box<dyn Fn()>>,
}

// === impl Caches ===

impl Caches {
    /// Opens what webhooks read of the target cluster. `node_selector`: labels of the Nodes whose taints count.
    pub fn open(watches: &Watches, reads: &[Reads], node_selector: BTreeMap<String, String>) -> Self {
        let mut opening = Opening { watches, stops: Vec::new() };
        let wanted = |what| reads.contains(&what);
        let cluster = watches.cluster();
        let mut stores = Stores { namespaces: cluster.options().namespaces.clone(), ..Stores::default() };
        if wanted(Reads::ServiceAccounts) {
            let watch = opening.watch(projected(service_accounts(), records::service_account));
            stores.service_accounts = Some(watch.store().clone());
        }
        if wanted(Reads::Namespaces) {
            let watch = opening.watch(projected(namespaces(), records::space).metadata());
            stores.spaces = Some(watch.store().clone());
        }
        if wanted(Reads::Autoscalers) {
            stores.autoscalers = Some(opening.autoscalers());
        }
        if wanted(Reads::LoadBalancing) {
            let want = projected(config_maps(), records::load_balancing).selecting(of_name(CONFIG_MAP));
            stores.load_balancing = Some(opening.watch(want).store().clone());
        }
        if wanted(Reads::Gateways) {
            let want = projected(services(), records::gateway).selecting(of_name(SERVICE));
            stores.gateways = Some(opening.watch(want).store().clone());
        }
        let nodes = (wanted(Reads::NodeCount) || wanted(Reads::NodeTaints))
            .then(|| opening.nodes(wanted(Reads::NodeTaints).then_some(node_selector)));
        let (nodes, node_watch) = nodes.unzip();
        stores.nodes = nodes;

        let (questions, receiver) = mpsc::channel(QUESTIONS);
        // Ends when nobody can ask any more: live reads go on until the last review is answered.
        actix::spawn(Reader::new(cluster.clone(), node_watch).run(receiver));
        let knowledge = Knowledge { stores: Arc::new(stores), questions };
        Self { knowledge, synced: watches.synced(), stops: opening.stops }
    }

    /// What they know.
    pub fn knowledge(&self) -> Knowledge {
        self.knowledge.clone()
    }

    /// How far the stores of the cluster have come.
    pub fn synced(&self) -> Synced {
        self.synced.clone()
    }

    /// Ends the watches; webhooks go on with what is known, and with live reads.
    pub fn stop(&self) {
        self.stops.iter().for_each(|stop| stop());
    }
}

// === impl Opening ===

impl Opening<'_> {
    fn watch<T: Clone + Send + Sync + 'static>(&mut self, want: Want<Projected<T>>) -> Watch<Projected<T>> {
        let watch = self.watches.open(want);
        let stopped = watch.clone();
        self.stops.push(Box::new(move || stopped.stop()));
        watch
    }

    fn autoscalers(&mut self) -> AutoscalerStore {
        let watch = self.watch(projected(autoscalers(), records::autoscaler));
        let limits = Limits::default();
        let following = limits.clone();
        watch.subscribe(move |change| {
            following.change(change.old.map(|record| &record.fields), change.new.map(|record| &record.fields));
        });
        AutoscalerStore { store: watch.store().clone(), limits }
    }

    /// Without a selector Nodes are only counted, for which metadata is enough.
    fn nodes(&mut self, selector: Option<BTreeMap<String, String>>) -> (NodeStore, NodeWatch) {
        let is_counted_only = selector.is_none();
        let selector = selector.unwrap_or_default();
        let taints = Arc::new(RwLock::new(TaintSet::new(selector.clone())));
        let want = projected(nodes(), move |node| Arc::new(records::node(node, &selector)));
        let watch = self.watch(if is_counted_only { want.metadata() } else { want });
        let following = taints.clone();
        watch.subscribe(move |change| {
            let now = change.new.map(|record| (&record.fields.labels, record.fields.taints.as_slice()));
            following.write().unwrap_or_else(PoisonError::into_inner).replace(&change.name.name, now);
        });
        (NodeStore { store: watch.store().clone(), taints }, watch)
    }
}

/// A few fields of all objects of a kind.
fn projected<T: Clone + Send + Sync + 'static>(
    resource: Resource,
    fields: impl Fn(&Value) -> T + 'static,
) -> Want<Projected<T>> {
    Want::new(resource, move |object| Some(Projected::of(object, fields(object))))
}

fn of_name(name: &str) -> String {
    format!("metadata.name={name}")
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

//! The routers of what webhooks read.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use serde_json::Value;
use tokio::sync::mpsc;

use super::{
    Knowledge,
    index::Limits,
    live::Reader,
    records::{self, Autoscaler, Node, Projected},
};
use crate::{
    actors::{
        kit::{Env, Listening, Signal},
        root::Synced,
    },
    cluster::{Cluster, Record, Resource, Router, RouterOptions, Side, Start, Store, StoreState},
    webhooks::{
        mutating::system_components::node_taints::TaintSet,
        projection::{AnyProjection, Fields, Selected, Within},
        registry::Reads,
        view::Lookup,
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

/// What is known of single objects.
pub(super) type ObjectStore = Store<Projected<Fields>>;

/// What can be read from any thread; `None` where nobody reads it.
#[derive(Debug, Default)]
pub(super) struct Stores {
    pub(super) objects: BTreeMap<&'static dyn AnyProjection, ObjectStore>,
    pub(super) autoscalers: Option<AutoscalerStore>,
    pub(super) nodes: Option<NodeStore>,
    /// The namespaces this process may look at in the source; empty for all.
    pub(super) of_source: Vec<String>,
    /// The same in the target.
    pub(super) of_target: Vec<String>,
}

/// How far the first list of a watch has come.
pub(super) struct Opening {
    /// Whether it is there; `None`: it will not come, because the process ends.
    pub(super) is_listed: Box<dyn Fn() -> Option<bool>>,
    /// Raised when that changes.
    pub(super) signal: Signal,
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
    source: &'a Cluster,
    target: &'a Cluster,
    env: &'a Env,
    stores: Stores,
    openings: BTreeMap<Lookup, Opening>,
    synced: Synced,
    stops: Vec<Box<dyn Fn()>>,
    listening: Vec<Listening>,
}

/// Which objects a router watches.
struct Selection {
    resource: Resource,
    name: String,
    side: Side,
    /// Namespaces; none for all of them, or for cluster scope.
    namespaces: Vec<String>,
    metadata_only: bool,
    selected: Selected,
    optional: bool,
}

// === impl Stores ===

impl Stores {
    /// Spec 50 §2.7, restricted namespaces.
    pub(super) fn is_visible(&self, side: Side, namespace: &str) -> bool {
        let visible = self.visible(side);
        visible.is_empty() || visible.iter().any(|visible| visible == namespace)
    }

    /// The namespaces of the configuration; none for all.
    fn visible(&self, side: Side) -> &[String] {
        match side {
            Side::Source => &self.of_source,
            Side::Target => &self.of_target,
        }
    }
}

// === impl Opening ===

impl Opening {
    fn of<R: Record>(router: &Router<R>) -> Self {
        let (store, signal) = (router.store().clone(), router.signal().clone());
        let is_listed = move || match store.is_listed() {
            true => Some(true),
            false => (store.state() != StoreState::Off).then_some(false),
        };
        Self { is_listed: Box::new(is_listed), signal }
    }
}

// === impl Watches ===

impl Watches {
    /// Starts what webhooks read of the clusters. `node_selector`: labels of the Nodes whose taints count.
    pub fn start(
        source: &Cluster,
        target: &Cluster,
        reads: &[Reads],
        node_selector: BTreeMap<String, String>,
        env: &Env,
    ) -> Self {
        let (of_source, of_target) = (source.options().namespaces.clone(), target.options().namespaces.clone());
        let mut starting = Starting {
            source,
            target,
            env,
            stores: Stores { of_source, of_target, ..Stores::default() },
            openings: BTreeMap::new(),
            synced: Synced::default(),
            stops: Vec::new(),
            listening: Vec::new(),
        };
        for read in reads {
            match read {
                Reads::Objects(projection) => starting.objects(*projection, None),
                Reads::ObjectsOf(projection, namespace) => starting.objects(*projection, Some(namespace)),
                Reads::Autoscalers => starting.autoscalers(),
                Reads::NodeCount | Reads::NodeTaints => {}
            }
        }
        let of_taints = reads.contains(&Reads::NodeTaints).then_some(node_selector);
        if of_taints.is_some() || reads.contains(&Reads::NodeCount) {
            starting.nodes(of_taints);
        }

        let (questions, receiver) = mpsc::channel(QUESTIONS);
        let Starting { stores, openings, synced, stops, listening, .. } = starting;
        // Ends when nobody can ask any more: live reads go on until the last review is answered.
        actix::spawn(Reader::new(source.clone(), target.clone(), openings).run(receiver));
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
    /// Opens a watch.
    fn open<T: Clone + Send + Sync + 'static>(
        &mut self,
        selection: Selection,
        fields: impl Fn(&Value) -> T + 'static,
    ) -> Router<Projected<T>> {
        let Selection { resource, name, side, namespaces, metadata_only, selected, optional } = selection;
        let cluster = match side {
            Side::Source => self.source,
            Side::Target => self.target,
        };
        let scopes =
            if namespaces.is_empty() { vec![None] } else { namespaces.into_iter().map(Some).collect::<Vec<_>>() };
        let (label_selector, field_selector) = match selected {
            Selected::All => (None, None),
            Selected::Named(name) => (None, Some(format!("metadata.name={name}"))),
            Selected::Labelled(label) => (Some(label.to_owned()), None),
        };
        let options = RouterOptions {
            name: format!("webhooks/{name}"),
            resource,
            scopes,
            label_selector,
            metadata_only,
            start: Start::List,
            record: Box::new(move |object| Some(Projected::of(object, fields(object)))),
            keep: Box::new(|_| true),
        };
        let router = match field_selector {
            None => Router::start(cluster, options, self.env),
            Some(fields) => Router::start_selecting(cluster, options, fields, self.env),
        };
        if !optional {
            self.listening.push(self.synced.add(&router));
        }
        let stopped = router.clone();
        self.stops.push(Box::new(move || stopped.stop()));
        router
    }

    /// Watches the objects of a projection, once; `within`: only those of this namespace.
    fn objects(&mut self, projection: &'static dyn AnyProjection, within: Option<&str>) {
        if self.stores.objects.contains_key(projection) {
            return;
        }
        let objects = projection.objects();
        let visible = self.stores.visible(objects.side);
        let namespaces = match (objects.within, within) {
            _ if !objects.namespaced => Vec::new(),
            // What is not visible is not watched, and asked for it is an error.
            (Within::Configured, Some(one)) if !self.stores.is_visible(objects.side, one) => {
                self.stores.objects.insert(projection, ObjectStore::default());
                return;
            }
            (_, Some(one)) => vec![one.to_owned()],
            (Within::Configured, None) => visible.to_vec(),
            (Within::All, None) => Vec::new(),
            (Within::One(one), None) => vec![one.to_owned()],
        };
        let selection = Selection {
            resource: objects.resource(),
            name: objects.name(),
            side: objects.side,
            namespaces,
            metadata_only: objects.metadata_only,
            selected: objects.selected,
            optional: objects.optional,
        };
        let router = self.open(selection, |object| projection.project(object));
        self.openings.insert(Lookup::Objects(projection), Opening::of(&router));
        self.stores.objects.insert(projection, router.store().clone());
    }

    fn autoscalers(&mut self) {
        let router = self.open(self.of_target(autoscalers()), records::autoscaler);
        let limits = Limits::default();
        let following = limits.clone();
        router.subscribe(move |change| {
            following.change(change.old.map(|record| &record.fields), change.new.map(|record| &record.fields));
        });
        self.stores.autoscalers = Some(AutoscalerStore { store: router.store().clone(), limits });
    }

    /// Without a selector Nodes are only counted, for which metadata is enough.
    fn nodes(&mut self, selector: Option<BTreeMap<String, String>>) {
        let selection = Selection { metadata_only: selector.is_none(), ..self.of_target(nodes()) };
        let selector = selector.unwrap_or_default();
        let taints = Arc::new(RwLock::new(TaintSet::new(selector.clone())));
        let router = self.open(selection, move |node| Arc::new(records::node(node, &selector)));
        let following = taints.clone();
        router.subscribe(move |change| {
            let now = change.new.map(|record| (&record.fields.labels, record.fields.taints.as_slice()));
            following.write().unwrap_or_else(PoisonError::into_inner).replace(&change.name.name, now);
        });
        self.openings.insert(Lookup::Nodes, Opening::of(&router));
        self.stores.nodes = Some(NodeStore { store: router.store().clone(), taints });
    }

    /// All objects of a kind, in the namespaces of the configuration.
    fn of_target(&self, resource: Resource) -> Selection {
        let namespaces = if resource.namespaced { self.stores.of_target.clone() } else { Vec::new() };
        Selection {
            name: resource.plural.to_string(),
            resource,
            side: Side::Target,
            namespaces,
            metadata_only: false,
            selected: Selected::All,
            optional: false,
        }
    }
}

// === the kinds that an index answers for ===

pub(super) fn autoscalers() -> Resource {
    Resource::new("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", true)
}

fn nodes() -> Resource {
    Resource::new("", "v1", "Node", "nodes", false)
}

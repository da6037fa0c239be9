//! The stores of the webhooks, and the watches that fill them.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use cluster::{CachedFields, Resource, Store, Watch, WatchOptions, Watches};
use kit::Fatal;
use serde_json::Value;
use tokio::sync::mpsc;

use super::{
    Knowledge,
    index::Limits,
    live::{FirstList, Reader},
    records::{self, Autoscaler, Node},
};
use crate::{
    api::{kinds, resources::side::Side},
    webhooks::{
        cached_kind::{AnyCachedKind, Fields, Reads, Within},
        mutating::system_components::node_taints::TaintSet,
        view::Lookup,
    },
};

/// Bound of queued questions: a burst of reviews. Taking up a question takes no time.
const QUESTIONS: usize = 256;

/// The stores, and a way to stop their watches. Bound to the thread of the cluster.
pub struct Caches {
    knowledge: Knowledge,
    stops: Vec<Box<dyn Fn()>>,
}

pub(super) type ObjectStore = Store<CachedFields<Fields>>;

/// The stores, readable from any thread; `None` if no webhook reads them.
#[derive(Debug, Default)]
pub(super) struct Stores {
    pub(super) objects: BTreeMap<&'static dyn AnyCachedKind, ObjectStore>,
    pub(super) autoscalers: Option<AutoscalerStore>,
    pub(super) nodes: Option<NodeStore>,
    /// The namespaces that are visible in the source; empty for all.
    pub(super) of_source: Vec<String>,
    pub(super) of_target: Vec<String>,
}

#[derive(Debug)]
pub(super) struct AutoscalerStore {
    pub(super) store: Store<CachedFields<Autoscaler>>,
    pub(super) limits: Limits,
}

#[derive(Debug)]
pub(super) struct NodeStore {
    pub(super) store: Store<CachedFields<Arc<Node>>>,
    pub(super) taints: Arc<RwLock<TaintSet>>,
}

struct Opening<'a> {
    source: &'a Watches,
    target: &'a Watches,
    stores: Stores,
    first_lists: BTreeMap<Lookup, FirstList>,
    stops: Vec<Box<dyn Fn()>>,
}

impl Stores {
    /// Spec 50 §2.7, restricted namespaces.
    pub(super) fn is_visible(&self, side: Side, namespace: &str) -> bool {
        let visible = self.visible(side);
        visible.is_empty() || visible.iter().any(|visible| visible == namespace)
    }

    fn visible(&self, side: Side) -> &[String] {
        match side {
            Side::Source => &self.of_source,
            Side::Target => &self.of_target,
        }
    }
}

impl Caches {
    /// Opens the watches. `node_selector`: Nodes whose taints count. `fatal` ends the process if the live reader dies.
    pub fn open(
        source: &Watches,
        target: &Watches,
        reads: &[Reads],
        node_selector: BTreeMap<String, String>,
        fatal: &Fatal,
    ) -> Self {
        let namespaces = |watches: &Watches| watches.cluster().options().namespaces.clone();
        let mut opening = Opening {
            source,
            target,
            stores: Stores { of_source: namespaces(source), of_target: namespaces(target), ..Stores::default() },
            first_lists: BTreeMap::new(),
            stops: Vec::new(),
        };
        for read in reads {
            match read {
                Reads::Objects(cached_kind) => opening.objects(*cached_kind, None),
                Reads::ObjectsOf(cached_kind, namespace) => opening.objects(*cached_kind, Some(namespace)),
                Reads::Autoscalers => opening.autoscalers(),
                Reads::NodeCount | Reads::NodeTaints => {}
            }
        }
        let of_taints = reads.contains(&Reads::NodeTaints).then_some(node_selector);
        if of_taints.is_some() || reads.contains(&Reads::NodeCount) {
            opening.nodes(of_taints);
        }
        let Opening { stores, first_lists, stops, .. } = opening;

        let (questions, receiver) = mpsc::channel(QUESTIONS);
        // Ends when all senders are gone: live reads continue until the last review is answered.
        let reader = Reader::new(source.cluster().apart(), target.cluster().apart(), first_lists);
        fatal.spawn("live reader of the webhooks", reader.run(receiver));
        Self { knowledge: Knowledge { stores: Arc::new(stores), questions }, stops }
    }

    /// Returns the stores.
    pub fn knowledge(&self) -> Knowledge {
        self.knowledge.clone()
    }

    /// Ends the watches. Webhooks continue with the stores as they are, and with live reads.
    pub fn stop(&self) {
        self.stops.iter().for_each(|stop| stop());
    }
}

impl Opening<'_> {
    fn open<T: Clone + Send + Sync + 'static>(
        &mut self,
        side: Side,
        options: WatchOptions<CachedFields<T>>,
    ) -> Watch<CachedFields<T>> {
        let watches = match side {
            Side::Source => self.source,
            Side::Target => self.target,
        };
        let watch = watches.open(options);
        let stopped = watch.clone();
        self.stops.push(Box::new(move || stopped.stop()));
        watch
    }

    fn objects(&mut self, cached_kind: &'static dyn AnyCachedKind, within: Option<&str>) {
        if self.stores.objects.contains_key(cached_kind) {
            return;
        }
        let objects = cached_kind.objects();
        let options = projected(objects.resource(), |object| cached_kind.cached_fields(object));
        let options = match (objects.within, within) {
            _ if !objects.namespaced => options,
            // An invisible namespace is not watched, and reads of it are errors.
            (Within::Configured, Some(one)) if !self.stores.is_visible(objects.side, one) => {
                self.stores.objects.insert(cached_kind, ObjectStore::default());
                return;
            }
            (_, Some(one)) => options.within([one]),
            (Within::Configured, None) => options,
            (Within::All, None) => options.everywhere(),
            (Within::One(one), None) => options.within([one]),
        };
        let (labels, fields) = objects.selected.selectors();
        let options = if let Some(labels) = labels { options.labelled(labels) } else { options };
        let options = if let Some(fields) = fields { options.selecting(fields) } else { options };
        let options = if objects.metadata_only { options.metadata() } else { options };
        let options = if objects.optional { options.optional() } else { options };
        let watch = self.open(objects.side, options);
        self.first_lists.insert(Lookup::Objects(cached_kind), FirstList::of(&watch));
        self.stores.objects.insert(cached_kind, watch.store().clone());
    }

    /// Watches all namespaces, like the controllers that apply objects, so that both share one stream; the view checks
    /// the namespace of each read (spec 50 §2.7). Without the right to list all, watches the configured namespaces.
    fn autoscalers(&mut self) {
        let configured = self.stores.of_target.clone();
        let options = projected(kinds::HORIZONTAL_POD_AUTOSCALER, records::autoscaler).everywhere();
        let watch = self.open(Side::Target, options.narrowing(move || configured.iter().cloned().collect()));
        let limits = Limits::default();
        let following = limits.clone();
        watch.subscribe(move |change| {
            following.change(change.old.map(|record| &record.fields), change.new.map(|record| &record.fields));
        });
        self.stores.autoscalers = Some(AutoscalerStore { store: watch.store().clone(), limits });
    }

    fn nodes(&mut self, selector: Option<BTreeMap<String, String>>) {
        let is_counted_only = selector.is_none();
        let selector = selector.unwrap_or_default();
        let taints = Arc::new(RwLock::new(TaintSet::new(selector.clone())));
        let options = projected(kinds::NODE, move |node| Arc::new(records::node(node, &selector)));
        let watch = self.open(Side::Target, if is_counted_only { options.metadata() } else { options });
        let following = taints.clone();
        watch.subscribe(move |change| {
            let now = change.new.map(|record| (&record.fields.labels, record.fields.taints.as_slice()));
            following.write().unwrap_or_else(PoisonError::into_inner).replace(&change.name.name, now);
        });
        self.first_lists.insert(Lookup::Nodes, FirstList::of(&watch));
        self.stores.nodes = Some(NodeStore { store: watch.store().clone(), taints });
    }
}

fn projected<T: Clone + Send + Sync + 'static>(
    resource: Resource,
    fields: impl Fn(&Value) -> T + 'static,
) -> WatchOptions<CachedFields<T>> {
    WatchOptions::new(resource, move |object| CachedFields::of(object, fields(object)))
}

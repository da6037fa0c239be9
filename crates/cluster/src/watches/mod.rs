//! Watches: one stream per kind, many readers.
//!
//! A reader says what it wants of a kind ([`Want`]) and gets a [`Watch`]: a small store of its own records, filters that
//! are told of each change in the turn in which the store learned of it (contract rule 3), and indexes. Equal wants share
//! one stream, a feed; it carries whole objects if any of its readers wants them, else metadata. A list after a lost watch
//! becomes the differences to each store. On demand a watch starts *from now*: without a first list, it hears of changes
//! from then on; what it keeps is decided by a predicate (interest).
//!
//! *Heard of* means: an event, a bookmark, a list, or an opening after an end that was no unreadable event.
//!
//! * `want.rs`: what readers ask for, and what they are told; `reader.rs`, `filters.rs`, `index.rs`: what they make of it.
//! * `feed.rs`, `member.rs`: a stream and its readers; `scope.rs`, `course.rs`: list, watch, position; `pace.rs`: how soon
//!   again.
//! * `narrowing.rs`: from everywhere to some namespaces and back; `serving.rs`: kinds that come and go.
//! * `synced.rs`: whether there is enough for probes.

mod course;
mod event_handlers;
mod index;
mod informer;
mod member;
mod narrowing;
pub mod pace;
mod reader;
mod scope;
mod serving;
mod synced;
mod watch;
mod watch_options;

#[cfg(test)]
mod tests;

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

pub use self::{
    index::Index,
    narrowing::MOST_NAMESPACES,
    synced::Synced,
    watch::Watch,
    watch_options::{Change, Found, How, ReadCached, Start, WatchOptions},
};
use self::{
    informer::{Informer, InformerKey},
    member::Member,
    reader::Reader,
};
use super::{Cached, Cluster, Side};
use kit::{Env, SyncRequirement};

/// All watches of one cluster. Cheap to clone, bound to the thread that made it.
#[derive(Clone)]
pub struct Watches {
    cluster: Cluster,
    synced: Synced,
    /// The same for those who wait.
    requires: Rc<RefCell<Vec<SyncRequirement>>>,
    registry: Rc<Registry>,
}

/// The streams of one server.
struct Registry {
    env: Env,
    informers: RefCell<Vec<Rc<Informer>>>,
    state: Cell<WatchesPhase>,
}

/// What becomes of new feeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WatchesPhase {
    /// They are gathered.
    Gathering,
    /// They begin.
    Running,
    /// They do not begin any more.
    Stopped,
}

impl Watches {
    /// Nothing is watched yet.
    pub fn new(cluster: &Cluster, env: &Env) -> Self {
        let registry =
            Registry { env: env.clone(), informers: RefCell::default(), state: Cell::new(WatchesPhase::Gathering) };
        Self { cluster: cluster.clone(), synced: Synced::empty(), requires: Rc::default(), registry: Rc::new(registry) }
    }

    /// The watches of the same server in its other part: streams are shared, and start and stop with these; what is waited
    /// for is not.
    #[must_use]
    pub fn as_side(&self, cluster: &Cluster) -> Self {
        let (synced, requires) = (Synced::empty(), Rc::default());
        Self { cluster: cluster.clone(), synced, requires, registry: self.registry.clone() }
    }

    /// The cluster that is watched.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// A watch of what is wanted. Before [`Self::start`] nothing is asked of the server; later a stream that runs is joined
    /// if there is one, by a list if that is needed.
    pub fn open<R: Cached>(&self, options: WatchOptions<R>) -> Watch<R> {
        let home = options.home(&self.cluster);
        let WatchOptions { resource, label_selector, field_selector, cached, keep, .. } = options;
        let key = InformerKey { resource: resource.clone(), label_selector, field_selector, home };
        let informer = self.registry.informer(&self.cluster, key);
        let reader = Rc::new(Reader::new(informer.name.clone(), cached, keep));
        let is_awaited = options.awaited && !options.optional && self.registry.state.get() == WatchesPhase::Gathering;
        let member =
            Rc::new(Member::new(reader.clone(), options.whole, options.start, options.optional, options.elsewhere));
        informer.join(member.clone());
        if self.registry.state.get() == WatchesPhase::Stopped {
            informer.leave(&member);
        }
        let watch = Watch { reader, informer, member };
        if is_awaited {
            self.synced.add(resource.to_string(), watch.store().clone());
            self.requires.borrow_mut().push(watch.sync_requirement());
        }
        watch
    }

    /// Begins to follow the server.
    pub fn start(&self) {
        if self.registry.state.get() == WatchesPhase::Gathering {
            self.registry.state.set(WatchesPhase::Running);
            let informers = self.registry.informers.borrow().clone();
            informers.iter().for_each(Informer::begin);
        }
    }

    /// How far the watches have come that were opened before [`Self::start`]; those that were opened later come and go, and
    /// nobody waits for them.
    pub fn synced(&self) -> Synced {
        self.synced.clone()
    }

    /// Waits until they have come as far as [`Self::synced`] asks.
    pub async fn listed(&self) {
        let requires = self.requires.borrow().clone();
        for requirement in requires {
            requirement.met().await;
        }
    }

    /// Ends all watches. Their stores stay as they are, and are no longer fresh.
    pub fn stop(&self) {
        self.registry.state.set(WatchesPhase::Stopped);
        let informers = self.registry.informers.take();
        informers.iter().for_each(|informer| informer.end());
    }
}

impl Registry {
    /// The feed of a key; a new one if there is none.
    fn informer(self: &Rc<Self>, cluster: &Cluster, key: InformerKey) -> Rc<Informer> {
        if let Some(informer) = self.informers.borrow().iter().find(|informer| informer.key == key) {
            return informer.clone();
        }
        let name = self.free_name(name_of(cluster.options().side, &key));
        let registry = Rc::downgrade(self);
        let forget = move |deserted: &Rc<Informer>| {
            if let Some(registry) = registry.upgrade() {
                registry.forget(deserted);
            }
        };
        let informer = Rc::new(Informer::new(cluster, &self.env, key, name, forget));
        self.informers.borrow_mut().push(informer.clone());
        if self.state.get() == WatchesPhase::Running {
            informer.begin();
        }
        informer
    }

    fn free_name(&self, name: String) -> String {
        let informers = self.informers.borrow();
        let is_free = |name: &String| !informers.iter().any(|informer| informer.name == *name);
        let numbered = (2..).map(|number| format!("{name}#{number}"));
        std::iter::once(name.clone()).chain(numbered).find(is_free).unwrap_or(name)
    }

    /// A feed has no readers any more.
    fn forget(&self, deserted: &Rc<Informer>) {
        self.informers.borrow_mut().retain(|informer| !Rc::ptr_eq(informer, deserted));
    }
}

/// The place of a feed in the census and in logs, e.g. `target/pods`; with the version where only some objects are watched,
/// by their labels (`target/configmaps.v1`), and with the fields where those select (`target/services/metadata.name=a`).
fn name_of(side: Side, key: &InformerKey) -> String {
    let side = side.as_str();
    let resource = &key.resource;
    match (&key.label_selector, &key.field_selector) {
        (Some(_), _) => format!("{side}/{resource}"),
        (None, Some(fields)) => format!("{side}/{}/{fields}", resource.plural),
        (None, None) => format!("{side}/{}", resource.plural),
    }
}

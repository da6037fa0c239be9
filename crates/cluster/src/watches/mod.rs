//! Watches: one informer per kind, many readers.
//!
//! A reader describes its needs with [`WatchOptions`] and gets a [`Watch`]: a small store of its own cached objects,
//! event handlers that run in the turn in which the store changes (contract rule 3), and indexes. Equal options share
//! one informer; it streams whole objects if any reader needs them, else metadata. A list after a lost watch becomes
//! the differences to each store. A watch may start *from now*: it gets the changes from then on, without a first list;
//! a predicate (owners) decides what it keeps.
//!
//! *Contact* with the server is an event, a bookmark, a list, or a reopened watch. A watch that is reopened after an
//! unreadable event or after a silence is not.

mod course;
mod event_handlers;
mod index;
mod informer;
mod live;
mod member;
mod narrowing;
pub mod pace;
mod predicate;
mod reader;
mod scope;
mod selection;
mod serving;
mod synced;
mod watch;
mod watch_options;
mod write_attempt;
mod writes;

#[cfg(test)]
mod tests;

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use kit::{Env, SyncRequirement};

pub use self::{
    index::Index,
    narrowing::MOST_NAMESPACES,
    predicate::Predicate,
    synced::Synced,
    watch::Watch,
    watch_options::{Change, Found, How, ReadCached, Start, WatchOptions},
    write_attempt::Subject,
};
use self::{
    informer::{Informer, InformerKey},
    member::Member,
    reader::Reader,
};
use super::{Cached, Cluster, ClusterLabel};

/// All watches of one cluster. Cheap to clone, bound to the thread that made it.
#[derive(Clone)]
pub struct Watches {
    cluster: Cluster,
    synced: Synced,
    sync_requirements: Rc<RefCell<Vec<SyncRequirement>>>, // the same, to wait for
    registry: Rc<Registry>,
}

struct Registry {
    env: Env,
    informers: RefCell<Vec<Rc<Informer>>>,
    state: Cell<WatchesPhase>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WatchesPhase {
    Gathering,
    Running,
    Stopped,
}

impl Watches {
    /// Creates a set without watches.
    pub fn new(cluster: &Cluster, env: &Env) -> Self {
        let registry =
            Registry { env: env.clone(), informers: RefCell::default(), state: Cell::new(WatchesPhase::Gathering) };
        Self {
            cluster: cluster.clone(),
            synced: Synced::empty(),
            sync_requirements: Rc::default(),
            registry: Rc::new(registry),
        }
    }

    /// Returns the watches of the same server under another label. They share everything except the sync state.
    #[must_use]
    pub fn labelled(&self, cluster: &Cluster) -> Self {
        let (synced, sync_requirements) = (Synced::empty(), Rc::default());
        Self { cluster: cluster.clone(), synced, sync_requirements, registry: self.registry.clone() }
    }

    /// Returns the watched cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Opens a watch: without a request before [`Self::start`]; later it joins a running informer, perhaps by a list.
    pub fn open<R: Cached>(&self, options: WatchOptions<R>) -> Watch<R> {
        let home = options.home(&self.cluster);
        let WatchOptions { resource, label_selector, field_selector, cached, keep, .. } = options;
        let key = InformerKey { resource: resource.clone(), label_selector, field_selector, home };
        let informer = self.registry.informer(&self.cluster, key);
        let reader = Rc::new(Reader::new(informer.name.clone(), cached, keep));
        let is_awaited = options.awaited && !options.optional && self.registry.state.get() == WatchesPhase::Gathering;
        let member = Member::new(reader.clone(), options.whole, options.start, options.optional, options.elsewhere);
        let member = Rc::new(member.installed_by(options.installed_by));
        informer.join(member.clone());
        if self.registry.state.get() == WatchesPhase::Stopped {
            informer.leave(&member);
        }
        let watch = Watch { reader, informer, member };
        if is_awaited {
            self.synced.add(resource.to_string(), watch.store().clone());
            self.sync_requirements.borrow_mut().push(watch.sync_requirement());
        }
        watch
    }

    /// Starts all informers.
    pub fn start(&self) {
        if self.registry.state.get() == WatchesPhase::Gathering {
            self.registry.state.set(WatchesPhase::Running);
            let informers = self.registry.informers.borrow().clone();
            informers.iter().for_each(Informer::begin);
        }
    }

    /// Returns the sync state of the watches opened before [`Self::start`]. Later watches do not count.
    pub fn synced(&self) -> Synced {
        self.synced.clone()
    }

    /// Waits until all watches opened before [`Self::start`] are synced.
    pub async fn listed(&self) {
        let sync_requirements = self.sync_requirements.borrow().clone();
        for requirement in sync_requirements {
            requirement.met().await;
        }
    }

    /// Ends all watches. Their stores keep their content and are no longer fresh.
    pub fn stop(&self) {
        self.registry.state.set(WatchesPhase::Stopped);
        let informers = self.registry.informers.take();
        informers.iter().for_each(|informer| informer.end());
    }
}

impl Registry {
    fn informer(self: &Rc<Self>, cluster: &Cluster, key: InformerKey) -> Rc<Informer> {
        if let Some(informer) = self.informers.borrow().iter().find(|informer| informer.key == key) {
            return informer.clone();
        }
        let name = self.free_name(name_of(cluster.options().label, &key));
        let informer = Rc::new(Informer::new(cluster, &self.env, key, name, Rc::downgrade(self)));
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

    fn forget(&self, deserted: &Rc<Informer>) {
        self.informers.borrow_mut().retain(|informer| !Rc::ptr_eq(informer, deserted));
    }
}

/// The name of an informer in the status registry and in logs, e.g. `target/pods`; with the version if a label selector
/// is used (`target/configmaps.v1`), and with the fields of a field selector (`target/services/metadata.name=a`).
fn name_of(label: ClusterLabel, key: &InformerKey) -> String {
    let label = label.as_str();
    let resource = &key.resource;
    match (&key.label_selector, &key.field_selector) {
        (Some(_), _) => format!("{label}/{resource}"),
        (None, Some(fields)) => format!("{label}/{}/{fields}", resource.plural),
        (None, None) => format!("{label}/{}", resource.plural),
    }
}

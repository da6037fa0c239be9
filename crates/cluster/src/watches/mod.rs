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
mod feed;
mod filters;
mod handle;
mod index;
mod member;
mod narrowing;
pub mod pace;
mod reader;
mod scope;
mod serving;
mod synced;
mod want;

#[cfg(test)]
mod tests;

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use kit::{Env, Need};

use self::{
    feed::{Feed, FeedKey},
    member::Member,
    reader::Reader,
};
pub use self::{
    handle::Watch,
    index::Index,
    narrowing::MOST_NAMESPACES,
    synced::Synced,
    want::{Change, Found, How, ReadRecord, Start, Want},
};
use super::{Cluster, Record, Side};

/// All watches of one cluster. Cheap to clone, bound to the thread that made it.
#[derive(Clone)]
pub struct Watches {
    cluster: Cluster,
    synced: Synced,
    /// The same for those who wait.
    needs: Rc<RefCell<Vec<Need>>>,
    registry: Rc<Registry>,
}

/// The streams of one server.
struct Registry {
    env: Env,
    feeds: RefCell<Vec<Rc<Feed>>>,
    state: Cell<State>,
}

/// What becomes of new feeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
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
        let registry = Registry { env: env.clone(), feeds: RefCell::default(), state: Cell::new(State::Gathering) };
        Self { cluster: cluster.clone(), synced: Synced::empty(), needs: Rc::default(), registry: Rc::new(registry) }
    }

    /// The watches of the same server in its other part: streams are shared, and start and stop with these; what is waited
    /// for is not.
    #[must_use]
    pub fn as_side(&self, cluster: &Cluster) -> Self {
        let (synced, needs) = (Synced::empty(), Rc::default());
        Self { cluster: cluster.clone(), synced, needs, registry: self.registry.clone() }
    }

    /// The cluster that is watched.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// A watch of what is wanted. Before [`Self::start`] nothing is asked of the server; later a stream that runs is joined
    /// if there is one, by a list if that is needed.
    pub fn open<R: Record>(&self, want: Want<R>) -> Watch<R> {
        let home = want.home(&self.cluster);
        let Want { resource, label_selector, field_selector, record, keep, .. } = want;
        let key = FeedKey { resource: resource.clone(), label_selector, field_selector, home };
        let feed = self.registry.feed(&self.cluster, key);
        let reader = Rc::new(Reader::new(feed.name.clone(), record, keep));
        let is_awaited = want.awaited && !want.optional && self.registry.state.get() == State::Gathering;
        let member = Rc::new(Member::new(reader.clone(), want.whole, want.start, want.optional, want.elsewhere));
        feed.join(member.clone());
        if self.registry.state.get() == State::Stopped {
            feed.leave(&member);
        }
        let watch = Watch { reader, feed, member };
        if is_awaited {
            self.synced.add(resource.to_string(), watch.store().clone());
            self.needs.borrow_mut().push(watch.need());
        }
        watch
    }

    /// Begins to follow the server.
    pub fn start(&self) {
        if self.registry.state.get() == State::Gathering {
            self.registry.state.set(State::Running);
            let feeds = self.registry.feeds.borrow().clone();
            feeds.iter().for_each(Feed::begin);
        }
    }

    /// How far the watches have come that were opened before [`Self::start`]; those that were opened later come and go, and
    /// nobody waits for them.
    pub fn synced(&self) -> Synced {
        self.synced.clone()
    }

    /// Waits until they have come as far as [`Self::synced`] asks.
    pub async fn listed(&self) {
        let needs = self.needs.borrow().clone();
        for need in needs {
            need.met().await;
        }
    }

    /// Ends all watches. Their stores stay as they are, and are no longer fresh.
    pub fn stop(&self) {
        self.registry.state.set(State::Stopped);
        let feeds = self.registry.feeds.take();
        feeds.iter().for_each(|feed| feed.end());
    }
}

impl Registry {
    /// The feed of a key; a new one if there is none.
    fn feed(self: &Rc<Self>, cluster: &Cluster, key: FeedKey) -> Rc<Feed> {
        if let Some(feed) = self.feeds.borrow().iter().find(|feed| feed.key == key) {
            return feed.clone();
        }
        let name = self.free_name(name_of(cluster.options().side, &key));
        let registry = Rc::downgrade(self);
        let forget = move |deserted: &Rc<Feed>| {
            if let Some(registry) = registry.upgrade() {
                registry.forget(deserted);
            }
        };
        let feed = Rc::new(Feed::new(cluster, &self.env, key, name, forget));
        self.feeds.borrow_mut().push(feed.clone());
        if self.state.get() == State::Running {
            feed.begin();
        }
        feed
    }

    fn free_name(&self, name: String) -> String {
        let feeds = self.feeds.borrow();
        let is_free = |name: &String| !feeds.iter().any(|feed| feed.name == *name);
        let numbered = (2..).map(|number| format!("{name}#{number}"));
        std::iter::once(name.clone()).chain(numbered).find(is_free).unwrap_or(name)
    }

    /// A feed has no readers any more.
    fn forget(&self, deserted: &Rc<Feed>) {
        self.feeds.borrow_mut().retain(|feed| !Rc::ptr_eq(feed, deserted));
    }
}

/// The place of a feed in the census and in logs, e.g. `target/pods`; with the version where only some objects are watched,
/// by their labels (`target/configmaps.v1`), and with the fields where those select (`target/services/metadata.name=a`).
fn name_of(side: Side, key: &FeedKey) -> String {
    let side = side.as_str();
    let resource = &key.resource;
    match (&key.label_selector, &key.field_selector) {
        (Some(_), _) => format!("{side}/{resource}"),
        (None, Some(fields)) => format!("{side}/{}/{fields}", resource.plural),
        (None, None) => format!("{side}/{}", resource.plural),
    }
}

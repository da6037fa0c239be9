//! Watch routers: from a watch stream to a store and to the filters that wake actors.
//!
//! A router lists and watches one kind, keeps the store, and tells its filters each change in the same turn in which the
//! store learned of it (contract rule 3). A list after a lost watch becomes the differences to the store. On demand a
//! router starts *from now*: it asks for one object only, to learn the present version, and hears of changes from then
//! on; what it keeps is decided by a predicate (interest).

mod course;
mod host;
mod options;

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use actix::{Actor, Addr};
use kit::{Activity, Env, Need, Role, Signal};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    Cluster, Resource, Side,
    store::{IDLE_LIMIT, Put, Record, Store, StoreState},
};
use crate::object::{self, NamespacedName};

use super::watches::{Change, Found, How, Start};
use host::{RouterActor, Stop};
pub use options::RouterOptions;

/// A running watch router. Cheap to clone.
pub struct Router<R: Record> {
    core: Rc<Core<R>>,
    actor: Addr<RouterActor<R>>,
}

type Filter<R> = Rc<dyn Fn(&Change<'_, R>)>;

struct Core<R: Record> {
    cluster: Cluster,
    env: Env,
    options: RouterOptions<R>,
    /// Only objects with these fields, in the API's syntax.
    field_selector: Option<String>,
    store: Store<R>,
    scopes: Vec<ScopeState>,
    filters: RefCell<Vec<Filter<R>>>,
    /// Raised when the state of the store changes.
    signal: Signal,
    cell: kit::Cell,
}

#[derive(Default)]
struct ScopeState {
    /// The version to watch from.
    position: RefCell<Option<String>>,
    listed: Cell<bool>,
    error: RefCell<Option<String>>,
    heard: Cell<Option<Instant>>,
    /// When the present watch was opened, if it was.
    opened: Cell<Option<Instant>>,
    /// Whether it told of an object.
    event: Cell<bool>,
    /// Whether the last list or watch was denied.
    forbidden: Cell<bool>,
}

// === impl Router ===

impl<R: Record> Clone for Router<R> {
    fn clone(&self) -> Self {
        Self { core: self.core.clone(), actor: self.actor.clone() }
    }
}

impl<R: Record> Router<R> {
    /// Starts watching.
    pub fn start(cluster: &Cluster, options: RouterOptions<R>, env: &Env) -> Self {
        Self::start_with(cluster, options, None, env)
    }

    /// Starts watching the objects that have certain fields, e.g. `metadata.name=a`.
    pub fn start_selecting(cluster: &Cluster, options: RouterOptions<R>, fields: String, env: &Env) -> Self {
        Self::start_with(cluster, options, Some(fields), env)
    }

    fn start_with(cluster: &Cluster, options: RouterOptions<R>, field_selector: Option<String>, env: &Env) -> Self {
        let cell = env.census.enter(format!("watch/{}", options.name), Role::Router);
        let scopes = options.scopes.iter().map(|_| ScopeState::default()).collect();
        let core = Rc::new(Core {
            cluster: cluster.clone(),
            env: env.clone(),
            options,
            field_selector,
            store: Store::default(),
            scopes,
            filters: RefCell::default(),
            signal: Signal::default(),
            cell,
        });
        let actor = RouterActor { core: core.clone() }.start();
        Self { core, actor }
    }

    /// What is known.
    pub fn store(&self) -> &Store<R> {
        &self.core.store
    }

    /// The kind it watches.
    pub fn resource(&self) -> &Resource {
        &self.core.options.resource
    }

    /// Where it watches: in these namespaces, or everywhere (`None`).
    pub fn scopes(&self) -> &[Option<String>] {
        &self.core.options.scopes
    }

    /// Whether it tells of more than metadata.
    pub fn tells_of_bodies(&self) -> bool {
        !self.core.options.metadata_only
    }

    /// Whether the server denies the right to watch, at least somewhere.
    pub fn is_forbidden(&self) -> bool {
        self.core.scopes.iter().any(|scope| scope.forbidden.get())
    }

    /// Whether what is known of an object is evidence: as [`Store::is_fresh`], of the namespace it is in.
    pub fn is_fresh_for(&self, name: &NamespacedName) -> bool {
        let heard = self.core.scope_of(name).filter(|scope| scope.listed.get()).and_then(|scope| scope.heard.get());
        heard.is_some_and(|heard| heard.elapsed() < IDLE_LIMIT) && self.core.store.state() != StoreState::Off
    }

    /// Whether what is known is evidence, wherever it is watched.
    pub fn is_fresh(&self) -> bool {
        let is_heard_of = |scope: &ScopeState| {
            scope.listed.get() && scope.heard.get().is_some_and(|heard| heard.elapsed() < IDLE_LIMIT)
        };
        self.core.scopes.iter().all(is_heard_of) && self.core.store.state() != StoreState::Off
    }

    /// Raised when the state of the store changes.
    pub fn signal(&self) -> &Signal {
        &self.core.signal
    }

    /// For duties that cannot run before the first list is there.
    pub fn need(&self) -> Need {
        let (core, cluster, store) = (self.core.clone(), self.core.cluster.clone(), self.core.store.clone());
        let why = move || match store.state() {
            StoreState::Failing(error) => Some(error),
            StoreState::Off | StoreState::Starting | StoreState::Synced => None,
        };
        // Without the target the process waits, without the source it is good for nothing (spec 70 §7.1).
        let excused = move || cluster.options().side == Side::Target && cluster.is_silent();
        Need::new(self.core.options.name.clone(), move || core.is_listed(), self.core.signal.clone())
            .explained(why)
            .excused_while(excused)
    }

    /// Adds a filter. It is told at once of everything in the store, as [`How::First`], and of each change from now on.
    pub fn subscribe(&self, filter: impl Fn(&Change<'_, R>) + 'static) {
        for name in self.core.store.names() {
            if let Some(record) = self.core.store.get(&name) {
                filter(&Change { name: &name, old: None, new: Some(&record), how: How::First });
            }
        }
        self.core.filters.borrow_mut().push(Rc::new(filter));
    }

    /// Enters the answer to a read or write of this process, as if the watch had reported it. `asked` is when the request
    /// was sent: before the router has begun to hear of changes nothing is entered, and what was asked for before its last
    /// list adds nothing. What happened to the object meanwhile would be missed.
    pub fn wrote(&self, object: &Value, writer: &str, asked: Instant) {
        self.core.enter(object, How::Own { writer }, asked);
    }

    /// The same for an answer of which a record was made already.
    pub fn wrote_record(&self, name: &NamespacedName, record: R, writer: &str, asked: Instant) {
        if self.core.is_listed_for(name) && (self.core.options.keep)(name) {
            self.core.put(name, record, How::Own { writer }, Some(asked));
        }
    }

    /// Enters an object of a list that this process read for another reason, as [`Self::wrote`] does.
    pub fn found(&self, object: &Value, asked: Instant) -> Found {
        self.core.enter(object, How::First, asked)
    }

    /// Enters that a DELETE of this process was answered with *gone*.
    pub fn deleted(&self, name: &NamespacedName, writer: &str) {
        self.core.remove(name, None, How::Own { writer });
    }

    /// Forgets an object that nobody is interested in any more.
    pub fn forget(&self, name: &NamespacedName) {
        if !(self.core.options.keep)(name) {
            drop(self.core.store.take(name, u64::MAX));
        }
    }

    /// Ends the watch. The store stays as it is, and is no longer fresh.
    pub fn stop(&self) {
        if self.core.store.set_state(StoreState::Off) {
            self.core.signal.raise(); // nobody waits for its list any more
        }
        self.core.env.census.leave(self.core.cell.path());
        kit::post(&self.actor, Stop);
    }
}

// === impl Core ===

impl<R: Record> Core<R> {
    /// Enters an answer of the server to this process. One in another version of the kind cannot be compared with what the
    /// watch brings; of it counts only that what was known before is outdated.
    fn enter(&self, object: &Value, how: How<'_>, asked: Instant) -> Found {
        if !self.is_listed_for(&NamespacedName::of(object)) {
            return Found::Known;
        }
        let resource = &self.options.resource;
        let other_version = object["apiVersion"].as_str().is_some_and(|version| version != resource.api_version());
        if !other_version || self.options.metadata_only {
            return self.upsert(object, how, Some(asked));
        }
        let name = NamespacedName::of(object);
        let Ok(version) = object::resource_version(object).parse::<u64>() else { return Found::Known };
        if self.store.is_removed(&name, version) {
            return Found::Removed;
        }
        drop(self.store.take(&name, version.saturating_sub(1)));
        Found::Known
    }

    fn upsert(&self, object: &Value, how: How<'_>, asked: Option<Instant>) -> Found {
        let name = NamespacedName::of(object);
        if self.store.knows(&name, object::resource_version(object)) || !(self.options.keep)(&name) {
            return Found::Known;
        }
        let Some(record) = (self.options.record)(object) else {
            tracing::warn!(router = %self.options.name, object = %name, "an object cannot be read and is left out");
            return Found::Known;
        };
        self.put(&name, record, how, asked)
    }

    fn put(&self, name: &NamespacedName, record: R, how: How<'_>, asked: Option<Instant>) -> Found {
        match self.store.put(name, record.clone(), asked) {
            Put::Stored(old) => self.tell(&Change { name, old: old.as_ref(), new: Some(&record), how }),
            Put::Older => {}
            Put::Removed => return Found::Removed,
        }
        Found::Known
    }

    /// Takes an object out. Without a version it is known to be gone, but not since when.
    fn remove(&self, name: &NamespacedName, version: Option<u64>, how: How<'_>) {
        if let Some(version) = version.filter(|_| (self.options.keep)(name)) {
            self.store.remember_removal(name, version);
        }
        if let Some(old) = self.store.take(name, version.unwrap_or(u64::MAX)) {
            self.tell(&Change { name, old: Some(&old), new: None, how });
        }
    }

    fn tell(&self, change: &Change<'_, R>) {
        if change.old.is_none() || change.new.is_none() {
            let records = self.store.len();
            self.cell.update(self.env.clock.wall(), |cell| cell.line = records_text(records));
        }
        let filters = self.filters.borrow().clone();
        for filter in filters {
            filter(change);
        }
    }

    fn heard(&self, index: usize) {
        let now = self.env.clock.monotonic();
        self.scopes[index].heard.set(Some(now));
        let all: Option<Vec<_>> = self.scopes.iter().map(|scope| scope.heard.get()).collect();
        if let Some(oldest) = all.and_then(|all| all.into_iter().min()) {
            self.store.heard(oldest);
        }
        if self.store.state() != StoreState::Synced {
            self.show();
        }
    }

    /// Whether changes are heard of where an object is.
    fn is_listed_for(&self, name: &NamespacedName) -> bool {
        self.scope_of(name).is_some_and(|scope| scope.listed.get())
    }

    /// The state of the scope that an object is in.
    fn scope_of(&self, name: &NamespacedName) -> Option<&ScopeState> {
        let holds = |scope: &Option<String>| scope.as_ref().is_none_or(|namespace| *namespace == name.namespace);
        self.options.scopes.iter().position(holds).and_then(|index| self.scopes.get(index))
    }

    fn is_listed(&self) -> bool {
        self.scopes.iter().all(|scope| scope.listed.get())
    }

    /// Brings the store's state and the census up to date.
    fn show(&self) {
        let listed = self.is_listed();
        let error = self.scopes.iter().find_map(|scope| scope.error.borrow().clone());
        let state = match &error {
            // A store that was complete once keeps its state while the watch is taken up again; its age tells the rest.
            Some(error) if !listed || !self.store.is_heard_of() => StoreState::Failing(error.clone()),
            Some(_) | None if listed => StoreState::Synced,
            Some(_) | None => StoreState::Starting,
        };
        let now = self.env.clock.wall();
        let records = self.store.len();
        self.cell.update(now, |cell| {
            cell.activity = match state {
                StoreState::Off => Activity::Stopped,
                StoreState::Starting => Activity::Starting,
                StoreState::Synced => Activity::Idle,
                StoreState::Failing(_) => Activity::Failing,
            };
            cell.line = records_text(records);
            if let Some(error) = error {
                cell.last_error = Some((now, error));
            }
        });
        if self.store.set_state(state) {
            self.signal.raise();
        }
    }
}

fn records_text(records: usize) -> String {
    format!("{records} records")
}

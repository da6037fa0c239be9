//! An informer: the shared list-watch stream of a kind, and its readers. It does not know what readers make of objects,
//! and keeps none. `course.rs` lists and watches; `narrowing.rs` chooses the namespaces; `serving.rs` waits for the
//! kind.

use std::{
    cell::{Cell, RefCell},
    panic::{AssertUnwindSafe, catch_unwind},
    rc::{Rc, Weak},
    time::Duration,
};

use kit::{Activity, Env, Role};
use tokio::time::Instant;

use super::{
    super::{Cluster, Resource, StoreState},
    Registry, Start,
    member::Member,
    reader::{ReaderState, Sink},
    scope::{Again, Narrowed, Scope, Task},
};
use crate::{ProvedAbsent, object::NamespacedName};

/// Readers with equal keys share an informer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InformerKey {
    pub(super) resource: Resource,
    pub(super) label_selector: Option<String>,
    pub(super) field_selector: Option<String>,
    /// The scopes to watch while that is not denied.
    pub(super) home: Vec<Option<String>>,
}

/// The contact time in the status registry may be this much too old, or each event would change the registry.
const SHOWN_EACH: Duration = Duration::from_secs(15);

pub(super) struct Informer {
    pub(super) cluster: Cluster,
    pub(super) env: Env,
    pub(super) key: InformerKey,
    /// Path in the status registry and in logs, e.g. `source/managedresources`.
    pub(super) name: String,
    registry: Weak<Registry>,
    members: RefCell<Rc<[Rc<Member>]>>,
    pub(super) home: Vec<Rc<Scope>>,
    pub(super) narrowed: RefCell<Option<Narrowed>>,
    /// Whether it has begun; before that it only gathers readers.
    begun: Cell<bool>,
    running: Cell<bool>,
    /// Follows discovery while a reader tolerates that the kind is not served.
    pub(super) serving: RefCell<Option<Task>>,
    /// Why there is nothing to watch for readers that tolerate that: the kind is known not to be served.
    pub(super) unserved: RefCell<Option<Unserved>>,
    scopes_made: Cell<u64>,
    cached_objects: Cell<usize>,
    shown_contact: Cell<Option<Instant>>,
    cell: kit::Cell,
}

/// Why there is nothing to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unserved {
    /// It is served in no version: there are no objects.
    Absent(ProvedAbsent),
    /// It is served in this version only, and not in the watched one: there may be objects.
    Elsewhere(String),
}

impl Informer {
    /// `registry` forgets it when the last reader has left and the stream has ended.
    pub(super) fn new(cluster: &Cluster, env: &Env, key: InformerKey, name: String, registry: Weak<Registry>) -> Self {
        let cell = env.status_registry.enter(format!("watch/{name}"), Role::Watch);
        let home: Vec<_> = (0..).zip(&key.home).map(|(id, scope)| Rc::new(Scope::new(id, scope.clone()))).collect();
        Self {
            cluster: cluster.clone(),
            env: env.clone(),
            name,
            registry,
            members: RefCell::new(Rc::new([])),
            scopes_made: Cell::new(home.len() as u64),
            home,
            key,
            narrowed: RefCell::default(),
            begun: Cell::default(),
            running: Cell::default(),
            serving: RefCell::default(),
            unserved: RefCell::default(),
            cached_objects: Cell::default(),
            shown_contact: Cell::default(),
            cell,
        }
    }

    pub(super) fn new_scope(&self, namespace: String) -> Rc<Scope> {
        let id = self.scopes_made.get();
        self.scopes_made.set(id + 1);
        Rc::new(Scope::new(id, Some(namespace)))
    }

    pub(super) fn members(&self) -> Rc<[Rc<Member>]> {
        self.members.borrow().clone()
    }

    /// Calls a reader. A panic is a defect of that reader and does not affect the others.
    pub(super) fn call(&self, member: &Member, call: impl FnOnce(&dyn Sink)) {
        if member.gone.get() {
            return;
        }
        if catch_unwind(AssertUnwindSafe(|| call(&*member.sink))).is_err() {
            tracing::error!(watch = %self.name, "a reader of a watch panicked");
        }
    }

    /// Adds a reader. If the stream runs, the reader gets the present objects by a list, unless it only wants changes.
    pub(super) fn join(self: &Rc<Self>, member: Rc<Member>) {
        let members: Vec<_> = self.members().iter().cloned().chain([member.clone()]).collect();
        self.members.replace(members.into());
        if !self.begun.get() {
            return;
        }
        self.follow_demand();
        if self.running.get() {
            for scope in self.scopes_of(&member) {
                self.admit(&scope, &member);
            }
            self.namespaces_changed();
        }
        self.show();
    }

    fn admit(&self, scope: &Scope, member: &Member) {
        let is_narrower = member.whole && !scope.whole.get();
        let from_now = member.start == Start::Now;
        if scope.position.borrow().is_none() {
            if scope.listing.get() && (is_narrower || !from_now) {
                scope.restart(Again::List);
            }
        } else if !from_now {
            scope.restart(Again::List);
        } else {
            self.cover(member, scope);
            self.report_contact(member);
            if is_narrower {
                scope.restart(Again::Watch);
            }
        }
    }

    /// Records that a reader gets all changes of a scope from now on.
    pub(super) fn cover(&self, member: &Member, scope: &Scope) {
        member.cover(scope);
        let now = self.env.clock.monotonic();
        self.call(member, |sink| sink.begun(now));
    }

    /// Removes a reader. Without readers the stream ends.
    pub(super) fn leave(self: &Rc<Self>, member: &Rc<Member>) {
        if member.gone.replace(true) {
            return;
        }
        let left: Vec<_> = self.members().iter().filter(|other| !Rc::ptr_eq(other, member)).cloned().collect();
        let is_last = left.is_empty();
        self.members.replace(left.into());
        member.sink.show(ReaderState::Off);
        if is_last {
            self.end();
            self.registry.upgrade().into_iter().for_each(|registry| registry.forget(self));
        } else {
            self.follow_demand();
            self.widen_if_unneeded();
            self.show();
        }
    }

    pub(super) fn end(&self) {
        self.halt();
        self.serving.take();
        for member in self.members.replace(Rc::new([])).iter() {
            member.gone.set(true);
            member.sink.show(ReaderState::Off);
        }
        self.env.status_registry.leave(self.cell.path());
    }

    /// Begins, once all initial readers have joined.
    pub(super) fn begin(self: &Rc<Self>) {
        if !self.begun.replace(true) {
            self.follow_demand();
            self.show();
        }
    }

    /// Runs if a reader requires it. Follows discovery for the others.
    fn follow_demand(self: &Rc<Self>) {
        let members = self.members();
        if members.iter().all(|member| !member.optional) {
            self.serving.take();
            self.unserved.replace(None);
        } else if self.serving.borrow().is_none() {
            self.follow_discovery();
        }
        match self.is_required() {
            true if !self.running.get() => self.run(),
            false if self.running.get() && self.is_unserved() => self.halt(),
            true | false => {}
        }
    }

    fn is_required(&self) -> bool {
        self.members().iter().any(|member| !member.optional)
    }

    pub(super) fn run(self: &Rc<Self>) {
        self.running.set(true);
        for scope in &self.home {
            scope.error.take();
            scope.allow();
            self.follow(scope);
        }
    }

    pub(super) fn halt(&self) {
        self.running.set(false);
        self.narrowed.take();
        self.home.iter().for_each(|scope| scope.halt());
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.get()
    }

    fn is_unserved(&self) -> bool {
        self.unserved.borrow().is_some()
    }

    /// Returns true if a reader has nothing to wait for: the kind is not served, and the reader tolerates that.
    pub(super) fn is_unserved_for(&self, member: &Member) -> bool {
        member.optional && self.is_unserved()
    }

    pub(super) fn follow(self: &Rc<Self>, scope: &Rc<Scope>) {
        scope.run(self.task(self.clone().course(scope.clone())));
    }

    pub(super) fn task(&self, work: impl Future<Output = ()> + 'static) -> Task {
        Task(self.env.fatal.spawn(format!("the watch of {}", self.name), work))
    }

    /// While a reader requires the kind, the stream goes on: it shows why there is none, and finds the kind when it comes.
    pub(super) fn set_unserved(self: &Rc<Self>, unserved: Option<Unserved>) {
        let served = unserved.is_none();
        self.unserved.replace(unserved);
        if !served && self.running.get() {
            let is_required = self.is_required();
            if !is_required {
                self.halt();
            }
            for member in self.members().iter().filter(|member| member.optional) {
                member.covered.borrow_mut().clear();
                member.owe_nothing();
                member.complete.set(false);
                self.call(member, |sink| {
                    sink.heard(None);
                    sink.lose(&|_| true);
                });
            }
        } else if served && self.running.get() {
            for member in self.members().iter().filter(|member| member.optional) {
                let uncovered = self.scopes_of(member).into_iter().filter(|scope| !member.covers(scope));
                uncovered.for_each(|scope| self.admit(&scope, member));
            }
        } else if served {
            self.run();
        }
        self.show();
    }

    /// Returns true if any reader needs more than metadata.
    pub(super) fn is_whole(&self) -> bool {
        self.members().iter().any(|member| member.whole)
    }

    /// Calls `look` with the scopes of a reader: for readers that need all namespaces, the (denied) home scopes.
    pub(super) fn with_scopes_of<T>(&self, member: &Member, look: impl FnOnce(&[Rc<Scope>]) -> T) -> T {
        match self.narrowed.borrow().as_ref() {
            Some(narrowed) if member.elsewhere.is_some() => look(&narrowed.scopes),
            Some(_) | None => look(&self.home),
        }
    }

    pub(super) fn scopes_of(&self, member: &Member) -> Vec<Rc<Scope>> {
        self.with_scopes_of(member, <[Rc<Scope>]>::to_vec)
    }

    pub(super) fn members_of(&self, scope: &Scope) -> Vec<Rc<Member>> {
        let looks = |member: &&Rc<Member>| self.with_scopes_of(member, |own| own.iter().any(|own| own.id == scope.id));
        self.members().iter().filter(looks).cloned().collect()
    }

    pub(super) fn scope_for(&self, member: &Member, namespace: &str) -> Option<Rc<Scope>> {
        self.with_scopes_of(member, |scopes| scopes.iter().find(|scope| scope.holds(namespace)).cloned())
    }

    /// Returns true if the reader gets the changes of an object's namespace.
    pub(super) fn is_listed_for(&self, member: &Member, name: &NamespacedName) -> bool {
        self.scope_for(member, &name.namespace).is_some_and(|scope| member.covers(&scope))
    }

    pub(super) fn state_of(&self, member: &Member, scope: &Scope) -> StoreState {
        let listed = member.covers(scope);
        match (member.sink.state(), &*scope.error.borrow()) {
            (StoreState::Off, _) => StoreState::Off,
            (_, Some(error)) if !listed || !scope.has_contact() => StoreState::Failing(error.clone()),
            (StoreState::Starting | StoreState::Synced | StoreState::Failing(_), _) if listed => StoreState::Synced,
            (StoreState::Starting | StoreState::Synced | StoreState::Failing(_), _) => StoreState::Starting,
        }
    }

    pub(super) fn record_contact(&self, scope: &Scope) {
        scope.heard.set(Some(self.env.clock.monotonic()));
        let mut is_to_show = false;
        for member in self.members_of(scope) {
            self.report_contact(&member);
            is_to_show |= member.sink.state() != StoreState::Synced;
        }
        if is_to_show {
            self.show();
        }
        self.show_heard();
    }

    /// The server does not report this kind any more: the store is no evidence until the next contact.
    pub(super) fn lose_contact(&self, scope: &Scope) {
        scope.heard.set(None);
        self.members_of(scope).iter().for_each(|member| self.call(member, |sink| sink.heard(None)));
    }

    /// Reports to a reader the last contact of its least recently heard scope, or none if one scope had no contact yet.
    pub(super) fn report_contact(&self, member: &Member) {
        let heard = self.with_scopes_of(member, |scopes| {
            let all: Option<Vec<_>> = scopes.iter().map(|scope| scope.heard.get()).collect();
            all.and_then(|all| all.into_iter().min())
        });
        if heard.is_some() {
            self.call(member, |sink| sink.heard(heard));
        }
    }

    pub(super) fn show(&self) {
        for member in self.members().iter() {
            let reader_state = self.reader_state(member);
            self.call(member, |sink| sink.show(reader_state));
            self.show_scopes(member);
        }
        self.show_in_status_registry();
    }

    fn show_scopes(&self, member: &Member) {
        let states: Vec<_> = self.with_scopes_of(member, |scopes| {
            scopes.iter().map(|scope| (scope.id, self.state_of(member, scope))).collect()
        });
        if *member.shown.borrow() != states {
            member.shown.replace(states);
            self.call(member, |sink| sink.scopes_changed());
        }
    }

    fn reader_state(&self, member: &Member) -> ReaderState {
        if self.is_unserved_for(member) {
            return ReaderState::Off;
        }
        self.with_scopes_of(member, |scopes| {
            let listed = !scopes.is_empty() && scopes.iter().all(|scope| member.covers(scope));
            if listed {
                member.complete.set(true);
            }
            ReaderState::On { listed, error: scopes.iter().find_map(|scope| scope.error.borrow().clone()) }
        })
    }

    fn show_in_status_registry(&self) {
        let members = self.members();
        let states: Vec<_> = members.iter().map(|member| member.sink.state()).collect();
        let failing = states.iter().find_map(|state| match state {
            StoreState::Failing(error) => Some(error.clone()),
            StoreState::Off | StoreState::Starting | StoreState::Synced => None,
        });
        // A store stays synced for a while after its watch failed. Who looks is to see what the log says.
        let error = failing.or_else(|| {
            members.iter().find_map(|member| match self.reader_state(member) {
                ReaderState::On { error, .. } => error,
                ReaderState::Off => None,
            })
        });
        let now = self.env.clock.wall();
        let line = self.line();
        self.cell.update(now, |cell| {
            cell.activity = if error.is_some() {
                Activity::Failing
            } else if self.is_unserved() {
                Activity::Waiting
            } else if states.contains(&StoreState::Starting) {
                Activity::Starting
            } else {
                Activity::Idle
            };
            cell.line = line;
            if let Some(error) = error {
                cell.last_error = Some((now, error));
            }
        });
    }

    fn show_heard(&self) {
        let heard = |scopes: &[Rc<Scope>]| scopes.iter().map(|scope| scope.heard.get()).min().flatten();
        let heard =
            self.narrowed.borrow().as_ref().map_or_else(|| heard(&self.home), |narrowed| heard(&narrowed.scopes));
        let Some(heard) = heard else { return };
        if self.shown_contact.get().is_some_and(|shown| heard < shown + SHOWN_EACH) {
            return;
        }
        self.shown_contact.set(Some(heard));
        let now = self.env.clock.wall();
        let ago = jiff::SignedDuration::try_from(heard.elapsed()).unwrap_or_default();
        self.cell.update(now, |cell| cell.heard = now.checked_sub(ago).ok());
    }

    pub(super) fn show_cached_objects(&self) {
        let cached_objects = self.members().iter().map(|member| member.sink.len()).sum();
        if self.cached_objects.replace(cached_objects) != cached_objects {
            let line = self.line();
            self.cell.update(self.env.clock.wall(), |cell| cell.line = line);
        }
    }

    fn line(&self) -> String {
        let members = self.members();
        let cached_objects: usize = members.iter().map(|member| member.sink.len()).sum();
        let mut line = format!("{cached_objects} records");
        if members.len() > 1 {
            line.push_str(&format!(" of {} readers", members.len()));
        }
        if let Some(narrowed) = &*self.narrowed.borrow() {
            line.push_str(&format!(", in {} namespaces only", narrowed.scopes.len()));
        }
        if self.is_unserved() {
            line.push_str(", not served");
        }
        line
    }
}

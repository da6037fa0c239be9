//! The handle of a watch.

use std::{cell::Cell, rc::Rc, time::Duration};

use kit::{Listening, Signal, SyncRequirement};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    Change, Found, How, Index,
    index::Keeper,
    informer::Informer,
    member::Member,
    reader::{Reader, Sink},
    serving::Unserved,
};
use crate::{
    Cached, ProvedAbsent, Resource, Side, Store, StoreState,
    object::{self, NamespacedName},
};

/// What one reader knows of the objects of a kind, and whom it tells. Cheap to clone; it goes on until it is stopped.
pub struct Watch<R: Cached> {
    pub(super) reader: Rc<Reader<R>>,
    pub(super) informer: Rc<Informer>,
    pub(super) member: Rc<Member>,
}

impl<R: Cached> Clone for Watch<R> {
    fn clone(&self) -> Self {
        Self { reader: self.reader.clone(), informer: self.informer.clone(), member: self.member.clone() }
    }
}

impl<R: Cached> Watch<R> {
    /// What is known.
    pub fn store(&self) -> &Store<R> {
        &self.reader.store
    }

    /// The kind it watches.
    pub fn resource(&self) -> &Resource {
        &self.informer.key.resource
    }

    /// Where it is watched now: in these namespaces, or everywhere (`None`).
    pub fn scopes(&self) -> Vec<Option<String>> {
        self.informer
            .with_scopes_of(&self.member, |scopes| scopes.iter().map(|scope| scope.namespace.clone()).collect())
    }

    /// Whether it tells of more than metadata.
    pub fn reports_bodies(&self) -> bool {
        self.member.whole
    }

    /// Whether the server denies the right to watch, at least somewhere. It may do so for a moment only, while it starts.
    pub fn is_forbidden(&self) -> bool {
        self.informer.with_scopes_of(&self.member, |scopes| scopes.iter().any(|scope| scope.forbidden.get()))
    }

    /// Whether the right to watch is missing, at least somewhere: the server has denied it for long, and done nothing else since.
    pub fn is_denied_lastingly(&self) -> bool {
        self.informer.with_scopes_of(&self.member, |scopes| scopes.iter().any(|scope| scope.is_denied_lastingly()))
    }

    /// Whether that was so once, and the right was not seen since.
    pub fn was_denied_lastingly(&self) -> bool {
        self.informer.with_scopes_of(&self.member, |scopes| scopes.iter().any(|scope| scope.was_denied_lastingly()))
    }

    /// Whether what is known of an object is evidence: as [`Store::is_fresh`], of the namespace it is in, and of itself.
    pub fn is_fresh_for(&self, name: &NamespacedName) -> bool {
        let scope = self.informer.scope_for(&self.member, &name.namespace);
        scope.is_some_and(|scope| self.member.covers(&scope) && scope.is_heard_of())
            && !self.store().is_unreadable(name)
            && self.store().state() != StoreState::Off
    }

    /// Whether what is known is evidence, wherever it is watched, of all objects.
    pub fn is_fresh(&self) -> bool {
        let is_heard_of = self.informer.with_scopes_of(&self.member, |scopes| {
            !scopes.is_empty() && scopes.iter().all(|scope| self.member.covers(scope) && scope.is_heard_of())
        });
        is_heard_of && !self.store().has_unreadable() && self.store().state() != StoreState::Off
    }

    /// The proof that there are no objects because their kind is not served, while that is so and all readers are content with
    /// it. [`StoreState::Off`] proves nothing: the kind may be served in another version.
    pub fn absence(&self) -> Option<ProvedAbsent> {
        match &*self.informer.unserved.borrow() {
            Some(Unserved::Absent(proof)) => Some(proof.clone()),
            Some(Unserved::Elsewhere(_)) | None => None,
        }
    }

    /// Tells each time that the kind turns out not to be served, also if that is known already, until the guard goes.
    pub fn on_absence(&self, report: impl Fn() + 'static) -> Listening {
        let (watch, was_absent) = (self.clone(), Cell::new(false));
        let look = move || {
            let is_absent = watch.absence().is_some();
            if is_absent && !was_absent.replace(is_absent) {
                report();
            }
            was_absent.set(is_absent);
        };
        look();
        self.signal().listen(look)
    }

    /// How far the objects of a namespace can be trusted; `Off` where it is not watched.
    pub fn state_in(&self, namespace: &str) -> StoreState {
        let scope = self.informer.scope_for(&self.member, namespace);
        scope.map_or(StoreState::Off, |scope| self.informer.state_of(&self.member, &scope))
    }

    /// Time since the server was last heard of in the scope that holds a namespace; `None` if it never was, or refuses.
    pub fn age_in(&self, namespace: &str) -> Option<Duration> {
        let scope = self.informer.scope_for(&self.member, namespace);
        scope.and_then(|scope| scope.heard.get()).map(|heard| heard.elapsed())
    }

    /// Raised when the state of the store changes.
    pub fn signal(&self) -> &Signal {
        &self.reader.signal
    }

    /// Raised when it is watched elsewhere than before, or [`Self::state_in`] changes somewhere.
    pub fn scopes_signal(&self) -> &Signal {
        &self.reader.scopes
    }

    /// For duties that cannot run before the first list is there. Of a kind that is not served there is none.
    pub fn sync_requirement(&self) -> SyncRequirement {
        let (informer, member) = (self.informer.clone(), self.member.clone());
        let is_listed =
            move || informer.with_scopes_of(&member, |scopes| scopes.iter().all(|scope| member.covers(scope)));
        let (informer, cluster, store) = (self.informer.clone(), self.informer.cluster.clone(), self.store().clone());
        let why = move || match store.state() {
            StoreState::Failing(error) => Some(error),
            StoreState::Off | StoreState::Starting | StoreState::Synced => None,
        };
        // Without the target the process waits, without the source it is good for nothing (spec 70 §7.1).
        let excused = move || cluster.options().side == Side::Target && cluster.is_silent();
        let ready = move || informer.is_unserved() || is_listed();
        SyncRequirement::new(self.informer.name.clone(), ready, self.reader.signal.clone())
            .explained(why)
            .excused_while(excused)
    }

    /// Adds a filter. It is told at once of everything in the store, as [`How::First`], and of each change from now on. If
    /// it panics it is told again, at once and then with the object's next change or list; others are told in any case.
    pub fn subscribe(&self, filter: impl Fn(&Change<'_, R>) + 'static) {
        self.reader.subscribe(filter);
    }

    /// The objects by keys, kept in the turn in which the store learns of them, before filters are told. An object whose
    /// keys cannot be found out without a panic counts as one that cannot be read.
    pub fn index<K: Ord + Send + Sync + 'static>(&self, keys: fn(&NamespacedName, &R) -> Vec<K>) -> Index<K> {
        let (index, keeper) = Keeper::new(keys);
        self.reader.add_index(Rc::new(keeper));
        index
    }

    /// The namespaces to which it may be narrowed may be others than before.
    pub fn places_changed(&self) {
        if !self.member.is_gone() {
            self.informer.places_changed();
        }
    }

    /// Enters the answer to a read or write of this process, as if the watch had reported it. `asked` is when the request
    /// was sent: before the watch has begun to hear of changes nothing is entered, and what was asked for before its last
    /// list adds nothing. What happened to the object meanwhile would be missed.
    pub fn wrote(&self, object: &Value, writer: &str, asked: Instant) {
        self.enter(object, How::Own { writer }, asked);
    }

    /// The same for an answer of which a record was made already.
    pub fn wrote_cached(&self, name: &NamespacedName, cached: R, writer: &str, asked: Instant) {
        if self.informer.is_listed_for(&self.member, name) {
            self.reader.put_cached(name, cached, How::Own { writer }, asked);
            self.informer.show_cached_objects();
        }
    }

    /// Enters an object of a list that this process read for another reason, as [`Self::wrote`] does.
    pub fn found(&self, object: &Value, asked: Instant) -> Found {
        self.enter(object, How::First, asked)
    }

    /// Enters that an object is gone, as a DELETE or a read of this process was answered. `version` is what was deleted, or
    /// what was known when the read was sent: an object that was made anew meanwhile has a newer one, and stays.
    pub fn deleted(&self, name: &NamespacedName, version: u64, writer: &str) {
        self.reader.take(name, version, How::Own { writer });
        self.informer.show_cached_objects();
    }

    /// Forgets an object that nobody is interested in any more.
    pub fn forget(&self, name: &NamespacedName) {
        if !self.reader.keeps(name) {
            self.reader.forget(name, u64::MAX);
        }
    }

    /// Ends the watch; the stream goes on while others read it. The store stays as it is, and is no longer fresh.
    pub fn stop(&self) {
        self.informer.leave(&self.member);
    }

    /// Enters an answer of the server to this process. One in another version of the kind cannot be compared with what the
    /// watch brings; of it counts only that what was known before is outdated.
    fn enter(&self, object: &Value, how: How<'_>, asked: Instant) -> Found {
        let name = NamespacedName::of(object);
        if !self.informer.is_listed_for(&self.member, &name) {
            return Found::Known;
        }
        let other_version = object["apiVersion"].as_str().is_some_and(|it| it != self.resource().api_version());
        if !other_version || !self.member.whole {
            let found = self.reader.upsert(&name, object, how, Some(asked));
            self.informer.show_cached_objects();
            return found;
        }
        let Ok(version) = object::resource_version(object).parse::<u64>() else { return Found::Known };
        if self.store().is_removed(&name, version) {
            return Found::Removed;
        }
        self.reader.forget(&name, version.saturating_sub(1));
        Found::Known
    }
}

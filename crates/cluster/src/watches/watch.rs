use std::{cell::Cell, rc::Rc, time::Duration};

use kit::{Listening, Signal, SyncRequirement};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    Change, Found, How, Index,
    index::Keeper,
    informer::{Informer, Unserved},
    member::Member,
    reader::{Reader, Sink},
};
use crate::{
    Cached, ProvedAbsent, Resource, Store, StoreState,
    object::{self, NamespacedName},
};

/// One reader's cached objects of a kind, with its event handlers. Cheap to clone; it runs until [`Self::stop`].
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
    /// Returns the store.
    pub fn store(&self) -> &Store<R> {
        &self.reader.store
    }

    /// Returns the watched kind.
    pub fn resource(&self) -> &Resource {
        &self.informer.key.resource
    }

    /// Returns the namespaces it watches now, or `None` for all.
    pub fn scopes(&self) -> Vec<Option<String>> {
        self.informer
            .with_scopes_of(&self.member, |scopes| scopes.iter().map(|scope| scope.namespace.clone()).collect())
    }

    /// Returns true if it delivers more than metadata.
    pub fn reports_bodies(&self) -> bool {
        self.member.whole
    }

    /// Returns true if the server denies the right to watch in any scope. A starting server may do so for a moment.
    pub fn is_forbidden(&self) -> bool {
        self.informer.with_scopes_of(&self.member, |scopes| scopes.iter().any(|scope| scope.forbidden.get()))
    }

    /// Returns true if the right to watch is missing in any scope: only denials for a long time.
    pub fn is_denied_lastingly(&self) -> bool {
        self.informer.with_scopes_of(&self.member, |scopes| scopes.iter().any(|scope| scope.is_denied_lastingly()))
    }

    /// Returns true if that was so once, and the right has not been seen since.
    pub fn was_denied_lastingly(&self) -> bool {
        self.informer.with_scopes_of(&self.member, |scopes| scopes.iter().any(|scope| scope.was_denied_lastingly()))
    }

    /// Returns true if the store is evidence for one object: as [`Store::is_fresh`], for its namespace and itself.
    pub fn is_fresh_for(&self, name: &NamespacedName) -> bool {
        let scope = self.informer.scope_for(&self.member, &name.namespace);
        scope.is_some_and(|scope| self.member.covers(&scope) && scope.has_contact())
            && !self.store().is_unreadable(name)
            && self.store().state() != StoreState::Off
    }

    /// Returns true if the store is evidence for all objects in all its scopes.
    pub fn is_fresh(&self) -> bool {
        let has_contact = self.informer.with_scopes_of(&self.member, |scopes| {
            !scopes.is_empty() && scopes.iter().all(|scope| self.member.covers(scope) && scope.has_contact())
        });
        has_contact && !self.store().has_unreadable() && self.store().state() != StoreState::Off
    }

    /// Returns the proof that there are no objects because their kind is not served, while that is so and this reader
    /// is optional. [`StoreState::Off`] proves nothing, because another version of the kind may be served.
    pub fn absence(&self) -> Option<ProvedAbsent> {
        match &*self.informer.unserved.borrow() {
            Some(Unserved::Absent(proof)) if self.member.optional => Some(proof.clone()),
            Some(Unserved::Absent(_) | Unserved::Elsewhere(_)) | None => None,
        }
    }

    /// Calls `report` each time the kind turns out not to be served, even if that is known, until the guard is dropped.
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

    /// Returns the state for the objects of a namespace; `Off` if it is not watched.
    pub fn state_in(&self, namespace: &str) -> StoreState {
        let scope = self.informer.scope_for(&self.member, namespace);
        scope.map_or(StoreState::Off, |scope| self.informer.state_of(&self.member, &scope))
    }

    /// Returns the time since the last contact in a namespace's scope; `None` if there was none or access is denied.
    pub fn age_in(&self, namespace: &str) -> Option<Duration> {
        let scope = self.informer.scope_for(&self.member, namespace);
        scope.and_then(|scope| scope.heard.get()).map(|heard| heard.elapsed())
    }

    /// Raised when the state of the store changes.
    pub fn signal(&self) -> &Signal {
        &self.reader.signal
    }

    /// Raised when the watched namespaces change, or [`Self::state_in`] of any of them.
    pub fn scopes_signal(&self) -> &Signal {
        &self.reader.scopes
    }

    /// Returns the requirement for reconcilers that need the first list. For an optional kind it is met if the kind is not
    /// served.
    pub fn sync_requirement(&self) -> SyncRequirement {
        let (informer, member) = (self.informer.clone(), self.member.clone());
        let ready = move || {
            informer.is_unserved_for(&member)
                || informer.with_scopes_of(&member, |scopes| scopes.iter().all(|scope| member.covers(scope)))
        };
        let (cluster, store) = (self.informer.cluster.clone(), self.store().clone());
        let why = move || match store.state() {
            StoreState::Failing(error) => Some(error),
            StoreState::Off | StoreState::Starting | StoreState::Synced => None,
        };
        // Without the target the process waits; without the source it cannot work (spec 70 §7.1).
        let excused = move || cluster.options().label.is_excused(cluster.is_silent() || cluster.is_unauthorized());
        SyncRequirement::new(self.informer.name.clone(), ready, self.reader.signal.clone())
            .explained(why)
            .excused_while(excused)
    }

    /// Adds an event handler. It is called at once for each cached object, as [`How::First`], and for each change from
    /// now on. If it panics, it is called again, at once and with the object's next change or list.
    pub fn subscribe(&self, filter: impl Fn(&Change<'_, R>) + 'static) {
        self.reader.subscribe(filter);
    }

    /// Adds an index, updated with the store before event handlers run. Objects whose keys panic are unreadable. `keys`
    /// must be pure: it is called again with the old object when an object changes or goes.
    pub fn index<K: Ord + Send + Sync + 'static>(
        &self,
        keys: impl Fn(&NamespacedName, &R) -> Vec<K> + 'static,
    ) -> Index<K> {
        let (index, keeper) = Keeper::new(keys);
        self.reader.add_index(Rc::new(keeper));
        index
    }

    /// Reports that the namespaces for narrowing may have changed.
    pub fn namespaces_changed(&self) {
        if !self.member.gone.get() {
            self.informer.namespaces_changed();
        }
    }

    /// Enters the answer to a read or write of this process, as if the watch had reported it. `asked` is when the
    /// request was sent. Before the watch gets changes nothing is entered, and an answer that was asked for before its
    /// last list adds no object, because later changes of the object would be missed.
    pub fn wrote(&self, object: &Value, writer: &str, asked: Instant) {
        self.enter(object, How::Own { writer }, asked);
    }

    /// As [`Self::wrote`], for an answer that was converted already.
    pub fn wrote_cached(&self, name: &NamespacedName, cached: R, writer: &str, asked: Instant) {
        if self.informer.is_listed_for(&self.member, name) {
            self.reader.put_cached(name, cached, How::Own { writer }, asked);
            self.informer.show_cached_objects();
        }
    }

    /// As [`Self::wrote`], for an object of a list that this process read for another reason.
    pub fn found(&self, object: &Value, asked: Instant) -> Found {
        self.enter(object, How::First, asked)
    }

    /// Enters that an object is gone, after a DELETE or a read of this process. `version` is the deleted version, or
    /// the cached one when the read was sent: an object that was recreated meanwhile is newer, and stays.
    pub fn deleted(&self, name: &NamespacedName, version: u64, writer: &str) {
        self.reader.take(name, version, How::Own { writer });
        self.informer.show_cached_objects();
    }

    /// Removes an object that no reader keeps any more.
    pub fn forget(&self, name: &NamespacedName) {
        if !self.reader.keeps(name) {
            self.reader.forget(name, u64::MAX);
        }
    }

    /// Ends the watch, but not the informer of other readers. The store keeps its content and is no longer fresh.
    pub fn stop(&self) {
        self.informer.leave(&self.member);
    }

    /// Enters an answer. In another API version it cannot be compared, and only invalidates the cached object.
    pub(super) fn enter(&self, object: &Value, how: How<'_>, asked: Instant) -> Found {
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

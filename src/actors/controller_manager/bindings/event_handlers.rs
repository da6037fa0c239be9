//! The event handlers of a controller of bindings: which change of a binding, of credentials or of a Quota wakes which actor.

use std::rc::Rc;

use cluster::{Change, How, Predicate};
use kit::{Causes, Supervised, Wake, WeakSupervised};

use super::{
    caches::{CachedBinding, CachedCredentials, CachedQuota},
    controller::{BindingController, BindingKey},
    credentials::{CredentialsKind, CredentialsRef},
};

impl BindingController {
    /// Adds all event handlers except those of the guard.
    pub(super) fn subscribe(self: &Rc<Self>, supervised: &Supervised<Self>) {
        self.subscribe_to_bindings(supervised);
        self.subscribe_to_credentials(supervised);
        self.subscribe_to_quotas(supervised);
    }

    fn subscribe_to_bindings(self: &Rc<Self>, supervised: &Supervised<Self>) {
        let (waker, controller) = (supervised.weak(), Rc::downgrade(self));
        self.caches.bindings(self.kind).watch.subscribe(move |change| {
            if let Some(controller) = controller.upgrade() {
                controller.note(change, &waker);
            }
        });
    }

    /// Wakes a changed binding, and what it left.
    fn note(&self, change: &Change<'_, CachedBinding>, waker: &WeakSupervised<Self>) {
        let (old, new) = (change.old.map(|binding| &binding.fields), change.new.map(|binding| &binding.fields));
        if change.how == How::Lost || old == new {
            return;
        }
        if !matches!(change.how, How::Own { .. }) {
            let is_first = change.how == How::First;
            let wake = if is_first { Wake::low(Causes::OBJECT) } else { Wake::high(Causes::OBJECT) };
            waker.wake(&BindingKey::Binding(change.name.clone()), wake);
        }
        let Some(old) = old else { return };
        if let Ok(credentials) = &old.credentials
            && new.and_then(|new| new.credentials.as_ref().ok()) != Some(credentials)
        {
            self.left.borrow_mut().entry(credentials.clone()).or_default().extend(old.types.iter().cloned());
            waker.wake(&BindingKey::Credentials(credentials.clone()), Wake::high(Causes::OBJECT));
        }
        for quota in old.quotas.iter().filter(|quota| !new.is_some_and(|new| new.quotas.contains(*quota))) {
            waker.wake(&BindingKey::Quota(quota.clone()), Wake::high(Causes::OBJECT));
        }
    }

    /// Credentials wake their bindings; if they have none, but the finalizer of this kind, they wake themselves (spec 81
    /// G-T6). A label alone may be that of another client.
    fn subscribe_to_credentials(self: &Rc<Self>, supervised: &Supervised<Self>) {
        let binding_kind = self.kind;
        for kind in CredentialsKind::ALL {
            let by_credentials = self.caches.bindings(binding_kind).by_credentials.clone();
            let changed = Predicate::<CachedCredentials>::fields_changed();
            self.caches.credentials(kind).on_change(supervised, changed, move |name, state| {
                let credentials = CredentialsRef { kind, name: name.clone() };
                let bindings = by_credentials.get(&credentials);
                let is_left = bindings.is_empty() && state.fields.held_by.contains(&binding_kind);
                let left = is_left.then_some(BindingKey::Credentials(credentials));
                bindings.into_iter().map(BindingKey::Binding).chain(left).collect::<Vec<_>>()
            });
            // A release takes marks away, and a binding that came meanwhile has seen them as present.
            let by_credentials = self.caches.bindings(binding_kind).by_credentials.clone();
            let lost = Predicate::<CachedCredentials>::differing(move |old, new| {
                old.fields.loses_mark(&new.fields, binding_kind)
            });
            let lost = lost.ignoring_creation().including_own_writes();
            self.caches.credentials(kind).on_change(supervised, lost, move |name, _| {
                let credentials = CredentialsRef { kind, name: name.clone() };
                by_credentials.get(&credentials).into_iter().map(BindingKey::Binding).collect::<Vec<_>>()
            });
        }
    }

    fn subscribe_to_quotas(self: &Rc<Self>, supervised: &Supervised<Self>) {
        let kind = self.kind;
        let by_quota = self.caches.bindings(kind).by_quota.clone();
        self.caches.quotas.on_change(supervised, Predicate::<CachedQuota>::fields_changed(), move |name, _| {
            by_quota.get(name).into_iter().map(BindingKey::Binding).collect::<Vec<_>>()
        });
        // A binding may have gone while this process did not run (spec 81 G-T6). Later, a label without a binding is that of
        // another client.
        let (by_quota, waker) = (self.caches.bindings(kind).by_quota.clone(), supervised.weak());
        self.caches.quotas.subscribe(move |change| {
            let is_labelled = change.new.is_some_and(|labels| labels.fields.contains(&kind));
            if change.how == How::First && is_labelled && !by_quota.contains(change.name) {
                waker.wake(&BindingKey::Quota(change.name.clone()), Wake::low(Causes::OBJECT));
            }
        });
        let by_quota = self.caches.bindings(kind).by_quota.clone();
        let lost = Predicate::<CachedQuota>::differing(move |old, new| {
            old.fields.contains(&kind) && !new.fields.contains(&kind)
        });
        self.caches.quotas.on_change(supervised, lost.ignoring_creation().including_own_writes(), move |name, _| {
            by_quota.get(name).into_iter().map(BindingKey::Binding).collect::<Vec<_>>()
        });
    }
}

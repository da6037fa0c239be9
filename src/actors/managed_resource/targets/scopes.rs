//! Where a kind is watched: everywhere, or in single namespaces, and the way back.

use std::{collections::BTreeSet, rc::Rc};

use cluster::{Resource, Router, Start};

use super::{Drift, Inner, Kind, MOST_NAMESPACES, Record, watches::keys_of};
use crate::{actors::managed_resource::widening::Widening, api::object::GroupKind};

impl Inner {
    /// Where a kind is watched: in the namespaces of the configuration; else everywhere; and without the right to that, in
    /// the namespaces somebody is interested in.
    pub(super) fn scopes_of(&self, known: Option<&Router<Record>>, resource: &Resource) -> Vec<Option<String>> {
        let some = |namespaces: BTreeSet<String>| namespaces.into_iter().map(Some).collect();
        let configured = &self.cluster.options().namespaces;
        let Some(known) = known.filter(|_| resource.namespaced && configured.is_empty()) else {
            let is_narrow = resource.namespaced && !configured.is_empty();
            return if is_narrow { some(configured.iter().cloned().collect()) } else { vec![None] };
        };
        let before: BTreeSet<String> = known.scopes().iter().flatten().cloned().collect();
        if before.is_empty() && !known.is_forbidden() {
            return vec![None];
        }
        let namespaces = self.interest.borrow().namespaces(&resource.group_kind());
        let room = MOST_NAMESPACES.saturating_sub(before.len());
        let added: Vec<String> = namespaces.difference(&before).take(room).cloned().collect();
        let all: BTreeSet<String> = before.into_iter().chain(added).collect();
        if all.is_empty() { vec![None] } else { some(all) }
    }

    /// Whether these are less than the configuration allows.
    pub(super) fn is_narrowed(&self, scopes: &[Option<String>]) -> bool {
        scopes != [None] && self.cluster.options().namespaces.is_empty()
    }

    /// Takes a watch of the kind in all namespaces again, as soon as there may be one. It begins with a list, so that all
    /// that is known stays known.
    pub(super) fn widening(self: &Rc<Self>, kind: &GroupKind) -> Widening<Record> {
        let (owner, adopt, kind) = (Rc::downgrade(self), Rc::downgrade(self), kind.clone());
        let start = move || {
            let inner = owner.upgrade()?;
            let resource = inner.kinds.borrow().get(&kind)?.router.resource().clone();
            Some(inner.router(&resource, vec![None], Start::List))
        };
        Widening::start(&self.env, start, move |router| adopt.upgrade().is_some_and(|inner| inner.widen(router)))
    }

    /// Takes this watch for the present one of its kind; false if that is watched in another version meanwhile.
    fn widen(&self, wide: &Router<Record>) -> bool {
        let group_kind = wide.resource().group_kind();
        let narrow = {
            let mut kinds = self.kinds.borrow_mut();
            let Some(kind) = kinds.get_mut(&group_kind).filter(|kind| kind.router.resource() == wide.resource()) else {
                return false;
            };
            let idle_since = kind.idle_since;
            std::mem::replace(kind, Kind { idle_since, ..self.kind(wide.clone(), None) })
        };
        // Its end is news for all holders.
        narrow.router.stop();
        self.tell_of_differences(&group_kind, &narrow.router, wide);
        true
    }

    /// Tells of objects that are not as they were heard of last: one watch may be ahead of the other. What the new one does
    /// not know may be gone, or its bundle came too late for the list: whoever looks finds out.
    fn tell_of_differences(&self, kind: &GroupKind, narrow: &Router<Record>, wide: &Router<Record>) {
        let (key_of, mut differ) = (keys_of(kind.clone()), Vec::new());
        narrow.store().for_each(|name, old| {
            let is_same = wide.store().with(name, |new| new.same_content(old)).unwrap_or_default();
            if !is_same {
                differ.push(key_of(name));
            }
        });
        for key in differ {
            let holders = self.interest.borrow().holders(&key).to_vec();
            holders.iter().for_each(|holder| (self.drift)(holder, &key, Drift::Changed));
        }
    }
}

//! Locates the pods of very many selectors: one watch of the metadata of all pods, matched here. Each selector is
//! indexed under its lead: the label that the fewest other selectors lead with. A pod is matched only against selectors
//! whose lead it has. All selectors may match a pod, so event handlers only record changed labels; one task matches
//! them piece by piece, with pauses. It counts the pods of new selectors after the initial list.

use std::{
    cell::{Cell, OnceCell, RefCell},
    rc::Rc,
};

use cluster::{CachedFields, Change, Index, StoreState, Watch, WatchOptions, Watches, object::NamespacedName};
use kit::Listening;
use serde_json::Value;
use tokio::task::yield_now;

use super::{
    matching::{Matcher, Pair, Pairs, apply, count},
    turns::Turns,
};
use crate::api::{kinds, meta::selector::Selector};

/// Called with a selector whose pods moved to or from a namespace.
pub(super) type Moved = Rc<dyn Fn(&Selector)>;

pub(super) struct Together {
    watch: Watch<CachedFields<Pairs>>,
    by_namespace: Index<Box<str>>,
    matcher: RefCell<Matcher>,
    is_working: Cell<bool>,
    moved: Moved,
    /// Fires after the initial list.
    listening: OnceCell<Listening>,
}

impl Together {
    pub(super) fn open(watches: &Watches, moved: Moved) -> Rc<Self> {
        let options = WatchOptions::fields(kinds::POD, pairs).metadata().everywhere().unawaited();
        let watch = watches.open(options);
        let by_namespace = watch.index(|name, _| vec![name.namespace.as_str().into()]);
        let (matcher, is_working, listening) = (RefCell::default(), Cell::default(), OnceCell::new());
        let together = Rc::new(Self { watch, by_namespace, matcher, is_working, moved, listening });
        let weak = Rc::downgrade(&together);
        together.watch.subscribe(move |change| {
            if let Some(together) = weak.upgrade() {
                together.pod_changed(change);
            }
        });
        let weak = Rc::downgrade(&together);
        let listening = together.watch.signal().listen(move || {
            if let Some(together) = weak.upgrade() {
                together.begin();
            }
        });
        // Set only here.
        let _ = together.listening.set(listening);
        together
    }

    fn pod_changed(self: &Rc<Self>, change: &Change<'_, CachedFields<Pairs>>) {
        let [old, new] = [change.old, change.new].map(|pod| pod.map(|pod| &*pod.fields).unwrap_or_default());
        if self.matcher.borrow_mut().change(change.name, old, new) {
            self.begin();
        }
    }

    pub(super) fn add(self: &Rc<Self>, selector: &Selector) {
        self.matcher.borrow_mut().add(selector);
        self.begin();
    }

    pub(super) fn remove(&self, selector: &Selector) {
        self.matcher.borrow_mut().remove(selector);
    }

    fn begin(self: &Rc<Self>) {
        if !self.is_working.replace(true) {
            let together = self.clone();
            actix::spawn(async move { together.work().await });
        }
    }

    async fn work(&self) {
        yield_now().await;
        let mut turns = Turns::with_pauses();
        loop {
            // Changes come first, so that the round counts the labels in the store.
            let changes = self.matcher.borrow_mut().take_changes();
            if let Some(changes) = changes {
                apply(&self.matcher, &changes, &*self.moved, &mut turns).await;
            } else if !self.is_in_round() {
                break;
            } else if let Some(pod) = self.next_pod() {
                let labels = self.watch.store().with(&pod, |pod| pod.fields.clone()).unwrap_or_default();
                count(&self.matcher, &pod.namespace, &labels, &mut turns).await;
            } else {
                let counted = self.matcher.borrow_mut().end();
                for selector in &counted {
                    (self.moved)(selector);
                    turns.piece().await;
                }
            }
            turns.piece().await;
        }
        self.is_working.set(false);
    }

    /// Returns true if there are pods to count. Begins a round if a selector is new.
    fn is_in_round(&self) -> bool {
        let mut matcher = self.matcher.borrow_mut();
        matcher.is_in_round() || (self.watch.store().is_listed() && matcher.begin(self.by_namespace.keys()))
    }

    fn next_pod(&self) -> Option<NamespacedName> {
        self.matcher.borrow_mut().next_pod(|namespace| self.by_namespace.get(&namespace.into()))
    }

    pub(super) fn namespaces(&self, selector: &Selector) -> Option<Vec<Box<str>>> {
        let matcher = self.matcher.borrow();
        let is_listed = self.watch.store().state() == StoreState::Synced;
        matcher.namespaces(selector).filter(|_| is_listed)
    }

    pub(super) fn selectors_in(&self, namespace: &str) -> Vec<Rc<Selector>> {
        self.matcher.borrow().selectors_in(namespace)
    }
}

fn pairs(pod: &Value) -> Pairs {
    let labels = pod.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    let mut pairs: Vec<Pair> =
        labels.filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into()))).collect();
    pairs.sort();
    pairs.into()
}

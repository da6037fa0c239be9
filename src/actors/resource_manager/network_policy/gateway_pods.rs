//! Locates the pods of the Gateways that VirtualServices name (spec 40 §7.10). Clusters have many pods and Gateways,
//! but few selectors. Up to [`MOST_WATCHES`] selectors, each has its own metadata watch (`apart`).
//! Beyond, one watch reads the metadata of all pods, and [`together`](super::together) matches the selectors.

use std::{
    cell::{OnceCell, RefCell},
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use cluster::{CachedFields, Index, StoreState, Watch, WatchOptions, Watches, object::NamespacedName};

use super::together::{Moved, Together};
use crate::api::{kinds, meta::selector::Selector};

const MOST_WATCHES: usize = 64;

pub(super) struct GatewayPods {
    watches: Watches,
    needed: RefCell<Needed>,
    apart: RefCell<BTreeMap<Selector, Followed>>,
    /// Replaces `apart` if there are very many selectors.
    together: OnceCell<Rc<Together>>,
}

struct Followed {
    watch: Watch<CachedFields<()>>,
    by_namespace: Index<Box<str>>,
}

#[derive(Default)]
struct Needed {
    by_gateway: BTreeMap<NamespacedName, Selector>,
    gateways: BTreeMap<Selector, BTreeSet<NamespacedName>>,
}

impl GatewayPods {
    pub(super) fn new(watches: &Watches) -> Self {
        let (needed, apart, together) = (RefCell::default(), RefCell::default(), OnceCell::new());
        Self { watches: watches.clone(), needed, apart, together }
    }

    /// Sets the selector of a Gateway; `None` if its pods are not needed. Calls `moved` with the selector when its pods
    /// move to or from a namespace.
    pub(super) fn set(&self, gateway: &NamespacedName, selector: Option<Selector>, moved: &Moved) {
        let (begun, ended) = self.needed.borrow_mut().set(gateway, selector);
        if let Some(ended) = ended {
            self.end(&ended);
        }
        if let Some(begun) = begun {
            self.begin(&begun, moved);
        }
    }

    fn end(&self, selector: &Selector) {
        if let Some(together) = self.together.get() {
            together.remove(selector);
            return;
        }
        // The borrow ends before the watch does, whose listeners may come back here.
        let ended = self.apart.borrow_mut().remove(selector);
        if let Some(followed) = ended {
            followed.watch.stop();
        }
    }

    fn begin(&self, selector: &Selector, moved: &Moved) {
        match self.together.get() {
            Some(together) => together.add(selector),
            None if self.apart.borrow().len() < MOST_WATCHES => self.begin_apart(selector, moved),
            None => self.join(moved).add(selector),
        }
    }

    /// Replaces the watches by one of all pods. This is never undone: the many selectors may come back.
    fn join(&self, moved: &Moved) -> &Rc<Together> {
        tracing::info!(
            most = MOST_WATCHES,
            "Gateways have many different selectors: the metadata of all pods is watched"
        );
        let together = self.together.get_or_init(|| Together::open(&self.watches, moved.clone()));
        for (selector, followed) in self.apart.take() {
            followed.watch.stop();
            together.add(&selector);
        }
        together
    }

    fn begin_apart(&self, selector: &Selector, moved: &Moved) {
        // A Gateway's selector has only labels, so it is always a query.
        let Some(query) = selector.to_query() else { return };
        let options = WatchOptions::fields(kinds::POD, |_| ()).metadata().labelled(query).everywhere().unawaited();
        let watch = self.watches.open(options);
        let by_namespace = watch.index(|name, _| vec![name.namespace.as_str().into()]);
        let followed = Followed { watch: watch.clone(), by_namespace: by_namespace.clone() };
        self.apart.borrow_mut().insert(selector.clone(), followed);
        let (moved, selector) = (moved.clone(), selector.clone());
        watch.subscribe(move |change| {
            let namespace = change.name.namespace.as_str().into();
            let is_first_or_last = match (change.old, change.new) {
                (None, Some(_)) => by_namespace.count(&namespace) == 1,
                (Some(_), None) => by_namespace.count(&namespace) == 0,
                _ => false,
            };
            if is_first_or_last {
                moved(&selector);
            }
        });
    }

    /// Returns the namespaces with selected pods, or `None` while they are unknown.
    pub(super) fn namespaces(&self, selector: &Selector) -> Option<Vec<Box<str>>> {
        if let Some(together) = self.together.get() {
            return together.namespaces(selector);
        }
        let apart = self.apart.borrow();
        let followed = apart.get(selector)?;
        (followed.watch.store().state() == StoreState::Synced).then(|| followed.by_namespace.keys())
    }

    pub(super) fn gateways_of(&self, selector: &Selector) -> BTreeSet<NamespacedName> {
        self.needed.borrow().gateways.get(selector).cloned().unwrap_or_default()
    }

    pub(super) fn gateways_in(&self, namespace: &str) -> BTreeSet<NamespacedName> {
        let (needed, apart) = (self.needed.borrow(), self.apart.borrow());
        let apart = apart.iter().filter(|(_, followed)| followed.by_namespace.contains(&namespace.into()));
        let together = self.together.get().map(|together| together.selectors_in(namespace)).unwrap_or_default();
        let selectors = apart.map(|(selector, _)| selector).chain(together.iter().map(|selector| &**selector));
        selectors.filter_map(|selector| needed.gateways.get(selector)).flatten().cloned().collect()
    }
}

impl Needed {
    fn set(&mut self, gateway: &NamespacedName, new: Option<Selector>) -> (Option<Selector>, Option<Selector>) {
        if self.by_gateway.get(gateway) == new.as_ref() {
            return (None, None);
        }
        let ended = self.by_gateway.remove(gateway).filter(|old| {
            let Some(gateways) = self.gateways.get_mut(old) else { return false };
            gateways.remove(gateway);
            let is_last = gateways.is_empty();
            if is_last {
                self.gateways.remove(old);
            }
            is_last
        });
        let begun = new.filter(|new| {
            self.by_gateway.insert(gateway.clone(), new.clone());
            let gateways = self.gateways.entry(new.clone()).or_default();
            gateways.insert(gateway.clone());
            gateways.len() == 1
        });
        (begun, ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::meta::selector::Labels;

    #[test]
    fn gateways_selector_is_watched_from_its_first_to_its_last_gateway() {
        let selector = |app: &str| Selector::of_labels(Labels::from([("app".to_owned(), app.to_owned())]));
        let name = |name: &str| NamespacedName::new("shop", name);
        let mut needed = Needed::default();
        assert_eq!(needed.set(&name("a"), Some(selector("x"))), (Some(selector("x")), None));
        assert_eq!(needed.set(&name("a"), Some(selector("x"))), (None, None));
        assert_eq!(needed.set(&name("b"), Some(selector("x"))), (None, None));
        assert_eq!(needed.set(&name("a"), Some(selector("y"))), (Some(selector("y")), None));
        assert_eq!(needed.set(&name("b"), None), (None, Some(selector("x"))));
        assert_eq!(needed.set(&name("a"), None), (None, Some(selector("y"))));
        assert!(needed.by_gateway.is_empty() && needed.gateways.is_empty());
    }
}

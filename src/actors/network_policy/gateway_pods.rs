//! Where the pods of Gateways are: a watch of metadata per selector, which the API server selects by (spec 40 §7.10).
//!
//! Clusters have many pods, many Gateways, and few selectors of Gateways: nearly all name the same few gateways.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use cluster::{Index, Projected, Resource, StoreState, Want, Watch, Watches};

use crate::api::selector::Selector;

/// Selectors that are followed at most: each is a watch.
const MOST: usize = 64;

/// The pods of Gateways by their selectors.
pub(super) struct GatewayPods {
    watches: Watches,
    followed: RefCell<BTreeMap<Selector, Followed>>,
    /// Told of a selector whose pods are elsewhere than before.
    moved: Rc<dyn Fn(&Selector)>,
}

struct Followed {
    watch: Watch<Projected<()>>,
    by_namespace: Index<Box<str>>,
}

// === impl GatewayPods ===

impl GatewayPods {
    /// Nothing is followed yet.
    pub(super) fn new(watches: &Watches, moved: impl Fn(&Selector) + 'static) -> Self {
        Self { watches: watches.clone(), followed: RefCell::default(), moved: Rc::new(moved) }
    }

    /// Follows these selectors and no others.
    pub(super) fn follow(&self, selectors: &BTreeSet<Selector>) {
        let gone: Vec<Followed> = {
            let mut followed = self.followed.borrow_mut();
            let gone: Vec<Selector> = followed.keys().filter(|known| !selectors.contains(known)).cloned().collect();
            gone.iter().filter_map(|selector| followed.remove(selector)).collect()
        };
        gone.iter().for_each(|followed| followed.watch.stop());
        for selector in selectors {
            if self.followed.borrow().contains_key(selector) {
                continue;
            }
            if self.followed.borrow().len() >= MOST {
                tracing::warn!(most = MOST, "Gateways have more different selectors than are followed");
                break;
            }
            self.begin(selector);
        }
    }

    fn begin(&self, selector: &Selector) {
        let pods = Resource::new("", "v1", "Pod", "pods", true);
        let pairs: Vec<String> = selector.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let want = Want::new(pods, |pod| Projected::of(pod, ())).metadata().labelled(pairs.join(",")).everywhere();
        let watch = self.watches.open(want.unawaited());
        let by_namespace = watch.index(|name, _| vec![name.namespace.as_str().into()]);
        let followed = Followed { watch: watch.clone(), by_namespace: by_namespace.clone() };
        self.followed.borrow_mut().insert(selector.clone(), followed);
        let (moved, selector) = (self.moved.clone(), selector.clone());
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

    /// The namespaces in which pods have these labels; `None` while that is not known.
    pub(super) fn namespaces(&self, selector: &Selector) -> Option<Vec<Box<str>>> {
        let followed = self.followed.borrow();
        let followed = followed.get(selector)?;
        (followed.watch.store().state() == StoreState::Synced).then(|| followed.by_namespace.keys())
    }
}

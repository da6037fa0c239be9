//! Metrics of all tokens: their number by state, and the first expiry.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use cluster::object::NamespacedName;
use jiff::Timestamp;
use kit::Observers;

use crate::actors::shared::state_counts::StateCounts;

pub(super) const FRESH: &str = "fresh";
const FAILING: &str = "failing";
/// The API server rejects the token that it issued.
pub(super) const REJECTED: &str = "rejected";

pub(super) struct TokenMetrics {
    observers: Rc<dyn Observers>,
    states: StateCounts,
    expiries: RefCell<Expiries>,
}

#[derive(Default)]
struct Expiries {
    by_secret: BTreeMap<NamespacedName, Timestamp>,
    in_order: BTreeSet<(Timestamp, NamespacedName)>,
}

impl TokenMetrics {
    pub(super) fn new(observers: &Rc<dyn Observers>) -> Self {
        let states = StateCounts::new(observers, "tokens", [FRESH, FAILING, REJECTED]);
        Self { observers: observers.clone(), states, expiries: RefCell::default() }
    }

    pub(super) fn show(&self) {
        self.states.show();
        self.show_expiry();
    }

    pub(super) fn enter(&self, name: &NamespacedName, state: &'static str, expires: Option<Timestamp>) {
        self.states.enter(name, Some(state));
        self.expires(name, expires);
    }

    pub(super) fn failed(&self, name: &NamespacedName) {
        self.states.enter(name, Some(FAILING));
    }

    pub(super) fn forget(&self, name: &NamespacedName) {
        self.states.enter(name, None);
        self.expires(name, None);
    }

    fn expires(&self, name: &NamespacedName, expires: Option<Timestamp>) {
        let mut expiries = self.expiries.borrow_mut();
        let Expiries { by_secret, in_order } = &mut *expiries;
        if let Some(before) = by_secret.remove(name) {
            in_order.remove(&(before, name.clone()));
        }
        if let Some(time) = expires {
            by_secret.insert(name.clone(), time);
            in_order.insert((time, name.clone()));
        }
        drop(expiries);
        self.show_expiry();
    }

    fn show_expiry(&self) {
        let expiries = self.expiries.borrow();
        let first = expiries.in_order.first().map_or(f64::NAN, |(time, _)| time.as_duration().as_secs_f64());
        self.observers.figure("token_expiry", "", first);
    }
}

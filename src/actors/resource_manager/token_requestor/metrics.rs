//! Metrics of all tokens: their number by state, and the first expiry.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use cluster::object::NamespacedName;
use jiff::Timestamp;
use kit::Observers;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TokenState {
    Fresh,
    Failing,
    /// The API server rejects the token that it issued.
    Rejected,
}

const STATES: [TokenState; 3] = [TokenState::Fresh, TokenState::Failing, TokenState::Rejected];

pub(super) struct TokenMetrics {
    observers: Rc<dyn Observers>,
    tokens: RefCell<TokenTable>,
}

#[derive(Default)]
struct TokenTable {
    entries: BTreeMap<NamespacedName, (TokenState, Option<Timestamp>)>,
    expiries: BTreeSet<(Timestamp, NamespacedName)>,
    counts: BTreeMap<TokenState, u32>,
}

impl TokenMetrics {
    pub(super) fn new(observers: Rc<dyn Observers>) -> Self {
        let this = Self { observers, tokens: RefCell::default() };
        this.show();
        this
    }

    pub(super) fn enter(&self, name: &NamespacedName, state: TokenState, expires: Option<Timestamp>) {
        self.tokens.borrow_mut().put(name, Some((state, expires)));
        self.show();
    }

    pub(super) fn failed(&self, name: &NamespacedName) {
        let expires = self.tokens.borrow().entries.get(name).and_then(|(_, expires)| *expires);
        self.enter(name, TokenState::Failing, expires);
    }

    pub(super) fn forget(&self, name: &NamespacedName) {
        self.tokens.borrow_mut().put(name, None);
        self.show();
    }

    fn show(&self) {
        let tokens = self.tokens.borrow();
        for state in STATES {
            let count = tokens.counts.get(&state).copied().unwrap_or_default();
            self.observers.figure("tokens", state.text(), f64::from(count));
        }
        let first = tokens.expiries.first().map_or(f64::NAN, |(time, _)| time.as_duration().as_secs_f64());
        self.observers.figure("token_expiry", "", first);
    }
}

impl TokenTable {
    fn put(&mut self, name: &NamespacedName, new: Option<(TokenState, Option<Timestamp>)>) {
        let old = match new {
            Some(new) => self.entries.insert(name.clone(), new),
            None => self.entries.remove(name),
        };
        if let Some((state, expires)) = old {
            *self.counts.entry(state).or_insert(1) -= 1;
            expires.map(|time| self.expiries.remove(&(time, name.clone())));
        }
        if let Some((state, expires)) = new {
            *self.counts.entry(state).or_insert(0) += 1;
            expires.map(|time| self.expiries.insert((time, name.clone())));
        }
    }
}

impl TokenState {
    fn text(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Failing => "failing",
            Self::Rejected => "rejected",
        }
    }
}

//! Where the pods of very many selectors are: one watch of the metadata of all pods, matched here.
//!
//! A pod is asked of the selectors that have one of its labels as their lead, the label that fewest other selectors lead with.
//! Pods of new selectors are counted namespace by namespace, with a pause after each.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use cluster::{Change, Index, Projected, Resource, StoreState, Want, Watch, Watches};
use serde_json::Value;
use tokio::task::yield_now;

use super::turns::Turns;
use crate::api::selector::Selector;

/// A label and its value.
type Pair = (Box<str>, Box<str>);
/// The labels of a pod, sorted.
type Pairs = Box<[Pair]>;

/// All selectors, and all pods.
pub(super) struct Together {
    watch: Watch<Projected<Pairs>>,
    by_namespace: Index<Box<str>>,
    matcher: RefCell<Matcher>,
    is_counting: Cell<bool>,
    /// Told of a selector whose pods are elsewhere than before.
    moved: Rc<dyn Fn(&Selector)>,
}

/// Selectors and how many pods match them. Pure.
#[derive(Default)]
struct Matcher {
    selectors: BTreeMap<Selector, Matched>,
    by_lead: BTreeMap<Pair, BTreeSet<Selector>>,
    /// Namespaces whose pods were not counted yet in this round.
    uncounted: BTreeSet<Box<str>>,
}

/// What is known of a selector.
struct Matched {
    lead: Pair,
    /// Pods by namespace.
    pods: BTreeMap<Box<str>, usize>,
    progress: Progress,
}

/// How far the pods of a selector were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// It waits for the next round.
    New,
    /// In this round.
    Counting,
    /// All were.
    Counted,
}

// === impl Together ===

impl Together {
    /// Opens the watch of all pods.
    pub(super) fn open(watches: &Watches, moved: Rc<dyn Fn(&Selector)>) -> Rc<Self> {
        let pods = Resource::new("", "v1", "Pod", "pods", true);
        let want = Want::new(pods, |pod| Projected::of(pod, pairs(pod))).metadata().everywhere();
        let watch = watches.open(want.unawaited());
        let by_namespace = watch.index(|name, _| vec![name.namespace.as_str().into()]);
        let (matcher, is_counting) = (RefCell::default(), Cell::default());
        let together = Rc::new(Self { watch, by_namespace, matcher, is_counting, moved });
        let told = Rc::downgrade(&together);
        together.watch.subscribe(move |change| {
            if let Some(together) = told.upgrade() {
                together.told(change);
            }
        });
        together
    }

    fn told(&self, change: &Change<'_, Projected<Pairs>>) {
        let namespace = &*change.name.namespace;
        let [old, new] = [change.old, change.new].map(|pod| pod.map(|pod| &*pod.fields).unwrap_or_default());
        let moved = self.matcher.borrow_mut().change(namespace, old, new);
        moved.iter().for_each(|selector| (self.moved)(selector));
    }

    /// Begins to follow a selector.
    pub(super) fn add(self: &Rc<Self>, selector: &Selector) {
        self.matcher.borrow_mut().add(selector);
        if !self.is_counting.replace(true) {
            let together = self.clone();
            actix::spawn(async move { together.count().await });
        }
    }

    /// Follows it no longer.
    pub(super) fn remove(&self, selector: &Selector) {
        self.matcher.borrow_mut().remove(selector);
    }

    /// Counts the pods of new selectors, round by round.
    async fn count(&self) {
        loop {
            yield_now().await;
            if !self.matcher.borrow_mut().begin(self.by_namespace.keys()) {
                break;
            }
            loop {
                let Some(namespace) = self.matcher.borrow().uncounted.first().cloned() else { break };
                self.count_in(&namespace);
                yield_now().await;
            }
            let counted = self.matcher.borrow_mut().end();
            let mut turns = Turns::new(yield_now);
            for selector in &counted {
                (self.moved)(selector);
                turns.piece().await;
            }
        }
        self.is_counting.set(false);
    }

    fn count_in(&self, namespace: &str) {
        let mut matcher = self.matcher.borrow_mut();
        self.watch.store().for_each_in(namespace, |_, pod| matcher.count(namespace, &pod.fields));
        matcher.uncounted.remove(namespace);
    }

    /// The namespaces in which pods have these labels; `None` while that is not known.
    pub(super) fn namespaces(&self, selector: &Selector) -> Option<Vec<Box<str>>> {
        let matcher = self.matcher.borrow();
        let is_listed = self.watch.store().state() == StoreState::Synced;
        let matched = matcher.selectors.get(selector).filter(|_| is_listed)?;
        if matched.progress != Progress::Counted {
            return None;
        }
        Some(matched.pods.keys().cloned().collect())
    }

    /// The selectors that have pods in a namespace.
    pub(super) fn selectors_in(&self, namespace: &str) -> Vec<Selector> {
        let matcher = self.matcher.borrow();
        let is_in = |matched: &Matched| matched.pods.contains_key(namespace);
        matcher.selectors.iter().filter(|(_, matched)| is_in(matched)).map(|(selector, _)| selector.clone()).collect()
    }
}

fn pairs(pod: &Value) -> Pairs {
    let labels = pod.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    let mut pairs: Vec<Pair> =
        labels.filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into()))).collect();
    pairs.sort();
    pairs.into()
}

/// Whether a pod with these labels is selected. A selector of a Gateway consists of labels alone.
fn matches(selector: &Selector, pod: &[Pair]) -> bool {
    selector.labels.iter().all(|(key, value)| {
        let found = pod.binary_search_by(|(label, _)| (**label).cmp(key.as_str()));
        found.ok().and_then(|at| pod.get(at)).is_some_and(|(_, found)| **found == **value)
    })
}

// === impl Matcher ===

impl Matcher {
    fn add(&mut self, selector: &Selector) {
        let pairs = selector.labels.iter().map(|(key, value)| (key.as_str().into(), value.as_str().into()));
        let led = |pair: &Pair| self.by_lead.get(pair).map_or(0, BTreeSet::len);
        let Some(lead) = pairs.min_by_key(led) else { return };
        self.by_lead.entry(lead.clone()).or_default().insert(selector.clone());
        self.selectors.insert(selector.clone(), Matched { lead, pods: BTreeMap::new(), progress: Progress::New });
    }

    fn remove(&mut self, selector: &Selector) {
        let Some(Matched { lead, .. }) = self.selectors.remove(selector) else { return };
        if let Some(led) = self.by_lead.get_mut(&lead) {
            led.remove(selector);
            if led.is_empty() {
                self.by_lead.remove(&lead);
            }
        }
    }

    /// The selectors that select a pod.
    fn of(&self, pod: &[Pair]) -> BTreeSet<Selector> {
        let led = pod.iter().filter_map(|pair| self.by_lead.get(pair)).flatten();
        led.filter(|selector| matches(selector, pod)).cloned().collect()
    }

    /// A pod has other labels than before, or came, or went. Gives the selectors that have their first pod in the namespace
    /// now, or lost their last.
    fn change(&mut self, namespace: &str, old: &[Pair], new: &[Pair]) -> Vec<Selector> {
        let (old, new) = (self.of(old), self.of(new));
        let came = new.difference(&old).filter(|selector| self.step(selector, namespace, 1) == Some(1));
        let came: Vec<Selector> = came.cloned().collect();
        let went = old.difference(&new).filter(|selector| self.step(selector, namespace, -1) == Some(0));
        came.into_iter().chain(went.cloned().collect::<Vec<_>>()).collect()
    }

    /// One pod more or less; how many there are then, if they were counted.
    fn step(&mut self, selector: &Selector, namespace: &str, by: isize) -> Option<usize> {
        let matched = self.selectors.get_mut(selector)?;
        match matched.progress {
            Progress::New => return None,
            Progress::Counting if self.uncounted.contains(namespace) => return None,
            Progress::Counting | Progress::Counted => {}
        }
        let count = matched.pods.entry(namespace.into()).or_default();
        *count = count.saturating_add_signed(by);
        let count = *count;
        if count == 0 {
            matched.pods.remove(namespace);
        }
        Some(count)
    }

    /// Begins a round, in these namespaces, if there are new selectors.
    fn begin(&mut self, namespaces: Vec<Box<str>>) -> bool {
        let mut is_begun = false;
        for matched in self.selectors.values_mut().filter(|matched| matched.progress == Progress::New) {
            matched.progress = Progress::Counting;
            is_begun = true;
        }
        self.uncounted = if is_begun { namespaces.into_iter().collect() } else { BTreeSet::new() };
        is_begun
    }

    /// Counts a pod for the selectors of this round.
    fn count(&mut self, namespace: &str, pod: &[Pair]) {
        for selector in self.of(pod) {
            let matched = self.selectors.get_mut(&selector);
            if let Some(matched) = matched.filter(|matched| matched.progress == Progress::Counting) {
                *matched.pods.entry(namespace.into()).or_default() += 1;
            }
        }
    }

    /// Ends a round; gives its selectors.
    fn end(&mut self) -> Vec<Selector> {
        let of_round = self.selectors.iter_mut().filter(|(_, matched)| matched.progress == Progress::Counting);
        let ended = of_round.map(|(selector, matched)| {
            matched.progress = Progress::Counted;
            selector.clone()
        });
        ended.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::selector::Labels;

    fn selector(pairs: &[(&str, &str)]) -> Selector {
        let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Selector::of_labels(Labels::from_iter(pairs))
    }

    fn pod(labels: &[(&str, &str)]) -> Pairs {
        let mut pairs: Vec<Pair> = labels.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        pairs.sort();
        pairs.into()
    }

    /// spec 40 §7.10
    #[test]
    fn gateways_pods_are_counted_whenever_they_come() {
        let gateway = selector(&[("app", "gw"), ("zone", "a")]);
        let (right, wrong) =
            (pod(&[("app", "gw"), ("other", "x"), ("zone", "a")]), pod(&[("app", "gw"), ("zone", "b")]));
        let mut matcher = Matcher::default();
        matcher.add(&gateway);
        assert!(matcher.begin(vec!["one".into(), "two".into()]));
        matcher.count("one", &right);
        matcher.count("one", &wrong);
        matcher.uncounted.remove("one");
        assert!(matcher.change("two", &[], &right).is_empty(), "it is counted with its namespace");
        assert_eq!(matcher.change("three", &[], &right), std::slice::from_ref(&gateway), "nobody counts it else");
        assert!(matcher.change("one", &[], &right).is_empty(), "it is the second");
        matcher.count("two", &right);
        matcher.uncounted.remove("two");
        assert_eq!(matcher.end(), std::slice::from_ref(&gateway));
        assert!(matcher.change("one", &right, &wrong).is_empty());
        assert_eq!(matcher.change("one", &right, &[]), std::slice::from_ref(&gateway), "it was the last");
        let pods =
            |matcher: &Matcher| matcher.selectors[&gateway].pods.keys().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(pods(&matcher), ["three", "two"]);
        matcher.remove(&gateway);
        assert!(matcher.change("two", &right, &[]).is_empty() && matcher.by_lead.is_empty());
    }

    #[test]
    fn gateways_pod_is_asked_of_few_selectors() {
        let mut matcher = Matcher::default();
        for number in 0..1_000 {
            matcher.add(&selector(&[("app", "gw"), ("number", &number.to_string())]));
        }
        let asked = |pair: (&str, &str)| matcher.by_lead.get(&(pair.0.into(), pair.1.into())).map_or(0, BTreeSet::len);
        assert!(asked(("app", "gw")) <= 1, "{}", asked(("app", "gw")));
        let found = matcher.of(&pod(&[("app", "gw"), ("number", "7")]));
        assert_eq!(found, [selector(&[("app", "gw"), ("number", "7")])].into());
    }
}

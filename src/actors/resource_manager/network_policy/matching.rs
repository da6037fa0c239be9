//! Matches very many selectors against pods, in pieces: counts by selector and namespace. Pure.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    mem,
    rc::Rc,
};

use cluster::object::NamespacedName;

use super::turns::Turns;
use crate::api::meta::selector::Selector;

pub(super) type Pair = (Box<str>, Box<str>);
/// The labels of a pod, sorted.
pub(super) type Pairs = Box<[Pair]>;
type Id = u64;

#[derive(Default)]
pub(super) struct Matcher {
    ids: BTreeMap<Rc<Selector>, Id>,
    selectors: BTreeMap<Id, Matched>,
    by_lead: BTreeMap<Pair, BTreeSet<Id>>,
    last: Id,
    changed: Changes,
    /// Number of selectors that are not [`Progress::New`].
    begun: usize,
    round: Option<Round>,
}

/// The pods still to count for the selectors of a round.
#[derive(Default)]
struct Round {
    namespaces: BTreeSet<Box<str>>,
    pods: BTreeSet<NamespacedName>,
}

pub(super) type Changes = BTreeMap<NamespacedName, Changed>;

pub(super) struct Changed {
    counted: Pairs,
    now: Pairs,
}

struct Matched {
    selector: Rc<Selector>,
    lead: Pair,
    pods: BTreeMap<Box<str>, usize>,
    progress: Progress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// The selector waits for the next round.
    New,
    Counting,
    Counted,
}

/// Counts changed pods. It adds before it subtracts, so that a replaced pod never drops a namespace to zero.
pub(super) async fn apply(matcher: &RefCell<Matcher>, changes: &Changes, moved: &dyn Fn(&Selector), turns: &mut Turns) {
    for by in [1, -1] {
        for (pod, Changed { counted, now }) in changes {
            let (with, without) = if by == 1 { (now, counted) } else { (counted, now) };
            for pair in with {
                let led = matcher.borrow().led_by(pair);
                for id in led {
                    let selector = matcher.borrow_mut().step(id, pod, with, without, by);
                    selector.iter().for_each(|selector| moved(selector));
                    turns.piece().await;
                }
            }
            turns.piece().await;
        }
    }
}

pub(super) async fn count(matcher: &RefCell<Matcher>, namespace: &str, labels: &[Pair], turns: &mut Turns) {
    for pair in labels {
        let led = matcher.borrow().led_by(pair);
        for id in led {
            matcher.borrow_mut().count(id, namespace, labels);
            turns.piece().await;
        }
    }
}

/// Returns true if the labels match. A Gateway's selector has only labels.
fn matches(selector: &Selector, pod: &[Pair]) -> bool {
    selector.labels.iter().all(|(key, value)| {
        let found = pod.binary_search_by(|(label, _)| (**label).cmp(key.as_str()));
        found.ok().and_then(|at| pod.get(at)).is_some_and(|(_, found)| **found == **value)
    })
}

impl Matcher {
    pub(super) fn add(&mut self, selector: &Selector) {
        let pairs = selector.labels.iter().map(|(key, value)| (key.as_str().into(), value.as_str().into()));
        let led = |pair: &Pair| self.by_lead.get(pair).map_or(0, BTreeSet::len);
        let Some(lead) = pairs.min_by_key(led).filter(|_| !self.ids.contains_key(selector)) else { return };
        self.last += 1;
        let (id, selector) = (self.last, Rc::new(selector.clone()));
        self.by_lead.entry(lead.clone()).or_default().insert(id);
        self.ids.insert(selector.clone(), id);
        self.selectors.insert(id, Matched { selector, lead, pods: BTreeMap::new(), progress: Progress::New });
    }

    pub(super) fn remove(&mut self, selector: &Selector) {
        let Some(id) = self.ids.remove(selector) else { return };
        let Some(Matched { lead, progress, .. }) = self.selectors.remove(&id) else { return };
        self.begun -= usize::from(progress != Progress::New);
        if let Some(led) = self.by_lead.get_mut(&lead) {
            led.remove(&id);
            if led.is_empty() {
                self.by_lead.remove(&lead);
            }
        }
    }

    fn led_by(&self, lead: &Pair) -> Vec<Id> {
        self.by_lead.get(lead).into_iter().flatten().copied().collect()
    }

    /// Records the changed labels of a pod; empty labels mean that it does not exist. Returns true if there is
    /// something to count. Selectors that are still new count the pod in their round.
    pub(super) fn change(&mut self, pod: &NamespacedName, old: &[Pair], new: &[Pair]) -> bool {
        if old == new || self.begun == 0 {
            return false;
        }
        let changed = self.changed.entry(pod.clone());
        let changed = changed.or_insert_with(|| Changed { counted: old.into(), now: Pairs::default() });
        changed.now = new.into();
        if changed.now == changed.counted {
            self.changed.remove(pod);
        }
        true
    }

    pub(super) fn take_changes(&mut self) -> Option<Changes> {
        Some(mem::take(&mut self.changed)).filter(|changes| !changes.is_empty())
    }

    pub(super) fn namespaces(&self, selector: &Selector) -> Option<Vec<Box<str>>> {
        let matched = self.ids.get(selector).and_then(|id| self.selectors.get(id))?;
        (matched.progress == Progress::Counted).then(|| matched.pods.keys().cloned().collect())
    }

    pub(super) fn selectors_in(&self, namespace: &str) -> Vec<Rc<Selector>> {
        let all = self.selectors.values().filter(|matched| matched.pods.contains_key(namespace));
        all.map(|matched| matched.selector.clone()).collect()
    }

    /// Adds `by` pods to a selector that matches `with` only. Returns it on the first or last pod in the namespace.
    fn step(
        &mut self,
        id: Id,
        pod: &NamespacedName,
        with: &[Pair],
        without: &[Pair],
        by: isize,
    ) -> Option<Rc<Selector>> {
        let matched = self.selectors.get_mut(&id)?;
        if !matches(&matched.selector, with) || matches(&matched.selector, without) {
            return None;
        }
        match matched.progress {
            Progress::New => return None,
            Progress::Counting if self.round.as_ref().is_some_and(|round| round.will_count(pod)) => return None,
            Progress::Counting | Progress::Counted => {}
        }
        let namespace = pod.namespace.as_str();
        let count = matched.pods.entry(namespace.into()).or_default();
        *count = count.saturating_add_signed(by);
        let count = *count;
        if count == 0 {
            matched.pods.remove(namespace);
        }
        let is_first_or_last = count == usize::from(by == 1);
        is_first_or_last.then(|| matched.selector.clone())
    }

    /// Begins a round over these namespaces. Returns false if no selector is new.
    pub(super) fn begin(&mut self, namespaces: Vec<Box<str>>) -> bool {
        let new = self.selectors.values_mut().filter(|matched| matched.progress == Progress::New);
        let count = new.map(|matched| matched.progress = Progress::Counting).count();
        self.begun += count;
        let round = || Round { namespaces: namespaces.into_iter().collect(), pods: BTreeSet::new() };
        self.round = (count > 0).then(round);
        count > 0
    }

    pub(super) fn is_in_round(&self) -> bool {
        self.round.is_some()
    }

    pub(super) fn next_pod(&mut self, pods: impl Fn(&str) -> Vec<NamespacedName>) -> Option<NamespacedName> {
        let round = self.round.as_mut()?;
        loop {
            if let Some(pod) = round.pods.pop_first() {
                return Some(pod);
            }
            let namespace = round.namespaces.pop_first()?;
            round.pods = pods(&namespace).into_iter().collect();
        }
    }

    fn count(&mut self, id: Id, namespace: &str, labels: &[Pair]) {
        let matched = self.selectors.get_mut(&id).filter(|matched| matched.progress == Progress::Counting);
        if let Some(matched) = matched.filter(|matched| matches(&matched.selector, labels)) {
            *matched.pods.entry(namespace.into()).or_default() += 1;
        }
    }

    pub(super) fn end(&mut self) -> Vec<Rc<Selector>> {
        self.round = None;
        let of_round = self.selectors.values_mut().filter(|matched| matched.progress == Progress::Counting);
        let ended = of_round.map(|matched| {
            matched.progress = Progress::Counted;
            matched.selector.clone()
        });
        ended.collect()
    }
}

impl Round {
    fn will_count(&self, pod: &NamespacedName) -> bool {
        self.namespaces.contains(pod.namespace.as_str()) || self.pods.contains(pod)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures::FutureExt as _;

    use super::{super::turns, *};
    use crate::api::meta::selector::Labels;

    fn selector(pairs: &[(&str, &str)]) -> Selector {
        let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Selector::of_labels(Labels::from_iter(pairs))
    }

    fn pod(labels: &[(&str, &str)]) -> Pairs {
        let mut pairs: Vec<Pair> = labels.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        pairs.sort();
        pairs.into()
    }

    fn name(namespace: &str, pod: &str) -> NamespacedName {
        NamespacedName::new(namespace, pod)
    }

    fn moved(matcher: &RefCell<Matcher>) -> Vec<Selector> {
        let (changes, moved) = (mem::take(&mut matcher.borrow_mut().changed), RefCell::new(Vec::new()));
        let report = |selector: &Selector| moved.borrow_mut().push(selector.clone());
        let mut turns = Turns::at_once();
        apply(matcher, &changes, &report, &mut turns).now_or_never().expect("there are no pauses");
        moved.into_inner()
    }

    fn count_now(matcher: &RefCell<Matcher>, namespace: &str, labels: &[Pair]) {
        let mut turns = Turns::at_once();
        count(matcher, namespace, labels, &mut turns).now_or_never().expect("there are no pauses");
    }

    /// spec 40 §7.10
    #[test]
    fn gateways_pods_are_counted_whenever_they_come() {
        let gateway = selector(&[("app", "gw"), ("zone", "a")]);
        let (right, wrong) =
            (pod(&[("app", "gw"), ("other", "x"), ("zone", "a")]), pod(&[("app", "gw"), ("zone", "b")]));
        let matcher = RefCell::new(Matcher::default());
        let change = |namespace: &str, pod: &str, old: &[Pair], new: &[Pair]| {
            matcher.borrow_mut().change(&name(namespace, pod), old, new);
            moved(&matcher)
        };
        let next = |of_one: &[&str]| {
            let pods = |namespace: &str| match namespace {
                "one" => of_one.iter().map(|pod| name("one", pod)).collect(),
                _ => vec![name("two", "a"), name("two", "b")],
            };
            matcher.borrow_mut().next_pod(pods)
        };
        matcher.borrow_mut().add(&gateway);
        assert!(!matcher.borrow_mut().change(&name("one", "a"), &[], &right), "the first round counts it");
        assert!(matcher.borrow_mut().begin(vec!["one".into(), "two".into()]));
        assert_eq!(next(&["a", "b", "c"]), Some(name("one", "a")));
        count_now(&matcher, "one", &right);
        assert!(change("one", "c", &right, &wrong).is_empty(), "the round counts it with its new labels");
        assert_eq!(next(&[]), Some(name("one", "b")));
        count_now(&matcher, "one", &wrong);
        assert_eq!(next(&[]), Some(name("one", "c")));
        count_now(&matcher, "one", &wrong);
        assert!(change("two", "b", &[], &right).is_empty(), "the round counts it with its namespace");
        assert_eq!(change("three", "a", &[], &right), std::slice::from_ref(&gateway), "no round counts it any more");
        assert!(change("one", "d", &[], &right).is_empty(), "the second pod");
        assert_eq!(next(&[]), Some(name("two", "a")));
        count_now(&matcher, "two", &wrong);
        assert_eq!(next(&[]), Some(name("two", "b")));
        count_now(&matcher, "two", &right);
        assert_eq!(next(&[]), None);
        assert_eq!(matcher.borrow_mut().end(), [Rc::new(gateway.clone())]);
        assert!(change("one", "a", &right, &wrong).is_empty());
        assert_eq!(change("one", "d", &right, &[]), std::slice::from_ref(&gateway), "the last pod");
        let pods = || matcher.borrow().selectors[&1].pods.keys().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(pods(), ["three", "two"]);
        matcher.borrow_mut().remove(&gateway);
        assert!(change("two", "b", &right, &[]).is_empty() && matcher.borrow().by_lead.is_empty());
    }

    /// spec 40 §7.10
    #[test]
    fn gateways_pod_that_follows_another_leaves_no_gap() {
        let gateway = selector(&[("app", "gw")]);
        let matcher = RefCell::new(Matcher::default());
        matcher.borrow_mut().add(&gateway);
        matcher.borrow_mut().begin(Vec::new());
        matcher.borrow_mut().end();
        let labels = pod(&[("app", "gw")]);
        matcher.borrow_mut().change(&name("one", "a"), &[], &labels);
        assert_eq!(moved(&matcher), std::slice::from_ref(&gateway));
        matcher.borrow_mut().change(&name("one", "b"), &[], &labels);
        matcher.borrow_mut().change(&name("one", "a"), &labels, &[]);
        assert!(moved(&matcher).is_empty());
    }

    /// spec 40 §12
    #[test]
    fn gateways_whose_selectors_all_match_a_pod_are_reported_in_pieces() {
        let labels: Vec<(String, &str)> = (0..14).map(|number| (format!("label-{number:02}"), "x")).collect();
        let labels: Vec<(&str, &str)> = labels.iter().map(|(key, value)| (key.as_str(), *value)).collect();
        let matcher = RefCell::new(Matcher::default());
        for subset in 1..1_usize << labels.len() {
            let chosen = labels.iter().enumerate().filter(|(bit, _)| subset >> bit & 1 == 1);
            matcher.borrow_mut().add(&selector(&chosen.map(|(_, pair)| *pair).collect::<Vec<_>>()));
        }
        let all = (1 << labels.len()) - 1;
        let pauses = Cell::new(0);
        let (in_turn, most, reported) = (Cell::new(0), Cell::new(0), Cell::new(0));
        let pause = || {
            pauses.set(pauses.get() + 1);
            in_turn.set(0);
        };
        let report = |_: &Selector| {
            reported.set(reported.get() + 1);
            in_turn.set(in_turn.get() + 1);
            most.set(most.get().max(in_turn.get()));
        };
        let labels = pod(&labels);
        let one = name("one", "a");
        assert!(!matcher.borrow_mut().change(&one, &[], &labels), "new selectors count it in their round");
        assert!(matcher.borrow_mut().begin(vec!["one".into()]));
        let mut turns = Turns::with_pauses();
        turns::run(count(&matcher, "one", &labels, &mut turns), pause);
        assert!(pauses.get() >= all / 64, "{}", pauses.get());
        let counted = matcher.borrow().selectors.values().filter(|matched| matched.pods.contains_key("one")).count();
        assert_eq!(counted, all);
        matcher.borrow_mut().round = Some(Round::default());
        assert_eq!(matcher.borrow_mut().end().len(), all);

        assert!(!matcher.borrow_mut().change(&one, &labels, &labels), "its labels are as before");
        assert!(matcher.borrow_mut().change(&one, &labels, &[]));
        let changes = mem::take(&mut matcher.borrow_mut().changed);
        turns::run(apply(&matcher, &changes, &report, &mut turns), pause);
        assert_eq!(reported.get(), all);
        assert!(most.get() <= 64, "{}", most.get());
    }

    #[test]
    fn gateways_pod_is_matched_against_few_selectors() {
        let mut matcher = Matcher::default();
        for number in 0..1_000 {
            matcher.add(&selector(&[("app", "gw"), ("number", &number.to_string())]));
        }
        let asked = |pair: (&str, &str)| matcher.led_by(&(pair.0.into(), pair.1.into())).len();
        assert!(asked(("app", "gw")) <= 1, "{}", asked(("app", "gw")));
        assert_eq!(asked(("number", "7")), 1);
    }
}

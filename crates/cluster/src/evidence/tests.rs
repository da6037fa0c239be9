use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kit::{Deadline, Failure, Priority};

use super::*;

/// Facts by name: how many objects there are.
#[derive(Default)]
struct Facts {
    cached: BTreeMap<&'static str, usize>,
    live: BTreeMap<&'static str, usize>,
    reads: RefCell<Vec<&'static str>>,
}

#[derive(Debug, PartialEq)]
enum Verdict {
    Wait(&'static str),
    Release,
}

impl EvidenceSource for Facts {
    type Question = &'static str;
    type Answer = usize;

    fn cached(&self, question: &&'static str) -> Option<usize> {
        self.cached.get(question).copied()
    }

    async fn read(&self, _: &Context, question: &&'static str) -> Result<usize, Failure> {
        self.reads.borrow_mut().push(question);
        self.live.get(question).copied().ok_or_else(|| Failure::new(format!("listing {question} failed")))
    }
}

impl Facts {
    fn cached(mut self, name: &'static str, count: usize) -> Self {
        self.cached.insert(name, count);
        self
    }

    fn live(mut self, name: &'static str, count: usize) -> Self {
        self.live.insert(name, count);
        self
    }

    /// Returns the verdict, or the text of the error, and the live reads.
    async fn decide(
        self,
        judge: impl Fn(&Evidence<'_, Self>) -> Result<Verdict, &'static str>,
    ) -> (Result<Verdict, String>, Vec<&'static str>) {
        let context = Context::new(Priority::High, Deadline::after(Duration::from_secs(60)), "test");
        let verdict = decide(&self, &context, judge, |verdict| *verdict == Verdict::Release).await;
        (verdict.map_err(|failure| failure.to_string()), self.reads.into_inner())
    }
}

/// A guard: what nobody uses is released.
fn guard(evidence: &Evidence<'_, Facts>) -> Result<Verdict, &'static str> {
    for kind in ["shoots", "seeds"] {
        if evidence.ask(&kind)? > 0 {
            return Ok(Verdict::Wait(kind));
        }
    }
    Ok(Verdict::Release)
}

/// spec 80 §16 S-13: none per decision to wait
#[tokio::test]
async fn evidence_of_a_fresh_cache_suffices_to_wait() {
    let facts = Facts::default().cached("shoots", 0).cached("seeds", 2);

    assert_eq!(facts.decide(guard).await, (Ok(Verdict::Wait("seeds")), vec![]));
}

/// spec 80 §16 S-13: one live read per decision to act
#[tokio::test]
async fn evidence_for_an_irreversible_decision_is_read_live_once() {
    let cached = || Facts::default().cached("shoots", 0).cached("seeds", 0);

    let facts = cached().live("shoots", 0).live("seeds", 0);
    assert_eq!(facts.decide(guard).await, (Ok(Verdict::Release), vec!["shoots", "seeds"]));
    let facts = cached().live("shoots", 1);
    assert_eq!(facts.decide(guard).await, (Ok(Verdict::Wait("shoots")), vec!["shoots"]), "the cache lagged");
}

#[tokio::test]
async fn evidence_is_read_live_where_the_cache_is_not_fresh() {
    let facts = Facts::default().cached("seeds", 2).live("shoots", 0);
    assert_eq!(facts.decide(guard).await, (Ok(Verdict::Wait("seeds")), vec!["shoots"]));

    let facts = Facts::default().cached("seeds", 0).live("shoots", 0).live("seeds", 0);
    assert_eq!(facts.decide(guard).await, (Ok(Verdict::Release), vec!["shoots", "seeds"]), "each is read once");
}

#[tokio::test]
async fn evidence_that_cannot_be_read_is_an_error() {
    for facts in [Facts::default(), Facts::default().cached("shoots", 0).cached("seeds", 0)] {
        let (verdict, reads) = facts.decide(guard).await;
        assert_eq!((verdict, reads), (Err("listing shoots failed".to_owned()), vec!["shoots"]));
    }
}

#[tokio::test]
async fn evidence_for_a_judge_without_an_end_is_an_error() {
    let facts = Facts::default().live("shoots", 0);
    let (verdict, reads) = facts.decide(|evidence| evidence.ask(&"shoots").and(Err("shoots"))).await;
    assert_eq!(verdict, Err("a decision does not come to an end: it asks for \"shoots\"".to_owned()));
    assert_eq!(reads, ["shoots"]);

    let names: Vec<&'static str> = (0..=MOST_READS).map(|number| &*number.to_string().leak()).collect();
    let facts = names.iter().fold(Facts::default(), |facts, name| facts.live(name, 0));
    let all = |evidence: &Evidence<'_, Facts>| {
        names.iter().try_for_each(|name| evidence.ask(name).map(drop)).map(|()| Verdict::Release)
    };
    let (verdict, reads) = facts.decide(all).await;
    assert!(verdict.is_err());
    assert_eq!(BTreeSet::from_iter(&reads).len(), MOST_READS);
}

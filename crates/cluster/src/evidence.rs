//! Evidence for decisions (spec 80 §16 S-13). A *judge* is a pure function that asks for facts: an object, or a list. An
//! answer comes from a fresh cache, or from a live read if the cache proves nothing. [`decide`] runs the judge again
//! with each new answer, until there is a verdict. A verdict that cannot be undone must rest on live reads alone: the
//! judge decides once more, without caches. So a decision to wait costs no request while the caches are fresh, and a
//! decision to act costs one live read for each fact that it rests on. A failed read is an error, never an absence.
//!
//! [`Watch`](crate::Watch) has what a source needs: [`known`](crate::Watch::known) for the cache,
//! [`read_live`](crate::Watch::read_live) and [`list_live`](crate::Watch::list_live) for live reads. Decide right before
//! the write, and bind the write to what was judged (uid or version).

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt::Debug};

use kit::Failure;

use crate::Context;

/// Maximum number of live reads for one decision. More mean that the judge does not come to an end.
const MOST_READS: usize = 64;

/// Where the answers come from.
pub trait EvidenceSource {
    /// Names a fact: an object, or a list.
    type Question: Clone + Ord + Debug;
    /// The fact, e.g. the fields of an object or its absence, or the names of the listed objects.
    type Answer: Clone;

    /// Returns the answer of a cache, or `None` if the cache is not fresh. An index of a fresh cache answers lists.
    fn cached(&self, question: &Self::Question) -> Option<Self::Answer>;

    /// Reads the answer live: a GET, or a consistent list of all pages. Fails if anything stays unknown.
    fn read(&self, context: &Context, question: &Self::Question)
    -> impl Future<Output = Result<Self::Answer, Failure>>;
}

/// The facts of one decision.
pub struct Evidence<'a, S: EvidenceSource> {
    source: &'a S,
    /// Live reads come before caches, which may lag.
    live: BTreeMap<S::Question, S::Answer>,
    accepts_caches: bool,
}

impl<S: EvidenceSource> Evidence<'_, S> {
    /// Returns the answer. Fails with the question if it must be read first: the judge returns this error, and is called
    /// again with the answer.
    pub fn ask(&self, question: &S::Question) -> Result<S::Answer, S::Question> {
        let cached = || self.source.cached(question).filter(|_| self.accepts_caches);
        self.live.get(question).cloned().or_else(cached).ok_or_else(|| question.clone())
    }

    async fn read(&mut self, context: &Context, question: S::Question) -> Result<(), Failure> {
        if self.live.len() >= MOST_READS || self.live.contains_key(&question) {
            return Err(Failure::new(format!("a decision does not come to an end: it asks for {question:?}")));
        }
        let answer = self.source.read(context, &question).await?;
        self.live.insert(question, answer);
        Ok(())
    }
}

/// Returns the judge's verdict. `is_irreversible` returns true for verdicts that live reads must confirm: decisions to
/// act that cannot be undone, but no decision to wait. The live reads may lead to another verdict, which is returned
/// then. Fails if a read fails, or if the judge asks without an end.
pub async fn decide<S: EvidenceSource, V>(
    source: &S,
    context: &Context,
    judge: impl Fn(&Evidence<'_, S>) -> Result<V, S::Question>,
    is_irreversible: impl Fn(&V) -> bool,
) -> Result<V, Failure> {
    let mut evidence = Evidence { source, live: BTreeMap::new(), accepts_caches: true };
    loop {
        match judge(&evidence) {
            Ok(verdict) if evidence.accepts_caches && is_irreversible(&verdict) => evidence.accepts_caches = false,
            Ok(verdict) => return Ok(verdict),
            Err(question) => evidence.read(context, question).await?,
        }
    }
}

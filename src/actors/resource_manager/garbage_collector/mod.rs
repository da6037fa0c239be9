//! Deletes immutable Secrets and ConfigMaps to which no object refers any more (spec 33).
//! ```text
//! list: Secrets, ConfigMaps with the label ─ candidates.rs ─► candidates
//! list: metadata of 8 kinds ──────────────── references.rs ─► candidates without references
//! per chunk: list the references again ─► delete the listed version, while arrivals.rs watches for new references
//! ```
//! A run every few hours lists metadata in pages (`survey.rs`). Between runs nothing is watched or kept. In case of
//! doubt nothing is deleted: a list or a watch fails, discovery does not know a kind, or an object has no readable age.
//! [`candidates`] and [`references`] are pure. The command `garbage` uses the same [`survey`].

mod arrivals;
pub mod candidates;
pub mod references;
pub mod survey;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, rc::Rc, time::Duration};

use cluster::{ApiError, Cluster, Context, DeleteOptions};
use futures::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};
use jiff::Timestamp;
use kit::{Causes, Controller, Failure, Observers, Outcome, Random, Reconcile, Reconciler, Singleton, Wake};

use self::{
    arrivals::Arrivals,
    candidates::{Candidates, Identity, Seen},
    survey::{Survey, SurveyError},
};
use super::controller_context::{ControllerContext, Registration, StartControllers, start};
use crate::api::config::resource_manager::Config;

/// Name in metrics and logs (spec 70 §9.2).
pub const NAME: &str = "garbage-collector";

/// Registers the controller; `controllers.garbageCollector.enabled` turns it on.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

const SIDE_BY_SIDE: usize = 16;
/// Deletions before the references in the namespace are listed again (spec 33 T9). A watch reports references that are
/// made meanwhile; it may lag behind, a list does not.
const CHUNK: usize = 1_000;
/// A failed run lists everything again, so its retries start slowly (spec 33 "Better than upstream" 5).
const FIRST_BACK_OFF: Duration = Duration::from_secs(10);
/// Longest duration of a run ("Better than upstream" 6).
const LONGEST: Duration = Duration::from_secs(600);
const QUOTED: usize = 10;

struct Collector {
    period: Duration,
    target: Cluster,
    observers: Rc<dyn Observers>,
    random: Random,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    candidates: usize,
    young: usize,
    terminating: usize,
    deleted: usize,
    referenced: usize,
    /// Objects that others changed or deleted after they were listed.
    spared: usize,
    errors: Vec<String>,
}

fn setup(config: &Config, ctx: &ControllerContext) -> Option<StartControllers> {
    let collector = Collector {
        period: config.controllers.garbage_collector.on()?.sync_period.get(),
        target: ctx.target.cluster.clone(),
        observers: ctx.env.observers.clone(),
        random: ctx.env.random.clone(),
    };
    Some(start(collector, |_, supervised| supervised.wake(&Singleton, Wake::low(Causes::LISTED))))
}

impl Controller for Collector {
    type Key = Singleton;
    /// End of the last complete run.
    type Memory = Option<Timestamp>;

    fn reconcilers(&self) -> Vec<Reconciler> {
        vec![Reconciler::new(NAME, 1).first_back_off(FIRST_BACK_OFF).deadline(self.period.min(LONGEST))]
    }

    async fn reconcile(
        self: &Rc<Self>,
        last: &mut Option<Timestamp>,
        reconcile: &Reconcile<Singleton>,
    ) -> Result<Outcome, Failure> {
        let context = Context::new(reconcile.priority(), reconcile.deadline, NAME);
        let survey = Survey::new(&self.target, &context);
        let listed = self.candidates(&survey).await;
        let (left, mut tally) = listed.map_err(|error| Failure::new(error.to_string()))?;
        let ended = self.collect(&context, &survey, left, &mut tally).await;
        self.report(&tally);
        reconcile.note(tally.line());
        if ended.is_err() || !tally.errors.is_empty() {
            let texts = [ended.err().map(|error| error.to_string()), tally.error()];
            return Err(Failure::new(texts.into_iter().flatten().collect::<Vec<_>>().join("; ")));
        }
        let now = self.target.clock().wall();
        // ± 10 %: the collectors of a seed's shoots begin at the same moment after a roll-out.
        let delay = self.random.jitter(self.period.mul_f64(0.9), 2.0 / 9.0);
        let next = now.checked_add(delay).unwrap_or(now);
        let before = last.replace(now).map(|time| ("the run before".to_owned(), format!("{time:.0}")));
        let rows =
            [("last run", now), ("next run", next)].map(|(label, time)| (label.to_owned(), format!("{time:.0}")));
        reconcile.detail(rows.into_iter().chain(before).collect());
        Ok(Outcome::After(delay))
    }
}

impl Collector {
    async fn candidates(&self, survey: &Survey<'_>) -> Result<(Candidates, Tally), SurveyError> {
        let mut left = survey.candidates(self.target.clock().wall()).await?;
        let (candidates, young, terminating) = (left.known.len(), left.young, left.terminating);
        survey.take_out_referenced(&mut left, None).await?;
        let referenced = candidates - left.known.len();
        Ok((left, Tally { candidates, young, terminating, referenced, ..Tally::default() }))
    }

    /// Deletes the candidates in chunks. If a list or a watch fails, `tally` holds the deletions made so far.
    async fn collect(
        &self,
        context: &Context,
        survey: &Survey<'_>,
        left: Candidates,
        tally: &mut Tally,
    ) -> Result<(), SurveyError> {
        let mut by_namespace: BTreeMap<String, Candidates> = BTreeMap::new();
        for (found, seen) in left.known {
            by_namespace.entry(found.namespace.clone()).or_default().known.insert(found, seen);
        }
        for (namespace, mut garbage) in by_namespace {
            while !garbage.known.is_empty() {
                let before = garbage.known.len();
                let mut positions = survey.take_out_referenced(&mut garbage, Some(&namespace)).await?;
                tally.referenced += before - garbage.known.len();
                let next = garbage.known.keys().nth(CHUNK).cloned();
                let later = next.map(|next| garbage.known.split_off(&next)).unwrap_or_default();
                let chunk = Candidates { known: std::mem::replace(&mut garbage.known, later), ..Candidates::default() };
                if chunk.known.len() <= SIDE_BY_SIDE {
                    positions.clear(); // all its deletions begin at once
                }
                let arrivals = Arrivals::open(&self.target, context, positions).await?;
                self.delete_all(context, chunk, arrivals, tally).await?;
            }
        }
        Ok(())
    }

    /// Deletes a chunk except newly referenced candidates. Begins nothing after a failed watch or the deadline.
    async fn delete_all(
        &self,
        context: &Context,
        mut chunk: Candidates,
        mut arrivals: Arrivals,
        tally: &mut Tally,
    ) -> Result<(), SurveyError> {
        let mut under_way = FuturesUnordered::new();
        let mut watched = Ok(());
        loop {
            let is_on = |watched: &Result<_, _>| watched.is_ok() && !context.deadline.is_over();
            while is_on(&watched) && !chunk.known.is_empty() && under_way.len() < SIDE_BY_SIDE {
                // References that have arrived count before the next deletion begins.
                if let Some(Some(arrived)) = arrivals.next().now_or_never() {
                    watched = arrived.map(|referred| tally.referenced += chunk.take_out(referred));
                } else if let Some((found, seen)) = chunk.known.pop_first() {
                    under_way.push(self.delete(context, found, seen));
                }
            }
            let fate = tokio::select! {
                biased;
                // Read also while deletions are slow: an unread watch blocks the other streams of its connection.
                Some(arrived) = arrivals.next(), if watched.is_ok() && !chunk.known.is_empty() => {
                    watched = arrived.map(|referred| tally.referenced += chunk.take_out(referred));
                    continue;
                }
                fate = under_way.next() => fate,
            };
            match fate {
                None if watched.is_ok() && !chunk.known.is_empty() => {
                    return Err(SurveyError::OutOfTime(chunk.known.len()));
                }
                None => return watched,
                Some(Ok(true)) => tally.deleted += 1,
                Some(Ok(false)) => tally.spared += 1,
                Some(Err(error)) => tally.errors.push(error.to_string()),
            }
        }
    }

    /// Deletes the listed version. Returns false if another client has changed or deleted the object.
    async fn delete(&self, context: &Context, found: Identity, seen: Seen) -> Result<bool, ApiError> {
        let Identity { namespace, kind, name } = &found;
        let at = kind.resource().at(&**namespace, &**name);
        let options = DeleteOptions {
            uid: Some(seen.uid),
            resource_version: Some(seen.resource_version),
            ..DeleteOptions::default()
        };
        match self.target.delete(context, &at, &options).await {
            Ok(_) => {
                tracing::info!(kind = kind.name(), namespace, name, "Delete resource");
                Ok(true)
            }
            Err(error) if error.is_not_found() => {
                tracing::debug!(kind = kind.name(), namespace, name, "deleted by another client since it was listed");
                Ok(false)
            }
            Err(error) if error.is_conflict() => {
                tracing::debug!(kind = kind.name(), namespace, name, "changed since it was listed; left alone");
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn report(&self, tally: &Tally) {
        for (state, count) in tally.figures() {
            self.observers.figure("garbage", state, f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
        }
    }
}

impl Tally {
    fn line(&self) -> String {
        let Self { candidates, young, terminating, deleted, referenced, spared, errors } = self;
        let failed = errors.len();
        format!(
            "{candidates} candidates, {deleted} deleted, {referenced} in use, {spared} changed meanwhile, {failed} failed; \
             {young} too young, {terminating} terminating"
        )
    }

    /// For metrics. After a failed or early end the counts do not add up, because the rest is unknown.
    fn figures(&self) -> [(&'static str, usize); 6] {
        [
            ("candidates", self.candidates),
            ("deleted", self.deleted),
            ("in_use", self.referenced),
            ("failed", self.errors.len()),
            ("young", self.young),
            ("terminating", self.terminating),
        ]
    }

    /// Spec 33 §4.3; `None` if no deletion failed.
    fn error(&self) -> Option<String> {
        const BEGIN: &str = "Could not delete all unused resources";
        match self.errors.as_slice() {
            [] => None,
            [one] => Some(format!("{BEGIN}: 1 error occurred: {one}")),
            all => {
                let quoted = all.iter().take(QUOTED).map(String::as_str).collect::<Vec<_>>().join(", ");
                let more = if all.len() > QUOTED { ", …" } else { "" };
                Some(format!("{BEGIN}: {} errors occurred: [{quoted}{more}]", all.len()))
            }
        }
    }
}

//! Keeps short-lived tokens for ServiceAccounts of the target in Secrets of the source (spec 30).
//! ```text
//! Secrets, metadata ─ access.rs ─► Task ─┐                         ┌─ content.rs, kubeconfig.rs: where it is stored
//! ServiceAccounts ── account.rs ─────────┼─► reconcile (keep.rs) ──┼─ renewal.rs: when it is renewed
//! timer of the actor ────────────────────┘                         └─ order.rs, token.rs: what to request
//! ```
//! One actor per Secret holds the renewal timer. Watches transfer only metadata; a reconcile reads the Secret's content
//! live and forgets it. A token is in memory from its issue until it is written. If the write fails, it stays until the
//! next reconcile (after a back-off of at most 17 min), which uses it only if it is younger than a minute. No text
//! shows a token (`mask`). Pure: all except `keep` (reads and writes of a reconcile), `memory` (the actor's memory),
//! `release` (deletion), `metrics` and this file.

pub mod access;
pub mod account;
pub mod content;
mod keep;
pub mod kubeconfig;
pub mod mask;
mod memory;
mod metrics;
pub mod order;
mod release;
pub mod renewal;
#[cfg(test)]
mod tests;
pub mod token;

use std::{rc::Rc, time::Duration};

use cluster::{
    ApiError, CachedFields, Cluster, Context, How, Index, Recorder, Reference, Watch, WatchOptions, object,
    object::NamespacedName,
};
use kit::{Causes, Clock, Controller, Failure, Outcome, Priority, Random, Reconcile, Reconciler, Supervised, Wake};

use self::{
    access::{Access, Rules, Secrets, Task},
    account::Account,
    memory::Memory,
    metrics::TokenMetrics,
};
use super::controller_context::{ControllerContext, Registration, StartControllers, start};
use crate::api::{config::resource_manager::Config, kinds};

/// Name in metrics and logs (spec 70 §9.2).
pub const NAME: &str = "token-requestor";

/// Registers the controller; `controllers.tokenRequestor.enabled` turns it on.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

/// The ServiceAccount of a Secret was deleted or recreated.
const ACCOUNT: Causes = Causes::own(0);

/// After a start, the first check of tokens that are not due is spread over this time.
const SPREAD: Duration = Duration::from_secs(300);

const REASON: &str = "TokenNotRenewed";

/// Why a Secret did not get its token. The texts never quote content of a Secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// An annotation, the content of the holder, or the API server's answer is unusable.
    #[error("{0}")]
    Unusable(String),
    /// A request failed; the first text names the operation or is empty.
    #[error("{0}{1}")]
    Api(&'static str, ApiError),
    /// A fact needed for the decision is unknown at present.
    #[error("{0}")]
    Unknown(&'static str),
}

struct Requestor {
    permits: usize,
    resync: Duration,
    rules: Rules,
    source: Cluster,
    target: Cluster,
    secrets: Secrets,
    by_account: Index<NamespacedName>,
    accounts: Watch<CachedFields<Account>>,
    ca: Rc<[u8]>,
    events: Recorder,
    metrics: TokenMetrics,
    clock: Clock,
    random: Random,
}

fn setup(config: &Config, ctx: &ControllerContext) -> Option<StartControllers> {
    let settings = config.controllers.token_requestor.on()?;
    let rules = Rules { any_class: settings.any_class, deletes: settings.delete_service_accounts };
    let secrets = access::watch(&ctx.source.watches, rules);
    // Startup does not wait for them: while the watch is stale, ServiceAccounts are read live.
    let accounts = WatchOptions::fields(kinds::SERVICE_ACCOUNT, Account::of);
    let requestor = Requestor {
        permits: settings.concurrent_syncs.count(),
        resync: config.source.cache_resync_period.get(),
        rules,
        source: ctx.source.cluster.clone(),
        target: ctx.target.cluster.clone(),
        by_account: secrets.index(|_, secret| secret.fields.iter().map(|access| access.account.clone()).collect()),
        secrets,
        accounts: ctx.target.watches.open(accounts.unawaited()),
        ca: ctx.target_ca.clone(),
        events: ctx.source.events.for_component(NAME),
        metrics: TokenMetrics::new(&ctx.env.observers),
        clock: ctx.env.clock.clone(),
        random: ctx.env.random.clone(),
    };
    Some(start(requestor, Requestor::subscribe))
}

impl Controller for Requestor {
    type Key = NamespacedName;
    type Memory = Memory;

    fn reconcilers(&self) -> Vec<Reconciler> {
        vec![Reconciler::new(NAME, self.permits).resync(self.resync).requires(self.secrets.sync_requirement())]
    }

    async fn reconcile(
        self: &Rc<Self>,
        memory: &mut Memory,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let key = &reconcile.key;
        memory.drop_old_token();
        if let Some(delay) = self.may_wait(memory, reconcile) {
            reconcile.note("not due; to be checked later");
            return Ok(Outcome::After(delay));
        }
        if let Some(outcome) = self.is_as_written(memory, reconcile) {
            return Ok(outcome);
        }
        let context = Context::new(reconcile.priority(), reconcile.deadline, key.to_string());
        let result = self.attempt(&context, memory, reconcile).await;
        match &result {
            Ok(Outcome::Retire) => self.metrics.forget(key),
            Ok(_) => {}
            Err(problem) => {
                self.metrics.failed(key);
                if problem.is_worth_reporting() {
                    let reference = Reference::new(&kinds::SECRET, key, memory.uid());
                    self.events.warning(&reference, REASON, &problem.to_string());
                }
            }
        }
        Ok(result?)
    }
}

impl Requestor {
    fn subscribe(self: &Rc<Self>, supervised: &Supervised<Self>) {
        self.metrics.show();
        let (waker, clock, rules) = (supervised.weak(), self.clock.clone(), self.rules);
        self.secrets.subscribe(move |change| {
            let known = [change.old, change.new].map(|secret| secret.and_then(|secret| secret.fields.as_ref()));
            let is_ours = known.into_iter().flatten().any(|access| access.task(rules) != Task::None);
            if is_ours && !matches!(change.how, How::Own { .. }) {
                // Existing Secrets have low priority, unless their token is due.
                let is_due = known[1].is_none_or(|access| access.is_due(clock.wall()));
                let priority = if change.how == How::First && !is_due { Priority::Low } else { Priority::High };
                waker.wake(change.name, Wake { priority, ..Wake::high(Causes::OBJECT) });
            }
        });
        let by_account = self.by_account.clone();
        let invalidated = account::invalidates_tokens().because(ACCOUNT);
        self.accounts.on_change(supervised, invalidated, move |name, _| by_account.get(name));
    }

    /// Returns a random delay for the first check of a token that is not due (spec 30 "Better than upstream" 9).
    fn may_wait(&self, memory: &mut Memory, reconcile: &Reconcile<NamespacedName>) -> Option<Duration> {
        if !memory.is_first_look() || reconcile.priority() == Priority::High {
            return None;
        }
        let now = self.clock.wall().checked_add(SPREAD).ok()?;
        let is_due = |access: &Access| access.task(self.rules) != Task::Keep { finalizer: None } || access.is_due(now);
        let is_due = self.secrets.store().with(&reconcile.key, |secret| secret.fields.as_ref().is_none_or(is_due))?;
        (!is_due).then(|| SPREAD.mul_f64(self.random.unit()))
    }

    async fn attempt(
        &self,
        context: &Context,
        memory: &mut Memory,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Problem> {
        let at = kinds::SECRET.named(&reconcile.key);
        let read = self.source.find(context, &at).await;
        let live = read.map_err(|error| Problem::Api("error retrieving object from store: ", error))?;
        let Some(live) = live else { return Ok(Outcome::Retire) };
        let Some(access) = Access::of(&live) else { return Ok(Outcome::Retire) };
        memory.saw(object::uid(&live));
        match access.task(self.rules) {
            Task::None => Ok(Outcome::Retire),
            Task::Release { account } => {
                self.release(context, &live, account.then_some(&access.account)).await?;
                Ok(Outcome::Continue)
            }
            Task::Keep { finalizer } => {
                let live = match finalizer {
                    None => live,
                    Some(held) => self.set_finalizer(context, &live, held).await?,
                };
                self.keep(context, memory, reconcile, live).await
            }
        }
    }
}

impl Problem {
    /// Returns true if a user can fix it: not conflicts, outages or bad credentials, which concern all Secrets alike.
    fn is_worth_reporting(&self) -> bool {
        match self {
            Self::Unusable(_) => true,
            Self::Api(_, error) => {
                let is_general = error.is_unauthorized() || error.is_too_many_requests();
                // Not sent: an annotation contains an invalid object name.
                let is_bad_name = matches!(error, ApiError::BadRequest(_));
                is_bad_name || (!is_general && !error.is_conflict() && error.code().is_some_and(|code| code < 500))
            }
            Self::Unknown(_) => false,
        }
    }
}

impl From<ApiError> for Problem {
    fn from(error: ApiError) -> Self {
        Self::Api("", error)
    }
}

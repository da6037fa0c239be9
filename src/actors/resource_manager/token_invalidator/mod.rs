//! Invalidates the static tokens of ServiceAccounts that opted out of them (spec 31 §4).
//! ```text
//! Secrets, metadata ─ secret.rs ─► TokenSecret ┐
//! ServiceAccounts ── account.rs ─► Account ────┼─► reconcile: labels that the Secret should have ─► one merge patch
//! Pods that mount it ─ pods.rs ─► wait ────────┘
//! ```
//! The controller only sets labels. The API server sends each patch to the webhook
//! ([`token_invalidator`](crate::webhooks::mutating::token_invalidator)), which changes the token in the same request.
//!
//! [`secret`] and [`account`] are pure. This file runs an actor per Secret with the annotation. A decision that keeps a
//! token valid is made from memory. Invalidating a token breaks its users, so that decision rests on live reads: the
//! ServiceAccount, a list of Pods, a patch bound to the Secret's version. A problem that only a user can fix (no
//! ServiceAccount, immutable Secret, other purpose) is a terminal error: reported once per reconcile, not retried
//! before a change.

pub mod account;
pub mod pods;
pub mod secret;
#[cfg(test)]
mod tests;

use std::{rc::Rc, time::Duration};

use cluster::{
    ApiError, CachedFields, Cluster, Context, Index, Lock, Predicate, Watch, WatchOptions, Wrote,
    object::NamespacedName,
};
use kit::{Causes, Controller, Failure, Outcome, Reconcile, Reconciler};

use self::{
    account::Account,
    pods::{Pods, Waiting},
    secret::{Purpose, TokenSecret},
};
use super::controller_context::{ControllerContext, Registration, StartControllers, start};
use crate::api::{config::resource_manager::Config, kinds};

/// Name in metrics and logs (spec 70 §9.2).
pub const NAME: &str = "token-invalidator";

/// Registers the controller; `controllers.tokenInvalidator.enabled` turns it on.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

const ACCOUNT: Causes = Causes::own(0);

const FOREIGN: &str = "the token stays as it is: the webhook does not see the Secret, because the label \
                       resources.gardener.cloud/purpose has another value than token-invalidator";

struct Invalidator {
    permits: usize,
    resync: Duration,
    target: Cluster,
    /// Of Secrets without a ServiceAccount token only the version is kept.
    secrets: Watch<CachedFields<Option<TokenSecret>>>,
    /// Secrets by ServiceAccount, whether listed in its `.secrets[]` or not (spec 31 T5).
    by_account: Index<NamespacedName>,
    accounts: Watch<CachedFields<Account>>,
    pods: Pods,
}

fn setup(config: &Config, ctx: &ControllerContext) -> Option<StartControllers> {
    let settings = config.controllers.token_invalidator.on()?;
    // The informers are shared with other watches of all Secrets, and with webhooks that read ServiceAccounts.
    let secrets = ctx.target.watches.open(WatchOptions::fields(kinds::SECRET, TokenSecret::of).metadata());
    let invalidator = Invalidator {
        permits: settings.concurrent_syncs.count(),
        resync: config.target.cache_resync_period.get(),
        target: ctx.target.cluster.clone(),
        by_account: secrets.index(|name, secret: &CachedFields<Option<TokenSecret>>| {
            secret.fields.iter().map(|secret| secret.account_in(&name.namespace)).collect()
        }),
        secrets,
        accounts: ctx.target.watches.open(WatchOptions::fields(kinds::SERVICE_ACCOUNT, Account::of)),
        pods: Pods::new(&ctx.target.cluster, &ctx.target.watches),
    };
    Some(start(invalidator, |invalidator, supervised| {
        let secrets = &invalidator.secrets;
        secrets.on_change(supervised, Predicate::any_change(), |name, secret| {
            secret.fields.is_some().then(|| name.clone())
        });
        // A ServiceAccount that is new or different (spec 31 §4.1, "Better than upstream" 1).
        let changed = Predicate::fields_changed().ignoring_deletion().because(ACCOUNT);
        let by_account = invalidator.by_account.clone();
        invalidator.accounts.on_change(supervised, changed, move |name, _| by_account.get(name));
    }))
}

impl Controller for Invalidator {
    type Key = NamespacedName;
    type Memory = Waiting;

    fn causes(&self) -> &'static [&'static str] {
        &["account"]
    }

    fn reconcilers(&self) -> Vec<Reconciler> {
        let reconciler = Reconciler::new(NAME, self.permits).about(("", "Secret")).resync(self.resync);
        vec![reconciler.requires(self.secrets.sync_requirement()).requires(self.accounts.sync_requirement())]
    }

    async fn reconcile(
        self: &Rc<Self>,
        waiting: &mut Waiting,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let (key, mut held) = (&reconcile.key, waiting.take());
        let Some(record) = self.secrets.store().get(key) else { return Ok(Outcome::Retire) };
        let Some(secret) = &record.fields else { return Ok(Outcome::Retire) };
        let context = Context::new(reconcile.priority(), reconcile.deadline, key.to_string());
        let Some(account) = self.account(&context, &secret.account_in(&key.namespace)).await? else {
            return Ok(Outcome::Again);
        };

        let mut end = Ok(Outcome::Done);
        let mut considered = account.wants_no_tokens;
        if considered && !secret.considered {
            let obstacle = self.obstacle(&context, key, secret, &mut held).await.transpose();
            considered = obstacle.is_none();
            end = obstacle.unwrap_or(end);
        }
        if matches!(end, Ok(Outcome::Wait(_) | Outcome::Again)) {
            *waiting = held;
        }
        reconcile.note(match (considered, account.wants_no_tokens) {
            (true, _) => "the token must be invalid",
            (false, true) => "the token will be invalidated",
            (false, false) => "the token may be valid",
        });

        match self.label(&context, key, secret, considered).await {
            Err(error) if error.is_invalid() => {
                // The webhook changes the token together with the first label. Retry with the other label alone.
                let alone = match considered == secret.considered {
                    true => Ok(true),
                    false => self.label(&context, key, secret, secret.considered).await,
                };
                return match alone {
                    Err(error) if !error.is_invalid() => Err(error.into()),
                    Ok(_) | Err(_) => Err(Failure::terminal(format!("the token cannot be changed: {error}"))),
                };
            }
            Err(error) => return Err(error.into()),
            Ok(false) => return Ok(Outcome::Again),
            Ok(true) => {}
        }
        if considered && secret.purpose == Purpose::Other {
            return Err(Failure::terminal(FOREIGN));
        }
        end
    }
}

impl Invalidator {
    /// Returns the ServiceAccount of a Secret, or `None` while its watch event has not arrived.
    async fn account(&self, context: &Context, name: &NamespacedName) -> Result<Option<Account>, Failure> {
        if !self.accounts.is_fresh_for(name) {
            return Err(not_fetched("the watch of ServiceAccounts is stale"));
        }
        if let Some(known) = self.accounts.store().with(name, |account| account.fields.clone()) {
            return Ok(Some(known));
        }
        self.live_account(context, name).await?;
        Ok(None)
    }

    async fn live_account(&self, context: &Context, name: &NamespacedName) -> Result<Account, Failure> {
        let at = kinds::SERVICE_ACCOUNT.named(name);
        match self.target.get(context, &at).await {
            Ok(account) => Ok(Account::of(&account)),
            // The creation of a ServiceAccount wakes its Secrets. An invalid name can never exist.
            Err(error) if error.is_not_found() || matches!(error, ApiError::BadRequest(_)) => {
                Err(Failure::terminal(not_fetched(error).to_string()))
            }
            Err(error) => Err(not_fetched(error)),
        }
    }

    /// Checks live whether the token may be invalidated. Returns what to do instead, or `None` if it may.
    async fn obstacle(
        &self,
        context: &Context,
        key: &NamespacedName,
        secret: &TokenSecret,
        waiting: &mut Waiting,
    ) -> Result<Option<Outcome>, Failure> {
        if let Some(wait) = Pods::known(waiting, key) {
            return Ok(Some(wait));
        }
        if !self.live_account(context, &secret.account_in(&key.namespace)).await?.wants_no_tokens {
            return Ok(Some(Outcome::Again)); // its watch event has not arrived yet
        }
        self.pods.ask(context, key, waiting).await
    }

    /// Writes the labels. Returns false if the Secret has changed since the decision, or has other labels afterwards.
    async fn label(
        &self,
        context: &Context,
        key: &NamespacedName,
        secret: &TokenSecret,
        considered: bool,
    ) -> Result<bool, ApiError> {
        if secret.patch(considered).is_none() {
            return Ok(true);
        }
        let decide = |known: &CachedFields<Option<TokenSecret>>| {
            known.fields.as_ref().filter(|known| *known == secret)?.patch(considered)
        };
        match self.secrets.patch_cached(context, key, Lock::Version, decide).await? {
            Wrote::Updated(_) => {}
            Wrote::Gone => return Ok(true),
            _ => return Ok(false),
        }
        if secret.changes_token(considered) {
            let account = &*secret.account;
            match considered {
                true => tracing::info!(account, "a static token is made invalid"),
                false => tracing::info!(account, "a static token may be valid again"),
            }
        }
        Ok(true)
    }
}

/// Row 3 of spec 31 §4.2.
fn not_fetched(error: impl std::fmt::Display) -> Failure {
    Failure::new(format!("could not fetch ServiceAccount: {error}"))
}

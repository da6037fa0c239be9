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

use cluster::{ApiError, Cached, Cluster, Context, How, object::NamespacedName};
use kit::{Causes, Controller, Failure, Outcome, Reconcile, Reconciler, Supervised, Wake};

use self::{
    account::{Account, Accounts, service_account},
    pods::{Pods, Waiting},
    secret::{Purpose, Secrets, TokenSecret},
};
use super::{
    controller_context::ControllerContext,
    controller_registration::{ControllerRegistration, StartControllers},
};
use crate::api::config::Config;

/// Name in metrics and logs (spec 70 §9.2).
pub const NAME: &str = "token-invalidator";

/// Registers the controller; `controllers.tokenInvalidator.enabled` turns it on.
pub const REGISTRATION: ControllerRegistration = ControllerRegistration { names: &[NAME], setup };

const ACCOUNT: Causes = Causes::own(0);

const FOREIGN: &str = "the token stays as it is: the webhook does not see the Secret, because the label \
                       resources.gardener.cloud/purpose has another value than token-invalidator";

struct Invalidator {
    permits: usize,
    resync: Duration,
    target: Cluster,
    secrets: Secrets,
    accounts: Accounts,
    pods: Pods,
}

fn setup(config: &Config, ctx: &ControllerContext) -> Option<StartControllers> {
    let permits = config.controllers.token_invalidator?.concurrent_syncs;
    let resync = config.target.cache_resync_period;
    let secrets = secret::watch(&ctx.target.watches);
    let by_account = secret::index_by_account(&secrets);
    let accounts = account::watch(&ctx.target.watches);
    Some(Box::new(move |ctx| {
        let (target, pods) = (ctx.target.cluster.clone(), Pods::new(&ctx.target.cluster, &ctx.target.watches));
        let invalidator = Rc::new(Invalidator { permits, resync, target, secrets, accounts, pods });
        let supervised = Supervised::start(invalidator.clone(), &ctx.env);
        let waker = supervised.weak();
        invalidator.secrets.subscribe(move |change| {
            let is_own = matches!(change.how, How::Own { .. });
            if !is_own && [change.old, change.new].into_iter().flatten().any(|secret| secret.fields.is_some()) {
                waker.wake(change.name, wake(change.how, Causes::OBJECT));
            }
        });
        let waker = supervised.weak();
        invalidator.accounts.subscribe(move |change| {
            if account::concerns_its_secrets(change) {
                by_account.get(change.name).iter().for_each(|secret| waker.wake(secret, wake(change.how, ACCOUNT)));
            }
        });
        supervised.into()
    }))
}

fn wake(how: How<'_>, causes: Causes) -> Wake<()> {
    if how == How::First { Wake::low(causes) } else { Wake::high(causes) }
}

impl Controller for Invalidator {
    type Key = NamespacedName;
    type Ref = ();
    type Object = ();
    type Memory = Waiting;

    fn name(&self) -> &'static str {
        NAME
    }

    fn causes(&self) -> &'static [&'static str] {
        &["account"]
    }

    fn reconcilers(&self) -> Vec<Reconciler> {
        let reconciler = Reconciler::new(NAME, self.permits).about(("", "Secret")).resync(self.resync);
        vec![reconciler.requires(self.secrets.sync_requirement()).requires(self.accounts.sync_requirement())]
    }

    fn object(&self, _: &NamespacedName) {}

    async fn reconcile(
        self: &Rc<Self>,
        _: &Rc<()>,
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

        match self.label(&context, key, secret, record.version(), considered).await {
            Err(error) if error.is_invalid() => {
                // The webhook changes the token together with the first label. Retry with the other label alone.
                let alone = match considered == secret.considered {
                    true => Ok(()),
                    false => self.label(&context, key, secret, record.version(), secret.considered).await,
                };
                return match alone {
                    Err(error) if !error.is_invalid() => Err(error.into()),
                    Ok(()) | Err(_) => Err(Failure::terminal(format!("the token cannot be changed: {error}"))),
                };
            }
            Err(error) if error.is_not_found() => return Ok(Outcome::Done), // its deletion event ends this actor
            result => result?,
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
        let at = service_account().at(&*name.namespace, &*name.name);
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

    async fn label(
        &self,
        context: &Context,
        key: &NamespacedName,
        secret: &TokenSecret,
        version: u64,
        considered: bool,
    ) -> Result<(), ApiError> {
        let Some(patch) = secret.patch(version, considered) else { return Ok(()) };
        let asked = self.target.clock().monotonic();
        let at = secret::secret().at(&*key.namespace, &*key.name);
        let answer = self.target.merge_patch_metadata(context, &at, &patch).await?;
        self.secrets.wrote(&answer, &key.to_string(), asked);
        if secret.changes_token(considered) {
            let account = &*secret.account;
            match considered {
                true => tracing::info!(account, "a static token is made invalid"),
                false => tracing::info!(account, "a static token may be valid again"),
            }
        }
        Ok(())
    }
}

/// Row 3 of spec 31 §4.2.
fn not_fetched(error: impl std::fmt::Display) -> Failure {
    Failure::new(format!("could not fetch ServiceAccount: {error}"))
}

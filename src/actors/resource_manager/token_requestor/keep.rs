//! The reads and writes of a reconcile that keep a good token in a Secret (spec 30 §5).

use std::{borrow::Cow, time::Duration};

use cluster::{ApiError, Cached as _, Context, object, object::NamespacedName};
use jiff::Timestamp;
use kit::{Causes, IdleCheck, Outcome, Reconcile};
use serde_json::Value;

use super::{
    ACCOUNT, Problem, Requestor,
    access::{Access, Task},
    account::{self, Account},
    content::{self, Held},
    mask,
    memory::Memory,
    metrics::{FRESH, REJECTED},
    order::Order,
    renewal,
    token::{self, AUDIENCE, Claims, Token},
};
use crate::api::{kinds, meta::selector::Labels};

/// Write attempts of one reconcile, for Secrets with several writers.
const ATTEMPTS: u8 = 4;
/// Longest time between two idle checks.
const LONGEST_IDLE: Duration = Duration::from_secs(3600);
const UPDATE: &str = "could not update Secret with token: ";

enum KeepVerdict {
    Due(&'static str),
    /// It is not needed before `renewal`.
    Good {
        renewal: Timestamp,
        expires: Option<Timestamp>,
    },
    /// The API server rejects the token that it issued; wait this long.
    Pause(Duration),
}

impl Requestor {
    /// Returns the outcome of a reconcile that was woken only by the event of its own write; otherwise `None`.
    pub(super) fn is_as_written(&self, memory: &Memory, reconcile: &Reconcile<NamespacedName>) -> Option<Outcome> {
        if reconcile.because_of(ACCOUNT.with(Causes::RESYNC)) {
            return None;
        }
        let version = self.secrets.store().with(&reconcile.key, |secret| secret.version())?;
        let (renewal, expires) = memory.as_written(version, &self.clock)?;
        Some(self.idle_until_renewal(memory, reconcile, renewal, Some(expires)))
    }

    pub(super) async fn keep(
        &self,
        context: &Context,
        memory: &mut Memory,
        reconcile: &Reconcile<NamespacedName>,
        mut live: Value,
    ) -> Result<Outcome, Problem> {
        let mut left = ATTEMPTS;
        loop {
            left -= 1;
            let order = Order::of(&live);
            let holder = self.holder(context, &order, &live).await?;
            let is_suspect = reconcile.because_of(ACCOUNT);
            let reason = match self.judge(context, memory, &order, (&live, holder.as_deref()), is_suspect).await? {
                KeepVerdict::Due(reason) => reason,
                KeepVerdict::Good { renewal, expires } => {
                    memory.drop_token();
                    return Ok(self.idle_until_renewal(memory, reconcile, renewal, expires));
                }
                KeepVerdict::Pause(time) => {
                    self.metrics.enter(&reconcile.key, REJECTED, None);
                    reconcile.note("the API server rejects the tokens that it issues");
                    return Ok(Outcome::After(time));
                }
            };
            let token = self.token(context, memory, &order, (&live, holder.as_deref())).await?;
            match self.write(context, &order, (&live, holder), &token).await {
                Ok((renewal, version)) => {
                    let account = &order.account;
                    tracing::info!(secret = %reconcile.key, %account, reason, expires = %token.expires, "a token is renewed");
                    // Target Secrets are not watched.
                    memory.wrote(&token, renewal, version.filter(|_| order.target.is_none()), &self.clock);
                    return Ok(self.idle_until_renewal(memory, reconcile, renewal, Some(token.expires)));
                }
                Err(Problem::Api(_, error)) if is_race(&error) && left > 0 => {
                    tracing::debug!(secret = %reconcile.key, %error, "another writer was faster; reading again");
                }
                Err(error) => {
                    if matches!(&error, Problem::Api(_, error) if error.outcome_unknown()) {
                        memory.unconfirmed(object::resource_version(&live));
                    }
                    return Err(error);
                }
            }
            let at = kinds::SECRET.named(&reconcile.key);
            let Some(again) = self.source.find(context, &at).await? else { return Ok(Outcome::Retire) };
            let is_other = object::uid(&again) != memory.uid();
            let task = Access::of(&again).map_or(Task::None, |access| access.task(self.rules));
            if is_other || task != (Task::Keep { finalizer: None }) {
                return Ok(Outcome::Continue); // its task changed
            }
            live = again;
        }
    }

    /// Returns the Secret that holds the token; `None` if the target Secret does not exist.
    async fn holder<'a>(
        &self,
        context: &Context,
        order: &Order,
        live: &'a Value,
    ) -> Result<Option<Cow<'a, Value>>, Problem> {
        let Some(target) = &order.target else { return Ok(Some(Cow::Borrowed(live))) };
        let at = kinds::SECRET.named(target);
        let found = self.target.find(context, &at).await;
        let found = found.map_err(|error| Problem::Api("could not read target secret: ", error))?;
        Ok(found.map(Cow::Owned))
    }

    /// Spec 30 §5.1. A token that is due is renewed without a review.
    async fn judge(
        &self,
        context: &Context,
        memory: &mut Memory,
        order: &Order,
        (live, holder): (&Value, Option<&Value>),
        is_suspect: bool,
    ) -> Result<KeepVerdict, Problem> {
        let renewal = Access::of(live).and_then(|access| access.renewal);
        let Some(renewal) = renewal else { return Ok(KeepVerdict::Due("it has no renewal time")) };
        let Some(holder) = holder else { return Ok(KeepVerdict::Due("the target Secret is missing")) };
        let text = match content::held(holder, order.wants_ca.then_some(&*self.ca))? {
            Held::Nothing(reason) => return Ok(KeepVerdict::Due(reason)),
            Held::Token(text) => text,
        };
        let (fingerprint, claims) = (token::fingerprint(&text), Claims::of(&text));
        let of_it = (&fingerprint, claims.as_ref());
        let renewal = renewal.parse::<Timestamp>().map(|written| memory.renewal(written, of_it, &self.clock));
        if renewal.as_ref().is_ok_and(|renewal| memory.is_due(*renewal, &self.clock)) {
            return Ok(KeepVerdict::Due("it is due"));
        }
        if claims.as_ref().is_some_and(|claims| self.is_of_another_account(claims)) {
            return Ok(KeepVerdict::Due("its ServiceAccount was deleted or recreated"));
        }
        if is_suspect || !memory.vouches_for(&fingerprint) {
            if let Err(reason) = self.review(context, &text).await? {
                tracing::info!(secret = %NamespacedName::of(live), reason, audience = AUDIENCE, "a token is rejected");
                return Ok(memory
                    .rejected(&fingerprint)
                    .map_or(KeepVerdict::Due("the API server rejects it"), KeepVerdict::Pause));
            }
            memory.accepted(fingerprint, self.clock.monotonic());
        }
        let renewal =
            renewal.map_err(|error| Problem::Unusable(format!("could not parse renew timestamp: {error}")))?;
        Ok(KeepVerdict::Good { renewal, expires: claims.and_then(|claims| claims.expires) })
    }

    /// Returns true if the ServiceAccount of a token is known to be deleted or recreated. A review would not show it
    /// for some seconds, because the API server caches accepted tokens (spec 30 T4).
    fn is_of_another_account(&self, claims: &Claims) -> bool {
        let uid = |account: &cluster::CachedFields<Account>| account.fields.uid.clone();
        let known = self.accounts.store().with(&claims.account, uid);
        self.accounts.is_fresh_for(&claims.account) && known.as_deref() != Some(&*claims.account_uid)
    }

    /// Reviews a token at the target. The inner `Err` is the reason of a rejection, without the token.
    async fn review(&self, context: &Context, text: &str) -> Result<Result<(), String>, Problem> {
        let answer = self.target.create(context, &kinds::TOKEN_REVIEW.at("", ""), &token::review(text)).await;
        let answer = answer.map_err(|error| Problem::Api("token review failed: ", mask::masked(error, text)))?;
        if answer.pointer("/status/authenticated") == Some(&Value::Bool(true)) {
            return Ok(Ok(()));
        }
        let reason = answer.pointer("/status/error").and_then(Value::as_str).unwrap_or_default();
        Ok(Err(mask::without(reason, text)))
    }

    /// Returns a token. Finds all errors of the Secret before it requests a new one ("Better than upstream" 2).
    async fn token(
        &self,
        context: &Context,
        memory: &mut Memory,
        order: &Order,
        (live, holder): (&Value, Option<&Value>),
    ) -> Result<Token, Problem> {
        order.check_account()?;
        let labels = order.labels()?;
        let account_uid = self.ensure_account(context, &order.account, &labels, false).await?;
        if let Some(token) = memory.in_hand(order, live, &account_uid) {
            return Ok(token);
        }
        let body = token::request(order.seconds()?);
        content::placed(holder.unwrap_or(&Value::Null), "", self.ca_to_write(order))?;
        let at = kinds::SERVICE_ACCOUNT.named(&order.account);
        let answer = match self.target.create_subresource(context, &at, "token", &body).await {
            Err(error) if error.is_not_found() => {
                // It was deleted, and the watch event has not arrived yet.
                self.ensure_account(context, &order.account, &labels, true).await?;
                self.target.create_subresource(context, &at, "token", &body).await?
            }
            answer => answer?,
        };
        let token = Token::of(&answer)?;
        memory.take(token.clone(), order, live, self.clock.monotonic());
        Ok(token)
    }

    /// Spec 30 §5.2. Returns the ServiceAccount's uid. Sends no request if the cache suffices, unless `live` is set.
    async fn ensure_account(
        &self,
        context: &Context,
        name: &NamespacedName,
        labels: &Labels,
        live: bool,
    ) -> Result<String, Problem> {
        let create = || async { self.accounts.create(context, &account::created(name, labels)).await };
        if !live && self.accounts.is_fresh_for(name) {
            let look =
                |account: &cluster::CachedFields<Account>| (account.fields.uid.clone(), account.fields.fits(labels));
            match self.accounts.store().with(name, look) {
                Some((uid, true)) => return Ok(uid.into()),
                Some((_, false)) => {}
                None => match create().await {
                    Err(error) if error.is_already_exists() => {}
                    answer => return Ok(object::uid(&answer?).to_owned()),
                },
            }
        }
        let answer = match self.accounts.read_object(context, name).await? {
            None => create().await?,
            Some(live) => match account::updated(&live, labels) {
                Some(account) => {
                    let at = kinds::SERVICE_ACCOUNT.named(name);
                    let replace = self.target.replace(context, &at, None, &account);
                    self.accounts.enter_answer_of(context, replace).await?
                }
                None => live,
            },
        };
        Ok(object::uid(&answer).to_owned())
    }

    fn ca_to_write(&self, order: &Order) -> Option<&[u8]> {
        Some(&*self.ca).filter(|ca| order.wants_ca && !ca.is_empty())
    }

    /// Spec 30 §5.6: writes target Secret and Secret. Returns the renewal time and the Secret's new version.
    async fn write(
        &self,
        context: &Context,
        order: &Order,
        (live, holder): (&Value, Option<Cow<'_, Value>>),
        token: &Token,
    ) -> Result<(Timestamp, Option<u64>), Problem> {
        let failed = |error| Problem::Api(UPDATE, mask::masked(error, token.reveal()));
        let holder = holder.as_deref().unwrap_or(&Value::Null);
        let mut changes = content::placed(holder, token.reveal(), self.ca_to_write(order))?;
        if let Some(target) = &order.target {
            let at = kinds::SECRET.named(target);
            if let Some(wanted) = content::target(holder, target, &changes) {
                let written = match holder.is_null() {
                    true => self.target.create(context, &at, &wanted).await,
                    false => self.target.replace(context, &at, None, &wanted).await,
                };
                written.map_err(failed)?;
            }
            changes = content::depopulated(live);
        }
        let now = self.clock.wall();
        let renewal = now + renewal::period(now, token.expires, self.random.unit());
        let (at, patch) = (kinds::SECRET.named(&NamespacedName::of(live)), content::patch(live, renewal, changes));
        let patch = self.source.merge_patch(context, &at, None, &patch);
        let answer = self.secrets.enter_answer_of(context, patch).await.map_err(failed)?;
        Ok((renewal, object::resource_version(&answer).parse().ok()))
    }

    fn idle_until_renewal(
        &self,
        memory: &Memory,
        reconcile: &Reconcile<NamespacedName>,
        renewal: Timestamp,
        expires: Option<Timestamp>,
    ) -> Outcome {
        self.metrics.enter(&reconcile.key, FRESH, expires);
        reconcile.note(format!("renewal at {}", renewal::text(renewal)));
        let row = |label: &str, time: Option<Timestamp>| time.map(|time| (label.to_owned(), renewal::text(time)));
        let rows = [("next renewal", Some(renewal)), ("last renewal", memory.renewed()), ("token expires", expires)];
        reconcile.detail(rows.into_iter().filter_map(|(label, time)| row(label, time)).collect());
        let next = renewal::next_idle_check(self.clock.wall(), renewal, expires);
        // Check both clocks regularly: a machine may have slept, or the wall clock may be set back.
        let (clock, due) = (self.clock.clone(), memory.due_at(renewal));
        let left = move || {
            let left = Duration::try_from(next.duration_since(clock.wall())).unwrap_or_default();
            let due = due.map_or(LONGEST_IDLE, |at| at.saturating_duration_since(clock.monotonic()));
            let left = left.min(due).min(LONGEST_IDLE);
            (!left.is_zero()).then_some(left)
        };
        match left() {
            Some(delay) => Outcome::Idle(delay, IdleCheck::new(left)),
            None => Outcome::Continue,
        }
    }
}

fn is_race(error: &ApiError) -> bool {
    error.is_conflict() || error.is_not_found() || error.is_already_exists()
}

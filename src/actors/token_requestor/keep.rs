//! What a pass asks and writes, so that a Secret holds a good token (spec 30 §5).

use std::{borrow::Cow, time::Duration};

use cluster::{ApiError, Context, Record as _, Resource, object, object::NamespacedName};
use jiff::Timestamp;
use kit::{Causes, Clock, Look, Outcome, Pass};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    ACCOUNT, Problem, Requestor, State,
    access::{Access, Task, secret},
    account::{self, Account, service_account},
    content::{self, Held},
    order::Order,
    renewal,
    token::{self, AUDIENCE, Claims, Fingerprint, Token},
};

/// How often a pass writes to a Secret that others write to as well.
const ATTEMPTS: u8 = 4;
/// A token that was found good is not reviewed again in this time, and one that could not be written is used again in it.
const TRUSTED: Duration = Duration::from_secs(60);
/// A token that is rejected within this time was never accepted.
const RECENT: Duration = Duration::from_secs(7200);
/// While a token is good, the time is looked at this often.
const LOOK: Duration = Duration::from_secs(3600);
const UPDATE: &str = "could not update Secret with token: ";

/// What an actor remembers between passes.
#[derive(Default)]
pub(super) struct Memory {
    uid: String,
    has_looked: bool,
    /// The token that was good, and when.
    vouched: Option<(Fingerprint, Instant)>,
    /// The token that was issued last, and when.
    issued: Option<(Fingerprint, Instant)>,
    /// How many tokens in a row were rejected that this process had issued.
    rejections: u32,
    in_hand: Option<InHand>,
    renewed: Option<Timestamp>,
    written: Option<Written>,
    due: Option<Due>,
}

/// When a renewal is due by the monotonic clock: a wall clock that is set back lets no token expire (fault 17).
#[derive(Clone, Copy)]
struct Due {
    /// The time of renewal, in whole seconds as it is written.
    renewal: i64,
    at: Instant,
    /// This process chose the time, for a token that it was given. It stands also where the clocks differ by more than the
    /// token's life (spec 30 T10).
    is_own: bool,
}

/// The Secret as it was after the last write of a token.
#[derive(Clone, Copy)]
struct Written {
    version: u64,
    renewal: Timestamp,
    expires: Timestamp,
}

/// A token that is not written yet, and for whom it is.
struct InHand {
    uid: String,
    order: Order,
    /// Whoever takes the time of renewal away wants a token that is issued after that.
    renewal: Option<Box<str>>,
    token: Token,
    at: Instant,
}

/// Whether a token is needed.
enum Verdict {
    /// For this reason.
    Due(&'static str),
    /// Not before this time; when the one that is there expires.
    Good { renewal: Timestamp, expires: Option<Timestamp> },
    /// The server does not accept what it issued; not before this time.
    Pause(Duration),
}

// === impl Memory ===

impl Memory {
    /// The Secret's uid, if it was seen.
    pub(super) fn uid(&self) -> &str {
        &self.uid
    }

    pub(super) fn is_first_look(&mut self) -> bool {
        !std::mem::replace(&mut self.has_looked, true)
    }

    /// The Secret was read. A new one of the same name has another memory.
    pub(super) fn saw(&mut self, uid: &str) {
        if self.uid != uid {
            *self = Self { uid: uid.to_owned(), has_looked: true, ..Self::default() };
        }
    }

    fn vouches_for(&self, fingerprint: &Fingerprint) -> bool {
        self.vouched.is_some_and(|(good, at)| good == *fingerprint && at.elapsed() < TRUSTED)
    }

    /// Keeps no token longer than it is of use.
    pub(super) fn drop_old_token(&mut self) {
        self.in_hand.take_if(|hand| hand.at.elapsed() >= TRUSTED);
    }

    /// The monotonic time of a renewal, if that is known.
    fn due(&self, renewal: Timestamp) -> Option<Due> {
        self.due.filter(|due| due.renewal == renewal.as_second())
    }

    fn is_due(&self, renewal: Timestamp, clock: &Clock) -> bool {
        renewal <= clock.wall() || self.due(renewal).is_some_and(|due| due.at <= clock.monotonic())
    }

    /// When a token is to be renewed that has this time beside it. From the first look on, the monotonic clock counts, too.
    fn renewal(&mut self, written: Timestamp, claims: Option<&Claims>, clock: &Clock) -> Timestamp {
        if self.due(written).is_some_and(|due| due.is_own) {
            return written;
        }
        let renewal = renewal::within_life(written, claims.and_then(Claims::life));
        if self.due(renewal).is_none() {
            let at = clock.monotonic() + renewal::at_most(clock.wall(), renewal, None);
            self.due = Some(Due { renewal: renewal.as_second(), at, is_own: false });
        }
        renewal
    }

    /// The token in hand, if it is for this order, and nobody asked for another one since.
    fn in_hand(&self, order: &Order, renewal: Option<&str>) -> Option<Token> {
        let fits = |hand: &&InHand| {
            let is_wanted = hand.order == *order && hand.renewal.as_deref() == renewal && hand.uid == self.uid;
            is_wanted && hand.at.elapsed() < TRUSTED
        };
        self.in_hand.as_ref().filter(fits).map(|hand| hand.token.clone())
    }
}

// === impl Requestor ===

impl Requestor {
    /// The end of a pass that was woken by nothing but the event of its own write: the Secret is as it was left.
    pub(super) fn is_as_written(&self, memory: &Memory, pass: &Pass<NamespacedName>) -> Option<Outcome> {
        let written = memory.written.filter(|_| !pass.because_of(ACCOUNT.with(Causes::RESYNC)))?;
        let version = self.secrets.store().with(&pass.key, |secret| secret.version())?;
        let is_the_same = version == written.version && !memory.is_due(written.renewal, &self.clock);
        is_the_same.then(|| self.rest(memory, pass, written.renewal, Some(written.expires)))
    }

    /// Sees to it that a Secret holds a good token.
    pub(super) async fn keep(
        &self,
        context: &Context,
        memory: &mut Memory,
        pass: &Pass<NamespacedName>,
        mut live: Value,
    ) -> Result<Outcome, Problem> {
        for left in (0..ATTEMPTS).rev() {
            let order = Order::of(&live);
            let holder = self.holder(context, &order, &live).await?;
            let is_suspect = pass.because_of(ACCOUNT);
            let reason = match self.judge(context, memory, &order, (&live, holder.as_deref()), is_suspect).await? {
                Verdict::Due(reason) => reason,
                Verdict::Good { renewal, expires } => {
                    memory.in_hand = None;
                    return Ok(self.rest(memory, pass, renewal, expires));
                }
                Verdict::Pause(time) => {
                    self.book.enter(&pass.key, State::Rejected, None);
                    pass.note("the API server does not accept the tokens that it issues");
                    return Ok(Outcome::After(time));
                }
            };
            let token = self.token(context, memory, &order, (&live, holder.as_deref())).await?;
            match self.write(context, &order, (&live, holder), &token).await {
                Ok((renewal, version)) => {
                    let account = &order.account;
                    tracing::info!(secret = %pass.key, %account, reason, expires = %token.expires, "a token is renewed");
                    let (fingerprint, now) = (token::fingerprint(token.reveal()), self.clock.monotonic());
                    (memory.issued, memory.vouched) = (Some((fingerprint, now)), Some((fingerprint, now)));
                    (memory.in_hand, memory.renewed) = (None, Some(self.clock.wall()));
                    let life = Claims::of(token.reveal()).and_then(|claims| claims.life());
                    let at = now + renewal::at_most(self.clock.wall(), renewal, life);
                    memory.due = Some(Due { renewal: renewal.as_second(), at, is_own: true });
                    // What becomes of a target Secret is not heard of.
                    let version = version.filter(|_| order.target.is_none());
                    memory.written = version.map(|version| Written { version, renewal, expires: token.expires });
                    return Ok(self.rest(memory, pass, renewal, Some(token.expires)));
                }
                Err(Problem::Api(_, error)) if is_race(&error) && left > 0 => {
                    tracing::debug!(secret = %pass.key, %error, "somebody else was faster; reading again");
                }
                Err(error) => return Err(error),
            }
            let at = secret().at(&*pass.key.namespace, &*pass.key.name);
            let Some(again) = self.source.find(context, &at).await? else { return Ok(Outcome::Retire) };
            let is_other = object::uid(&again) != memory.uid;
            let task = Access::of(&again).map_or(Task::None, |access| access.task(self.rules));
            if is_other || task != (Task::Keep { finalizer: None }) {
                return Ok(Outcome::Continue); // it is another matter now
            }
            live = again;
        }
        Ok(Outcome::Again)
    }

    /// The Secret that holds the token; `None`: the target Secret does not exist.
    async fn holder<'a>(
        &self,
        context: &Context,
        order: &Order,
        live: &'a Value,
    ) -> Result<Option<Cow<'a, Value>>, Problem> {
        let Some(target) = &order.target else { return Ok(Some(Cow::Borrowed(live))) };
        let at = secret().at(&*target.namespace, &*target.name);
        let found = self.target.find(context, &at).await;
        let found = found.map_err(|error| Problem::Api("could not read target secret: ", error))?;
        Ok(found.map(Cow::Owned))
    }

    /// Spec 30 §5.1. A token whose time has come is not reviewed: whatever the answer, it is renewed.
    async fn judge(
        &self,
        context: &Context,
        memory: &mut Memory,
        order: &Order,
        (live, holder): (&Value, Option<&Value>),
        is_suspect: bool,
    ) -> Result<Verdict, Problem> {
        let renewal = Access::of(live).and_then(|access| access.renewal);
        let Some(renewal) = renewal else { return Ok(Verdict::Due("no time of renewal")) };
        let Some(holder) = holder else { return Ok(Verdict::Due("there is no target Secret")) };
        let text = match content::held(holder, order.wants_ca.then_some(&*self.ca))? {
            Held::Nothing(reason) => return Ok(Verdict::Due(reason)),
            Held::Token(text) => text,
        };
        let claims = Claims::of(&text);
        let renewal = renewal.parse::<Timestamp>().map(|written| memory.renewal(written, claims.as_ref(), &self.clock));
        if renewal.as_ref().is_ok_and(|renewal| memory.is_due(*renewal, &self.clock)) {
            return Ok(Verdict::Due("its time has come"));
        }
        if claims.as_ref().is_some_and(|claims| self.is_of_another_account(claims)) {
            return Ok(Verdict::Due("its ServiceAccount is another one"));
        }
        let fingerprint = token::fingerprint(&text);
        if is_suspect || !memory.vouches_for(&fingerprint) {
            if let Err(reason) = self.review(context, &text).await? {
                tracing::info!(secret = %NamespacedName::of(live), reason, audience = AUDIENCE, "a token is rejected");
                return Ok(memory.rejected(&fingerprint));
            }
            memory.vouched = Some((fingerprint, self.clock.monotonic()));
            memory.rejections = 0;
        }
        let renewal = renewal.map_err(|error| Problem::Order(format!("could not parse renew timestamp: {error}")))?;
        Ok(Verdict::Good { renewal, expires: claims.and_then(|claims| claims.expires) })
    }

    /// Whether the ServiceAccount of a token is known to be gone, or another one. The API server remembers for some seconds
    /// that it accepted a token (spec 30 T4).
    fn is_of_another_account(&self, claims: &Claims) -> bool {
        let uid = |account: &cluster::Projected<Account>| account.fields.uid.clone();
        let known = self.accounts.store().with(&claims.account, uid);
        self.accounts.is_fresh_for(&claims.account) && known.as_deref() != Some(&*claims.account_uid)
    }

    /// Asks the target whether it accepts a token; `Err` says why not.
    async fn review(&self, context: &Context, text: &str) -> Result<Result<(), String>, Problem> {
        let reviews = Resource::new("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", false);
        let answer = self.target.create(context, &reviews.at("", ""), &token::review(text)).await;
        let answer = answer.map_err(|error| Problem::Api("token review failed: ", error))?;
        if answer.pointer("/status/authenticated") == Some(&Value::Bool(true)) {
            return Ok(Ok(()));
        }
        Ok(Err(answer.pointer("/status/error").and_then(Value::as_str).unwrap_or_default().to_owned()))
    }

    /// A token for the Secret: the one in hand, or a new one. All that can be wrong with the Secret is found before one is
    /// asked for ("Better than upstream" 2).
    async fn token(
        &self,
        context: &Context,
        memory: &mut Memory,
        order: &Order,
        (live, holder): (&Value, Option<&Value>),
    ) -> Result<Token, Problem> {
        let renewal = Access::of(live).and_then(|access| access.renewal);
        if let Some(token) = memory.in_hand(order, renewal.as_deref()) {
            // If it is there, it was written, and only the answer was lost: whoever wants a token wants another one.
            let held = content::held(holder.unwrap_or(&Value::Null), None);
            let is_there = matches!(held, Ok(Held::Token(text)) if text == token.reveal());
            if order.target.is_some() || !is_there {
                return Ok(token);
            }
        }
        order.check_account()?;
        let labels = order.labels()?;
        self.ensure_account(context, &order.account, &labels, false).await?;
        let body = token::request(order.seconds()?);
        content::placed(holder.unwrap_or(&Value::Null), "", self.ca_to_write(order))?;
        let at = service_account().at(&*order.account.namespace, &*order.account.name);
        let answer = match self.target.create_subresource(context, &at, "token", &body).await {
            Err(error) if error.is_not_found() => {
                // The watch had not yet heard that it is gone.
                self.ensure_account(context, &order.account, &labels, true).await?;
                self.target.create_subresource(context, &at, "token", &body).await?
            }
            answer => answer?,
        };
        let token = Token::of(&answer)?;
        let (uid, at) = (memory.uid.clone(), self.clock.monotonic());
        memory.in_hand = Some(InHand { uid, order: order.clone(), renewal, token: token.clone(), at });
        Ok(token)
    }

    /// Spec 30 §5.2. Asks nobody if the watch knows that it is as it should be, unless it is to be read `live`.
    async fn ensure_account(
        &self,
        context: &Context,
        name: &NamespacedName,
        labels: &super::order::Labels,
        live: bool,
    ) -> Result<(), Problem> {
        let (at, asked) = (service_account().at(&*name.namespace, &*name.name), self.clock.monotonic());
        let is_known = !live && self.accounts.is_fresh_for(name);
        let known = self.accounts.store().with(name, |account| account.fields.fits(labels));
        if is_known && known == Some(true) {
            return Ok(());
        }
        if is_known && known.is_none() {
            match self.target.create(context, &at, &account::created(name, labels)).await {
                Err(error) if error.is_already_exists() => {}
                answer => {
                    self.accounts.wrote(&answer?, &name.to_string(), asked);
                    return Ok(());
                }
            }
        }
        let answer = match self.target.find(context, &at).await? {
            None => self.target.create(context, &at, &account::created(name, labels)).await?,
            Some(live) => match account::updated(&live, labels) {
                Some(account) => self.target.replace(context, &at, None, &account).await?,
                None => live,
            },
        };
        self.accounts.wrote(&answer, &name.to_string(), asked);
        Ok(())
    }

    fn ca_to_write(&self, order: &Order) -> Option<&[u8]> {
        Some(&*self.ca).filter(|ca| order.wants_ca && !ca.is_empty())
    }

    /// Spec 30 §5.6: first the target Secret, last the Secret itself. When the token is to be renewed, and the version that
    /// the Secret has then.
    async fn write(
        &self,
        context: &Context,
        order: &Order,
        (live, holder): (&Value, Option<Cow<'_, Value>>),
        token: &Token,
    ) -> Result<(Timestamp, Option<u64>), Problem> {
        let holder = holder.as_deref().unwrap_or(&Value::Null);
        let mut changes = content::placed(holder, token.reveal(), self.ca_to_write(order))?;
        if let Some(target) = &order.target {
            let at = secret().at(&*target.namespace, &*target.name);
            if let Some(wanted) = content::target(holder, target, &changes) {
                let written = match holder.is_null() {
                    true => self.target.create(context, &at, &wanted).await,
                    false => self.target.replace(context, &at, None, &wanted).await,
                };
                written.map_err(|error| Problem::Api(UPDATE, error))?;
            }
            changes = content::depopulated(live);
        }
        let now = self.clock.wall();
        let renewal = now + renewal::period(now, token.expires, self.random.unit());
        let (at, asked) = (secret().at(object::namespace(live), object::name(live)), self.clock.monotonic());
        let answer = self.source.merge_patch(context, &at, None, &content::patch(live, renewal, changes)).await;
        let answer = answer.map_err(|error| Problem::Api(UPDATE, error))?;
        self.wrote(&answer, asked);
        Ok((renewal, object::resource_version(&answer).parse().ok()))
    }

    /// Nothing to do before the renewal.
    fn rest(
        &self,
        memory: &Memory,
        pass: &Pass<NamespacedName>,
        renewal: Timestamp,
        expires: Option<Timestamp>,
    ) -> Outcome {
        self.book.enter(&pass.key, State::Fresh, expires);
        pass.note(format!("renewal at {}", renewal::text(renewal)));
        let row = |label: &str, time: Option<Timestamp>| time.map(|time| (label.to_owned(), renewal::text(time)));
        let rows = [("next renewal", Some(renewal)), ("last renewal", memory.renewed), ("token expires", expires)];
        pass.detail(rows.into_iter().filter_map(|(label, time)| row(label, time)).collect());
        let next = renewal::next_look(self.clock.wall(), renewal, expires);
        // Both clocks are looked at now and then: a machine may have slept, and a wall clock be set back.
        let (clock, due) = (self.clock.clone(), memory.due(renewal));
        let left = move || {
            let left = Duration::try_from(next.duration_since(clock.wall())).unwrap_or_default();
            let due = due.map_or(LOOK, |due| due.at.saturating_duration_since(clock.monotonic()));
            let left = left.min(due).min(LOOK);
            (!left.is_zero()).then_some(left)
        };
        match left() {
            Some(delay) => Outcome::Rest(delay, Look::new(left)),
            None => Outcome::Continue,
        }
    }
}

/// Lost to another writer.
fn is_race(error: &ApiError) -> bool {
    error.is_conflict() || error.is_not_found() || error.is_already_exists()
}

impl Memory {
    /// A token is rejected. One that this process was given a short time ago is not replaced at once, lest that goes on for
    /// ever (spec 30 T9).
    fn rejected(&mut self, fingerprint: &Fingerprint) -> Verdict {
        self.vouched = None;
        if let Some((issued, at)) = self.issued.filter(|(_, at)| at.elapsed() < RECENT)
            && issued == *fingerprint
        {
            let left = renewal::pause(self.rejections).saturating_sub(at.elapsed());
            if !left.is_zero() {
                return Verdict::Pause(left);
            }
            self.rejections += 1;
        }
        Verdict::Due("it is rejected")
    }
}

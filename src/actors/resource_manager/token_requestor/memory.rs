//! The memory of an actor between reconciles: the last good token, the token to write, the next renewal.

use std::time::Duration;

use cluster::object;
use jiff::Timestamp;
use kit::Clock;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    access::Access,
    order::Order,
    renewal,
    token::{self, Claims, Fingerprint, Token},
};

/// A good token is not reviewed again within this time, and an unwritten token can still be used.
const TRUSTED: Duration = Duration::from_secs(60);
/// A rejected token that was issued within this time was never accepted.
const RECENT: Duration = Duration::from_secs(7200);

#[derive(Default)]
pub(super) struct Memory {
    uid: String,
    has_looked: bool,
    /// The last good token, and when it was accepted.
    vouched: Option<(Fingerprint, Instant)>,
    issued: Option<(Fingerprint, Instant)>,
    /// Rejections in a row of tokens issued to this process.
    rejections: u32,
    in_hand: Option<InHand>,
    renewed: Option<Timestamp>,
    written: Option<Written>,
    due: Option<Due>,
}

/// A renewal by the monotonic clock: no token expires when the wall clock is set back (fault 17).
#[derive(Clone, Copy)]
struct Due {
    /// The renewal time, in whole seconds as written.
    renewal: i64,
    at: Instant,
    /// The token for which this process chose the time. For this token the time is valid even if the clocks differ by
    /// more than its life (spec 30 T10); for another token it is not.
    own: Option<Fingerprint>,
}

#[derive(Clone, Copy)]
struct Written {
    version: u64,
    renewal: Timestamp,
    expires: Timestamp,
}

struct InHand {
    order: Order,
    /// Value of the renewal annotation when the token was requested. A client removes it to get a newer token.
    renewal: Option<Box<str>>,
    token: Token,
    at: Instant,
    /// A write bound to this version of the Secret failed, but may have succeeded on the server.
    unconfirmed: Option<String>,
}

impl Memory {
    pub(super) fn uid(&self) -> &str {
        &self.uid
    }

    pub(super) fn renewed(&self) -> Option<Timestamp> {
        self.renewed
    }

    pub(super) fn is_first_look(&mut self) -> bool {
        !std::mem::replace(&mut self.has_looked, true)
    }

    /// Records the Secret's uid; a recreated Secret starts with an empty memory.
    pub(super) fn saw(&mut self, uid: &str) {
        if self.uid != uid {
            *self = Self { uid: uid.to_owned(), has_looked: true, ..Self::default() };
        }
    }

    pub(super) fn vouches_for(&self, fingerprint: &Fingerprint) -> bool {
        self.vouched.is_some_and(|(good, at)| good == *fingerprint && at.elapsed() < TRUSTED)
    }

    pub(super) fn accepted(&mut self, fingerprint: Fingerprint, now: Instant) {
        self.vouched = Some((fingerprint, now));
        self.rejections = 0;
    }

    /// Records a rejection. Returns how long to wait before the next token: a token that was just issued to this
    /// process is not replaced at once, otherwise that could go on for ever (spec 30 T9).
    pub(super) fn rejected(&mut self, fingerprint: &Fingerprint) -> Option<Duration> {
        self.vouched = None;
        if let Some((issued, at)) = self.issued.filter(|(_, at)| at.elapsed() < RECENT)
            && issued == *fingerprint
        {
            let left = renewal::pause(self.rejections).saturating_sub(at.elapsed());
            if !left.is_zero() {
                return Some(left);
            }
            self.rejections += 1;
        }
        None
    }

    pub(super) fn due_at(&self, renewal: Timestamp) -> Option<Instant> {
        self.due(renewal).map(|due| due.at)
    }

    fn due(&self, renewal: Timestamp) -> Option<Due> {
        self.due.filter(|due| due.renewal == renewal.as_second())
    }

    pub(super) fn is_due(&self, renewal: Timestamp, clock: &Clock) -> bool {
        renewal <= clock.wall() || self.due_at(renewal).is_some_and(|at| at <= clock.monotonic())
    }

    /// Returns the token's renewal time. From the first check on, the monotonic clock counts too.
    pub(super) fn renewal(
        &mut self,
        written: Timestamp,
        (fingerprint, claims): (&Fingerprint, Option<&Claims>),
        clock: &Clock,
    ) -> Timestamp {
        if self.due(written).is_some_and(|due| due.own.as_ref() == Some(fingerprint)) {
            return written;
        }
        let renewal = renewal::within_life(written, claims.and_then(Claims::life));
        if self.due(renewal).is_none() {
            let at = clock.monotonic() + renewal::at_most(clock.wall(), renewal, None);
            self.due = Some(Due { renewal: renewal.as_second(), at, own: None });
        }
        renewal
    }

    /// Returns renewal and expiry of the last written token, if the Secret is unchanged and not due.
    pub(super) fn as_written(&self, version: u64, clock: &Clock) -> Option<(Timestamp, Timestamp)> {
        let written = self.written.filter(|written| written.version == version)?;
        (!self.is_due(written.renewal, clock)).then_some((written.renewal, written.expires))
    }

    pub(super) fn take(&mut self, token: Token, order: &Order, live: &Value, now: Instant) {
        self.in_hand =
            Some(InHand { order: order.clone(), renewal: renewal_of(live), token, at: now, unconfirmed: None });
    }

    /// Returns the token in hand if order, ServiceAccount uid and renewal annotation still match; otherwise drops it.
    pub(super) fn in_hand(&mut self, order: &Order, live: &Value, account_uid: &str) -> Option<Token> {
        self.in_hand.take_if(|hand| !hand.fits(order, live, account_uid));
        self.in_hand.as_ref().map(|hand| hand.token.clone())
    }

    /// Records that the write of the token in hand, bound to this version of the Secret, may have succeeded.
    pub(super) fn unconfirmed(&mut self, version: &str) {
        if let Some(hand) = &mut self.in_hand {
            hand.unconfirmed = Some(version.to_owned());
        }
    }

    pub(super) fn drop_old_token(&mut self) {
        self.in_hand.take_if(|hand| hand.at.elapsed() >= TRUSTED);
    }

    pub(super) fn drop_token(&mut self) {
        self.in_hand = None;
    }

    /// Records a written token. `version` is the version of the Secret if it holds the token itself.
    pub(super) fn wrote(&mut self, token: &Token, renewal: Timestamp, version: Option<u64>, clock: &Clock) {
        let (fingerprint, now) = (token::fingerprint(token.reveal()), clock.monotonic());
        let life = Claims::of(token.reveal()).and_then(|claims| claims.life());
        let at = now + renewal::at_most(clock.wall(), renewal, life);
        (self.issued, self.vouched) = (Some((fingerprint, now)), Some((fingerprint, now)));
        (self.in_hand, self.renewed) = (None, Some(clock.wall()));
        self.due = Some(Due { renewal: renewal.as_second(), at, own: Some(fingerprint) });
        self.written = version.map(|version| Written { version, renewal, expires: token.expires });
    }
}

impl InHand {
    fn fits(&self, order: &Order, live: &Value, account_uid: &str) -> bool {
        let is_wanted = self.order == *order && self.renewal == renewal_of(live) && self.at.elapsed() < TRUSTED;
        // The Secret has changed, perhaps by that write. Then a request for a token is a request for another token.
        let may_be_written = self.unconfirmed.as_ref().is_some_and(|version| version != object::resource_version(live));
        let claims = Claims::of(self.token.reveal());
        is_wanted && !may_be_written && claims.is_some_and(|claims| claims.account_uid == account_uid)
    }
}

fn renewal_of(secret: &Value) -> Option<Box<str>> {
    Access::of(secret).and_then(|access| access.renewal)
}

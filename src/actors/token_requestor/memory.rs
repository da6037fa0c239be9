//! What an actor remembers between passes: which token was good, which one is not written yet, when the next is due.

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

/// A token that was found good is not reviewed again in this time, and one that could not be written is used again in it.
const TRUSTED: Duration = Duration::from_secs(60);
/// A token that is rejected within this time was never accepted.
const RECENT: Duration = Duration::from_secs(7200);

/// What an actor remembers.
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
    /// This process chose the time, for this token that it was given. For that it stands also where the clocks differ by more
    /// than the token's life (spec 30 T10); of another token beside it it says nothing.
    own: Option<Fingerprint>,
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
    order: Order,
    /// Whoever takes the time of renewal away wants a token that is issued after that.
    renewal: Option<Box<str>>,
    token: Token,
    at: Instant,
    /// A write that was bound to this version of the Secret failed, and may have happened nevertheless.
    unconfirmed: Option<String>,
}

impl Memory {
    /// The Secret's uid, if it was seen.
    pub(super) fn uid(&self) -> &str {
        &self.uid
    }

    /// When this process last renewed the token.
    pub(super) fn renewed(&self) -> Option<Timestamp> {
        self.renewed
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

    // --- whether a token is good

    pub(super) fn vouches_for(&self, fingerprint: &Fingerprint) -> bool {
        self.vouched.is_some_and(|(good, at)| good == *fingerprint && at.elapsed() < TRUSTED)
    }

    /// A token was accepted.
    pub(super) fn accepted(&mut self, fingerprint: Fingerprint, now: Instant) {
        self.vouched = Some((fingerprint, now));
        self.rejections = 0;
    }

    /// A token is rejected; how long to wait before there is another one. One that this process was given a short time ago is
    /// not replaced at once, lest that goes on for ever (spec 30 T9).
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

    // --- when it is renewed

    /// The monotonic time of a renewal, if that is known.
    pub(super) fn due_at(&self, renewal: Timestamp) -> Option<Instant> {
        self.due(renewal).map(|due| due.at)
    }

    fn due(&self, renewal: Timestamp) -> Option<Due> {
        self.due.filter(|due| due.renewal == renewal.as_second())
    }

    pub(super) fn is_due(&self, renewal: Timestamp, clock: &Clock) -> bool {
        renewal <= clock.wall() || self.due_at(renewal).is_some_and(|at| at <= clock.monotonic())
    }

    /// When this token is to be renewed if that time is written beside it. From the first look on, the monotonic clock counts,
    /// too.
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

    /// Renewal and expiry of the token that was written last, if the Secret is as it was left then and there is time.
    pub(super) fn as_written(&self, version: u64, clock: &Clock) -> Option<(Timestamp, Timestamp)> {
        let written = self.written.filter(|written| written.version == version)?;
        (!self.is_due(written.renewal, clock)).then_some((written.renewal, written.expires))
    }

    // --- the token in hand

    /// A token was issued, and is to be written.
    pub(super) fn take(&mut self, token: Token, order: &Order, live: &Value, now: Instant) {
        self.in_hand =
            Some(InHand { order: order.clone(), renewal: renewal_of(live), token, at: now, unconfirmed: None });
    }

    /// The token in hand, if it may be written into this Secret: it is for the same order, of the ServiceAccount with this uid,
    /// and nobody asked for another one since. Any other is dropped.
    pub(super) fn in_hand(&mut self, order: &Order, live: &Value, account_uid: &str) -> Option<Token> {
        self.in_hand.take_if(|hand| !hand.fits(order, live, account_uid));
        self.in_hand.as_ref().map(|hand| hand.token.clone())
    }

    /// A write of the token in hand failed that was bound to this version of the Secret, and may have happened nevertheless.
    pub(super) fn unconfirmed(&mut self, version: &str) {
        if let Some(hand) = &mut self.in_hand {
            hand.unconfirmed = Some(version.to_owned());
        }
    }

    /// Drops a token that is too old to be of use.
    pub(super) fn drop_old_token(&mut self) {
        self.in_hand.take_if(|hand| hand.at.elapsed() >= TRUSTED);
    }

    /// Drops the token in hand: there is a good one.
    pub(super) fn drop_token(&mut self) {
        self.in_hand = None;
    }

    /// A token was written, with this time of renewal beside it. `version`: the Secret's, if it is the one that holds the token.
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
        // The Secret changed since: perhaps by that write, and then whoever wants a token wants another one.
        let may_be_written = self.unconfirmed.as_ref().is_some_and(|version| version != object::resource_version(live));
        let claims = Claims::of(self.token.reveal());
        is_wanted && !may_be_written && claims.is_some_and(|claims| claims.account_uid == account_uid)
    }
}

fn renewal_of(secret: &Value) -> Option<Box<str>> {
    Access::of(secret).and_then(|access| access.renewal)
}

//! The rules of the election, as client-go has them, without clock and I/O.
//!
//! Whether somebody else's lease is still valid is decided by when *we* saw its record change, by our monotonic clock:
//! clocks of replicas may differ. Whether ours is valid is decided by when we *sent* the last successful renewal.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use super::lease::Lease;

/// A candidate tries again after the retry period stretched by a factor up to 1 + this.
const JITTER: f64 = 1.2;

/// Error text (spec 70 §12).
const DEADLINE_TOO_SHORT: &str = "renewDeadline must be greater than retryPeriod*JitterFactor";

/// How long a lease is valid, and how often it is renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    lease_duration: Duration,
    renew_deadline: Duration,
    retry_period: Duration,
}

/// Why there can be no election; texts of spec 70 §12.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ElectionError {
    /// The durations do not fit together.
    #[error("{0}")]
    Timing(&'static str),
    /// A lock that existed once.
    #[error("{0} lock is removed, {1} to leases")]
    RemovedLock(String, &'static str),
    /// A lock that never existed.
    #[error("Invalid lock-type {0}")]
    UnknownLock(String),
}

/// The election as one candidate sees it.
#[derive(Debug)]
pub struct Election {
    identity: String,
    namespace: String,
    name: String,
    timing: Timing,
    /// The record as last seen, and when it changed for us.
    observed: Option<(Lease, Instant)>,
    /// When the renewal (or acquisition) that succeeded last was sent; `None` while we do not lead.
    held_since: Option<Instant>,
    /// When the request under way was sent.
    sent: Instant,
    /// The request under way is the hopeful update of a lease we hold.
    optimistic: bool,
}

/// What the candidate does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Read the Lease; the answer goes to [`Election::read`].
    Get,
    /// Create it; the answer goes to [`Election::written`].
    Create(Value),
    /// Replace it, with the version it has; the answer goes to [`Election::written`].
    Update(Value),
    /// Begin anew ([`Election::begin`]) after this time.
    Wait(Duration),
    /// It is no longer ours, and nothing may be written any more.
    Lost,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The Lease as it is now, read or written.
    Lease(Value),
    /// There is none.
    Missing,
    /// It cannot be created: somebody else did.
    Exists,
    /// Any other failure, time-outs included.
    Failed,
}

/// What a step goes by beside the answer: both clocks, and a random number in `[0, 1)`.
#[derive(Debug, Clone, Copy)]
pub struct Tick {
    /// Monotonic.
    pub now: Instant,
    /// For the record.
    pub wall: Timestamp,
    /// For jitter.
    pub random: f64,
}

impl Timing {
    /// Checks the durations against each other.
    pub fn new(
        lease_duration: Duration,
        renew_deadline: Duration,
        retry_period: Duration,
    ) -> Result<Self, ElectionError> {
        if lease_duration <= renew_deadline {
            return Err(ElectionError::Timing("leaseDuration must be greater than renewDeadline"));
        }
        if renew_deadline <= retry_period.mul_f64(JITTER) {
            return Err(ElectionError::Timing(DEADLINE_TOO_SHORT));
        }
        if retry_period.is_zero() {
            return Err(ElectionError::Timing("retryPeriod must be greater than zero"));
        }
        Ok(Self { lease_duration, renew_deadline, retry_period })
    }

    /// The lease is lost when no renewal succeeds for so long; the limit of the fence.
    pub fn renew_deadline(&self) -> Duration {
        self.renew_deadline
    }

    /// Limit of one request: half the renew deadline leaves time for a second one (spec 70 §12).
    pub fn request_timeout(&self) -> Duration {
        (self.renew_deadline / 2).max(Duration::from_secs(1))
    }
}

/// Checks `leaderElection.resourceLock` (spec 70 §12): only `leases` is left.
pub fn check_lock_type(lock: &str) -> Result<(), ElectionError> {
    match lock {
        "leases" => Ok(()),
        "endpoints" | "configmaps" | "endpointsleases" => Err(ElectionError::RemovedLock(lock.into(), "migrate")),
        "configmapsleases" => Err(ElectionError::RemovedLock(lock.into(), "migrated")),
        other => Err(ElectionError::UnknownLock(other.into())),
    }
}

impl Election {
    /// A candidate that knows nothing yet. `identity`: `<host name>_<random uuid>`.
    pub fn new(identity: String, namespace: String, name: String, timing: Timing, now: Instant) -> Self {
        Self { identity, namespace, name, timing, observed: None, held_since: None, sent: now, optimistic: false }
    }

    /// Who we are.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// When the last renewal was sent, while we lead.
    pub fn held_since(&self) -> Option<Instant> {
        self.held_since
    }

    /// When the lease is lost without another renewal.
    pub fn lost_at(&self) -> Option<Instant> {
        self.held_since.map(|since| since + self.timing.renew_deadline)
    }

    /// Who holds the lease, as far as known.
    pub fn holder(&self) -> Option<&str> {
        self.observed.as_ref().map(|(lease, _)| lease.holder())
    }

    /// uid of the Lease, if known.
    pub fn uid(&self) -> &str {
        self.observed.as_ref().map_or("", |(lease, _)| lease.uid())
    }

    /// Version of the Lease as last seen, if known.
    pub fn version(&self) -> Option<&str> {
        self.observed.as_ref().map(|(lease, _)| lease.version()).filter(|version| !version.is_empty())
    }

    /// The timing it runs by.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// A new attempt. The holder updates what it wrote last and saves the read; everybody else reads first.
    pub fn begin(&mut self, at: Tick) -> Action {
        self.sent = at.now;
        match (&self.observed, self.held_since) {
            (_, Some(_)) if self.is_over(at.now) => self.lose(),
            (Some((lease, _)), Some(_)) if lease.holder() == self.identity => {
                self.optimistic = true;
                Action::Update(lease.renewed(self.timing.lease_duration, at.wall))
            }
            _ => Action::Get,
        }
    }

    /// A read ended.
    pub fn read(&mut self, answer: Answer, at: Tick) -> Action {
        self.optimistic = false;
        self.sent = at.now;
        let (identity, duration) = (&self.identity, self.timing.lease_duration);
        let lease = match answer {
            Answer::Failed | Answer::Exists => return self.again(at),
            // Deleted under its holder, who may write until its own deadline.
            Answer::Missing if self.held_by_another_until().is_some_and(|until| until > at.now) => {
                return self.again(at);
            }
            Answer::Missing => {
                return Action::Create(Lease::absent(&self.namespace, &self.name).taken(identity, duration, at.wall));
            }
            Answer::Lease(lease) => Lease::new(lease),
        };
        let seen_at = match &self.observed {
            Some((observed, seen_at)) if observed.same_record(&lease) => *seen_at,
            Some(_) | None => at.now,
        };
        self.observed = Some((lease.clone(), seen_at));
        let ours = lease.holder() == identity;
        let free = lease.holder().is_empty() || seen_at + lease.duration() <= at.now;
        match (ours, self.held_since) {
            (true, Some(_)) => Action::Update(lease.renewed(duration, at.wall)),
            // of a life before this one, or of an attempt of unknown outcome
            (true, None) => Action::Update(lease.taken(identity, duration, at.wall)),
            (false, Some(_)) => self.lose(), // somebody took it from us: waiting for the deadline would be wrong
            (false, None) if free => Action::Update(lease.taken(identity, duration, at.wall)),
            (false, None) => self.again(at),
        }
    }

    /// The Lease as a watch shows it to a candidate that waits; `true`: it is free, begin now. It is never taken without
    /// another read, so that a stream that is late only costs one.
    pub fn saw(&mut self, lease: Value, now: Instant) -> bool {
        if self.held_since.is_some() {
            return false;
        }
        let lease = Lease::new(lease);
        let is_free = lease.holder().is_empty();
        if !self.observed.as_ref().is_some_and(|(observed, _)| observed.same_record(&lease)) {
            self.observed = Some((lease, now));
        }
        is_free
    }

    /// A creation or update ended.
    pub fn written(&mut self, answer: Answer, at: Tick) -> Action {
        match answer {
            Answer::Lease(lease) => {
                self.observed = Some((Lease::new(lease), at.now));
                self.held_since = Some(self.sent);
                self.again(at)
            }
            // not to be led by two for the rest of the retry period
            Answer::Exists if self.held_since.is_some() => Action::Get,
            // a conflict, or no answer: look at what is there
            Answer::Missing | Answer::Failed if std::mem::take(&mut self.optimistic) => {
                if self.is_over(at.now) {
                    self.lose()
                } else {
                    Action::Get
                }
            }
            Answer::Missing | Answer::Failed | Answer::Exists => self.again(at),
        }
    }

    /// The update that gives the lease up, if we hold it. Ends our term.
    pub fn release(&mut self, at: Tick) -> Option<Value> {
        self.held_since.take()?;
        let (lease, _) = self.observed.as_ref()?;
        (lease.holder() == self.identity).then(|| lease.released(at.wall))
    }

    fn again(&mut self, at: Tick) -> Action {
        let Some(lost_at) = self.lost_at() else { return Action::Wait(self.pause(at)) };
        if lost_at <= at.now {
            return self.lose();
        }
        Action::Wait(self.timing.retry_period.min(lost_at - at.now))
    }

    /// How long a candidate waits before it looks again.
    pub fn pause(&self, at: Tick) -> Duration {
        let pause = self.timing.retry_period.mul_f64(1.0 + JITTER * at.random);
        self.free_at().filter(|free| *free > at.now).map_or(pause, |free| pause.min(free - at.now))
    }

    /// Until when somebody else holds the lease without another renewal. Ours is not, also if we do not know yet that we have it.
    pub fn held_by_another_until(&self) -> Option<Instant> {
        let is_held = self.holder().is_some_and(|holder| !holder.is_empty() && holder != self.identity);
        self.free_at().filter(|_| is_held && self.held_since.is_none())
    }

    /// When somebody else's lease is free without another renewal: waiting longer would be wrong.
    fn free_at(&self) -> Option<Instant> {
        self.observed.as_ref().map(|(lease, seen_at)| *seen_at + lease.duration())
    }

    fn is_over(&self, now: Instant) -> bool {
        self.lost_at().is_some_and(|lost_at| lost_at <= now)
    }

    fn lose(&mut self) -> Action {
        self.held_since = None;
        Action::Lost
    }
}

#[cfg(test)]
mod tests;

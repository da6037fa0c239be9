//! The rules of the election, as client-go has them, without clock and I/O. Whether another replica's lease is still
//! valid depends on when *we* saw its record change, by our monotonic clock: clocks of replicas may differ. Whether our
//! own lease is valid depends on when we *sent* the last successful renewal.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use super::lease::Lease;

/// A candidate tries again after the retry period, stretched by a factor of up to 1 + this.
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
    /// The record as last seen, and when we saw it change.
    observed: Option<(Lease, Instant)>,
    /// When the last successful renewal (or acquisition) was sent; `None` while we do not lead.
    held_since: Option<Instant>,
    sent: Instant,
    /// The request under way updates our own lease without reading it first.
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
    /// The lease is no longer ours, and nothing may be written any more.
    Lost,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The Lease as it is now, read or written.
    Lease(Value),
    /// It does not exist.
    Missing,
    /// It cannot be created: another replica created it.
    Exists,
    /// Any other failure, time-outs included.
    Failed,
}

/// What a step depends on besides the answer: both clocks, and a random number in `[0, 1)`.
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
    /// Fails if the durations do not fit together.
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

    /// The lease is lost if no renewal succeeds for this long. Also the limit of the fence.
    pub fn renew_deadline(&self) -> Duration {
        self.renew_deadline
    }

    /// Limit of one request: half the renew deadline leaves time for a second request (spec 70 §12).
    pub fn request_timeout(&self) -> Duration {
        (self.renew_deadline / 2).max(Duration::from_secs(1))
    }
}

/// Checks `leaderElection.resourceLock` (spec 70 §12). Fails for everything except `leases`.
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

    /// Returns when the last renewal was sent, or `None` while we do not lead.
    pub fn held_since(&self) -> Option<Instant> {
        self.held_since
    }

    /// Returns when the lease is lost without another renewal, or `None` while we do not lead.
    pub fn lost_at(&self) -> Option<Instant> {
        self.held_since.map(|since| since + self.timing.renew_deadline)
    }

    /// Returns the holder of the lease, if known.
    pub fn holder(&self) -> Option<&str> {
        self.observed.as_ref().map(|(lease, _)| lease.holder())
    }

    /// Returns the uid of the Lease; empty if unknown.
    pub fn uid(&self) -> &str {
        self.observed.as_ref().map_or("", |(lease, _)| lease.uid())
    }

    /// Returns the version of the Lease as last seen, if known.
    pub fn version(&self) -> Option<&str> {
        self.observed.as_ref().map(|(lease, _)| lease.version()).filter(|version| !version.is_empty())
    }

    /// The timing of the election.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// Begins an attempt. The holder updates what it wrote last and saves the read; all others read first.
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
            // Deleted under its holder, which may write until its own deadline.
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
            // from an earlier term with our identity, or from an attempt of unknown outcome
            (true, None) => Action::Update(lease.taken(identity, duration, at.wall)),
            (false, Some(_)) => self.lose(), // another replica took it: waiting for the deadline would be wrong
            (false, None) if free => Action::Update(lease.taken(identity, duration, at.wall)),
            (false, None) => self.again(at),
        }
    }

    /// Handles the Lease as a watch shows it to a candidate that waits. Returns true if the Lease is free: begin now.
    /// It is never taken without another read, so that a stream that is late costs only a read.
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
            // otherwise there would be two leaders for the rest of the retry period
            Answer::Exists if self.held_since.is_some() => Action::Get,
            // a conflict, or no answer: read the Lease
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

    /// Returns the update that releases the lease, or `None` if we do not hold it. Ends our term.
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

    /// Returns how long a candidate waits before it reads again.
    pub fn pause(&self, at: Tick) -> Duration {
        let pause = self.timing.retry_period.mul_f64(1.0 + JITTER * at.random);
        self.free_at().filter(|free| *free > at.now).map_or(pause, |free| pause.min(free - at.now))
    }

    /// Returns until when another replica holds the lease without another renewal. Returns `None` if we hold it, even
    /// if our acquiring write has not been answered yet.
    pub fn held_by_another_until(&self) -> Option<Instant> {
        let is_held = self.holder().is_some_and(|holder| !holder.is_empty() && holder != self.identity);
        self.free_at().filter(|_| is_held && self.held_since.is_none())
    }

    /// Returns when another replica's lease is free without another renewal: waiting longer would be wrong.
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

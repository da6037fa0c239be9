//! Order of requests: a token bucket per resource type, writes in flight, priorities, turns of the askers. Invariant:
//! after [`Schedule::grant`], no waiting request could go at that moment.

use std::{
    collections::{BTreeMap, VecDeque},
    rc::Rc,
    time::Duration,
};

use kit::Priority;
use tokio::time::Instant;

use crate::ApiName;

/// Writes in flight per cluster (architecture §5): the server does about a thousand per second, in some ms each.
pub(super) const WRITES_AT_ONCE: usize = 16;
const LOW_PRIORITY_EVERY: u64 = 8; // each eighth grant goes to low priority first (contract rule 5)
/// Tokens are fractions; a token that lacks less than this is whole, because of rounding errors.
const ROUNDING: f64 = 1e-6;

/// Returns rate and burst, with client-go's defaults for zeros.
pub(super) fn given_or_usual(qps: f32, burst: u32) -> (f32, u32) {
    (if qps == 0.0 { 5.0 } else { qps }, if burst == 0 { 10 } else { burst })
}

pub(super) type Bucket = (ApiName, ApiName);

#[derive(Debug, Clone)]
pub(super) struct QueuedRequest {
    pub(super) priority: Priority,
    /// Who asks: askers of one priority take turns.
    pub(super) key: Rc<str>,
    pub(super) bucket: Bucket,
    pub(super) write: bool,
}

/// Its ticket, its bucket, and whether it is a write.
type WaitingRequest = (u64, Bucket, bool);

pub(super) struct Schedule {
    rate: Option<Rate>,
    buckets: BTreeMap<Bucket, Tokens>,
    high: Line,
    low: Line,
    next_ticket: u64,
    waiting_writes: usize,
    in_flight: usize,
    grants: u64,
}

#[derive(Clone, Copy)]
struct Rate {
    per_second: f64,
    burst: f64,
}

struct Tokens {
    left: f64,
    at: Instant,
    waiting_reads: usize,
    waiting_writes: usize,
}

#[derive(Default)]
struct Line {
    turns: VecDeque<Rc<str>>,
    requests: BTreeMap<Rc<str>, VecDeque<WaitingRequest>>,
    waiting: usize,
}

impl Schedule {
    /// Negative `qps`: no buckets. Zero: client-go's defaults of 5 per second and a burst of 10.
    pub(super) fn new(qps: f32, burst: u32) -> Self {
        let (qps, burst) = given_or_usual(qps, burst);
        let (per_second, burst) = (f64::from(qps), f64::from(burst));
        Self {
            rate: (per_second > 0.0).then_some(Rate { per_second, burst }),
            buckets: BTreeMap::new(),
            high: Line::default(),
            low: Line::default(),
            next_ticket: 0,
            waiting_writes: 0,
            in_flight: 0,
            grants: 0,
        }
    }

    /// Returns the number of waiting requests of high and of low priority.
    pub(super) fn waiting_by_priority(&self) -> (usize, usize) {
        (self.high.waiting, self.low.waiting)
    }

    /// Returns the requests per second and bucket, and the burst; `None` without buckets.
    pub(super) fn rate(&self) -> Option<(f64, f64)> {
        self.rate.as_ref().map(|rate| (rate.per_second, rate.burst))
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Grants a wish at once, or queues it and returns its ticket. Call [`Schedule::grant`] then, for wishes that time
    /// has freed meanwhile.
    pub(super) fn ask(&mut self, now: Instant, request: QueuedRequest) -> Option<u64> {
        self.refill(now, &request.bucket);
        if self.is_first(&request) && self.may_go(&request.bucket, request.write) {
            self.take(&request.bucket, request.write);
            return None;
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.waiting_writes += usize::from(request.write);
        self.count_waiting(&request.bucket, request.write, |waiting| waiting + 1);
        self.line(request.priority).push(request.key, (ticket, request.bucket, request.write));
        Some(ticket)
    }

    /// Grants all wishes that may go now. Returns their tickets in order.
    pub(super) fn grant(&mut self, now: Instant) -> Vec<u64> {
        let mut granted = Vec::new();
        let buckets: Vec<_> =
            self.buckets.iter().filter(|(_, tokens)| tokens.is_wanted()).map(|(bucket, _)| bucket.clone()).collect();
        buckets.iter().for_each(|bucket| self.refill(now, bucket));
        while let Some((ticket, bucket, write)) = self.next() {
            self.waiting_writes -= usize::from(write);
            self.count_waiting(&bucket, write, |waiting| waiting - 1);
            self.take(&bucket, write);
            granted.push(ticket);
        }
        granted
    }

    /// Removes a wish that was queued and not granted.
    pub(super) fn leave(&mut self, ticket: u64, priority: Priority, key: &Rc<str>) {
        let line = self.line(priority);
        let left = line.remove(key, |(queued, _, _)| *queued == ticket);
        if !line.requests.contains_key(key) {
            line.turns.retain(|other| other != key);
        }
        if let Some((_, bucket, write)) = left {
            self.waiting_writes -= usize::from(write);
            self.count_waiting(&bucket, write, |waiting| waiting - 1);
        }
    }

    pub(super) fn end_write(&mut self) {
        self.in_flight -= 1;
    }

    pub(super) fn next_refill(&self) -> Option<Instant> {
        let rate = self.rate?;
        let missing = |tokens: &Tokens| Duration::from_secs_f64((1.0 - tokens.left).max(0.0) / rate.per_second);
        let empty = self.buckets.values().filter(|tokens| tokens.is_wanted() && !tokens.has_one());
        empty.map(|tokens| tokens.at + missing(tokens)).min()
    }

    fn next(&mut self) -> Option<WaitingRequest> {
        let writes_full = self.in_flight >= WRITES_AT_ONCE;
        let limited = self.rate.is_some();
        let stuck = |tokens: &Tokens| {
            let waiting = tokens.waiting_reads + if writes_full { 0 } else { tokens.waiting_writes };
            waiting == 0 || limited && !tokens.has_one()
        };
        if self.buckets.values().all(stuck) {
            return None;
        }
        let buckets = &self.buckets;
        let may_go = |(_, bucket, write): &WaitingRequest| {
            !(*write && writes_full) && (!limited || buckets.get(bucket).is_none_or(Tokens::has_one))
        };
        let background_first = self.grants % LOW_PRIORITY_EVERY == LOW_PRIORITY_EVERY - 1;
        let (first, second) =
            if background_first { (&mut self.low, &mut self.high) } else { (&mut self.high, &mut self.low) };
        first.take(may_go).or_else(|| second.take(may_go))
    }

    fn line(&mut self, priority: Priority) -> &mut Line {
        match priority {
            Priority::High => &mut self.high,
            Priority::Low => &mut self.low,
        }
    }

    fn is_first(&self, request: &QueuedRequest) -> bool {
        let slots_free = self.in_flight < WRITES_AT_ONCE;
        let wanted = |tokens: &Tokens| tokens.waiting_reads > 0 || slots_free && tokens.waiting_writes > 0;
        let token_wanted = self.rate.is_some() && self.buckets.get(&request.bucket).is_some_and(wanted);
        let slot_wanted = request.write && self.waiting_writes > 0;
        !token_wanted && !slot_wanted
    }

    fn may_go(&self, bucket: &Bucket, write: bool) -> bool {
        let has_token = self.rate.is_none() || self.buckets.get(bucket).is_none_or(Tokens::has_one);
        has_token && !(write && self.in_flight >= WRITES_AT_ONCE)
    }

    fn take(&mut self, bucket: &Bucket, write: bool) {
        self.in_flight += usize::from(write);
        self.grants += 1;
        if let Some(tokens) = self.buckets.get_mut(bucket).filter(|_| self.rate.is_some()) {
            tokens.left -= 1.0;
        }
    }

    fn refill(&mut self, now: Instant, bucket: &Bucket) {
        let full = self.rate.map_or(0.0, |rate| rate.burst);
        let fresh = Tokens { left: full, at: now, waiting_reads: 0, waiting_writes: 0 };
        let tokens = self.buckets.entry(bucket.clone()).or_insert(fresh);
        if let Some(rate) = self.rate {
            let passed = now.saturating_duration_since(tokens.at).as_secs_f64();
            tokens.left = (tokens.left + passed * rate.per_second).min(rate.burst);
        }
        tokens.at = tokens.at.max(now);
    }

    fn count_waiting(&mut self, bucket: &Bucket, write: bool, change: impl FnOnce(usize) -> usize) {
        if let Some(tokens) = self.buckets.get_mut(bucket) {
            let count = if write { &mut tokens.waiting_writes } else { &mut tokens.waiting_reads };
            *count = change(*count);
        }
    }
}

impl Tokens {
    fn has_one(&self) -> bool {
        self.left >= 1.0 - ROUNDING
    }

    fn is_wanted(&self) -> bool {
        self.waiting_reads + self.waiting_writes > 0
    }
}

impl Line {
    fn push(&mut self, key: Rc<str>, request: WaitingRequest) {
        let queue = self.requests.entry(key.clone()).or_default();
        if queue.is_empty() {
            self.turns.push_back(key);
        }
        queue.push_back(request);
        self.waiting += 1;
    }

    /// Takes the first wish that may go, of the asker that has waited longest; that asker moves to the end of the line.
    fn take(&mut self, may_go: impl Fn(&WaitingRequest) -> bool) -> Option<WaitingRequest> {
        let requests = &self.requests;
        let has_one = |key: &Rc<str>| requests.get(key).is_some_and(|queue| queue.iter().any(&may_go));
        let turn = self.turns.iter().position(has_one)?;
        let key = self.turns.remove(turn)?;
        let request = self.remove(&key, may_go);
        if self.requests.contains_key(&key) {
            self.turns.push_back(key);
        }
        request
    }

    /// Removes the first wish of an asker that is meant. Leaves the asker's turn.
    fn remove(&mut self, key: &Rc<str>, is_it: impl Fn(&WaitingRequest) -> bool) -> Option<WaitingRequest> {
        let queue = self.requests.get_mut(key)?;
        let index = queue.iter().position(is_it)?;
        let request = queue.remove(index)?;
        self.waiting -= 1;
        if queue.is_empty() {
            self.requests.remove(key);
        }
        Some(request)
    }
}

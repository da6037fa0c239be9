//! What is seen of a webhook: metrics (spec 50 §2.8), its place in the census, the log.

use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    time::Duration,
};

use kit::{Activity, Cell, Census, Clock, Role};
use tokio::time::Instant;

use crate::{
    metrics::{Metrics, WebhookMetrics},
    webhooks::{
        authorizing::{Asked, Authorized, Decision, Ruling},
        endpoint::Account,
        review::{Judged, Verdict},
    },
};

/// Shared by all workers.
pub(super) struct Statistics {
    path: &'static str,
    metrics: WebhookMetrics,
    cell: Cell,
    in_flight: AtomicUsize,
    requests: AtomicU64,
    denied: AtomicU64,
    errors: AtomicU64,
    microseconds: AtomicU64,
}

/// A request that is being answered. Dropped before its end, its client has gone.
pub(super) struct Answering<'a> {
    statistics: &'a Statistics,
    begun: Instant,
}

// === impl Statistics ===

impl Statistics {
    pub(super) fn new(path: &'static str, metrics: &Metrics, census: &Census) -> Self {
        let cell = census.enter(path.trim_start_matches('/'), Role::Service);
        let statistics = Self {
            path,
            metrics: metrics.webhook(path),
            cell,
            in_flight: AtomicUsize::new(0),
            requests: AtomicU64::new(0),
            denied: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            microseconds: AtomicU64::new(0),
        };
        statistics.show(None);
        statistics
    }

    /// Its place in the census.
    pub(super) fn place(&self) -> &str {
        self.cell.path()
    }

    /// A request came.
    pub(super) fn begin(&self, begun: Instant) -> Answering<'_> {
        self.metrics.in_flight(1);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        Answering { statistics: self, begun }
    }

    /// A request has an answer.
    pub(super) fn answered(&self, account: &Account) {
        match account {
            Account::Admission(judged) => self.judged(judged),
            Account::Authorization(authorized) => self.authorized(authorized),
        }
    }

    /// Neither the object nor anything of it is logged but its name.
    fn judged(&self, judged: &Judged) {
        let (uid, operation, namespace, name, verdict) = match judged {
            Judged::Reviewed { uid, operation, namespace, name, verdict } => (uid, operation, namespace, name, verdict),
            Judged::Refused(refusal) => {
                self.failed(&refusal.message);
                let (uid, code) = (&refusal.identity.uid, refusal.code);
                tracing::info!(webhook = self.path, uid, code, "Request is no review");
                return;
            }
        };
        let (code, message) = verdict.told();
        if let Some(cause) = verdict.cause() {
            self.metrics.failed(cause);
        }
        let webhook = self.path;
        match verdict {
            Verdict::Allowed | Verdict::Patched(_) | Verdict::Unexpected(_) => {
                let patched = matches!(verdict, Verdict::Patched(_));
                tracing::debug!(webhook, uid, operation, namespace, name, patched, "Review allowed");
            }
            Verdict::Denied(_) | Verdict::Status(_) => {
                self.denied.fetch_add(1, Ordering::Relaxed);
                tracing::info!(webhook, uid, operation, namespace, name, code, message, "Review denied");
            }
            Verdict::ReadFailed { .. } | Verdict::Errored { .. } => {
                self.failed(message);
                tracing::info!(webhook, uid, operation, namespace, name, code, message, "Review not decided");
            }
            Verdict::Panicked(_) => {
                // Its text may quote the object.
                self.metrics.panicked();
                self.failed("panicked");
                tracing::error!(webhook, uid, operation, namespace, name, "A webhook panicked");
            }
        }
    }

    /// Spec 61 §8: who wanted what, and what was missing. Nothing of it is an object's content.
    fn authorized(&self, authorized: &Authorized) {
        let Authorized { logger, topic, asked, ruling } = authorized;
        let decision = ruling.outcome();
        self.metrics.decided(topic, decision);
        let Asked { user, verb, namespace, resource, subresource, name } = asked;
        match ruling {
            Ruling::Decided(Decision::Allow | Decision::NoOpinion) => {
                tracing::debug!(logger, user, verb, namespace, resource, subresource, name, decision, "Wrote response");
            }
            Ruling::Decided(Decision::Deny(reason)) => {
                self.denied.fetch_add(1, Ordering::Relaxed);
                tracing::info!(logger, user, verb, namespace, resource, subresource, name, reason, "Denied");
            }
            Ruling::Failed { code: 500, message } => {
                self.failed(message);
                let error = message;
                let text = "Error when consulting authorizer for opinion";
                tracing::error!(logger, user, verb, namespace, resource, subresource, name, error, "{text}");
            }
            Ruling::Failed { code, message } => {
                self.failed(message);
                tracing::info!(logger, code, "Request is no review");
            }
            Ruling::Panicked(_) => {
                // Its text may quote an object.
                self.metrics.panicked();
                self.failed("panicked");
                tracing::error!(logger, user, verb, namespace, resource, subresource, name, "A webhook panicked");
            }
        }
    }

    fn failed(&self, message: &str) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        self.show(Some(message));
    }

    fn show(&self, error: Option<&str>) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let in_flight = self.in_flight.load(Ordering::Relaxed);
        let requests = read(&self.requests);
        let mean = Duration::from_micros(read(&self.microseconds).checked_div(requests).unwrap_or_default());
        let line = format!(
            "{requests} requests, {} denied, {} errors, {:.1} ms on average",
            read(&self.denied),
            read(&self.errors),
            mean.as_secs_f64() * 1000.0
        );
        let now = Clock::system_wall();
        self.cell.update(now, |cell| {
            cell.activity = if in_flight == 0 { Activity::Idle } else { Activity::Running };
            cell.mailbox = u32::try_from(in_flight).unwrap_or(u32::MAX);
            cell.finished = requests;
            cell.line = line;
            if let Some(error) = error {
                cell.last_error = Some((now, error.to_owned()));
            }
        });
    }
}

// === impl Answering ===

impl Answering<'_> {
    /// It was answered with this HTTP status.
    pub(super) fn end(self, status: u16) {
        let time = self.begun.elapsed();
        let statistics = self.statistics;
        statistics.metrics.answered(status, time);
        statistics.requests.fetch_add(1, Ordering::Relaxed);
        let microseconds = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        statistics.microseconds.fetch_add(microseconds, Ordering::Relaxed);
    }
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.statistics.metrics.in_flight(-1);
        self.statistics.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.statistics.show(None);
    }
}

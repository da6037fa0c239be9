use std::{sync::Arc, time::Duration};

use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry};

use super::{NO_LABELS, declared};

/// Causes of reviews that were not allowed.
pub const FAILURE_CAUSES: [&str; 9] =
    ["denied", "status", "invalid", "namespace", "autoscalers", "nodes", "undecodable", "internal", "panic"];

/// Subjects of requests to an authorizer.
pub const DECIDED_RESOURCES: [&str; 7] =
    ["certificatesigningrequests", "events", "leases", "nodes", "pods", "secrets", "other"];

/// Decisions of an authorizer.
pub const DECISIONS: [&str; 4] = ["allow", "deny", "no_opinion", "error"];

/// The series of one webhook. Clones share them.
#[derive(Clone)]
pub struct WebhookMetrics {
    path: Arc<str>,
    requests: IntCounterVec,
    ok: IntCounter,
    in_flight: IntGauge,
    seconds: Histogram,
    panics: IntCounter,
    failures: IntCounterVec,
    decisions: IntCounterVec,
    denials: IntCounterVec,
}

pub(super) struct Families {
    requests: IntCounterVec,
    in_flight: IntGaugeVec,
    seconds: HistogramVec,
    panics: IntCounter,
    failures: IntCounterVec,
    decisions: IntCounterVec,
    denials: IntCounterVec,
}

impl Families {
    pub(super) fn new(registry: &Registry) -> Self {
        Self {
            requests: declared::WEBHOOK_REQUESTS.counters(registry),
            in_flight: declared::WEBHOOK_IN_FLIGHT.gauges(registry),
            seconds: declared::WEBHOOK_SECONDS.histograms(registry),
            panics: declared::WEBHOOK_PANICS.counters(registry).with_label_values(&NO_LABELS),
            failures: declared::WEBHOOK_FAILURES.counters(registry),
            decisions: declared::AUTHORIZER_DECISIONS.counters(registry),
            denials: declared::WEBHOOK_DENIALS.counters(registry),
        }
    }

    pub(super) fn webhook(&self, path: &str) -> WebhookMetrics {
        self.requests.with_label_values(&[path, "500"]);
        for cause in FAILURE_CAUSES {
            self.failures.with_label_values(&[path, cause]);
        }
        WebhookMetrics {
            path: path.into(),
            requests: self.requests.clone(),
            ok: self.requests.with_label_values(&[path, "200"]),
            in_flight: self.in_flight.with_label_values(&[path]),
            seconds: self.seconds.with_label_values(&[path]),
            panics: self.panics.clone(),
            failures: self.failures.clone(),
            decisions: self.decisions.clone(),
            denials: self.denials.clone(),
        }
    }
}

impl WebhookMetrics {
    /// A request was answered with the HTTP status `code` after `duration`.
    pub fn answered(&self, code: u16, duration: Duration) {
        self.seconds.observe(duration.as_secs_f64());
        match code {
            200 => self.ok.inc(),
            code => self.requests.with_label_values(&[&*self.path, code.to_string().as_str()]).inc(),
        }
    }

    /// A request came (`1`) or was answered (`-1`).
    pub fn in_flight(&self, change: i64) {
        self.in_flight.add(change);
    }

    /// A review was not allowed for this cause, one of [`FAILURE_CAUSES`].
    pub fn failed(&self, cause: &str) {
        self.failures.with_label_values(&[&*self.path, cause]).inc();
    }

    /// An authorizer made a decision, one of [`DECISIONS`], about one of [`DECIDED_RESOURCES`].
    pub fn decided(&self, resource: &str, decision: &str) {
        self.decisions.with_label_values(&[&*self.path, resource, decision]).inc();
    }

    /// A validating webhook denied a request about this resource.
    pub fn denied(&self, resource: &str) {
        self.denials.with_label_values(&[&*self.path, resource]).inc();
    }

    /// The handler panicked. Also count the answer.
    pub fn panicked(&self) {
        self.panics.inc();
    }
}

impl std::fmt::Debug for WebhookMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("WebhookMetrics").field(&self.path).finish()
    }
}
